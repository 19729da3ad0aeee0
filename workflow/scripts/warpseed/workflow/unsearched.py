"""Samples whose reads are not searched in a reference, but are a whole of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpseed.errors import ConfigError
from warpseed.measure.records import join_parameters
from warpseed.workflow.sheets import Places

__all__ = ["unsearched_samples"]

_OF_SEARCHES = {"max_hits": None, "chunks": 1}
"""Keys of every sample that mean nothing here, and their defaults."""


def unsearched_samples(
    samples: Mapping[str, Mapping[str, Any]], places: Places, system: str, keys: Sequence[str], what: str
) -> dict[str, dict[str, Any]]:
    """Return what is made of each sample of a system that searches no index.

    Parameters
    ----------
    samples : mapping
        What `warpseed.workflow.sources.samples_of` returned.
    places : Places
        Where the keys of the samples stand.
    system : str
        Which samples these are.
    keys : sequence of str
        The system's own.
    what : str
        What is made of a sample, for the sentence about a key that means nothing here: "its k-mers are counted".

    Returns
    -------
    dict of str to dict
        Name of each to `reads`, a file; the system's own keys; and `facts`, what its summary says of it.

    Raises
    ------
    ConfigError
        When a key of a sample means nothing here.
    """
    result = {}
    for name, sample in samples.items():
        if sample["system"] != system:
            continue
        for key, default in _OF_SEARCHES.items():
            if sample[key] != default:
                raise ConfigError(
                    f"The sample '{name}' has {key} {sample[key]}, but {what} by one job, and have no hits: leave out "
                    f"{key} ({places.aside('samples', name, key)})."
                )
        facts = {"sample": name, "reads": Path(sample["reads"]).name, "system": system}
        own = {key: sample[key] for key in keys}
        facts["parameters"] = join_parameters(
            {key: 1 if value is True else value for key, value in own.items() if value is not False}
        )
        result[name] = {"reads": sample["reads"], **own, "facts": facts}
    return result
