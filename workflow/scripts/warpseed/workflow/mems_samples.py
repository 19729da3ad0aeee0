"""The searches of the samples of whose reads the maximal exact matches are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpseed.workflow.sources import facts_of

__all__ = ["sample_mem_searches"]

_SEEDS = ("paf.gz", "paf.gz.tbi")
_PARAMETERS = ("min_length", "kind", "both_strands", "max_occurrences", "max_hits")
_BASES_A_MATCH = 100
"""Of reads with 10 % of errors, about: their matches are what takes time."""
_SECONDS_A_MATCH = 1e-4
"""Of the fast tier on one core, with its line; more where a genome repeats itself."""


def sample_mem_searches(samples: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return how the matches of each sample of this system are found.

    Parameters
    ----------
    samples : mapping
        What `warpseed.workflow.sources.samples_of` returned.

    Returns
    -------
    dict of str to dict
        As `warpseed.workflow.kmer_seeds_cases.sample_searches`; `parameters` are those of `mem_search`.
    """
    return {
        name: {
            "queries": sample["reads"],
            "count": None,
            "spacing": _BASES_A_MATCH,
            "seconds": _SECONDS_A_MATCH,
            "seeds": _SEEDS,
            "parameters": {key: sample[key] for key in _PARAMETERS},
            "facts": facts_of(
                name,
                sample,
                {
                    "min_length": sample["min_length"],
                    "kind": sample["kind"],
                    "strands": 2 if sample["both_strands"] else 1,
                    **{key: sample[key] for key in ("max_occurrences",) if sample[key] is not None},
                },
            ),
        }
        for name, sample in samples.items()
        if sample["system"] == "mems"
    }
