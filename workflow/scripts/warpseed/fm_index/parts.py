"""The parts of an index, and what each is made of: the one declaration that building, saving, opening and sizes read.

Every index has the *core*: the packed text and its segments. The other parts are there when they were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.layout import HINT_SHIFT, PAD_WORDS, TAG_PADDING, Parameters, Tags
from warpseed.fm_index.text import PackedText

__all__ = [
    "ALL_PARTS",
    "CORE",
    "DEFAULT_PARTS",
    "GROUPS",
    "PARTS",
    "ArraySpec",
    "Arrays",
    "Keep",
    "Sizes",
    "Work",
    "choose_parts",
    "file_name",
    "kept_in_memory",
    "new_arrays",
    "part_bytes",
    "part_names",
]

Arrays: TypeAlias = dict[str, np.ndarray]
"""The arrays of one part, by name."""


class Sizes(NamedTuple):
    """What the lengths of all arrays follow from."""

    rows: int
    """length of the text: bases and separators"""
    segments: int
    parameters: Parameters

    @property
    def blocks(self) -> int:
        """Entries of ROcc for each base: one every `occ_interval` rows, and one behind them."""
        return self.rows // self.parameters.occ_interval + 2


Keep: TypeAlias = Callable[[str, str, np.ndarray], np.ndarray]
"""Takes an array that is finished, by its part and its name; returns the one that the work goes on with."""


def kept_in_memory(part: str, name: str, array: np.ndarray) -> np.ndarray:
    """Leaves an array where it is."""
    del part, name
    return array


class Work(NamedTuple):
    """What parts are made of, and how."""

    text: PackedText
    """on the host"""
    sizes: Sizes
    threads: int
    """of the CPU"""
    watch: Stopwatch
    """takes the seconds of each stage"""
    keep: Keep = kept_in_memory
    """takes each array as soon as it is made, so that one which lies elsewhere then takes no memory"""

    def kept(self, part: str, arrays: Arrays) -> Arrays:
        """The arrays of a part that is finished."""
        return {name: self.keep(part, name, array) for name, array in arrays.items()}


class ArraySpec(NamedTuple):
    """One array of a part."""

    dtype: type[np.generic]
    length: Callable[[Sizes], int]


CORE = "core"

_BWT = {
    "rocc": ArraySpec(np.uint32, lambda of: 4 * of.blocks),
    "bwt": ArraySpec(np.uint64, lambda of: of.blocks * of.parameters.occ_interval // 32),
    "separators": ArraySpec(np.uint32, lambda of: of.blocks),
    "separator_row": ArraySpec(np.uint32, lambda of: of.segments),
    "separator_position": ArraySpec(np.uint32, lambda of: of.segments),
    "first_row": ArraySpec(np.uint32, lambda of: 5),
    "rsa": ArraySpec(np.uint32, lambda of: -(-of.rows // of.parameters.sa_interval)),
    "longest_walk": ArraySpec(np.uint32, lambda of: 1),
}

PARTS: dict[str, dict[str, ArraySpec]] = {
    CORE: {
        "text": ArraySpec(np.uint64, lambda of: of.rows // 32 + PAD_WORDS),
        "text_start": ArraySpec(np.uint32, lambda of: of.segments + 1),
        "contig": ArraySpec(np.int32, lambda of: of.segments),
        "contig_start": ArraySpec(np.int64, lambda of: of.segments),
        "hint": ArraySpec(np.uint32, lambda of: (of.rows >> HINT_SHIFT) + 2),
    },
    "fast": {
        "suffix_array": ArraySpec(np.uint32, lambda of: of.rows),
        "table": ArraySpec(np.uint32, lambda of: 4**of.parameters.table_length + 1),
    },
    "tags": {name: ArraySpec(np.uint8, lambda of: of.rows + TAG_PADDING) for name in Tags._fields},
    "forward": _BWT,
    "reverse": _BWT,
}
"""Every part's arrays. `fast` is what the fast tier reads beside the core, and `tags` what saves the
CPU's search of k-mers time where it is there (`tags.py`); `forward` and `reverse` are the BWTs of the text and of the
reversed text, in the layout of paper 000, section III."""

GROUPS = {"paper": ("forward", "reverse"), "tags": ("fast", "tags")}
"""Names that stand for several parts: what a tier needs, and what a part is of use with."""

DEFAULT_PARTS = ("fast",)
ALL_PARTS = ("fast", "tags", "forward", "reverse")


def part_names(parts: str | Iterable[str]) -> list[str]:
    """The names that are given, or that a text with commas between them holds; InputError where they are no names."""
    words = parts.split(",") if isinstance(parts, str) else parts
    try:
        return [word.strip() for word in words]
    except (TypeError, AttributeError):
        raise InputError(f"parts is {parts!r}, but names such as 'fast' and 'paper' were expected.") from None


def choose_parts(parts: str | Iterable[str], more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Part names in their fixed order, without repetition; 'paper' stands for both BWTs, 'tags' for 'fast', too.

    Parameters
    ----------
    more : names that the caller has resolved, which are told beside those of parts

    Raises
    ------
    InputError : a name that is no part, or no name at all
    """
    names = part_names(parts)
    known = list(dict.fromkeys([*GROUPS, *ALL_PARTS]))
    told = ", ".join([*known, *more])
    for name in names:
        if name not in known:
            raise InputError(f"{name!r} is no part of an index; the parts are {told}.")
    chosen = {part for name in names for part in GROUPS.get(name, (name,))}
    if not chosen:
        raise InputError(f"no part of an index is named; the parts are {told}.")
    return tuple(part for part in ALL_PARTS if part in chosen)


def file_name(part: str, name: str) -> str:
    """The file that holds an array of a part."""
    return f"{part}.{name}.npy"


def new_arrays(part: str, sizes: Sizes) -> Arrays:
    """The arrays of a part, all zero, to be filled."""
    return {name: np.zeros(spec.length(sizes), spec.dtype) for name, spec in PARTS[part].items()}


def part_bytes(part: str, sizes: Sizes) -> int:
    """Bytes of a part's arrays."""
    return sum(spec.length(sizes) * np.dtype(spec.dtype).itemsize for spec in PARTS[part].values())
