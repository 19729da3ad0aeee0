"""Short reads with at most one substitution, insertion or deletion (paper 001), or two: every placement.

A search goes from here to `search`, which packs reads (`reads`), hands them to `cpu` or `gpu`, and keeps the best
placements of what these find, where those are asked for (`best`).

On the CPU `cpu` deals reads out to the loops of `cpu_fast` or `cpu_paper`. On a GPU `gpu` launches the kernels of
`gpu_fast`, with two edits those of `gpu_two`, or calls `gpu_paper`, which has the kernel and what launches it. Steps of
a read, for both targets: `fast`, `fast_two`, `paper`, with `agreement` and `edits`. Placements go out by `output`, on a
device by `gpu_output`, as BAM by `bam` and `bam_records`.

What is timed: `timing`, `results` (what the paper tier keeps), `peers` and `floors`.
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
    from warpseed.one_error.search import ReadSearch
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.rows import Found

__all__ = ["find_function", "find_reads", "iter_read_hits", "read_search"]

_REPORTS = ("all", "best")


def find_function(tier: str, device: str) -> Callable[..., Found]:
    """The search of a tier on a device, or on several GPUs that share the reads ('gpu:0,1').

    Returns
    -------
    find(index, reads, criteria, *, threads, max_hits, count_only, watch) -> Found, of packed reads
    """
    if device == "cpu":
        from warpseed.one_error import cpu

        return {"fast": cpu.find_fast, "paper": cpu.find_paper}[tier]
    from warpseed.one_error import gpu

    find: Callable[..., Found] = {"fast": gpu.find_fast, "paper": gpu.find_paper}[tier]
    return partial(find, devices=devices_of(device))


def read_search(
    index: SeedIndex | str | os.PathLike[str],
    *,
    max_edits: int = 1,
    both_strands: bool = True,
    report: str = "all",
    keep_reads: bool = False,
    **options: Unpack[OptionArguments],
) -> ReadSearch:
    """A search of reads for `warpseed.batches`; parameters and errors are those of `find_reads`."""
    from warpseed.one_error.reads import MAX_EDITS, Criteria
    from warpseed.one_error.search import ReadSearch

    checked = checked_options(options, ("max_edits", "both_strands", "report", "keep_reads", "watch"))
    if not isinstance(report, str) or report not in _REPORTS:
        raise InputError(f"report is {report!r}, but {' or '.join(map(repr, _REPORTS))} was expected.")
    check_flag("both_strands", both_strands)
    check_flag("keep_reads", keep_reads)
    least, most, takes = 0, MAX_EDITS, f"the fast tier takes 0 to {MAX_EDITS}"
    if checked.tier == "paper":
        least, most, takes = 1, 1, "the paper tier takes 1 alone"
    edits = check_number("max_edits", max_edits, least, most, takes)
    criteria = Criteria(edits, 2 if both_strands else 1)
    return ReadSearch(opened(index), criteria, checked, best=report == "best", keep_reads=keep_reads)


def iter_read_hits(
    index: SeedIndex | str | os.PathLike[str],
    reads: Source,
    *,
    max_edits: int = 1,
    both_strands: bool = True,
    report: str = "all",
    keep_reads: bool = False,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Iterator[Hits]:
    """As `find_reads`, batch by batch in query order, for inputs whose placements need not fit in memory."""
    watch = checked_watch(watch)
    search = read_search(
        index, max_edits=max_edits, both_strands=both_strands, report=report, keep_reads=keep_reads, **options
    )
    return (hits for hits, _ in iter_hits(reads, search, watch=watch))


class ReadArguments(OptionArguments, total=False):
    """What `find_reads` is asked, by name."""

    max_edits: int
    both_strands: bool
    report: str
    keep_reads: bool
    watch: Stopwatch | None


@overload
def find_reads(
    index: SeedIndex | str | os.PathLike[str],
    reads: Source,
    *,
    on_device: Literal[False] = False,
    **how: Unpack[ReadArguments],
) -> Hits: ...


@overload
def find_reads(
    index: SeedIndex | str | os.PathLike[str], reads: Any, *, on_device: Literal[True], **how: Unpack[ReadArguments]
) -> DeviceColumns: ...


def find_reads(
    index: SeedIndex | str | os.PathLike[str],
    reads: Any,
    *,
    max_edits: int = 1,
    both_strands: bool = True,
    report: str = "all",
    keep_reads: bool = False,
    on_device: bool = False,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Hits | DeviceColumns:
    """Every placement of each read: every substring of the reference within an edit distance of it.

    A read that occurs somewhere has placements a base longer and shorter there, too: they are one edit away from it.
    docs/one_error.md says what a placement is, and which of its edits is told.

    Parameters
    ----------
    index : SeedIndex, or the folder of one
    reads : path of a FASTA or FASTQ file (plain or gzip, '-' for standard input), a sequence of str or bytes, or
        Queries; at least one base each. A base that is not A, C, G or T differs from everything.
    max_edits : int, 0 to 2 (paper tier 1): substitutions, insertions and deletions of one base
    both_strands : bool, whether reverse complements are searched, too
    report : 'all' placements, or the 'best' one of each locus (docs/one_error.md, "One placement a locus")
    keep_reads : bool, whether the hits have the reads (`hits.queries`), with their qualities and letters, for BAM
    on_device : bool, whether all placements stay on the GPU that finds them, as columns there, without their reads:
        with device='gpu', one GPU and the fast tier. Then `reads` may be letters on that GPU, too: uint8, a read a row,
        or a pair of these in one dimension and the offsets between them, int[n + 1] (docs/kmer_seeds.md, "Hits that
        stay on the GPU")
    watch : Stopwatch that takes the seconds of each stage
    tier : 'fast', the best algorithm we know, or 'paper', the algorithm of paper 001; their placements are the same
    device : 'cpu'; 'gpu', the first one; or GPUs by number that share the reads: 'gpu:1', 'gpu:0,1', 'gpu:all'
    devices : sequence of int; with device='gpu' another way to say which
    threads : int, CPU threads
    max_hits : int or None; a read with more placements (both strands, whatever is reported) loses them all

    Returns
    -------
    Hits, whose rows are PLACEMENT_ROW of `warpseed.one_error.output`, or with `keep_reads` EDITED_ROW; with
    on_device DeviceColumns, equal ones in the same order

    Raises
    ------
    InputError : an argument out of its range, or a file that is not what it should be
    IndexFormatError : `index` names a folder that holds no usable index
    DeviceError : device='gpu', and no GPU answers
    MemoryLimitError : with on_device, the placements do not fit the GPU
    """
    watch = checked_watch(watch)
    search = read_search(
        index, max_edits=max_edits, both_strands=both_strands, report=report, keep_reads=keep_reads, **options
    )
    if check_flag("on_device", on_device):
        if report != "all" or keep_reads:
            raise InputError(
                "on_device=True leaves all placements on the GPU, without their reads, but report is "
                f"{report!r} and keep_reads {keep_reads!r}; give report='all' and keep_reads=False."
            )
        return find_on_device(reads, search, watch=watch)
    queries, found = find_all(reads, search, watch=watch)
    return search.hits(queries, found, 0, False)
