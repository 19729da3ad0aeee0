"""Genomes with what makes a human one hard: families of repeats of many ages, satellites, duplications, gaps.

Where every feature lies is planned first, in a second or two even for the largest genome; then stretches of the text
are made from the plan on all threads (human_text.py) and written as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from warpseed.compute.pipeline import mapped
from warpseed.compute.ranges import borders_of
from warpseed.errors import InputError
from warpseed.sequences.draws import fill_uniform
from warpseed.sequences.files import atomic_path, open_for_writing
from warpseed.sequences.human_features import Family, HumanFeatures, read_features
from warpseed.sequences.human_text import (
    MARGIN,
    ONE,
    Arrays,
    Copies,
    Duplications,
    Plan,
    make_bases,
    put_lines,
)
from warpseed.sequences.simulate import LINE_BASES, check_range

__all__ = ["plan_genome", "simulate_human_like"]

_WHOLE = 10_000_000
"""Bases of the chromosomes whose features are as long as they are given, on average; in smaller ones they shrink."""
_PIECE = LINE_BASES << 13
"""Bases that are made at once: what a core keeps close to itself."""
_MICROSATELLITE = -1

# Streams of random numbers, beyond those of draws.py and human_text.py; each family has its own, from _FAMILY on.
_CENTROMERES, _MONOMERS, _LARGE, _LARGE_LENGTHS, _REVERSE, _DIVERGENCE, _SPREAD, _MICROSATELLITES = range(40, 48)
_FAMILY = 64
_OF_A_FAMILY = 3


def simulate_human_like(
    path: str | os.PathLike[str], *, size: int, seed: int, threads: int = 1, **features: Any
) -> None:
    """Write a genome like that of a human: repeats of all ages and lengths, regions of unlike GC, arrays, gaps.

    Parameters
    ----------
    path : path-like
        FASTA with 60 bases a line, compressed when it ends in ``.gz``; written under a temporary name and renamed.
    size : int
        Bases of all chromosomes together, at most 4,000,000,000. Some 40 bytes of memory for each thousand, and 4 MB a
        thread.
    seed : int
        0 to 2**63 - 1. The same seed and parameters give the same file.
    threads : int
        For any number of them, too.
    **features
        Fields of `HumanFeatures`. Arrays, duplications, gaps and isochores shrink with the chromosomes where these
        have less than 10,000,000 bases on average; of what would have less than one base there is none.

    Raises
    ------
    InputError
        When a parameter is out of its range, or what lies beside each other has no room.
    """
    check_range("threads", threads, 1, None)
    plan, borders = plan_genome(size, seed, **features)

    def lines_of(piece: tuple[int, int]) -> np.ndarray:
        first, end = piece
        codes = np.empty(end - first + 8, np.uint8)
        scratch = np.empty(end - first + 2 * MARGIN, np.uint8)
        lines = np.empty((end - first) // LINE_BASES * (LINE_BASES + 1) + LINE_BASES + 8, np.uint8)
        make_bases(codes[: end - first], first, plan, scratch)
        return lines[: put_lines(codes, end - first, LINE_BASES, lines)]

    with atomic_path(path) as temporary, open_for_writing(temporary, threads=threads) as handle:
        made = mapped(_pieces(borders), lines_of, threads)
        for number, (start, stop) in enumerate(pairwise(borders), 1):
            handle.write(b">sim%d\n" % number)
            for _ in range(start, stop, _PIECE):
                handle.write(next(made).data)


def _pieces(borders: Sequence[int]) -> Iterator[tuple[int, int]]:
    for start, stop in pairwise(borders):
        for first in range(start, stop, _PIECE):
            yield first, min(first + _PIECE, stop)


def plan_genome(size: int, seed: int, **features: Any) -> tuple[Plan, list[int]]:
    """Where the features of a genome lie, and where its chromosomes begin and end.

    Parameters
    ----------
    size, seed, **features
        As `simulate_human_like`.

    Returns
    -------
    Plan
        What `make_bases` makes any stretch of the genome of.
    list of int
        One number more than there are chromosomes, from 0 to `size`.

    Raises
    ------
    InputError
        As `simulate_human_like`.
    """
    wanted, families = read_features(size, seed, features)
    scale = min(1.0, size / wanted.contigs / _WHOLE)
    borders = _borders(size, wanted.contigs)
    arrays, gaps, arms = _plan_centromeres(borders, wanted, seed, scale)
    duplications, more_gaps = _plan_large(arms, size, wanted, seed, scale)
    starts, stops = (np.concatenate(parts) for parts in zip(gaps, more_gaps, strict=True))
    there = np.flatnonzero(starts < stops)
    order = there[np.argsort(starts[there])]
    plan = Plan(
        int(seed),
        max(int(wanted.isochore_length * scale), 1),
        float(wanted.gc[0]),
        float(wanted.gc[1]),
        _whole(wanted.indel_share),
        _plan_copies(size, wanted, families, seed),
        arrays,
        duplications,
        starts[order],
        stops[order],
    )
    return plan, borders


# ----------------------------------------------------------------------------------------------------------------- plan


def _whole(probability: float) -> int:
    return round(probability * ONE)


def _uniform(seed: int, stream: int, count: int) -> np.ndarray:
    """float64[count] in [0, 1), the first numbers of a stream."""
    values = np.empty(count)
    fill_uniform(values, seed, np.uint64(stream))
    return values


def _sequences(seed: int, stream: int, count: int, length: int, change: float) -> np.ndarray:
    """uint8[count, length], codes of sequences whose bases are those of a common one but for so large a share."""
    draws = _uniform(seed, stream, (1 + count) * length).reshape(1 + count, length)
    common = (4 * draws[0]).astype(np.uint8)
    # A draw below `change` is uniform again once it is divided by it: it chooses which of the other bases.
    steps = np.where(draws[1:] < change, 1 + np.minimum(3 * draws[1:] / max(change, 1e-9), 2).astype(np.uint8), 0)
    return ((common + steps) & 3).astype(np.uint8)


def _spread(lengths: np.ndarray, room: int, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order in which stretches lie on `room` bases, none over another, and where each in this order begins."""
    order = np.argsort(draws, kind="stable")
    behind = np.cumsum(lengths[order], dtype=np.int64)
    free = room - int(behind[-1]) if len(behind) else 0
    return order, (draws[order] * free).astype(np.int64) + behind - lengths[order]


