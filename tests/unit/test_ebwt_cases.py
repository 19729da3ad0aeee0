"""Which data sets of weighted sequences a run times, how large they are, and mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.ebwt import solid, timing
from warpseed.ebwt.paper import prefix_length
from warpseed.ebwt.timed import Case, works_of
from warpseed.ebwt.weighted import DRAWN
from warpseed.errors import ConfigError
from warpseed.workflow import ebwt_cases, resources
from warpseed.workflow.configuration import check_configuration, load_schema
from warpseed.workflow.ebwt_cases import sizes_of, timed_datasets

SCHEMAS = Path(__file__).resolve().parents[2] / "workflow" / "schemas"


def datasets_of(text: str, devices: tuple[str, ...] = ("cpu",)) -> dict[str, Any]:
    config = yaml.safe_load(text)
    check_configuration(config, load_schema(SCHEMAS))
    return timed_datasets(config["ebwt"], config["measure"], devices)


def test_what_is_not_measured_is_left_out() -> None:
    text = """
ebwt:
  datasets:
    both: {positions: [50, 60]}
    gpu: {positions: [50], devices: [gpu]}
    paper: {positions: [50], tiers: [paper]}
measure: {tiers: [fast], threads: [1]}
"""
    datasets = datasets_of(text)
    assert list(datasets) == ["both"]
    assert datasets["both"] | {"tiers": ["fast"], "devices": ["cpu"], "threads": [1]} == datasets["both"]
    assert list(datasets_of(text, ("cpu", "gpu"))) == ["both", "gpu"]
    # The defaults are those of a case, and its keys are the data set's.
    assert {name: datasets["both"][name] for name in Case._fields} == Case([50, 60])._asdict()


def test_sizes_are_known_before_anything_is_drawn() -> None:
    text = """
ebwt:
  datasets:
    some: {positions: [1, 6, 7, 49, 50, 99, 100, 101]}
    other: {positions: [20, 33], share: 0.25, most_weighted: 6, pattern: 9, pattern_share: 0.5, threshold: 0.25}
    least: {positions: [1], share: 0, pattern: 1, pattern_share: 1}
"""
    for dataset in datasets_of(text).values():
        works = list(works_of(Case(**{name: dataset[name] for name in Case._fields})))
        counts, lengths = zip(*sizes_of(dataset), strict=True)
        assert list(counts) == [len(work.words.codes) for work in works]
        assert all(length >= prefix_length(work.words) for length, work in zip(lengths, works, strict=True))


def test_conjugates_of_a_hundred_positions_have_as_many_letters_as_in_section_vii() -> None:
    """By default: about 10^6, with a pattern of 6."""
    [work] = works_of(Case([100]))
    assert sorted(set(work.words.lengths.tolist())) == [6, 100]
    assert 1e6 <= (work.words.lengths**2).sum() < 1.5e6


def test_more_conjugates_ask_for_more() -> None:
    """A byte for each of their letters, and seconds for each step of a sort."""
    few, many = (resources.time_weighted([(count, 300)], 10) for count in (30_000, 30_000_000))
    assert many.mem_mb > few.mem_mb + 9_000 and many.runtime > few.runtime + 600


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{a: {}}", "'ebwt.datasets.a' lacks 'positions'"),
        ("{a: {positions: [0]}}", "'ebwt.datasets.a.positions' is [0], but it should be: "),
        (
            "{a: {positions: [5], share: 1.5}}",
            "'ebwt.datasets.a.share' is 1.5, but it should be: share of its positions",
        ),
        (
            "{a: {positions: [5], threshold: 0.3}}",
            "'ebwt.datasets.a.threshold' is 0.3, but it should be: the probability",
        ),
        ("{a: {positions: [5], threshold: 0}}", "'ebwt.datasets.a.threshold' is 0, but it should be: the probability"),
        (
            "{a: {positions: [5, 250], most_weighted: 17}}",
            "'ebwt.datasets.a.most_weighted' is 17, which gives 17 positions with two letters, but at most 16",
        ),
        (
            "{a: {positions: [5], pattern: 40, pattern_share: 0.5}}",
            "'ebwt.datasets.a.pattern_share' is 0.5, which gives 20 positions with two letters, but at most 16 were",
        ),
    ],
)
def test_a_mistake_in_a_data_set_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        datasets_of(f"ebwt: {{datasets: {text}}}")
    assert sentence in str(raised.value)
    datasets_of("ebwt: {datasets: {a: {positions: [5, 225], most_weighted: 17}}}")  # no sequence has as many


def test_numbers_and_items_are_the_same_in_every_list() -> None:
    schema = yaml.safe_load((SCHEMAS / "ebwt.schema.yaml").read_text())
    keys = schema["properties"]["datasets"]["additionalProperties"]["properties"]
    assert set(keys["items"]["items"]["enum"]) == set(keys["items"]["default"]) == set(timing.ITEMS)
    assert keys["threshold"]["maximum"] == DRAWN[0] == 1 - DRAWN[1]
    assert 2**ebwt_cases.MOST_WEIGHTED <= solid.LIMIT < 2 ** (ebwt_cases.MOST_WEIGHTED + 1)
