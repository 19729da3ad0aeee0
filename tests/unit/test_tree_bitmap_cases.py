"""Which data sets of streams a run times, and mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.errors import ConfigError
from warpseed.workflow.available import is_package_measured
from warpseed.workflow.configuration import check_configuration, load_schema
from warpseed.workflow.tree_bitmap_cases import PEER_PACKAGES, timed_datasets

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"


def datasets_of(text: str, devices: tuple[str, ...] = ("cpu",)) -> dict[str, Any]:
    config = yaml.safe_load(text)
    check_configuration(config, load_schema(SCHEMAS))
    return timed_datasets(config["tree_bitmap"], config["measure"], devices, lambda packages: packages == ("numpy",))


def test_what_is_not_measured_is_left_out() -> None:
    text = """
tree_bitmap:
  datasets:
    both: {lengths: [100], k: [3, 15]}
    gpu: {lengths: [100], k: [3], devices: [gpu]}
    paper: {lengths: [100], k: [3], tiers: [paper], items: [structures]}
    beside: {lengths: [100], k: [3], items: [fixed], peers: [ahocorasick_rs, numpy]}
measure: {tiers: [fast], threads: [1]}
"""
    datasets = datasets_of(text)
    assert list(datasets) == ["both", "beside"] and datasets["beside"]["peers"] == ["numpy"]
    assert datasets["both"] | {"tiers": ["fast"], "devices": ["cpu"], "threads": [1]} == datasets["both"]
    assert (datasets["both"]["stream"], datasets["both"]["seed_length"]) == ("random", 0)
    assert list(datasets_of(text, ("cpu", "gpu"))) == ["both", "gpu", "beside"]


def test_several_gpus_are_measured_beside_one() -> None:
    text = "tree_bitmap: {datasets: {a: {lengths: [9], k: [3]}}}\nmeasure: {gpus: [1, 2]}"
    assert datasets_of(text, ("cpu", "gpu"))["a"]["devices"] == ["cpu", "gpu", "gpu:0,1"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{a: {lengths: [9], k: [32]}}", "'tree_bitmap.datasets.a.k' is [32], but it should be: bases of a k-mer"),
        ("{a: {lengths: [9]}}", "'tree_bitmap.datasets.a' lacks 'k'"),
        ("{a: {k: [3]}}", "'tree_bitmap.datasets.a' lacks 'lengths'"),
        ("{a: {lengths: [], k: [3]}}", "'tree_bitmap.datasets.a.lengths' is [], but it should be: bases of a stream"),
        (
            "{a: {lengths: [9], k: [3, 2], items: [edit_kernels]}}",
            "'tree_bitmap.datasets.a.max_edits' is 2, but less than each k was expected, and one of them is 2",
        ),
        (
            "{a: {lengths: [9], k: [3], stream: x}}",
            "'tree_bitmap.datasets.a.stream' is 'x', but it should be: 'random'",
        ),
    ],
)
def test_a_mistake_in_a_data_set_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        datasets_of(f"tree_bitmap: {{datasets: {text}}}")
    assert sentence in str(raised.value)


def test_items_are_the_same_in_every_list() -> None:
    from warpseed.tree_bitmap import peers, timing

    schema = yaml.safe_load((SCHEMAS / "tree_bitmap.schema.yaml").read_text())
    keys = schema["properties"]["datasets"]["additionalProperties"]["properties"]
    assert set(keys["items"]["items"]["enum"]) == set(timing.ITEMS)
    assert set(keys["peers"]["items"]["enum"]) == set(PEER_PACKAGES) == set(peers.TOOLS)


def test_packages_are_measured_where_they_are() -> None:
    assert is_package_measured("auto", ["numpy"], by_conda=False)
    assert not is_package_measured("auto", ["numpy", "no_such_package"], by_conda=False)
    assert not is_package_measured("auto", ["numpy"], by_conda=True) and is_package_measured(True, ["x"], by_conda=True)
