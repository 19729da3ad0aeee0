"""The solid sequences of a weighted sequence (section VI of paper 004): one letter for each of its positions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from warpseed.compute.machine import require_memory
from warpseed.ebwt.weighted import LETTERS, Weighted, check_weighted
from warpseed.ebwt.words import Words
from warpseed.errors import InputError, check_number, check_real
from warpseed.sequences.alphabet import show_name
from warpseed.sequences.names import Names

__all__ = ["LIMIT", "THRESHOLD", "solid_sequences"]

THRESHOLD = 0.2
"""The paper's."""
LIMIT = 100_000
"""Solid sequences of one weighted sequence, unless more are asked for."""
_DIGITS = 15
"""Of a number that a sentence shows."""
_BESIDE = 220
"""Bytes of a solid sequence beside its letters: its name, and how it was found."""
_ROUNDING = 1 - 1e-9
"""Of a threshold: what is written as 0.2 reaches 0.2, however it was computed."""


class _Choices(NamedTuple):
    """What each position may have."""

    letters: np.ndarray
    """uint8[n, 4], codes of the letters, in descending order of their probabilities (equal ones as A, C, G, T)"""
    probabilities: np.ndarray
    """float64[n, 4], theirs, descending"""
    counts: np.ndarray
    """int64[n], letters that reach the threshold: the black nodes, which are the first of each position"""


def _choices_of(weighted: Weighted, threshold: float) -> _Choices:
    """The chain of black nodes.

    Raises
    ------
    InputError : the weighted sequence or the threshold are out of their range, or a position has no letter
    """
    if not 0 < check_real("threshold", threshold) <= 1:
        raise InputError(f"threshold is {threshold!r}, but a number above 0 and up to 1 was expected.")
    name, rows = check_weighted(weighted)
    order = np.argsort(-rows, axis=1, kind="stable")
    probabilities = np.take_along_axis(rows, order, axis=1)
    counts = (probabilities >= threshold * _ROUNDING).sum(axis=1)
    if not counts.all():
        position = int(np.argmin(counts))
        raise InputError(
            f"position {position + 1} of {show_name(name)} has no letter with a probability of {threshold:g} or more "
            f"(the most is {probabilities[position, 0]:g}), so there is no solid sequence; lower the threshold."
        )
    return _Choices(order.astype(np.uint8), probabilities, counts)


def _too_many(name: str, number: str, rule: str, limit: int) -> InputError:
    return InputError(
        f"{show_name(name)} has {number} solid sequences by the rule '{rule}', but the limit is {limit:,}; raise the "
        "threshold or the limit."
    )


def _require_room(name: str, count: int, positions: int) -> None:
    """Go on only where there is memory for so many solid sequences, and for how they are found."""
    what = f"The {count:,} solid sequences of {show_name(name)} take"
    require_memory(count * (positions + _BESIDE), what, "raise the threshold, or use a machine with more memory")


class _Step(NamedTuple):
    """One position of the solid sequences as far as it."""

    parents: np.ndarray
    """int64[f], which of those as far as the position before goes on"""
    ranks: np.ndarray
    """int64[f], with which of the letters of this one"""


def _steps_of_product(name: str, choices: _Choices, weighted: np.ndarray, threshold: float, limit: int) -> list[_Step]:
    """One for each weighted position. What is kept of a position can still reach the threshold with the most probable
    letters behind it, so no position has more than there are sequences, and these are 1 / τ at most."""
    best = np.append(np.cumprod(choices.probabilities[weighted, 0][::-1])[::-1], 1.0)[1:]
    products = np.array([np.delete(choices.probabilities[:, 0], weighted).prod()])
    steps = []
    for position, rest in zip(weighted, best, strict=True):
        longer = products[:, None] * choices.probabilities[position, : choices.counts[position]]
        steps.append(_Step(*np.nonzero(longer * rest >= threshold * _ROUNDING)))
        products = longer[steps[-1]]
        if len(products) > limit:
            raise _too_many(name, f"at least {len(products):,}", "product", limit)
        _require_room(name, len(products), len(choices.letters))
    if not (products >= threshold * _ROUNDING).all() or not len(products):
        most = choices.probabilities[:, 0].prod()
        raise InputError(
            f"the product of the most probable letters of {show_name(name)} is {most:g}, below the threshold of "
            f"{threshold:g}, so there is no solid sequence; lower the threshold, or take the rule 'letters'."
        )
    return steps


def _steps_of_letters(name: str, choices: _Choices, weighted: np.ndarray, limit: int) -> list[_Step]:
    """One for each weighted position: every letter behind every sequence before."""
    counts = choices.counts[weighted].tolist()
    digits = math.fsum(map(math.log10, counts))
    if digits > _DIGITS:
        raise _too_many(name, f"about 10^{digits:.0f}", "letters", limit)
    if (number := math.prod(counts)) > limit:
        raise _too_many(name, f"{number:,}", "letters", limit)
    _require_room(name, number, len(choices.letters))
    steps, count = [], 1
    for letters in counts:
        parents, ranks = np.divmod(np.arange(count * letters), letters)
        steps.append(_Step(parents, ranks))
        count *= letters
    return steps


def solid_sequences(
    weighted: Weighted, threshold: float = THRESHOLD, rule: str = "letters", *, limit: int = LIMIT
) -> Words:
    """The solid sequences of a weighted sequence. How many there are is known before one is made.

    Parameters
    ----------
    weighted : Weighted
    threshold : τ, above 0 and up to 1
    rule : 'letters', the paper's: every letter has a probability of at least τ; or 'product', the standard one: the
        product of the probabilities of all letters is at least τ
    limit : how many there may be

    Returns
    -------
    Words : of letters ACGT, all as long as the weighted sequence. The letters of a position are taken in descending
        order of their probabilities, and those of the last position change first; names are the weighted sequence's
        with a number from 1 on behind them

    Raises
    ------
    InputError : there are more than `limit`, or none, or an argument is out of its range
    MemoryLimitError : there is no memory for all of them
    """
    limit = check_number("limit", limit, 1)
    choices = _choices_of(weighted, threshold)
    branching = np.flatnonzero(choices.counts > 1)
    if rule == "letters":
        steps = _steps_of_letters(weighted.name, choices, branching, limit)
    elif rule == "product":
        steps = _steps_of_product(weighted.name, choices, branching, threshold, limit)
    else:
        raise InputError(f"rule is {rule!r}, but 'letters' or 'product' was expected.")
    count = len(steps[-1].ranks) if steps else 1
    codes = np.tile(choices.letters[:, 0], (count, 1))
    place = np.arange(count)
    for position, step in zip(branching[::-1], steps[::-1], strict=True):
        codes[:, position] = choices.letters[position, step.ranks[place]]
        place = step.parents[place]
    offsets = np.arange(count + 1, dtype=np.int64) * codes.shape[1]
    names = Names.of(f"{weighted.name}.{number}" for number in range(1, count + 1))
    return Words(letters=LETTERS, codes=codes.reshape(-1), offsets=offsets, names=names)
