"""What the rule of weighted sequences is built from: its timed data sets, and how large they are.

Their sequences are drawn by the job; nothing that draws is imported where a workflow is planned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from warpseed.errors import ConfigError
from warpseed.workflow.available import measured_parts, one_gpu

__all__ = ["MOST_WEIGHTED", "sizes_of", "timed_collections", "timed_datasets"]

MOST_WEIGHTED = 16
"""Positions with two letters, so that there are no more solid sequences than one weighted sequence may have."""


def _weighted(positions: int, share: float) -> int:
    """How many of the positions are drawn with two letters (`warpseed.ebwt.weighted.generate_weighted`)."""
    return math.floor(positions * share + 0.5)


def sizes_of(dataset: Mapping[str, Any]) -> list[tuple[int, int]]:
    """How many conjugates each weighted sequence of a data set and its pattern have, and letters of the longest."""
    pattern = dataset["pattern"]
    of_pattern = pattern * 2 ** _weighted(pattern, dataset["pattern_share"])
    return [
        (of_pattern + count * 2 ** min(_weighted(count, dataset["share"]), dataset["most_weighted"]), count + pattern)
        for count in dataset["positions"]
    ]


def timed_datasets(
    block: Mapping[str, Any], measured: Mapping[str, Any], devices: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return every timed data set by the name that its files have.

    `block` is `ebwt` of a checked configuration, the rest as of `warpseed.workflow.available.measured_parts`.

    Raises
    ------
    ConfigError
        When a weighted sequence or a pattern of one would have more solid sequences than may be.
    """
    for name, wanted in block["datasets"].items():
        weighted = {
            "most_weighted": min(_weighted(max(wanted["positions"]), wanted["share"]), wanted["most_weighted"]),
            "pattern_share": _weighted(wanted["pattern"], wanted["pattern_share"]),
        }
        for key, positions in weighted.items():
            if positions > MOST_WEIGHTED:
                raise ConfigError(
                    f"The configuration key 'ebwt.datasets.{name}.{key}' is {wanted[key]}, which gives {positions} "
                    f"positions with two letters, but at most {MOST_WEIGHTED} were expected: there are 2^{positions} "
                    "solid sequences."
                )
    without_peers = {name: {**wanted, "peers": []} for name, wanted in block["datasets"].items()}
    return measured_parts(without_peers, one_gpu(measured), devices, {}, lambda programs: False)


def timed_collections(
    block: Mapping[str, Any], measured: Mapping[str, Any], devices: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return every timed data set of collections, as `timed_datasets` does; all are of the fast tier, and of several
    GPUs too, which `warpseed.ebwt.timing_collections` times distances on alone.

    Raises
    ------
    ConfigError
        When one has the name of a data set of weighted sequences.
    """
    for name in block["collections"]:
        if name in block["datasets"]:
            raise ConfigError(
                f"The configuration key 'ebwt.collections.{name}' has the name of one of 'ebwt.datasets', but "
                "files are named after both; give it another one."
            )
    complete = {name: {**wanted, "tiers": ["fast"], "peers": []} for name, wanted in block["collections"].items()}
    return measured_parts(complete, measured, devices, {}, lambda programs: False)
