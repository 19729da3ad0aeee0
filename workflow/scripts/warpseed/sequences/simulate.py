"""Genomes and reads made of random numbers, so that a first run needs no network.

What is made depends on the seed and the parameters alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of
from warpseed.errors import InputError
from warpseed.sequences.alphabet import DECODE
from warpseed.sequences.draws import (
    CONTIGS,
    ErrorModel,
    MadeReads,
    Places,
    Runs,
    copy_reads,
    draw_places,
    fill_background,
    measure_reads,
    place_n_runs,
    place_repeats,
    place_tandems,
    scan_runs,
)
from warpseed.sequences.files import atomic_path, open_for_writing
from warpseed.sequences.names import Names
from warpseed.sequences.queries import Queries
from warpseed.sequences.reference import Reference

__all__ = [
    "LINE_BASES",
    "MAX_SEED",
    "GenomeFeatures",
    "SimulatedReads",
    "check_range",
    "simulate_reads",
    "simulate_reference",
]

LINE_BASES = 60
"""Bases of a line of a simulated genome."""
_PIECE_LINES = 1 << 16
MAX_SEED = 2**63 - 1
"""The largest seed."""
_MOST_COVERAGE = 1000
_BEST_QUALITY = 41


class GenomeFeatures(NamedTuple):
    """What a simulated genome has, beside its size."""

    contigs: int = 1
    """contigs, of random lengths of at least one base, named ``sim1``, ``sim2``, …"""
    gc: float = 0.5
    """share of G and C in the background and in the families' sequences, 0 to 1"""
    repeat_families: int = 20
    """how many different sequences are repeated"""
    repeat_length: int = 1000
    """bases of each of them"""
    repeat_copies: int = 20
    """copies of each, placed at random and in random orientation; a later copy may overwrite part of an earlier one,
    and a contig's end may cut one"""
    repeat_divergence: float = 0.05
    """probability that a base of a copy is substituted, 0 to 1"""
    tandem_repeats: int = 50
    """how many stretches are one unit of 1 to 12 bases again and again"""
    tandem_length: int = 200
    """bases of each stretch"""
    n_runs: int = 5
    """how many stretches are unknown (N), placed last"""
    n_length: int = 1000
    """bases of each"""


def simulate_reference(path: str | os.PathLike[str], *, size: int, seed: int, **features: Any) -> None:
    """Write a random genome with what makes real ones hard: repeats, tandem repeats, Ns, several contigs.

    Parameters
    ----------
    path : path-like
        FASTA with 60 bases a line, compressed when it ends in ``.gz``; written under a temporary name and
        renamed.
    size : int
        Bases of all contigs together. Takes one byte of memory a base.
    seed : int
        0 to 2**63 - 1. The same seed and parameters give the same file.
    **features
        Fields of `GenomeFeatures`.

    Raises
    ------
    InputError
        When a parameter is out of its range, a stretch is longer than the genome, or all stretches of a kind together
        are more than 1,000 times as long as the genome.
    """
    plan = GenomeFeatures(**features)
    check_range("seed", seed, 0, MAX_SEED)
    _check_features(size, plan)
    codes = np.empty(size, np.uint8)
    gc = float(plan.gc)
    fill_background(codes, seed, gc)
    families, length, copies = plan.repeat_families, plan.repeat_length, plan.repeat_copies
    if families and copies:
        place_repeats(codes, seed, gc, families, length, copies, float(plan.repeat_divergence))
    if plan.tandem_repeats:
        place_tandems(codes, seed, plan.tandem_repeats, plan.tandem_length, 12)
    if plan.n_runs:
        place_n_runs(codes, seed, plan.n_runs, plan.n_length)

    borders = _contig_borders(size, plan.contigs, seed)
    with atomic_path(path) as temporary, open_for_writing(temporary) as handle:
        for number, (start, stop) in enumerate(pairwise(borders), 1):
            handle.write(b">sim%d\n" % number)
            for first in range(start, stop, LINE_BASES * _PIECE_LINES):
                handle.write(_lines(codes[first : min(first + LINE_BASES * _PIECE_LINES, stop)]))


