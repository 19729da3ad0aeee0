"""What the rule of k-mers in a stream is built from: its timed data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warpseed.workflow.available import measured_parts

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

    `block` is `tree_bitmap` of a checked configuration, the rest as of `warpseed.workflow.available.measured_parts`.
    """
    return measured_parts(block["datasets"], measured, devices, PEER_PACKAGES, is_measured)
