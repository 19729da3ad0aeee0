"""What the command `ebwt` does with the sequences of a file: transform and distances to files, and words back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.ebwt.matrix import DistanceMatrix, labels_of, phylip_of, tsv_of
from warpseed.ebwt.output import (
    FIGURES,
    TABLES,
    TRANSFORM,
    WORDS,
    open_all,
    put_lines,
    put_transform,
    read_transform,
    words_as_fasta,
)
from warpseed.ebwt.search import check_target, search
from warpseed.ebwt.transform import inverse
from warpseed.ebwt.trees import TREES, Tree, newick_of
from warpseed.ebwt.words import read_words
from warpseed.errors import InputError, how_many, say
from warpseed.output.opening import check_output, open_output

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch

__all__ = ["Clusters", "Draw", "Size", "Wanted", "write_collection", "write_inverse"]

_NO_TEXT = "\ufffd"
"""Stands for bytes that are no UTF-8."""


class Wanted(NamedTuple):
    """What is to be written."""

    options: Options
    transform: bool = True
    distances: bool = True
    tree: str = "nj"
    """a name of `warpseed.ebwt.trees.TREES`"""
    normalise: bool = False
    """whether distances are divided by the most that they can be"""

    @property
    def endings(self) -> tuple[str, ...]:
        """How the names of the files end."""
        return (TRANSFORM, WORDS) * self.transform + (*TABLES, *FIGURES) * self.distances


class Size(NamedTuple):
    """How much was read."""

    records: int
    bases: int

    def numbers(self) -> dict[str, int]:
        """These, and how many pairs of records there are, under their names."""
        return {**self._asdict(), "pairs": self.records * (self.records - 1) // 2}


class Clusters(NamedTuple):
    """What figures show."""

    names: tuple[str, ...]
    values: np.ndarray
    """[m, m]: δ, as of `distance_type`, or float64, δ over the most that it can be"""
    tree: Tree
    letters: int
    """of all words"""


Draw = Callable[[Clusters], Iterable[tuple[str, bytes]]]
"""What makes the figures: the ending of the name of each, and its content."""


def write_collection(source: str, prefix: str, wanted: Wanted, draw: Draw, watch: Stopwatch) -> Size:
    """Write what is wanted of the records of a file, all files or none.

    Parameters
    ----------
    source : FASTA or FASTQ, plain or gzip; '-' is standard input
    prefix : how the names of all files begin
    wanted : Wanted
    draw : makes the figures
    watch : takes the seconds of each stage

    Raises
    ------
    InputError : a file is not what it should be, or cannot be written, or has one record, whose distances are wanted
    MemoryLimitError : there is not enough memory
    DeviceError : a GPU is asked for, and does not answer
    """
    check_target(wanted.options)
    with open_all(prefix, wanted.endings, source) as streams:
        with watch.stage("read"):
            words = read_words(source)
        count = len(words.lengths)
        if wanted.distances and count < 2:
            raise InputError(
                f"{'standard input' if source == '-' else source}: there is one record, but a distance takes two; add "
                "others, or make the transform alone (warpseed ebwt --no-distances)."
            )
        given = words.names.decoded().tolist()
        names = labels_of(given)
        if changed := sum(name != own or _NO_TEXT in own for name, own in zip(names, given, strict=True)):
            say(f"Note: {how_many(changed, 'record')} whose name was missing, another's, or not UTF-8, got a new one.")
        found = search(words, wanted.options, transform=wanted.transform, distances=wanted.distances, watch=watch)
        if found.transform is not None:
            with watch.stage("write"):
                put_transform(streams, found.transform, names, words.lengths)
        if found.distances is not None:
            matrix = DistanceMatrix(names, found.distances, words.lengths)
            values = matrix.normalised() if wanted.normalise else matrix.values
            with watch.stage("tree"):
                tree = TREES[wanted.tree](values)
            with watch.stage("write"):
                for ending, lines in zip(
                    TABLES, (tsv_of(names, values), phylip_of(names, values), [newick_of(tree, names)]), strict=True
                ):
                    put_lines(streams[ending], lines)
            with watch.stage("draw"):
                for ending, picture in draw(Clusters(names, values, tree, len(words.codes))):
                    streams[ending].write(picture)
    return Size(count, len(words.codes))


def write_inverse(prefix: str, output: str, watch: Stopwatch) -> tuple[int, int]:
    """Write the sequences of a transform as FASTA.

    Parameters
    ----------
    prefix : how the names of the transform's two files begin
    output : a file, .gz to have it compressed, or '-' for standard output
    watch : takes the seconds of each stage

    Returns
    -------
    (records, letters)

    Raises
    ------
    InputError : the two files are not a transform, or the output cannot be written
    """
    inputs = [f"{prefix}.{ending}" for ending in (TRANSFORM, WORDS)]
    check_output(output, inputs)
    with watch.stage("read"):
        transform, names, lengths = read_transform(prefix)
    with watch.stage("inverse"):
        try:
            words = inverse(transform)
        except InputError as error:
            raise InputError(f"{inputs[0]}, with {inputs[1]}: {error}") from error
    with watch.stage("write"), open_output(output, inputs) as stream:
        for record in words_as_fasta(words, names, lengths):
            stream.write(record)
    return len(names), len(words.codes)
