"""Which data sets of long reads a run times, with which tools beside them, and what is tried of the paper's index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.errors import ConfigError
from warpseed.fm_index.binned import PAPER_PARAMETERS
from warpseed.mems.matches import KINDS
from warpseed.workflow.configuration import check_configuration, load_schema
from warpseed.workflow.mems_cases import PEER_PROGRAMS, paper_settings, timed_datasets

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"


def completed(text: str) -> dict[str, Any]:
    config = yaml.safe_load(text)
    check_configuration(config, load_schema(SCHEMAS))
    return config


def datasets_of(text: str, devices: tuple[str, ...] = ("cpu",), installed: tuple[str, ...] = ()) -> dict[str, Any]:
    config, programs = completed(text), [PEER_PROGRAMS[name] for name in installed]
    return timed_datasets(config["mems"], config["measure"], devices, programs.__contains__)


def test_what_is_not_measured_is_left_out() -> None:
    text = """
mems:
  datasets:
    both: {reads: pacbio, peers: [bwa, mummer]}
    gpu: {reads: pacbio, devices: [gpu]}
    paper: {reads: pacbio, tiers: [paper], items: [stages]}
measure: {tiers: [fast], threads: [1]}
"""
    datasets = datasets_of(text, installed=("mummer",))
    assert list(datasets) == ["both"]
    assert datasets["both"] | {"tiers": ["fast"], "devices": ["cpu"], "peers": ["mummer"]} == datasets["both"]
    assert (datasets["both"]["min_lengths"], datasets["both"]["kinds"]) == ([20], ["super", "maximal"])
    assert list(datasets_of(text, ("cpu", "gpu"))) == ["both", "gpu"]


def test_the_papers_index_is_tried_with_one_other_parameter_at_a_time() -> None:
    block = completed("mems: {bin_sizes: [32], sa_ratios: [1, 16], pre_calc_lengths: []}")["mems"]
    assert paper_settings(block) == [{"bin_size": 32}, {"sa_ratio": 1}, {"sa_ratio": 16}]
    tried = paper_settings(completed("{}")["mems"])
    assert len(tried) == 12 and {name for each in tried for name in each} == set(PAPER_PARAMETERS._fields)
    assert PAPER_PARAMETERS not in [PAPER_PARAMETERS._replace(**each) for each in tried]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{a: {reads: r, items: [stage]}}", "'mems.datasets.a.items' is ['stage'], but it should be: list of what is"),
        ("{a: {items: [stages]}}", "'mems.datasets.a' lacks 'reads'"),
        ("{a: {reads: r, min_lengths: []}}", "'mems.datasets.a.min_lengths' is [], but it should be: bases of the"),
        ("{a: {reads: r, kinds: [mem]}}", "'mems.datasets.a.kinds' is ['mem'], but it should be: list of 'super'"),
    ],
)
def test_a_mistake_in_a_data_set_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        datasets_of(f"mems: {{datasets: {text}}}")
    assert sentence in str(raised.value)


def test_items_kinds_and_tools_are_the_same_in_every_list() -> None:
    from warpseed.mems import peers, timing
    from warpseed.report import mems as page

    schema = yaml.safe_load((SCHEMAS / "mems.schema.yaml").read_text())
    keys = schema["properties"]["datasets"]["additionalProperties"]["properties"]
    assert set(keys["items"]["items"]["enum"]) == set(timing.ITEMS)
    shown = {peer.name for peer in page._PEERS}
    assert set(keys["peers"]["items"]["enum"]) == set(PEER_PROGRAMS) == set(peers.TOOLS) == shown
    assert (
        set(keys["kinds"]["items"]["enum"])
        == set(KINDS)
        == set(schema["$defs"]["sample_mems"]["properties"]["kind"]["enum"])
    )


@pytest.mark.parametrize(
    "name",
    ["bench_cpu", "bench_cores", "bench_gpu", "bench_reads", "bench_mems", "bench_tree_bitmap", "h200_tree_bitmap"],
)
def test_a_configuration_of_one_system_measures_no_other(name: str) -> None:
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    over = yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())
    left = {
        system: set(config[system]["datasets"])
        - {n for n, value in over[system].get("datasets", {}).items() if not value}
        for system in ("kmer_seeds", "one_error", "mems", "tree_bitmap", "ebwt")
    }
    own = {
        "bench_reads": "one_error",
        "bench_mems": "mems",
        "bench_tree_bitmap": "tree_bitmap",
        "h200_tree_bitmap": "tree_bitmap",
    }.get(name, "kmer_seeds")
    assert {system for system, names in left.items() if names} <= {own}
