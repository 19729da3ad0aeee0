"""What is timed of k-mers in a stream: data sets, the streams of each, and what their records say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.measure.records import join_parameters
from warpseed.measure.timing import Run, Side, side_fields
from warpseed.sequences.draws import fill_background
from warpseed.sequences.reference import read_reference
from warpseed.tree_bitmap.cpu_paper import kmers_between
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["WARM_UP_BASES", "Case", "Work", "kmers_of_stream", "side_of", "stream_of_case", "works_of"]

WARM_UP_BASES = 10_000
_SYSTEM = "tree_bitmap"


class Case(NamedTuple):
    """A data set, and what its records call it."""

    name: str
    reference: str | None
    """path of a FASTA file that the stream is read from; None for bases drawn at random"""
    seed: int
    """of the random bases"""
    lengths: Sequence[int]
    """bases of the streams, each the beginning of the longest"""
    kmer_lengths: Sequence[int]
    seed_length: int = 0
    """bases at the stream's beginning whose k-mers are known before"""
    chunk_length: int = 100_000
    max_edits: int = 2
    """of the Levenshtein kernels"""
    kmers: int = 100_000
    """of a dictionary that does not grow"""
    tools: Sequence[str] = ()
    """libraries that are timed with it"""


class Work(NamedTuple):
    """One stream, and what is asked of it."""

    codes: np.ndarray
    """uint8[n]"""
    k: int
    seed_length: int
    chunk_length: int
    max_edits: int
    is_genome: bool = False
    """whether its bases are a reference's"""

    @property
    def parameters(self) -> dict[str, Any]:
        """What its records say of it."""
        genome = {"bases": "genome"} if self.is_genome else {}
        seeded = {"seed_length": self.seed_length} if self.seed_length else {}
        return {"k": self.k, "length": len(self.codes), **genome, **seeded}


def stream_of_case(case: Case) -> np.ndarray:
    """The longest stream of a case: bases drawn at random, or a reference's contigs with what is no base between two.

    Raises
    ------
    InputError : the reference cannot be read
    """
    longest = max(case.lengths)
    if case.reference is None:
        codes = np.empty(longest, np.uint8)
        fill_background(codes, case.seed, 0.5)
        return codes
    contigs = read_reference(case.reference)
    return np.insert(contigs.codes, contigs.offsets[1:-1], NO_BASE)[:longest]


def works_of(case: Case) -> Iterator[Work]:
    """Every length of the stream, as far as there are so many bases, with every k."""
    codes = stream_of_case(case)
    for k in case.kmer_lengths:
        for length in dict.fromkeys(min(length, len(codes)) for length in case.lengths):
            how = case.chunk_length, case.max_edits, case.reference is not None
            yield Work(codes[:length], k, min(case.seed_length, length), *how)


def side_of(work: Work, run: Run, warm_up: Run, target: Options, named: dict[str, Any]) -> Side:
    """What is timed, on a part of the stream at first; `named` is what tells it from others in its parameters."""
    tier, device, threads, _ = target
    own = side_fields(_SYSTEM, tier=tier, device=device, threads=threads)
    parameters = join_parameters(work.parameters | named)
    return Side(run, lambda watch: warm_up(watch)(), {**own, "parameters": parameters})


def kmers_of_stream(codes: np.ndarray, k: int) -> np.ndarray:
    """All k-mers of a stream, as they come."""
    kmers, places = np.empty(len(codes), np.uint64), np.empty(len(codes), np.int64)
    return kmers[: kmers_between(codes, k, 0, len(codes), kmers, places)]