def _check_features(size: int, plan: GenomeFeatures) -> None:
    check_range("size", size, 1, None)
    check_range("contigs", plan.contigs, 1, size)
    check_range("gc", plan.gc, 0, 1)
    check_range("repeat_divergence", plan.repeat_divergence, 0, 1)
    check_range("repeat_families", plan.repeat_families, 0, None)
    check_range("repeat_copies", plan.repeat_copies, 0, None)
    stretches = (
        ("repeat_families × repeat_copies", plan.repeat_families * plan.repeat_copies, "repeat_length"),
        ("tandem_repeats", plan.tandem_repeats, "tandem_length"),
        ("n_runs", plan.n_runs, "n_length"),
    )
    for name, count, length_name in stretches:
        length = getattr(plan, length_name)
        check_range(name, count, 0, None)
        if count:
            check_range(length_name, length, 1, size)
            check_range(f"{name} × {length_name}", count * length, 0, _MOST_COVERAGE * size)


def _contig_borders(size: int, contigs: int, seed: int) -> list[int]:
    """Return where contigs begin and end: `contigs` + 1 increasing numbers from 0 to `size`."""
    generator = np.random.default_rng([seed, int(CONTIGS)])
    # Random cuts among size - contigs + 1 places, then one base added to each contig: none is empty.
    shares = generator.random(contigs - 1)
    extra = np.sort(np.floor(shares * (size - contigs + 1)).astype(np.int64))
    return [0, *(int(e) + i for i, e in enumerate(extra, 1)), size]


def _lines(codes: np.ndarray) -> bytes:
    """Return codes as letters with a newline after every 60, and after the last."""
    letters = DECODE[codes]
    whole = len(letters) // LINE_BASES
    block = np.full((whole, LINE_BASES + 1), ord("\n"), np.uint8)
    block[:, :LINE_BASES] = letters[: whole * LINE_BASES].reshape(whole, LINE_BASES)
    rest = letters[whole * LINE_BASES :].tobytes()
    return block.tobytes() + (rest + b"\n" if rest else b"")


def check_range(name: str, value: float, low: float, high: float | None) -> None:
    """Raise an InputError that names a parameter of a simulation unless it is `low` to `high`, or at least `low`."""
    if value < low or (high is not None and not value <= high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} = {value} was asked for the simulation; it must be {limits}.")


@dataclass(frozen=True, kw_only=True)
class SimulatedReads(Queries):
    """Reads, and where each was drawn.

    Attributes
    ----------
    contigs : int32[n]
        Number of the contig, from 0.
    starts, stops : int64[n]
        The piece of that contig which the read was drawn from, ``[start, stop)``.
    reverse : bool[n]
        Whether the read is of the reverse strand: then its first base is the complement of base ``stop - 1``.
    edits : int32[n]
        Substitutions, insertions and deletions made. Turning the piece into the read takes no more than these, and
        may take fewer.
    """

    contigs: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    reverse: np.ndarray
    edits: np.ndarray


