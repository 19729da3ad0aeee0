"""The extended Burrows-Wheeler transform of a set of words, and the distance that it gives (paper 004).

Sequences become `words`, and go from here to `search`, which hands them to `cpu` or `gpu`; those of the command ebwt go
to `search` by `collection`, which writes files by `output`, and trees by `trees`. What comes back is a `transform`, and
the values of a `matrix`.

On the CPU `cpu` has words laid out (`fast`), and sorts conjugates by letters with the loops of `cpu_fast`, then ties by
ranks with those of `cpu_ranks`. `cpu_distances` compares few words; of many, `cpu_gaps` counts gaps with the loops of
`cpu_between`. On a GPU `gpu` calls `gpu_few_words`, whose kernels are those of `gpu_few`; or `gpu_ranges`, by which one
device or more order conjugates with `gpu_order`, and then `gpu_distances`, which has `gpu_counts` count what
`gpu_parts` deals out, of ranks that several devices lay out by `gpu_runs`. Kernels of the order are in `gpu_fast` and
`gpu_groups`, of distances in `gpu_sets` and `gpu_between`.

The paper tier, which timing alone calls: `cpu_paper`, and `gpu_paper`, which has kernels and what launches them. Steps
for both targets: `paper`.

What is timed: `timing`, of `timed` data sets of `weighted` sequences and their `solid` ones; `timing_collections`, with
`floors`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, Unpack

from warpseed.batches import OptionArguments, check_source, checked_options
from warpseed.compute.stopwatch import Stopwatch, checked_watch
from warpseed.errors import InputError

if TYPE_CHECKING:
    from warpseed.ebwt.matrix import DistanceMatrix
    from warpseed.ebwt.transform import Transform
    from warpseed.ebwt.words import Words
    from warpseed.sequences.queries import Queries

__all__ = ["ebwt_distances", "ebwt_transform"]

WordSource: TypeAlias = "str | os.PathLike[str] | Sequence[str] | Sequence[bytes] | Mapping[str, str | bytes] | Queries"
"""Words as users give them: path of a FASTA or FASTQ file, strings, strings by their names, or records in memory."""


def ebwt_transform(
    sequences: WordSource, *, watch: Stopwatch | None = None, **options: Unpack[OptionArguments]
) -> Transform:
    """The extended Burrows-Wheeler transform of a set of words.

    Parameters
    ----------
    sequences : path of a FASTA or FASTQ file (plain or gzip, '-' for standard input), whose letters are A, C, G, T, and
        N for any other; or a sequence of str or bytes, or a mapping of names to these, of any letters; or Queries
    watch : Stopwatch that takes the seconds of each stage
    device : 'cpu', 'gpu', or GPUs by their numbers: 'gpu:1', 'gpu:0,1', 'gpu:all'. Several share more than 65,536
        letters, and the distances of more than 1,024 words. Fewer stay on the first, and a line says so
    devices : numbers of the GPUs, with device='gpu': [0, 1] for 'gpu:0,1'
    threads : int, CPU threads

    Returns
    -------
    Transform: L and the 0-based ranks of the words; `warpseed.ebwt.transform.inverse` gives the words back

    Raises
    ------
    InputError : an argument out of its range, or sequences that are not what they should be
    MemoryLimitError : there is not enough memory
    DeviceError : a GPU is asked for, and none answers
    """
    from warpseed.ebwt.search import check_target, search

    checked = checked_options(options, ("watch",))
    watch = checked_watch(watch)
    check_target(checked)
    words = _words_from(sequences)
    found = search(words, checked, transform=True, distances=False, watch=watch).transform
    assert found is not None
    return found


def ebwt_distances(
    sequences: WordSource, *, watch: Stopwatch | None = None, **options: Unpack[OptionArguments]
) -> DistanceMatrix:
    """The distances δ (Definition 24) of all pairs of a set of words; parameters and errors as for `ebwt_transform`.

    Returns
    -------
    DistanceMatrix, with names as `warpseed.ebwt.matrix.labels_of` makes them of those that are given, of strings "0",
    "1", …
    """
    from warpseed.ebwt.matrix import DistanceMatrix, labels_of
    from warpseed.ebwt.search import check_target, search

    checked = checked_options(options, ("watch",))
    watch = checked_watch(watch)
    check_target(checked)
    words = _words_from(sequences)
    found = search(words, checked, transform=False, distances=True, watch=watch).distances
    assert found is not None
    return DistanceMatrix(labels_of(words.names.decoded()), found, words.lengths)


def _words_from(sequences: WordSource) -> Words:
    """Words of what a user gives."""
    from warpseed.ebwt.matrix import labels_of
    from warpseed.ebwt.words import read_words, words_of
    from warpseed.sequences.queries import Queries

    if isinstance(sequences, Mapping):
        for name in sequences:
            if not isinstance(name, str):
                raise InputError(f"The name of a word is {name!r:.60}, but text was expected.")
        return words_of(sequences.values(), labels_of(sequences))
    check_source(sequences)
    if isinstance(sequences, str | os.PathLike):
        return read_words(sequences)
    if isinstance(sequences, Queries):
        return words_of(map(sequences.sequence, range(len(sequences))), labels_of(sequences.names.decoded()))
    return words_of(sequences)
