"""What the rule of k-mers in a stream is built from: its timed data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warpseed.errors import ConfigError
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

    Raises
    ------
    ConfigError
        When the Levenshtein kernels of one are to allow as many edits as its k-mers have bases.
    """
    for name, wanted in block["datasets"].items():
        if "edit_kernels" in wanted["items"] and wanted["max_edits"] >= min(wanted["k"]):
            raise ConfigError(
                f"The configuration key 'tree_bitmap.datasets.{name}.max_edits' is {wanted['max_edits']}, but less "
                f"than each k was expected, and one of them is {min(wanted['k'])}: with as many edits all is a match."
            )
    return measured_parts(block["datasets"], measured, devices, PEER_PACKAGES, is_measured)
