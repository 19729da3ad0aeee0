"""What the rules of reads with one error are built from: its timed data sets, and the peers beside each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warpseed.errors import ConfigError
from warpseed.workflow.available import measured_parts

__all__ = ["PEER_PROGRAMS", "index_parts", "timed_datasets"]

PEER_PROGRAMS = {
    "bowtie": ("bowtie-build", "bowtie-align-s"),
    "razers3": ("razers3",),
    "yara": ("yara_indexer", "yara_mapper"),
    "bwa": ("bwa",),
}
"""Tools that reads can be mapped with beside ours, and their programs."""
_PARTS = {"fast": "fast", "paper": "forward"}


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
        `one_error` of a checked configuration.
    measured : mapping
        Its `measure`.
    devices : sequence of str
        What is measured on.
    is_measured : callable
        Whether a peer with these programs is.

    Returns
    -------
    dict of str to dict
        What `warpseed.workflow.available.measured_parts` leaves of them.

    Raises
    ------
    ConfigError
        When the lengths of one are in the wrong order, or a peer does not answer its question.
    """
    for name, wanted in block["datasets"].items():
        length = wanted["length"]
        if length is not None and length[0] > length[1]:
            raise ConfigError(
                f"The configuration key 'one_error.datasets.{name}.length' is {length}, but the smallest comes first: "
                "swap them."
            )
        if wanted["edits"] > 1 and "bowtie" in wanted["peers"]:
            raise ConfigError(
                f"The configuration key 'one_error.datasets.{name}.peers' has bowtie, which knows substitutions alone, "
                f"but with {wanted['edits']} edits a placement as long as its read may have a base more and one less: "
                "leave it out, or allow one edit."
            )
    return measured_parts(block["datasets"], measured, devices, PEER_PROGRAMS, is_measured)


def index_parts(datasets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the parts of the timed index that these data sets need."""
    return sorted({_PARTS[tier] for wanted in datasets.values() for tier in wanted["tiers"]})
