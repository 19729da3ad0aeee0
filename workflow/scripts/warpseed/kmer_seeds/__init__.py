"""Fixed-length seeds (paper 000): k-mers against a reference, up to a few mismatches, on both strands.

A search goes from here to `search`, which packs k-mers (`kmers`) and hands them to `cpu` or `gpu`.

On the CPU `cpu` chooses windows (`plans`) and deals k-mers out to the loops of `cpu_fast`, with `cpu_tags`, or of
`cpu_paper`. On a GPU `gpu` launches the kernels of `gpu_exact`, `gpu_inexact` and `gpu_crowded`, which share
`gpu_look_ups` and numbers that `gpu_ways` makes, or calls `gpu_paper`, which has kernels and what launches them. Steps
of a k-mer, for both targets: `fast`, `paper`. Hits go out by `output`, on a device by `gpu_output`.

What is timed: `timing`, `peers` (beside bowtie), `floors` with the kernels of `gpu_floors`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from warpseed.batches import (
    OptionArguments,
    Source,
    checked_options,
    find_all,
    find_on_device,
    iter_hits,
    lies_on_device,
    opened,
)
from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch, checked_watch
from warpseed.errors import InputError, check_flag, check_number

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.kmer_seeds.search import Cut, KmerSearch
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.rows import Found

__all__ = ["find_function", "find_kmers", "iter_kmer_hits", "kmer_search"]

_MOST_STEP = 1 << 40


def find_function(tier: str, device: str) -> Callable[..., Found]:
    """The search of a tier on a device, or on several GPUs that share the k-mers ('gpu:0,1').

    Returns
    -------
    find(index, kmers, max_mismatches, *, threads, max_hits, count_only, watch) -> Found, of packed k-mers
    """
    # Each module by its name: the rules take what a script depends on from the imports that are written down.
    if device == "cpu":
        from warpseed.kmer_seeds import cpu

        return {"fast": cpu.find_fast, "paper": cpu.find_paper}[tier]
    from warpseed.kmer_seeds import gpu

    find: Callable[..., Found] = {"fast": gpu.find_fast, "paper": gpu.find_paper}[tier]
    return partial(find, devices=devices_of(device))


def _check_mismatches(max_mismatches: int, tier: str) -> int:
    from warpseed.kmer_seeds import fast, paper

    most = {"fast": fast.MAX_MISMATCHES, "paper": paper.MAX_MISMATCHES}
    hint = f" (the fast tier takes {most['fast']})" if tier == "paper" else ""
    expected = f"the {tier} tier takes 0 to {most[tier]}{hint}"
    return check_number("max_mismatches", max_mismatches, 0, most[tier], expected)


def _check_cut(k: int | None, step: int | None) -> Cut | None:
    """How k-mers are cut; None where the sequences are k-mers.

    Raises
    ------
    InputError : k or step is out of its range, or there is a step alone
    """
    from warpseed.kmer_seeds.kmers import MAX_LENGTH
    from warpseed.kmer_seeds.search import Cut

    if k is None:
        if step is not None:
            raise InputError(f"step is {step}, but there is no k; name both, or none where the sequences are k-mers.")
        return None
    length = check_number("k", k, 1, MAX_LENGTH)
    # No read is as long; what is beyond 64 bits would not fit the cutting.
    return Cut(length, length if step is None else min(check_number("step", step, 1), _MOST_STEP))


def kmer_search(
    index: SeedIndex | str | os.PathLike[str],
    *,
    k: int | None = None,
    step: int | None = None,
    max_mismatches: int = 0,
    **options: Unpack[OptionArguments],
) -> KmerSearch:
    """A search of k-mers for `warpseed.batches`; parameters and errors are those of `find_kmers`."""
    from warpseed.kmer_seeds.search import KmerSearch

    checked = checked_options(options, ("k", "step", "max_mismatches", "watch"))
    mismatches = _check_mismatches(max_mismatches, checked.tier)
    cut = _check_cut(k, step)
    return KmerSearch(opened(index), mismatches, checked, cut)


def iter_kmer_hits(
    index: SeedIndex | str | os.PathLike[str],
    kmers: Source,
    *,
    k: int | None = None,
    step: int | None = None,
    max_mismatches: int = 0,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Iterator[Hits]:
    """As `find_kmers`, batch by batch in query order, for inputs whose hits need not fit in memory.

    A batch has some hundred thousand hits at most, or some millions of one k-mer, which may have more of them in the
    next batch.
    """
    watch = checked_watch(watch)
    search = kmer_search(index, k=k, step=step, max_mismatches=max_mismatches, **options)
    return (hits for hits, _ in iter_hits(kmers, search, watch=watch))


class KmerArguments(OptionArguments, total=False):
    """What `find_kmers` is asked, by name."""

    k: int | None
    step: int | None
    max_mismatches: int
    watch: Stopwatch | None


@overload
def find_kmers(
    index: SeedIndex | str | os.PathLike[str],
    kmers: Source,
    *,
    on_device: Literal[False] = False,
    **how: Unpack[KmerArguments],
) -> Hits: ...


@overload
def find_kmers(
    index: SeedIndex | str | os.PathLike[str], kmers: Any, *, on_device: Literal[True], **how: Unpack[KmerArguments]
) -> DeviceColumns: ...


def find_kmers(
    index: SeedIndex | str | os.PathLike[str],
    kmers: Any,
    *,
    k: int | None = None,
    step: int | None = None,
    max_mismatches: int = 0,
    on_device: bool = False,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Hits | DeviceColumns:
    """Every place of the reference within a Hamming distance of each k-mer, on both strands.

    Parameters
    ----------
    index : SeedIndex, or the folder of one
    kmers : path of a FASTA or FASTQ file (plain or gzip, '-' for standard input), a sequence of str or bytes, or
        Queries; 1 to 255 bases each, lengths may differ. A base that is not A, C, G or T mismatches everything.
    k : int, 1 to 255; then the sequences are reads, of any length, and their k-mers at 0, step, 2·step, … are searched,
        named READ:OFFSET (0-based on the read as given). A read shorter than k has none.
    step : int, at least 1; k where not given, and 1 is all k-mers
    max_mismatches : int, 0 to 3 (paper tier: 0 to 2)
    on_device : bool, whether the hits stay on the GPU that finds them, as columns there: with device='gpu', one GPU and
        the fast tier. Then `kmers` may be letters on that GPU, too, but not reads that k-mers are cut from: uint8, a
        k-mer a row, or a pair of these in one dimension and the offsets between them, int[n + 1] (docs/kmer_seeds.md,
        "Hits that stay on the GPU")
    watch : Stopwatch that takes the seconds of each stage; with k, it counts `reads`, and as `short_reads` those of
        them that are shorter than k
    tier : 'fast', the best algorithm we know, or 'paper', the algorithm of paper 000; their hits are the same
    device : 'cpu'; 'gpu', the first one; or GPUs by number that share the k-mers: 'gpu:1', 'gpu:0,1', 'gpu:all'
    devices : sequence of int; with device='gpu' another way to say which
    threads : int, CPU threads
    max_hits : int or None; a k-mer with more hits (both strands, all distances) loses them all (paper 000, III.D)

    Returns
    -------
    Hits; with on_device DeviceColumns, equal hits in the same order

    Raises
    ------
    InputError : an argument out of its range, or a file that is not what it should be
    IndexFormatError : `index` names a folder that holds no usable index
    DeviceError : device='gpu', and no GPU answers
    MemoryLimitError : with on_device, the hits do not fit the GPU
    """
    watch = checked_watch(watch)
    search = kmer_search(index, k=k, step=step, max_mismatches=max_mismatches, **options)
    if check_flag("on_device", on_device):
        if k is not None and lies_on_device(kmers):
            raise InputError(f"k is {k}, but of letters on a GPU each query is a k-mer: cut them there; leave out k.")
        return find_on_device(kmers, search, watch=watch)
    queries, found = find_all(kmers, search, watch=watch)
    return search.hits(queries, found, 0, False)
