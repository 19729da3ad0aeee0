"""What is timed of weighted sequences: every item's records, on small ones."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import ebwt as truth
from warpseed.batches import Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu_paper
from warpseed.ebwt.fast import Found
from warpseed.ebwt.timed import Case, works_of
from warpseed.ebwt.timing import ITEMS, time_dataset
from warpseed.ebwt.words import Words
from warpseed.errors import InputError
from warpseed.measure.records import read_records, write_records
from warpseed.report.measurements import load_measurements, published_of

RESOURCES = Path(__file__).resolve().parents[2] / "resources"
CASE = Case([8, 20], share=0.2, most_weighted=3, pattern=4, pattern_share=0.5)


def timed(tmp_path: Path, settings: Settings, items: tuple[str, ...] = ITEMS, repeats: int = 2) -> Any:
    """The records after a round through a file."""
    write_records(tmp_path / "a.tsv", time_dataset(CASE, settings, items=items, repeats=repeats))
    return read_records(tmp_path / "a.tsv")


def digest(*numbers: list[int]) -> str:
    return hashlib.sha256(b"".join(np.array(each, np.int64).tobytes() for each in numbers)).hexdigest()


def expected_of(work: Any) -> tuple[str, str]:
    """The digests of the order, and of the order and the distances, by their definitions."""
    words = [work.words.word(i).decode() for i in range(len(work.words.lengths))]
    begins = [0, *itertools.accumulate(map(len, words))]
    order = [begins[number] + offset for number, offset in truth.ordered_conjugates(words)]
    distances = [truth.distance(words[a], words[b]) for a, b in work.pairs.tolist()]
    return digest(order), digest(order, distances)


def test_sequences_stand_before_patterns_and_every_pair_is_there() -> None:
    first, second = works_of(CASE)
    assert (first.name, second.name) == ("8 positions", "20 positions")
    assert second.parameters == {"pattern": 4, "tau": 0.2, "sequences": 8, "patterns": 4}
    assert second.words.lengths.tolist() == [20] * 8 + [4] * 4
    assert second.pairs.tolist() == [[i, j] for i in range(8) for j in range(8, 12)]
    names = second.words.names.decoded().tolist()
    assert names[:2] == ["sequence.1", "sequence.2"] and names[8:] == [f"pattern.{i}" for i in range(1, 5)]
    # The pattern is the same one with every sequence.
    assert first.pairs[0].tolist() == [0, 4]
    assert [first.words.word(4 + i) for i in range(4)] == [second.words.word(8 + i) for i in range(4)]


def test_every_side_has_the_order_and_the_distances_of_the_definitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.pretend_ebwt import play_kernels

    play_kernels(monkeypatch)
    frame = timed(tmp_path, Settings(["paper"], ["cpu", "gpu"], [1, 2]))
    for work in works_of(CASE):
        order, both = expected_of(work)
        own = frame[frame["case"] == work.name]
        assert set(own["digest"][own["item"] != "table_3"]) == {order}
        assert set(own["digest"][own["item"] == "table_3"]) == {both}
        assert set(own["results"][own["item"] == "table_3"]) == {len(work.pairs)}
        assert set(own["queries"]) == {len(work.words.codes)}
    # The paper's CPU side is a thread.
    assert set(frame["threads"]) == {1} and set(frame["repeat"]) == {0, 1} and set(frame["system"]) == {"ebwt"}
    stages = {key: list(dict.fromkeys(own["stage"])) for key, own in frame.groupby(["item", "device"])}
    for item in ITEMS:
        measured = ["conjugates", "sort", *(["distance"] if item == "table_3" else [])]
        assert stages[item, "cpu"] == [*measured, "total"]
        assert stages[item, "gpu"] == ["host_to_device", *measured, "device_to_host", "total"]


def test_the_fast_tier_has_the_papers_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its order and its distances; a played GPU finds them as the paper tier does."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from warpseed.ebwt import gpu

    def find(words: Words, *, order: bool, distances: bool, watch: Stopwatch, **how: object) -> Found:
        assert order and how == {"devices": (1,), "threads": 2}
        for stage in ("host_to_device", "order", *(["distances"] if distances else []), "device_to_host"):
            watch.add(stage, 0.5)
        ordered = cpu_paper.order_conjugates(words)
        return Found(ordered, None, cpu_paper.distances(words, ordered) if distances else None)

    monkeypatch.setattr(gpu, "find", find)
    rows = [
        row
        for settings in (Settings(["paper"], ["cpu"], [1]), Settings(["fast"], ["cpu", "gpu:1"], [1, 2]))
        for row in time_dataset(CASE, settings, items=("table_1", "table_3"), repeats=1)
    ]
    write_records(tmp_path / "a.tsv", rows)
    frame = read_records(tmp_path / "a.tsv")
    fast = frame[frame["tier"] == "fast"]
    there, here = fast[fast["device"] == "gpu"], fast[fast["device"] == "cpu"]
    assert list(dict.fromkeys(there["stage"])) == ["host_to_device", "sort", "device_to_host", "total", "distance"]
    assert list(dict.fromkeys(here["stage"])) == ["sort", "total", "distance"]
    assert set(here["threads"]) == {1, 2} and set(there["threads"]) == {2}
    assert frame.groupby(["item", "case"])["digest"].nunique().tolist() == [1] * 4


def test_records_meet_what_is_printed(tmp_path: Path) -> None:
    """Of the lengths that the paper has, with its pattern and its threshold."""
    case = Case([50])
    write_records(tmp_path / "a.tsv", time_dataset(case, Settings(["paper"], ["cpu"], [1]), items=ITEMS, repeats=1))
    published, paper = RESOURCES / "published" / "ebwt.tsv", RESOURCES / "papers" / "ebwt.yaml"
    loaded = load_measurements([tmp_path / "a.tsv"], [], [published], [paper]).of("ebwt")
    records = loaded.records
    for item, printed in (("table_1", [0.235, 0.25]), ("table_2", [0.016, 0.25]), ("table_3", [0.016, 0.016, 0.594])):
        own = records[records["item"] == item]
        assert own["parameters"].unique().tolist() == ["pattern=6; tau=0.2; sequences=16; patterns=4"]
        values = published_of(loaded, item, "50 positions", own["parameters"].iloc[0])
        assert values["value"].tolist()[: len(printed)] == printed
        assert set(values["metric"]) <= set(own["stage"]) and set(values["method"]) == set(loaded.paper.methods)
    assert set(loaded.paper.items) == {*ITEMS, "transform", "pairs"}


def test_what_cannot_be_timed_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'sequence' has 262,144 solid sequences"):
        time_dataset(Case([18], 1, 18), Settings(["paper"], ["cpu"], [1]), items=ITEMS, repeats=1)
    assert time_dataset(CASE, Settings(["fast"], ["cpu"], [1]), items=(), repeats=1) == []
