"""What the rules of k-mer seeds are built from: its timed data sets, and the k-mers of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from warpseed.errors import ConfigError
from warpseed.measure.records import join_parameters

__all__ = ["index_parts", "sample_kmers", "timed_datasets"]


def timed_datasets(block: Mapping[str, Any], threads: list[int | str], tiers: list[str]) -> dict[str, dict[str, Any]]:
    """Return every timed data set by the name that its files have.

    Parameters
    ----------
    block : mapping
        `kmer_seeds` of a checked configuration.
    threads : list of int or "all"
        `measure.threads`.
    tiers : list of str
        `measure.tiers`.

    Returns
    -------
    dict of str to dict
        `k`, `mismatches`, `count`, `case` and `parameters` of its records, the `items` that it gives records
        for, `threads`, and `tiers`. For scaling each tier has a data set of its own: what takes one a second takes
        the other a minute.

    Raises
    ------
    ConfigError
        When the data set for scaling is none of the data sets.
    """
    datasets = {
        name: _dataset(block, wanted["k"], wanted) | {"case": name, "items": block["items"]}
        for name, wanted in block["datasets"].items()
    }
    scaled = block["scaling"]["dataset"]
    if scaled is not None and scaled not in datasets:
        raise ConfigError(
            f"The configuration key 'kmer_seeds.scaling.dataset' is '{scaled}', but kmer_seeds.datasets has "
            f"{', '.join(datasets) or 'none'}: name one of these, or null."
        )
    for k in block["throughput"]["k"]:
        wanted = _dataset(block, k, block["throughput"])
        datasets[f"throughput-k{k}"] = wanted | {"case": f"k={k}", "items": ["throughput"]}
    datasets = {name: wanted | {"threads": threads, "tiers": tiers} for name, wanted in datasets.items()}
    for tier in tiers if scaled is not None else []:
        datasets[f"scaling-{scaled}-{tier}"] = datasets[scaled] | {
            "items": ["scaling"],
            "count": block["scaling"]["count"][tier] or datasets[scaled]["count"],
            "threads": block["scaling"]["threads"],
            "tiers": [tier],
        }
    return datasets


def _dataset(block: Mapping[str, Any], k: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "k": k,
        "mismatches": wanted["mismatches"],
        "count": wanted["count"] or block["count"],
        "parameters": join_parameters({"k": k, "mismatches": wanted["mismatches"]}),
    }


def index_parts(tiers: Iterable[str], gpu_limits: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the parts of an index that a run needs: those of the tiers that it times, and for samples the fast tier's.

    Parameters
    ----------
    tiers : iterable of str
        `measure.tiers`.
    gpu_limits : iterable of mapping
        The k-mer sets that are timed on the GPU alone; each has `tiers`.
    """
    return sorted({"fast", *tiers, *(tier for case in gpu_limits for tier in case["tiers"])})


def sample_kmers(samples: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the file of each sample's k-mers: one that is cut, or its reads where every record is a k-mer as it is.

    Parameters
    ----------
    samples : mapping
        What `warpseed.workflow.sources.samples_of` returned.

    Raises
    ------
    ConfigError
        When simulated reads have no k.
    """
    for name, sample in samples.items():
        if sample["k"] is None and sample["reads"].startswith("results/reads/"):
            raise ConfigError(
                f"The sample '{name}' has simulated reads but no k: add the length of its k-mers (configuration key "
                f"'samples.{name}.k')."
            )
    return {
        name: sample["reads"] if sample["k"] is None else f"results/seeds/{name}.kmers.fa"
        for name, sample in samples.items()
    }
