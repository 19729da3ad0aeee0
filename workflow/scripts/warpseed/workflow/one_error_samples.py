"""The searches of the samples whose reads are placed as they are, with a few edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpseed.workflow.sources import facts_of

__all__ = ["sample_read_searches"]

_SEEDS = ("bam", "bam.bai")
_SECONDS_A_READ = (1e-5, 1e-5, 1e-4)
"""Of the fast tier on one core, with its records, by edits; more where a genome repeats itself."""
_BASES_A_READ = 100


def sample_read_searches(samples: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return how the reads of each sample of this system are placed.

    Parameters
    ----------
    samples : mapping
        What `warpseed.workflow.sources.samples_of` returned.

    Returns
    -------
    dict of str to dict
        As `warpseed.workflow.kmer_seeds_cases.sample_searches`; `parameters` are those of `read_search`, and
        `multiple`.
    """
    return {
        name: {
            "queries": sample["reads"],
            "count": None,
            "spacing": _BASES_A_READ,
            "seconds": _SECONDS_A_READ[sample["max_edits"]],
            "seeds": _SEEDS,
            "parameters": {key: sample[key] for key in ("max_edits", "report", "multiple", "max_hits")},
            "facts": facts_of(
                name, sample, {"edits": sample["max_edits"], "report": sample["report"], "multiple": sample["multiple"]}
            ),
        }
        for name, sample in samples.items()
        if sample["system"] == "reads"
    }
