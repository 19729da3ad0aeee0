"""What the rules of maximal exact matches are built from: its timed data sets, and the peers beside each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warpseed.workflow.available import measured_parts

__all__ = ["PEER_PROGRAMS", "paper_settings", "timed_datasets"]

PEER_PROGRAMS = {"bwa": ("bwa",), "mummer": ("mummer",), "mummer4": ("mummer4",)}
"""Tools that matches can be found with beside ours, and their programs."""


def timed_datasets(
    block: Mapping[str, Any],
    measured: Mapping[str, Any],
    devices: Sequence[str],
    is_measured: Callable[[Iterable[str]], bool],
) -> dict[str, dict[str, Any]]:
    """Return every timed data set by the name that its files have.

    `block` is `mems` of a checked configuration, the rest as of `warpseed.workflow.available.measured_parts`.
    """
    return measured_parts(block["datasets"], measured, devices, PEER_PROGRAMS, is_measured)


def paper_settings(block: Mapping[str, Any]) -> list[dict[str, int]]:
    """Return the parameters of the paper's index that are tried, one at a time changed: fields of BinParameters."""
    lists = {"bin_size": "bin_sizes", "sa_ratio": "sa_ratios", "pre_calc_length": "pre_calc_lengths"}
    return [{name: value} for name, key in lists.items() for value in block[key]]
