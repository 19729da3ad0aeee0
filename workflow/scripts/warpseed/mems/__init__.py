"""Maximal exact matches of long reads (paper 002): every one, or those that lie in no other.

A search goes from here to `search`, which packs reads (`reads`) and hands them to `cpu` or `gpu`.

On the CPU `cpu` deals reads out to the loop of `cpu_fast` (with `cpu_block`, `cpu_crowded` and, for repeats,
`cpu_longest`), gives a single one that takes long to `cpu_steps`, or goes through the stages of `cpu_paper`. On a GPU
`gpu` launches the kernels of `gpu_fast` and `gpu_longest`, or calls `gpu_stages`, which launches those of `gpu_paper`;
`gpu_shared` puts matches in order with the kernels of `gpu_order`. Steps for both targets: `fast`, `longest`, `paper`;
what a match is: `matches`; sorted on the CPU: `order`. Matches go out by `output`, on a device by `gpu_output`.

What is timed: `timing`, `peers` (beside other tools), `floors`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from warpseed.batches import OptionArguments, Source, checked_options, find_all, find_on_device, iter_hits, opened
from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch, checked_watch
from warpseed.errors import InputError, check_flag, check_number

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.mems.search import MemSearch
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.rows import Found

__all__ = ["find_function", "find_mems", "iter_mem_hits", "mem_search"]


def find_function(tier: str, device: str) -> Callable[..., Found]:
    """The search of a tier on a device, or on several GPUs that share the reads ('gpu:0,1').

    Returns
    -------
    find(index, reads, criteria, *, threads, max_hits, count_only, watch) -> Found, of packed reads
    """
    if device == "cpu":
        from warpseed.mems import cpu

        return {"fast": cpu.find_fast, "paper": cpu.find_paper}[tier]
    from warpseed.mems import gpu

    find: Callable[..., Found] = {"fast": gpu.find_fast, "paper": gpu.find_paper}[tier]
    return partial(find, devices=devices_of(device))


def mem_search(
    index: SeedIndex | str | os.PathLike[str],
    *,
    min_length: int = 20,
    kind: str = "super",
    both_strands: bool = True,
    max_occurrences: int | None = None,
    **options: Unpack[OptionArguments],
) -> MemSearch:
    """A search of long reads for `warpseed.batches`; parameters and errors are those of `find_mems`."""
    from warpseed.compute.sink import limit_of
    from warpseed.fm_index.binned import binned_index
    from warpseed.mems.matches import KINDS, MOST_OCCURRENCES, PAPER, Criteria
    from warpseed.mems.reads import MAX_LENGTH
    from warpseed.mems.search import MemSearch

    checked = checked_options(options, ("min_length", "kind", "both_strands", "max_occurrences", "watch"))
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind is {kind!r}, but {', '.join(map(repr, KINDS))} were expected.")
    check_flag("both_strands", both_strands)
    if checked.tier == "paper" and KINDS[kind] != PAPER:
        raise InputError(
            f"kind is {kind!r}, but the paper tier finds 'paper' alone; choose that kind, or the fast tier."
        )
    length = check_number("min_length", min_length, 1, MAX_LENGTH)
    most = None
    if max_occurrences is not None:
        expected = f"1 to {MOST_OCCURRENCES - 1}, or None for all matches, was expected"
        most = check_number("max_occurrences", max_occurrences, 1, MOST_OCCURRENCES - 1, expected=expected)
    index = opened(index)
    if checked.tier == "paper":
        binned_index(index, length, threads=checked.threads)
    return MemSearch(index, Criteria(length, KINDS[kind], 2 if both_strands else 1, limit_of(most)), checked)


def iter_mem_hits(
    index: SeedIndex | str | os.PathLike[str],
    reads: Source,
    *,
    min_length: int = 20,
    kind: str = "super",
    both_strands: bool = True,
    max_occurrences: int | None = None,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Iterator[Hits]:
    """As `find_mems`, batch by batch in query order, for inputs whose matches need not fit in memory."""
    watch = checked_watch(watch)
    search = mem_search(
        index, min_length=min_length, kind=kind, both_strands=both_strands, max_occurrences=max_occurrences, **options
    )  # fmt: skip
    return (hits for hits, _ in iter_hits(reads, search, watch=watch))


class MemArguments(OptionArguments, total=False):
    """What `find_mems` is asked, by name."""

    min_length: int
    kind: str
    both_strands: bool
    max_occurrences: int | None
    watch: Stopwatch | None


@overload
def find_mems(
    index: SeedIndex | str | os.PathLike[str],
    reads: Source,
    *,
    on_device: Literal[False] = False,
    **how: Unpack[MemArguments],
) -> Hits: ...


@overload
def find_mems(
    index: SeedIndex | str | os.PathLike[str], reads: Any, *, on_device: Literal[True], **how: Unpack[MemArguments]
) -> DeviceColumns: ...


def find_mems(
    index: SeedIndex | str | os.PathLike[str],
    reads: Any,
    *,
    min_length: int = 20,
    kind: str = "super",
    both_strands: bool = True,
    max_occurrences: int | None = None,
    on_device: bool = False,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Hits | DeviceColumns:
    """Maximal exact matches between reads and the reference.

    Parameters
    ----------
    index : SeedIndex, or the folder of one
    reads : path of a FASTA or FASTQ file (plain or gzip, '-' for standard input), a sequence of str or bytes, or
        Queries; of any length, at least one base each. A base that is not A, C, G or T matches nothing.
    min_length : int, bases of the shortest match
    kind : which matches; docs/mems.md has them at length
        'maximal' : all that can be extended neither to the left nor to the right
        'paper' : of these, those for which no match on the same strand begins further left and ends as far right, or
            further (paper 002, definition 2), in the read, or on strand 1 in its reverse complement
        'super' : those whose part of the read lies in no longer part that has a match, on either strand
    both_strands : bool, whether reverse complements are searched, too
    max_occurrences : int or None; of a part of a read that has more matches, of the kind that is wanted and on both
        strands together, all are left out, and counted among the dropped hits
    on_device : bool, whether the matches stay on the GPU that finds them, as columns there: with device='gpu', one GPU
        and the fast tier. Then `reads` may be letters on that GPU, too: uint8, a read a row, or a pair of these in one
        dimension and the offsets between them, int[n + 1] (docs/kmer_seeds.md, "Hits that stay on the GPU")
    watch : Stopwatch that takes the seconds of each stage
    tier : 'fast', the best algorithm we know, or 'paper', the algorithm of paper 002, for its own kind alone; their
        matches are the same
    device : 'cpu', 'gpu', or GPUs by number: 'gpu:1', 'gpu:0,1', 'gpu:all'
    devices : sequence of int; with device='gpu' another way to say which
    threads : int, CPU threads
    max_hits : int or None; a read with more matches, of the kind that is wanted and however many occurrences they have,
        loses them all

    Returns
    -------
    Hits, whose rows are MATCH_ROW of `warpseed.mems.output`; of a read by contig, start, strand, end, and place in the
    read; with on_device DeviceColumns, equal ones in the same order

    Raises
    ------
    InputError : an argument out of its range, or a file that is not what it should be
    IndexFormatError : `index` names a folder that holds no usable index
    DeviceError : a GPU is asked for, and none answers
    MemoryLimitError : with on_device, the matches do not fit the GPU
    """
    watch = checked_watch(watch)
    search = mem_search(
        index, min_length=min_length, kind=kind, both_strands=both_strands, max_occurrences=max_occurrences, **options
    )  # fmt: skip
    if check_flag("on_device", on_device):
        return find_on_device(reads, search, watch=watch)
    queries, found = find_all(reads, search, watch=watch)
    return search.hits(queries, found, 0, False)
