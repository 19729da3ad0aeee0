"""What is timed of weighted sequences: data sets, the words of each of their cases, and what their records say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.compute.ranges import borders_of
from warpseed.ebwt.solid import THRESHOLD, solid_sequences
from warpseed.ebwt.weighted import generate_weighted
from warpseed.ebwt.words import Words
from warpseed.measure.records import join_parameters
from warpseed.measure.timing import Run, Side, side_fields
from warpseed.sequences.names import Names

__all__ = ["Case", "Work", "joined_words", "side_of", "works_of"]

_SYSTEM = "ebwt"


class Case(NamedTuple):
    """A data set: weighted sequences of several lengths, each with a pattern."""

    positions: Sequence[int]
    """of the weighted sequences"""
    share: float = 0.07
    """of the positions that are weighted"""
    most_weighted: int = 7
    """of a sequence, however long"""
    pattern: int = 6
    """positions of the weighted pattern"""
    pattern_share: float = 0.34
    """of its positions that are weighted"""
    threshold: float = THRESHOLD
    seed: int = 9
    """of the sequences; the pattern has the next one"""


class Work(NamedTuple):
    """The solid sequences of a weighted sequence and of its pattern, and what is asked of them."""

    name: str
    """the records' case"""
    words: Words
    """the sequences, then the patterns"""
    pairs: np.ndarray
    """uint32[p, 2], the numbers of every sequence and every pattern"""
    parameters: dict[str, Any]
    """what the records say of it"""


def joined_words(parts: Sequence[Words]) -> Words:
    """The words of several sets that have the same letters, behind each other."""
    assert len({part.letters for part in parts}) == 1
    lengths = np.concatenate([part.lengths for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    return Words(parts[0].letters, codes, borders_of(lengths), Names.joined([part.names for part in parts]))


def works_of(case: Case) -> Iterator[Work]:
    """The weighted sequences of a case, one after the other, each with the same pattern.

    Raises
    ------
    InputError : one has more solid sequences than may be, or none
    """
    drawn = generate_weighted(case.pattern, case.pattern_share, case.seed + 1, name="pattern")
    patterns = solid_sequences(drawn, case.threshold)
    for positions in case.positions:
        drawn = generate_weighted(positions, case.share, case.seed, most=case.most_weighted, name="sequence")
        sequences = solid_sequences(drawn, case.threshold)
        counts = len(sequences.lengths), len(patterns.lengths)
        pairs = np.indices(counts).reshape(2, -1).T + np.array([0, counts[0]])
        facts = {"pattern": case.pattern, "tau": case.threshold, "sequences": counts[0], "patterns": counts[1]}
        yield Work(f"{positions} positions", joined_words([sequences, patterns]), pairs.astype(np.uint32), facts)


def side_of(work: Work, run: Run, target: Options) -> Side:
    """What is timed; the warm-up is a run."""
    own = side_fields(_SYSTEM, tier=target.tier, device=target.device, threads=target.threads)
    parameters = join_parameters(work.parameters)
    return Side(run, lambda watch: run(watch)(), {**own, "case": work.name, "parameters": parameters})
