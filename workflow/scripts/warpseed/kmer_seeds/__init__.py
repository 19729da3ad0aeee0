"""Fixed-length seeds (paper 000): k-mers against a reference, up to a few mismatches, on both strands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, TypeAlias

from warpseed.errors import InputError

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.output.hits import Hits
    from warpseed.output.rows import Found
    from warpseed.sequences.queries import Queries

__all__ = ["find_kmers", "iter_kmer_hits"]

_HITS_AT_ONCE = 1 << 26
_FIRST_BATCH = 1 << 16

Source: TypeAlias = "str | os.PathLike[str] | Sequence[str] | Sequence[bytes] | Queries"


def _check(max_mismatches: int, tier: str, device: str, threads: int, max_hits: int | None) -> None:
    limits = {"paper": 2, "fast": 3}
    if tier not in limits:
        raise InputError(f"tier is {tier!r}, but 'fast' or 'paper' was expected.")
    if device not in ("cpu", "gpu"):
        raise InputError(f"device is {device!r}, but 'cpu' or 'gpu' was expected.")
    for name, value in (("max_mismatches", max_mismatches), ("threads", threads), ("max_hits", max_hits)):
        if not isinstance(value, Integral) and not (name == "max_hits" and value is None):
            raise InputError(f"{name} is {value!r}, but a whole number was expected.")
    if not 0 <= max_mismatches <= limits[tier]:
        raise InputError(
            f"max_mismatches is {max_mismatches}, but the {tier} tier takes 0 to {limits[tier]}"
            + (" (the fast tier takes 3)." if tier == "paper" else ".")
        )
    if threads < 1:
        raise InputError(f"threads is {threads}, but 1 or more was expected.")
    if max_hits is not None and max_hits < 0:
        raise InputError(f"max_hits is {max_hits}, but 0 or more, or None for all hits, was expected.")


def _open(index: SeedIndex | str | os.PathLike[str]) -> SeedIndex:
    from warpseed.fm_index.store import open_index

    return open_index(index) if isinstance(index, str | os.PathLike) else index


def _batches(kmers: Source) -> Iterable[Queries]:
    from warpseed.sequences.queries import Queries, iter_queries

    return [kmers] if isinstance(kmers, Queries) else iter_queries(kmers)


def _find(
    index: SeedIndex,
    queries: Queries,
    first: int,
    max_mismatches: int,
    *,
    tier: str,
    device: str,
    threads: int,
    max_hits: int | None,
    watch: Stopwatch,
) -> Found:
    """One batch, on the tier and device asked for."""
    from warpseed.kmer_seeds.kmers import pack_kmers

    with watch.stage("pack"):
        kmers = pack_kmers(queries, first)
    if device == "gpu":
        from warpseed.kmer_seeds.gpu import find_fast, find_paper

        find = find_fast if tier == "fast" else find_paper
        return find(index, kmers, max_mismatches, max_hits=max_hits, watch=watch)
    from warpseed.kmer_seeds import cpu

    if tier == "fast":
        with watch.stage("search"):
            return cpu.find_fast(index, kmers, max_mismatches, threads=threads, max_hits=max_hits)
    with watch.stage("search"):
        intervals = cpu.search_paper(index, kmers, max_mismatches, threads=threads, max_hits=max_hits)
    with watch.stage("locate"):
        return cpu.locate_intervals(index, kmers, intervals, max_mismatches, threads=threads)


def _search(
    index: SeedIndex,
    kmers: Source,
    *,
    max_mismatches: int,
    tier: str,
    device: str,
    threads: int,
    max_hits: int | None,
    watch: Stopwatch | None,
    hits_at_once: int | None,
) -> Iterator[tuple[Queries, Found, int]]:
    """The batches of `iter_kmer_hits`: k-mers, what was found, number of the first one."""
    from warpseed.compute.stopwatch import Stopwatch

    _check(max_mismatches, tier, device, threads, max_hits)
    # No k-mer has as many hits; what is beyond 64 bits would not fit the searches.
    max_hits = None if max_hits is None else min(int(max_hits), 1 << 62)
    watch = watch or Stopwatch()
    first, batches = 0, iter(_batches(kmers))
    while True:
        with watch.stage("read"):
            queries = next(batches, None)
        if queries is None:
            return
        begin, size = 0, len(queries) if hits_at_once is None else _FIRST_BATCH
        while begin < len(queries):
            part = queries.slice(begin, begin + size)
            found = _find(
                index, part, first, max_mismatches, tier=tier, device=device, threads=threads, max_hits=max_hits,
                watch=watch,
            )  # fmt: skip
            yield part, found, first
            first += len(part)
            begin += len(part)
            if hits_at_once is not None:
                size = max(1, min(16 * size, hits_at_once * len(part) // max(1, len(found.hits))))


def iter_kmer_hits(
    index: SeedIndex | str | os.PathLike[str],
    kmers: Source,
    *,
    max_mismatches: int = 0,
    tier: str = "fast",
    device: str = "cpu",
    threads: int = 1,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
    hits_at_once: int | None = _HITS_AT_ONCE,
) -> Iterator[Hits]:
    """As `find_kmers`, batch by batch in query order, for inputs whose hits need not fit in memory.

    A batch is as many k-mers as should have `hits_at_once` hits, judged by those before it (8 bytes a hit are held);
    None takes all that were read together.
    """
    from warpseed.kmer_seeds.output import make_hits

    opened = _open(index)
    for part, found, first in _search(
        opened, kmers, max_mismatches=max_mismatches, tier=tier, device=device, threads=threads, max_hits=max_hits,
        watch=watch, hits_at_once=hits_at_once,
    ):  # fmt: skip
        yield make_hits(opened, part, found, first)


def find_kmers(
    index: SeedIndex | str | os.PathLike[str],
    kmers: Source,
    *,
    max_mismatches: int = 0,
    tier: str = "fast",
    device: str = "cpu",
    threads: int = 1,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
) -> Hits:
    """Every place of the reference within a Hamming distance of each k-mer, on both strands.

    Parameters
    ----------
    index : SeedIndex, or the folder of one
    kmers : path of a FASTA or FASTQ file (plain or gzip, '-' for standard input), a sequence of str or bytes, or
        Queries; 1 to 255 bases each, lengths may differ. A base that is not A, C, G or T mismatches everything.
    max_mismatches : int, 0 to 3 (paper tier: 0 to 2)
    tier : 'fast', the best algorithm we know, or 'paper', the algorithm of paper 000; their hits are the same
    device : 'cpu' or 'gpu'
    threads : int, CPU threads
    max_hits : int or None; a k-mer with more hits (both strands, all distances) loses them all (paper 000, III.D)
    watch : Stopwatch that takes the seconds of each stage

    Returns
    -------
    Hits

    Raises
    ------
    InputError : an argument out of its range, or a file that is not what it should be
    IndexFormatError : `index` names a folder that holds no usable index
    DeviceError : device='gpu', and no GPU answers
    """
    from warpseed.kmer_seeds.output import make_hits
    from warpseed.output.rows import join_found
    from warpseed.sequences.queries import Queries

    opened = _open(index)
    parts = list(
        _search(
            opened, kmers, max_mismatches=max_mismatches, tier=tier, device=device, threads=threads, max_hits=max_hits,
            watch=watch, hits_at_once=None,
        )
    )  # fmt: skip
    queries = Queries.concatenate([part for part, _, _ in parts])
    return make_hits(opened, queries, join_found([found for _, found, _ in parts]))
