"""K-mers in a stream, matched with a dictionary that grows on the way (paper 003).

A search goes from here to `search`: what is asked (`request`), blocks of a `stream` (`blocks`), what is told
(`reports`, `output`), `seeds` and a saved `dictionary`. `targets` chooses by tier and device; `room` asks for the
host's memory.

Fast tier on the CPU: `cpu`, with sets in parts (`cpu_parts`), the loops of `cpu_fast`, steps of `fast` and `windows`;
`cpu_counts` counts, `cpu_listing` lists k-mers that come first, and `cpu_edits` and `cpu_pieces` take edits. On a GPU:
`gpu`, or `gpu_matches` where all stays there (`on_device`), fill a `gpu_table`; what comes from the host (`gpu_lanes`)
goes there, and back, by `gpu_flight`, in memory that `gpu_rooms` has, where it is `gpu_packed`; where k-mers are
counted they are listed (`gpu_listing`), and come back by `gpu_counts`. The table's structure is chosen in
`gpu_structures`, by memory (`gpu_memory`), and launches the kernels of `gpu_fast` or `gpu_direct`; `gpu_answers` has
those for what places are. GPUs share places as `gpu_shares` says, and k-mers as `gpu_parts` does; `gpu_edits` has
kernels of its own. For both: `edits`, `slots`.

Paper tier: `dynamic` grows a `trie`, `hybrid` (both by `growing`) or `sorted_kmers`, makes a `bitmap` of it, and
matches with `cpu_paper`, or `gpu_dynamic` with the kernels of `gpu_paper`. `cpu_levenshtein` and `gpu_levenshtein`
serve timing alone. Steps for both targets: `paper`, `levenshtein`.

What is timed: `timing`, `timing_kernels`, `timed`, `peers`, `floors`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from warpseed.batches import OptionArguments, check_source, checked_options, single_gpu
from warpseed.compute.stopwatch import Stopwatch, checked_watch
from warpseed.errors import InputError, check_flag

if TYPE_CHECKING:
    import numpy as np

    from warpseed.batches import Source
    from warpseed.tree_bitmap.dictionary import Dictionary
    from warpseed.tree_bitmap.on_device import DeviceMatches
    from warpseed.tree_bitmap.search import Matches

__all__ = ["match_stream"]


class StreamArguments(OptionArguments, total=False):
    """What `match_stream` is asked, by name."""

    seed_length: int
    dictionary: str | os.PathLike[str] | Dictionary | np.ndarray | None
    grows: bool
    max_edits: int
    watch: Stopwatch | None


@overload
def match_stream(
    stream: Source, k: int | None = None, *, on_device: Literal[False] = False, **how: Unpack[StreamArguments]
) -> Matches: ...


@overload
def match_stream(
    stream: Any, k: int | None = None, *, on_device: Literal[True], **how: Unpack[StreamArguments]
) -> DeviceMatches: ...


def match_stream(
    stream: Any,
    k: int | None = None,
    *,
    seed_length: int = 0,
    dictionary: str | os.PathLike[str] | Dictionary | np.ndarray | None = None,
    grows: bool = True,
    max_edits: int = 0,
    on_device: bool = False,
    watch: Stopwatch | None = None,
    **options: Unpack[OptionArguments],
) -> Matches | DeviceMatches:
    """What is known of every place of a stream: was the k-mer that begins there seen before?

    Parameters
    ----------
    stream : path of a FASTA or FASTQ file (plain or gzip, '-' for standard input), a sequence of str or bytes, or
        Queries: the records that it consists of, one behind the other. No k-mer reaches from one into the next, or over
        a base that is not A, C, G or T; k-mers are taken as they stand, on one strand.
    k : bases of a k-mer, 1 to 31; None takes those of the dictionary, or 15
    seed_length : the k-mers of so many bases at the beginning are seen before the stream begins; what stands between
        two records counts as one
    dictionary : path of a saved dictionary, or Dictionary, or sorted numbers of k-mers, which are, too
    grows : whether k-mers of the stream are seen from their first place on; False looks up the dictionary and the seed
        alone
    max_edits : 1 to 3 asks, too, at which places something ends that so many edits lead to from a k-mer of the
        dictionary or the seed, which do not grow then; k and max_edits are 30 at most together
    on_device : bool, whether what is known stays on the GPU that finds it: with device='gpu', one GPU and the fast
        tier. The whole stream goes there, or lies there as letters: uint8, a record a row, or a pair of these in one
        dimension and the offsets between them, int[n + 1] (docs/kmer_seeds.md, "Hits that stay on the GPU")
    watch : Stopwatch that takes the seconds of each stage
    tier : 'fast', the best structure we know for the stream, or 'paper', the trie of paper 003; they say the same
    device : 'cpu', 'gpu', or GPUs by number: 'gpu:1', 'gpu:0,1', 'gpu:all'
    devices : sequence of int; with device='gpu' another way to say which
    threads : int, CPU threads

    Returns
    -------
    Matches; with on_device DeviceMatches, which knows the same

    Raises
    ------
    InputError : an argument out of its range, or a file that is not what it should be
    MemoryLimitError : the stream does not fit the device
    DeviceError : a GPU is asked for, and none answers
    """
    from warpseed.sequences.queries import read_queries
    from warpseed.tree_bitmap.search import checked_request, match
    from warpseed.tree_bitmap.stream import stream_of

    checked = checked_options(options, ("k", "seed_length", "dictionary", "grows", "max_edits", "watch"))
    if checked.max_hits is not None:
        raise InputError("max_hits is given, but a k-mer of a stream has no hits; leave it out.")
    if not check_flag("on_device", on_device):
        check_source(stream)
    watch = checked_watch(watch)
    request = checked_request(k, dictionary, seed_length, grows, checked, max_edits)
    if on_device:
        device = single_gpu(checked)
        from warpseed.tree_bitmap.gpu_matches import match_on_device

        return match_on_device(stream, request, device, watch)
    with watch.stage("read"):
        records = stream_of(read_queries(stream))
    return match(records, request, watch)
