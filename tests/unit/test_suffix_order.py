"""The check of large suffix arrays says of small ones what their definition says, right or wrong."""

from __future__ import annotations

import numpy as np
import pytest
import suffix_order
from hostile_texts import HOSTILE, text_of
from oracles.suffix_array import NaiveIndex, joined
from suffix_order import is_permutation, rows_out_of_order


@pytest.mark.parametrize("name", HOSTILE)
def test_rows_out_of_order(name: str) -> None:
    """All pairs of neighbours in the right order, in the order of the text, and in one that is drawn."""
    text = text_of(HOSTILE[name])
    right = np.array(NaiveIndex.of(joined(HOSTILE[name])).suffix_array, np.uint32)
    row_of = np.argsort(right)
    rows = np.arange(len(right) - 1)
    draw = np.random.default_rng(5)
    for order in right, np.arange(len(right), dtype=np.uint32), draw.permutation(right), right[::-1]:
        assert is_permutation(order)
        wrong = rows[row_of[order[:-1]] > row_of[order[1:]]]
        assert np.array_equal(rows_out_of_order(text.words, text.segments.text_start, order, rows), wrong)
        assert not len(wrong) or order is not right


def test_each_of_two_rows_that_changed_places_is_found() -> None:
    contigs = HOSTILE["copies with changes"]
    text = text_of(contigs)
    order = np.array(NaiveIndex.of(joined(contigs)).suffix_array, np.uint32)
    for row in range(len(order) - 1):
        changed = order.copy()
        changed[row : row + 2] = changed[row : row + 2][::-1].copy()
        assert list(rows_out_of_order(text.words, text.segments.text_start, changed, np.array([row]))) == [row]


def test_a_position_that_stands_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suffix_order, "PIECE", 3)
    order = np.array(NaiveIndex.of("ACGTAC$").suffix_array, np.uint32)
    assert is_permutation(order, threads=2)
    for place, value in (0, order[1]), (3, order[6]), (2, 7), (6, 2**32 - 1):
        changed = order.copy()
        changed[place] = value
        assert not is_permutation(changed, threads=2)
    text = text_of(["ACGTAC"])
    order[1] = order[0]
    assert list(rows_out_of_order(text.words, text.segments.text_start, order, np.array([0]))) == [0]