def simulate_reads(
    reference: Reference,
    *,
    count: int,
    length: int | Sequence[int],
    error_rate: float = 0.01,
    insertion_rate: float = 0.0,
    deletion_rate: float = 0.0,
    qualities: bool = False,
    seed: int,
) -> SimulatedReads:
    """Draw reads from both strands of a reference and make errors.

    Parameters
    ----------
    reference : Reference
    count : int
        How many reads.
    length : int, or two or three of them
        Bases of the piece of the reference that a read is drawn from, or the smallest and the largest number of them:
        then every length from the one to the other is as likely. With their mean between them lengths are those of a
        gamma distribution of shape 2, as long reads have them; what is shorter or longer is drawn again, by which the
        mean may change. Insertions and deletions make the read itself longer or shorter; one base is left in any case.
    error_rate : float
        Probability that a base is substituted by one of the three others, 0 to 1.
    insertion_rate, deletion_rate : float
        Probability that a random base is inserted before a base of the reference, and that the base is left out, 0 to
        1. Longer insertions do not occur, longer deletions where bases side by side are left out.
    qualities : bool
        Whether the reads have qualities. There are two of them, a low and a high one: half of the wrong bases
        (substituted or inserted) have the low one, and so many right ones that both qualities say the truth: of the
        bases with quality Q (at most 41), 10 ** (-Q / 10) are wrong, but for rounding. An N has quality 0.
    seed : int
        0 to 2**63 - 1. The same seed, reference and parameters give the same reads.

    Returns
    -------
    SimulatedReads
        Named ``r0``, ``r1``, …. Places are uniform over all windows of the read's length that hold no N; only when the
        reference has no such window for the longest reads, over all windows of its contigs.

    Raises
    ------
    InputError
        When no contig is as long as the longest reads, or a parameter is out of its range.
    """
    shortest, mean, longest = _length_range(length)
    check_range("seed", seed, 0, MAX_SEED)
    check_range("count", count, 1, None)
    rates = {"error_rate": error_rate, "insertion_rate": insertion_rate, "deletion_rate": deletion_rate}
    for name, rate in rates.items():
        check_range(name, rate, 0, 1)

    places = Places(np.empty(count + 1, np.int64), np.empty(count, np.int64), np.empty(count, np.bool_))
    draw_places(_runs_to_draw_from(reference, shortest, longest), (shortest, mean, longest), seed, places)
    errors = _error_model(*map(float, rates.values()))
    offsets, edits = places.offsets, np.zeros(count, np.int32)
    if insertion_rate or deletion_rate:
        offsets = np.empty(count + 1, np.int64)
        measure_reads(places, errors, seed, offsets)
    codes = np.empty(offsets[-1], np.uint8)
    characters = np.empty(len(codes) if qualities else 0, np.uint8)
    copy_reads(reference.codes, places, errors, seed, MadeReads(codes, offsets, characters, edits))

    contigs = np.searchsorted(reference.offsets, places.starts, side="right") - 1
    starts = places.starts - reference.offsets[contigs]
    return SimulatedReads(
        codes,
        offsets,
        *Names.numbered(b"r", count),
        f"reads of {reference.path}",
        characters if qualities else None,
        contigs=contigs.astype(np.int32),
        starts=starts,
        stops=starts + np.diff(places.offsets),
        reverse=places.reverse,
        edits=edits,
    )


def _length_range(length: int | Sequence[int]) -> tuple[int, int, int]:
    """The smallest length, their mean or 0 where there is none, the largest."""
    several = (length, length) if isinstance(length, int) else tuple(length)
    if len(several) not in (2, 3) or list(several) != sorted(several):
        raise InputError(
            f"length = {length} was asked for the simulation; it must be a number, the smallest and the largest one, "
            "or these with their mean between them."
        )
    check_range("length", several[0], 1, None)
    return several[0], several[1] if len(several) == 3 else 0, several[-1]


def _error_model(substitution: float, insertion: float, deletion: float) -> ErrorModel:
    kept = 1.0 - deletion
    wrong = (kept * substitution + insertion) / (kept + insertion) if kept + insertion > 0 else 0.0
    # Half of the wrong bases are low, and the share of wrong ones among the low is sqrt(wrong): so the low ones are
    # sqrt(wrong) / 2 of all, whatever `wrong` is.
    root = math.sqrt(wrong)
    high = 0.5 * wrong / (1.0 - 0.5 * root)
    return ErrorModel(
        substitution, insertion, deletion, 0.5 * root / (1.0 + root), _quality_character(root), _quality_character(high)
    )


def _quality_character(probability: float) -> int:
    if probability <= 10.0 ** (-_BEST_QUALITY / 10):
        return 33 + _BEST_QUALITY
    return 33 + round(-10 * math.log10(probability))


def _runs_to_draw_from(reference: Reference, shortest: int, longest: int) -> Runs:
    nothing = np.empty(0, np.int64)
    found = scan_runs(reference.codes, reference.offsets, shortest, nothing, nothing)
    starts, lengths = np.empty(found, np.int64), np.empty(found, np.int64)
    scan_runs(reference.codes, reference.offsets, shortest, starts, lengths)
    if lengths.max(initial=0) < longest:
        long_enough = reference.lengths >= shortest
        starts, lengths = reference.offsets[:-1][long_enough], reference.lengths[long_enough]
    if lengths.max(initial=0) < longest:
        raise InputError(
            f"{reference.path}: reads of {longest} bases were asked for, but the longest contig has "
            f"{reference.lengths.max()}; ask for shorter reads."
        )
    if longest > shortest:
        order = np.argsort(-lengths, kind="stable")
        starts, lengths = starts[order], lengths[order]
    return Runs(starts, borders_of(lengths), lengths)
