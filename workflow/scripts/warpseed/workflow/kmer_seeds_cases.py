"""What the rules of k-mer seeds are built from: its timed data sets, and the searches of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warpseed.errors import ConfigError
from warpseed.measure.records import join_parameters
from warpseed.workflow.available import measured_part
from warpseed.workflow.sheets import Places
from warpseed.workflow.sources import OwnFile, facts_of

__all__ = [
    "beside_bowtie",
    "build_devices",
    "index_parts",
    "is_tagged",
    "sample_searches",
    "timed_builds",
    "timed_datasets",
]

_ALL: dict[str, Any] = {"tiers": ("paper", "fast"), "devices": None}
"""What a data set is timed in that says nothing of it."""
_SEEDS = ("bed.gz", "bed.gz.tbi")
_SECONDS_A_QUERY = (1e-6, 1e-5, 1e-4, 1e-3)
"""Of the fast tier on one core, by mismatches."""


def timed_datasets(
    block: Mapping[str, Any], measured: Mapping[str, Any], devices: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return every timed data set by the name that its files have.

    Parameters
    ----------
    block : mapping
        `kmer_seeds` of a checked configuration.
    measured : mapping
        Its `measure`.
    devices : sequence of str
        What is measured on.

    Returns
    -------
    dict of str to dict
        `k`, `mismatches`, `count`, `case` and `parameters` of its records, the `items` that it gives records
        for, `threads`, `tiers` and `devices`; one that is timed in no tier that is measured, or on no device, is left
        out. For scaling each of its tiers has a data set of its own: what takes one a second takes the other a minute.

    Raises
    ------
    ConfigError
        When the data set for scaling is none of the data sets.
    """
    datasets = {
        name: _dataset(block, wanted["k"], wanted) | {"case": name, "items": wanted["items"] or block["items"]}
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
    for tier in (_ALL | datasets[scaled])["tiers"] if scaled is not None else []:
        count = block["scaling"]["count"][tier] or datasets[scaled]["count"]
        own = {"items": ["scaling"], "count": count, "threads": block["scaling"]["threads"], "tiers": [tier]}
        datasets[f"scaling-{scaled}-{tier}"] = datasets[scaled] | own
    parts = {name: measured_part(_ALL | wanted, measured, devices) for name, wanted in datasets.items()}
    return {name: part for name, part in parts.items() if part is not None}


def _dataset(block: Mapping[str, Any], k: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "k": k,
        "mismatches": wanted["mismatches"],
        "count": wanted["count"] or block["count"],
        "parameters": join_parameters({"k": k, "mismatches": wanted["mismatches"]}),
        **{name: wanted[name] for name in ("tiers", "devices") if name in wanted},
    }


def beside_bowtie(datasets: Mapping[str, Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return the item that bowtie's rows stand in, and which of the data sets of `timed_datasets` have such rows.

    Bowtie goes from file to file: where that is timed, its rows stand there, otherwise beside `whole`.
    """
    items = {name: wanted["items"] for name, wanted in datasets.items() if "cpu" in wanted["devices"]}
    item = "file_to_file" if any("file_to_file" in own for own in items.values()) else "whole"
    return item, [name for name, own in items.items() if item in own]


def build_devices(block: Mapping[str, Any], devices: Sequence[str]) -> list[str]:
    """Return what builds the index that is timed, none where none is timed; other tools stand beside the CPU's builds.

    Parameters
    ----------
    block : mapping
        `kmer_seeds.index_builds` of a checked configuration.
    devices : sequence of str
        What is measured on.
    """
    return [device for device in devices if block["threads"] and device in (block["devices"] or devices)]


def timed_builds(block: Mapping[str, Any], devices: Sequence[str], beside: Sequence[str], repeats: int) -> int:
    """Return how many times an index is built at most where that is timed.

    Parameters
    ----------
    block : mapping
        `kmer_seeds.index_builds` of a checked configuration.
    devices : sequence of str
        Those of `build_devices`: the CPU builds in the job and as a process, for each number of threads, and the first
        bases as a process; a GPU once.
    beside : sequence of str
        Other tools that build one, each once.
    repeats : int
        `measure.repeats`.
    """
    on_cpu = 2 * len(block["threads"]) + len(block["first_bases"]) if "cpu" in devices else 0
    return (on_cpu + ("gpu" in devices) + len(beside)) * repeats


def index_parts(tiers: Iterable[str], gpu_limits: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the parts of the timed index that a run needs: those of the tiers that it times.

    Parameters
    ----------
    tiers : iterable of str
        `measure.tiers`.
    gpu_limits : iterable of mapping
        The k-mer sets that are timed on the GPU alone; each has `tiers`.
    """
    return sorted({*tiers, *(tier for case in gpu_limits for tier in case["tiers"])})


def is_tagged(datasets: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the CPU's fast tier searches one of the data sets of `timed_datasets`: that alone reads tags of rows."""
    return any("fast" in wanted["tiers"] and "cpu" in wanted["devices"] for wanted in datasets.values())


def sample_searches(samples: Mapping[str, Mapping[str, Any]], places: Places) -> dict[str, dict[str, Any]]:
    """Return how the seeds of each sample of this system are found.

    Parameters
    ----------
    samples : mapping
        What `warpseed.workflow.sources.samples_of` returned.
    places : Places
        Where the keys of the samples stand.

    Returns
    -------
    dict of str to dict
        `queries`, a file: the reads, or the k-mers that a rule draws from them; `count` of these, or None and the
        `spacing`, about so many bases of the reads for each k-mer; `seconds`, what one of them takes on a core;
        `seeds`, the endings of the files with its seeds, and behind the first one that of its index; `parameters` of
        `kmer_search`; `facts`, what the sample's summary says of it.

    Raises
    ------
    ConfigError
        When keys of a sample do not go together.
    """
    searches = {}
    for name, sample in samples.items():
        if sample["system"] != "kmers":
            continue
        _check_cutting(name, sample, places)
        k, drawn = sample["k"], sample["count"] != "all"
        searches[name] = {
            "queries": f"results/seeds/{name}.kmers.fa" if drawn else sample["reads"],
            "count": sample["count"] if drawn else None,
            "spacing": sample["step"] or k or 1,
            "seconds": _SECONDS_A_QUERY[sample["mismatches"]],
            "seeds": _SEEDS,
            "parameters": {
                "k": None if drawn else k,
                "step": sample["step"],
                "max_mismatches": sample["mismatches"],
                "max_hits": sample["max_hits"],
            },
            "facts": facts_of(name, sample, _described(sample)),
        }
    return searches


def _described(sample: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a sample."""
    cut = {"k": sample["k"]} if sample["k"] is not None else {}
    if sample["count"] != "all":
        cut["count"] = sample["count"]
    elif cut:
        cut["step"] = sample["step"] or sample["k"]
    return cut | {"mismatches": sample["mismatches"]}


def _check_cutting(name: str, sample: Mapping[str, Any], places: Places) -> None:
    """Refuse keys of a sample that say how k-mers are cut, and do not go together."""
    k, step, count = sample["k"], sample["step"], sample["count"]
    for key, value, default in (("step", step, None), ("count", count, "all")):
        if k is None and value != default:
            raise ConfigError(
                f"The sample '{name}' has the {key} {value} but no k, and without k every record is a k-mer as it is: "
                f"add the length of its k-mers ({places.aside('samples', name, 'k')}), or leave out {key}."
            )
    if step is not None and count != "all":
        raise ConfigError(
            f"The sample '{name}' has the step {step} and the count {count}, but k-mers are cut at each step, or as "
            f"many as the count at random places: leave out one ({places.aside('samples', name, 'step')})."
        )
    if k is None and not isinstance(sample["reads"], OwnFile):
        raise ConfigError(
            f"The sample '{name}' has simulated reads but no k: add the length of its k-mers "
            f"({places.aside('samples', name, 'k')})."
        )
