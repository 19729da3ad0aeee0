"""An index in a folder, as the command line and the workflow make it: built and saved, with tags of its rows.

Tags take two bytes a base, which would be held beside rows, table and text. So they are made when all else is written
and has been let go: the most memory is taken before, with tags or without.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from warpseed.compute.devices import target_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.parts import DEFAULT_PARTS, choose_parts, part_names
from warpseed.fm_index.store import check_target, save_index, save_with_tags

if TYPE_CHECKING:
    from warpseed.sequences.reference import Reference

__all__ = ["DEFAULT", "LARGEST_TAGGED", "has_tags_by_default", "make_index"]

DEFAULT = "default"
"""Stands for `fast`, and for `tags` where `has_tags_by_default` says so."""
LARGEST_TAGGED = 1 << 31
"""Rows up to which an index has tags by default: it takes 14.5 GB then, where that of a human genome would take 20."""


def has_tags_by_default(rows: int, device: str) -> bool:
    """Whether an index of so many rows that this device makes has tags where none were asked for: no GPU reads any."""
    return target_of(device)[0] == "cpu" and rows <= LARGEST_TAGGED


def make_index(
    reference: str | os.PathLike[str] | Reference,
    folder: str | os.PathLike[str],
    *,
    parts: str | Iterable[str] = DEFAULT,
    threads: int = 1,
    occ_interval: int = 128,
    sa_interval: int = 32,
    table_length: int | None = None,
    device: str = "cpu",
) -> SeedIndex:
    """Index a reference in a folder, which appears whole or not at all, and replaces an older index of that name.

    Parameters
    ----------
    reference, threads, occ_interval, sa_interval, table_length, device : as in `build_index`
    folder : of the new index
    parts : names as in `build_index`, and 'default', alone or beside others: 'fast', and on the CPU 'tags' of up to
        `LARGEST_TAGGED` rows

    Returns
    -------
    SeedIndex, in memory, and what its searches need on the GPU that made it, or with tags mapped from its files; with
    the seconds of each stage, of which `total` is that of `build_index`, before `save` and `tags`

    Raises
    ------
    InputError, MemoryLimitError, DeviceError : as `build_index`; tags take less memory than what was made before them
    IndexFormatError : `folder` exists and is something else than an index, which is said before any work, or cannot be
        written
    """
    check_target(folder)
    names = part_names(parts)
    named = [*(name for name in names if name != DEFAULT), *(DEFAULT_PARTS if DEFAULT in names else ())]
    chosen = choose_parts(named, more=(DEFAULT,))
    built = [
        build_index(
            reference,
            parts=[part for part in chosen if part != "tags"],
            threads=threads,
            occ_interval=occ_interval,
            sa_interval=sa_interval,
            table_length=table_length,
            device=device,
        )
    ]
    watch, seconds = Stopwatch(), built[0].seconds
    if "tags" in chosen or (DEFAULT in names and has_tags_by_default(built[0].rows, device)):
        tagged = save_with_tags(built, folder, threads=threads, watch=watch)
        return replace(tagged, seconds=seconds | watch.seconds)
    with watch.stage("save"):
        save_index(built[0], folder)
    seconds.update(watch.seconds)  # (in place: what lies on a GPU belongs to this object)
    return built[0]
