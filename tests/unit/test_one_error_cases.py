"""Which data sets of reads a run times, and with which tools beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.errors import ConfigError
from warpseed.workflow.configuration import check_configuration, load_schema
from warpseed.workflow.one_error_cases import PEER_PROGRAMS, index_parts, timed_datasets

SCHEMAS = Path(__file__).resolve().parents[2] / "workflow" / "schemas"


def datasets_of(text: str, devices: tuple[str, ...] = ("cpu",), installed: tuple[str, ...] = ()) -> dict[str, Any]:
    config = yaml.safe_load(text)
    check_configuration(config, load_schema(SCHEMAS))
    programs = [PEER_PROGRAMS[name] for name in installed]
    return timed_datasets(config["one_error"], config["measure"], devices, programs.__contains__)


def test_what_is_not_measured_is_left_out() -> None:
    text = """
one_error:
  datasets:
    both: {reads: mixed, peers: [razers3, yara, bwa]}
    gpu: {reads: mixed, devices: [gpu]}
    paper: {reads: mixed, tiers: [paper], items: [fixed_slots]}
measure: {tiers: [fast], threads: [1]}
"""
    datasets = datasets_of(text, installed=("yara", "bowtie"))
    assert list(datasets) == ["both"]
    assert datasets["both"] | {"tiers": ["fast"], "devices": ["cpu"], "peers": ["yara"]} == datasets["both"]
    assert (datasets["both"]["threads"], datasets["both"]["items"]) == ([1], ["in_memory", "file_to_file"])
    assert list(datasets_of(text, ("cpu", "gpu"))) == ["both", "gpu"]
    assert datasets_of(text, ("cpu", "gpu"))["gpu"]["devices"] == ["gpu"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{}", []),
        ("{a: {reads: r, tiers: [paper]}}", ["forward"]),
        ("{a: {reads: r, tiers: [fast]}}", ["fast"]),
        ("{a: {reads: r}}", ["fast", "forward"]),
    ],
)
def test_an_index_has_the_parts_that_are_searched(text: str, parts: list[str]) -> None:
    assert index_parts(datasets_of(f"one_error: {{datasets: {text}}}")) == parts


@pytest.mark.parametrize(
    ("dataset", "sentence"),
    [
        ("length: [200, 100]", "'one_error.datasets.a.length' is [200, 100], but the smallest comes first: swap them."),
        ("edits: 2, peers: [yara, bowtie]", "'one_error.datasets.a.peers' has bowtie, which knows substitutions alone"),
    ],
)
def test_keys_that_do_not_go_together_are_one_sentence(dataset: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        datasets_of(f"one_error: {{datasets: {{a: {{reads: r, {dataset}}}}}}}")
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "{a: {reads: r, items: [fixed_slot]}}",
            "'one_error.datasets.a.items' is ['fixed_slot'], but it should be: list",
        ),
        ("{a: {items: [profile]}}", "'one_error.datasets.a' lacks 'reads'"),
        ("{a: {reads: r, edits: 3}}", "'one_error.datasets.a.edits' is 3, but it should be: edits allowed, 0, 1 or 2"),
        ("{a: {reads: r, length: 100}}", "'one_error.datasets.a.length' is 100, but it should be: [smallest, largest]"),
    ],
)
def test_a_mistake_in_a_data_set_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        datasets_of(f"one_error: {{datasets: {text}}}")
    assert sentence in str(raised.value)


def test_items_and_tools_are_the_same_in_every_list() -> None:
    """What the configuration offers is what is timed; each tool has programs, a way to run it, a name on the page."""
    from warpseed.one_error import peers, timing
    from warpseed.report import one_error as page

    schema = yaml.safe_load((SCHEMAS / "one_error.schema.yaml").read_text())
    keys = schema["properties"]["datasets"]["additionalProperties"]["properties"]
    assert set(keys["items"]["items"]["enum"]) == set(timing.ITEMS)
    tools = set(keys["peers"]["items"]["enum"])
    shown = {peer.name for peer in page._PEERS}
    assert tools == set(PEER_PROGRAMS) == set(peers._TOOLS) == shown
    assert sorted(tools) == sorted(tool for each in peers._QUESTIONS.values() for tool in each)
