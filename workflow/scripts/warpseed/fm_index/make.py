"""An index in a folder, as the command line and the workflow make it.

Each array of a part is written as soon as it is made, and mapped from its file from then on: so the table, which may
take as much memory as the rows, and tags, two bytes a base, are not held beside what was made before them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from warpseed.compute.devices import target_of
from warpseed.fm_index.build import build_planned, plan_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.parts import DEFAULT_PARTS, choose_parts, part_names
from warpseed.fm_index.store import written_index
from warpseed.fm_index.target import check_target

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
    SeedIndex, its parts mapped from their files, and what its searches need on the GPU that made it; with the seconds
    of each stage, of which `total` is all that was built in memory, without `save` and `tags`

    Raises
    ------
    InputError, MemoryLimitError, DeviceError : as `build_index`
    IndexFormatError : `folder` exists and is something else than an index, which is said before any work, or cannot be
        written
    """
    check_target(folder)
    names = part_names(parts)
    named = [*(name for name in names if name != DEFAULT), *(DEFAULT_PARTS if DEFAULT in names else ())]
    chosen = choose_parts(named, more=(DEFAULT,))
    # (Tags take less than what comes before them, once that is written: what is read is checked without.)
    plan = plan_index(
        reference,
        parts=[part for part in chosen if part != "tags"],
        threads=threads,
        occ_interval=occ_interval,
        sa_interval=sa_interval,
        table_length=table_length,
        device=device,
    )
    if "tags" in chosen or (DEFAULT in names and has_tags_by_default(plan.work.sizes.rows, device)):
        plan = plan._replace(parts=choose_parts([*plan.parts, "tags"]))
    with written_index(folder, plan.bytes, plan.work.watch) as files:
        index = build_planned(plan, files.keep, os.fspath(folder))
        seconds = index.seconds
        beside = sum(seconds.get(stage, 0.0) for stage in ("save", "tags"))
        seconds["total"] = time.perf_counter() - plan.began - beside
        files.finish(index)
    return index