def _borders(size: int, contigs: int) -> list[int]:
    shares = np.cumsum(np.linspace(1.0, 0.2, contigs))
    ends = (shares / shares[-1] * (size - contigs)).astype(np.int64) + np.arange(1, contigs + 1)
    return [0, *ends[:-1].tolist(), size]


_Stretches = tuple[np.ndarray, np.ndarray]
"""First bases, and bases behind the last ones, int64[n] each."""


def _plan_centromeres(
    borders: list[int], wanted: HumanFeatures, seed: int, scale: float
) -> tuple[Arrays, _Stretches, _Stretches]:
    """Arrays, runs of N, and what of each chromosome is left: its two arms, between telomeres and centromere."""
    start, stop = np.array(borders[:-1]), np.array(borders[1:])
    telomere = np.minimum(int(wanted.telomere_length * scale), (stop - start) // 4)
    inner = stop - start - 2 * telomere
    satellites, gap = ((share * inner).astype(np.int64) for share in (wanted.satellite_share, wanted.centromere_share))
    position = 0.2 + 0.3 * _uniform(seed, _CENTROMERES, len(start))
    left = start + telomere + ((inner - satellites - gap) * position).astype(np.int64)
    gap_start = left + satellites // 2
    gap_stop = gap_start + gap
    right = gap_stop + satellites - satellites // 2

    length = wanted.satellite_monomer * wanted.satellite_monomers
    monomers = _sequences(
        seed, _MONOMERS, len(start) * wanted.satellite_monomers, wanted.satellite_monomer, wanted.monomer_divergence
    )
    repeats = monomers.reshape(len(start), length)[:, np.arange(-MARGIN, length + MARGIN) % length]
    arrays = Arrays(
        np.column_stack([left, gap_stop]).ravel(),
        np.column_stack([gap_start, right]).ravel(),
        np.ascontiguousarray(repeats),
        _whole(wanted.satellite_divergence),
    )
    gaps = np.concatenate([start, gap_start, stop - telomere]), np.concatenate([start + telomere, gap_stop, stop])
    arms = np.column_stack([start + telomere, right]).ravel(), np.column_stack([left, stop - telomere]).ravel()
    return arrays, gaps, arms


def _plan_large(
    arms: _Stretches, size: int, wanted: HumanFeatures, seed: int, scale: float
) -> tuple[Duplications, _Stretches]:
    """Duplications and runs of N in the arms. What would run over the end of an arm is left out."""
    low, high = (int(length * scale) for length in wanted.duplication_lengths)
    gap = int(wanted.gap_length * scale)
    count = round(wanted.duplication_share * size / ((low + high) / 2)) if low else 0
    gaps = round(wanted.gap_share * size / gap) if gap else 0
    copied = low + (_uniform(seed, _LARGE_LENGTHS, count) * (high - low + 1)).astype(np.int64)
    lengths = np.concatenate([copied, copied, np.full(gaps, gap)])

    first, end = arms
    before = borders_of(end - first)
    if lengths.sum() > before[-1]:
        raise InputError(
            f"Duplications, what they are copies of, and gaps of {lengths.sum():,} bases together were asked for the "
            f"simulation, but the chromosomes' arms have {before[-1]:,}; give smaller shares or more bases."
        )
    order, along = _spread(lengths, int(before[-1]), _uniform(seed, _LARGE, len(lengths)))
    arm = np.searchsorted(before, along, side="right") - 1
    starts, fits = np.empty_like(lengths), np.empty(len(lengths), np.bool_)
    starts[order] = first[arm] + along - before[arm]
    fits[order] = along + lengths[order] <= before[arm + 1]

    kept = np.flatnonzero(fits[:count] & fits[count : 2 * count])
    kept = kept[np.argsort(starts[kept], kind="stable")]
    share = np.maximum(1.1 * _uniform(seed, _DIVERGENCE, count) - 0.1, 0)
    duplications = Duplications(
        starts[kept],
        copied[kept],
        starts[count + kept],
        (_uniform(seed, _REVERSE, count) < 0.5)[kept],
        np.rint(share * wanted.duplication_divergence * ONE).astype(np.int64)[kept],
    )
    gap_starts = starts[2 * count :][fits[2 * count :]]
    return duplications, (gap_starts, gap_starts + gap)


def _plan_copies(size: int, wanted: HumanFeatures, families: list[Family], seed: int) -> Copies:
    lengths, sources, rows = [], [], []
    changes: list[int] = []
    for number, family in enumerate(families):
        stream = _FAMILY + _OF_A_FAMILY * number
        of_family = _lengths(int(family.share * size), (family.shortest, family.length), seed, stream, skewed=True)
        chosen = _uniform(seed, stream + 1, len(of_family)) * family.subfamilies
        lengths.append(of_family)
        sources.append((chosen.astype(np.int64) + len(changes)).astype(np.int16))
        changes += [_whole(age) for age in np.linspace(*family.ages, family.subfamilies)]
        rows += [*_sequences(seed, stream + 2, family.subfamilies, MARGIN + family.length, family.apart)]
    total = int(wanted.microsatellite_share * size)
    lengths.append(_lengths(total, wanted.microsatellite_lengths, seed, _MICROSATELLITES, skewed=False))
    sources.append(np.full(len(lengths[-1]), _MICROSATELLITE, np.int16))
    changes.append(_whole(wanted.microsatellite_divergence))

    unordered = np.concatenate(lengths)
    order, starts = _spread(unordered, size, _uniform(seed, _SPREAD, len(unordered)))
    tail = np.zeros(MARGIN, np.uint8)
    offsets = borders_of(np.array([len(row) + MARGIN for row in rows], np.int64))
    return Copies(
        starts,
        unordered[order],
        np.concatenate(sources)[order],
        np.concatenate([part for row in rows for part in (row, tail)] or [tail]),
        offsets[1:] - MARGIN,
        np.array(changes, np.int64),
    )


def _lengths(total: int, limits: Sequence[int], seed: int, stream: int, *, skewed: bool) -> np.ndarray:
    """int32[…], lengths from the one limit to the other that are `total` together, for which the last is cut.

    All are as likely, or, skewed, short ones more so: a fifth of the way from the one to the other is their mean.
    """
    low, high = limits
    count = 64 + int(1.05 * total / (low + (high - low) / (5 if skewed else 2)))
    while total:
        u = _uniform(seed, stream, count)
        if skewed:
            u *= u
            u *= u
        lengths = low + (u * (high - low + 1)).astype(np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        if ends[-1] >= total:
            last = int(np.searchsorted(ends, total))
            lengths[last] -= ends[last] - total
            return lengths[: last + 1]
        count *= 2
    return np.empty(0, np.int32)
