"""What the rule of k-mers in a stream is built from: its timed data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warpseed.workflow.available import measured_part

__all__ = ["PEER_PACKAGES", "timed_datasets"]

PEER_PACKAGES = {"ahocorasick_rs": ("ahocorasick_rs",), "numpy": ("numpy",)}
"""Libraries that a dictionary can be looked up with beside ours, and their packages."""


def timed_datasets(
    block: Mapping[str, Any],
    measured: Mapping[str, Any],
    devices: Sequence[str],
    is_measured: Callable[[Iterable[str]], bool],
) -> dict[str, dict[str, Any]]:
    """Return every timed data set by the name that its files have.

    Parameters
    ----------
    block : mapping
        `tree_bitmap` of a checked configuration.
    measured, devices, is_measured
        As those of `warpseed.workflow.available.measured_part`.

    Returns
    -------
    dict of str to dict
        What that leaves of each data set; one of which nothing would be timed is left out.
    """
    parts = {
        name: measured_part(wanted, measured, devices, PEER_PACKAGES, is_measured)
        for name, wanted in block["datasets"].items()
    }
    return {name: part for name, part in parts.items() if part is not None}
