"""The samples whose k-mers are counted, in no reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpseed.errors import ConfigError
from warpseed.measure.records import join_parameters
from warpseed.workflow.sheets import Places

__all__ = ["counted_samples"]

_OF_SEARCHES = {"max_hits": None, "chunks": 1}
"""Keys of every sample that mean nothing here, and their defaults."""


def counted_samples(samples: Mapping[str, Mapping[str, Any]], places: Places) -> dict[str, dict[str, Any]]:
    """Return how the k-mers of each sample of this system are counted.

    Parameters
    ----------
    samples : mapping
        What `warpseed.workflow.sources.samples_of` returned.
    places : Places
        Where the keys of the samples stand.

    Returns
    -------
    dict of str to dict
        Name of each to `reads`, a file; `k`; and `facts`, what its summary says of it.

    Raises
    ------
    ConfigError
        When a key of a sample means nothing here.
    """
    counted = {}
    for name, sample in samples.items():
        if sample["system"] != "tree_bitmap":
            continue
        for key, default in _OF_SEARCHES.items():
            if sample[key] != default:
                raise ConfigError(
                    f"The sample '{name}' has {key} {sample[key]}, but its k-mers are counted by one job, and have no "
                    f"hits: leave out {key} ({places.aside('samples', name, key)})."
                )
        facts = {"sample": name, "reads": Path(sample["reads"]).name, "system": sample["system"]}
        parameters = join_parameters({"k": sample["k"]})
        counted[name] = {"reads": sample["reads"], "k": sample["k"], "facts": facts | {"parameters": parameters}}
    return counted
