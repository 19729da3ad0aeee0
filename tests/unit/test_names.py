"""Names back to back: made, numbered, joined, cut, decoded."""

from __future__ import annotations

import numpy as np
import pytest
from warpseed.compute.ranges import borders_of
from warpseed.sequences.names import Names


def listed(names: Names) -> list[str]:
    assert names.offsets.dtype == np.int64 and names.text.dtype == np.uint8
    return [names.text[a:b].tobytes().decode() for a, b in zip(names.offsets, names.offsets[1:], strict=False)]


def test_names_may_repeat_and_be_empty() -> None:
    assert listed(Names.of(["a", "", b"bytes", "ä", "a"])) == ["a", "", "bytes", "ä", "a"]
    assert listed(Names.of([])) == []
    assert borders_of(np.array([3, 0, 2])).tolist() == [0, 3, 3, 5]


@pytest.mark.parametrize("prefix", ["", "k"])
@pytest.mark.parametrize("count", [0, 1, 12, 101])
def test_numbered_names(prefix: str, count: int) -> None:
    assert listed(Names.numbered(prefix.encode(), count)) == [f"{prefix}{i}" for i in range(count)]


def test_parts_are_joined_in_the_array_that_is_given() -> None:
    parts = [["one", "", "three"], [], ["", ""], ["six"]]
    given: list[np.ndarray] = []

    def empty(count: int, dtype: type) -> np.ndarray:
        given.append(np.empty(count, dtype))
        return given[-1]

    joined = Names.joined([Names.of(part) for part in parts], empty)
    assert listed(joined) == sum(parts, []) and joined.text is given[0]
    assert listed(Names.joined([Names.of([""])])) == [""]


def test_a_slice_is_a_view_that_begins_at_0() -> None:
    names = Names.of(["zero", "", "two", "three"])
    part = names.slice(1, 3)
    assert listed(part) == ["", "two"] and part.offsets[0] == 0 and part.text.base is not None
    assert listed(names.slice(4, 4)) == [] and names.slice(0, 4) is names


def test_all_names_are_decoded_at_once() -> None:
    assert Names.of(["a", "", "ä", b"\xff", ""]).decoded().tolist() == ["a", "", "ä", "\ufffd", ""]
    assert Names.of([]).decoded().tolist() == []
