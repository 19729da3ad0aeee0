"""What is timed of collections of words: every item's records, on small ones, and mistakes in the data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from oracles import ebwt as truth
from warpseed.batches import Settings
from warpseed.ebwt import timing_collections
from warpseed.ebwt.timing_collections import COLLECTION_ITEMS, Collection, collections_of, time_collections
from warpseed.errors import ConfigError
from warpseed.measure.digests import digest_of
from warpseed.measure.records import read_records, write_records
from warpseed.workflow.configuration import check_configuration, load_schema
from warpseed.workflow.ebwt_cases import timed_collections

SCHEMAS = Path(__file__).resolve().parents[2] / "workflow" / "schemas"
CASE = Collection([[3, 20], [5, 8]])


def test_words_differ_from_the_one_before() -> None:
    (words,) = collections_of(Collection([[4, 50]], differ=0.1))
    rows = words.codes.reshape(4, 50)
    assert [(a != b).sum() for a, b in zip(rows, rows[1:], strict=False)] == [5, 5, 5]
    assert words.names.decoded().tolist() == ["word0", "word1", "word2", "word3"]
    (drawn,) = collections_of(Collection([[4, 50]]))
    assert all(
        (a != b).sum() > 20 for a, b in zip(drawn.codes.reshape(4, 50), drawn.codes.reshape(4, 50)[1:], strict=False)
    )


def test_every_item_has_what_is_defined(tmp_path: Path) -> None:
    settings = Settings(["paper", "fast"], ["cpu"], [1, 2])
    write_records(tmp_path / "a.tsv", time_collections(CASE, settings, items=COLLECTION_ITEMS, repeats=2))
    frame: Any = read_records(tmp_path / "a.tsv")
    assert set(frame["item"]) == {"transform", "pairs", "files"} and set(frame["tier"]) == {"fast"}
    for words, name in zip(collections_of(CASE), ("3 words of 20 letters", "5 words of 8 letters"), strict=True):
        own = frame[frame["case"] == name]
        strings = [words.word(i).decode() for i in range(len(words.lengths))]
        last, indices = truth.transform(strings)
        codes = np.array([words.letters.index(letter) for letter in last.encode()])
        expected = {
            "transform": digest_of(codes, np.array(indices) - 1),
            "pairs": digest_of(np.array([[truth.distance(u, v) if u != v else 0 for v in strings] for u in strings])),
        }
        for item, digest in expected.items():
            assert set(own["digest"][own["item"] == item]) == {digest}
        assert own[own["item"] == "files"].groupby(["threads", "repeat", "metric"]).size().to_dict() == {
            (threads, repeat, metric): 1 for threads in (1, 2) for repeat in (0, 1) for metric in ("memory", "time")
        }
        assert own["digest"][own["item"] == "files"].nunique() == 1
        totals = own[own["stage"] == "total"].groupby(["item", "threads"]).size()
        assert totals.to_dict() == {(item, threads): 2 for item in expected for threads in (1, 2)}


def test_several_gpus_are_timed_with_words_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `measure.gpus` has them; what one GPU does is timed once."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.pretend_ebwt_fast import play_fast_kernels
    from warpseed.ebwt import gpu_few

    text = "{ebwt: {collections: {a: {words: [[3, 20]], items: [transform, pairs]}}}, measure: {gpus: [1, 2, 3]}}"
    config = yaml.safe_load(text)
    check_configuration(config, load_schema(SCHEMAS))
    case = timed_collections(config["ebwt"], config["measure"], ["cpu", "gpu"])["a"]
    assert case["devices"] == ["cpu", "gpu", "gpu:0,1", "gpu:0,1,2"]
    played = play_fast_kernels(monkeypatch, devices=3)
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    settings = Settings(case["tiers"], case["devices"], [1])
    rows = time_collections(Collection(case["words"]), settings, items=case["items"], repeats=1)
    assert set(played.where("count_between")) == {0, 1, 2}
    write_records(tmp_path / "a.tsv", rows)
    frame: Any = read_records(tmp_path / "a.tsv")
    assert {item: set(own["gpus"]) for item, own in frame.groupby("item")} == {
        "transform": {0, 1, 2, 3},
        "pairs": {0, 1, 2, 3},
    }
    assert frame.groupby("item")["digest"].nunique().to_dict() == {"transform": 1, "pairs": 1}
    by_gpus = frame.groupby(["item", "gpus"])["stage"].agg(list)
    assert all(("device_to_device" in stages) is (gpus > 1) for (_, gpus), stages in by_gpus.items())
    # Where several alone are asked for, one of them stands for all in what it does by itself.
    asked: list[Any] = []
    monkeypatch.setattr(timing_collections, "measure_limits", lambda _, __, own, **how: asked.append(own) or [])
    one = Settings(["fast"], ["gpu:0,1"], [1])
    assert time_collections(Collection(case["words"]), one, items=["on_device"], repeats=1) == []
    assert [own["gpus"] for own in asked] == [1]


def test_names_are_those_of_one_data_set() -> None:
    config = yaml.safe_load("ebwt: {datasets: {a: {positions: [9]}}, collections: {a: {words: [[1, 9]]}}}")
    check_configuration(config, load_schema(SCHEMAS))
    with pytest.raises(ConfigError, match=r"'ebwt.collections.a' has the name of one of 'ebwt.datasets'"):
        timed_collections(config["ebwt"], config["measure"], ["cpu"])


@pytest.mark.parametrize("words", ["[]", "[[1]]", "[[0, 9]]", "[[1, 2, 3]]", "[9]"])
def test_a_collection_is_two_numbers(words: str) -> None:
    config = yaml.safe_load(f"ebwt: {{collections: {{a: {{words: {words}}}}}}}")
    with pytest.raises(ConfigError, match=r"ebwt.collections.a.words"):
        check_configuration(config, load_schema(SCHEMAS))
