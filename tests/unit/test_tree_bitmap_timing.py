"""What is timed of k-mers in a stream: every item's records, on small streams."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles import tree_bitmap as truth
from oracles.pretend_stream import play_table
from oracles.pretend_tree_bitmap import play_kernels
from warpseed.batches import Settings
from warpseed.compute import gpu as device
from warpseed.compute import locked_memory
from warpseed.errors import InputError
from warpseed.measure.records import read_records, split_parameters, write_records
from warpseed.tree_bitmap import floors, gpu_memory, peers, timing, timing_kernels
from warpseed.tree_bitmap.growing import Growing
from warpseed.tree_bitmap.timed import Case, stream_of_case, works_of
from warpseed.tree_bitmap.timing import time_dataset

SETTINGS = Settings(["paper", "fast"], ["cpu"], [1, 2])
CASE = Case("some", None, 9, [40, 200], [3, 5], 0, 50)


def timed(case: Case, items: list[str], tmp_path: Path, settings: Settings = SETTINGS) -> Any:
    """The records of some items after a round through a file."""
    write_records(tmp_path / "a.tsv", time_dataset(case, settings, items=items, repeats=2))
    return read_records(tmp_path / "a.tsv")


def digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def test_random_streams_begin_alike_and_references_have_borders(write_reference: Callable[..., Path]) -> None:
    codes = stream_of_case(CASE)
    assert len(codes) == 200 and set(codes.tolist()) == {0, 1, 2, 3}
    assert stream_of_case(CASE._replace(lengths=[70])).tolist() == codes[:70].tolist()
    assert stream_of_case(CASE._replace(seed=10)).tolist() != codes.tolist()
    reference = str(write_reference(["ACGTN", "TTA", "C"]))
    expected = [0, 1, 2, 3, 4, 4, 3, 3, 0, 4, 1]
    assert stream_of_case(CASE._replace(reference=reference)).tolist() == expected
    assert stream_of_case(CASE._replace(reference=reference, lengths=[6])).tolist() == expected[:6]


def test_records_say_that_bases_are_a_genomes(write_reference: Callable[..., Path], tmp_path: Path) -> None:
    case = CASE._replace(reference=str(write_reference(["ACGTACGGTA"])), kmer_lengths=[3])
    frame = timed(case, ["in_memory"], tmp_path)
    assert set(frame["parameters"]) == {"k=3; length=10; bases=genome"}
    (work,) = works_of(case)
    assert work.parameters == {"k": 3, "length": 10, "bases": "genome"}


def test_exact_kernels_have_the_same_records_on_every_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_kernels(monkeypatch)
    both = Settings(["paper"], ["cpu", "gpu"], [1, 2])
    case = CASE._replace(seed_length=30)
    frame = timed(case, ["exact_kernels"], tmp_path, both)
    codes = stream_of_case(case).tolist()
    for k in (3, 5):
        for length in (40, 200):
            own = frame[frame["parameters"].str.startswith(f"k={k}; length={length}; seed_length=30; kernel=")]
            known = {word for _, word in truth.words_at(codes[:30], k)}
            matches = sum(word in known for _, word in truth.words_at(codes[:length], k))
            assert set(own["results"]) == {matches} and own["digest"].nunique() == 1
            assert own.groupby(["device", "parameters"]).ngroups == 4
            assert {"kernel"} == set(own.loc[own["device"] == "cpu", "stage"])
    # Without a seed the dictionary is the stream's.
    assert set(timed(CASE._replace(kmer_lengths=[3]), ["exact_kernels"], tmp_path)["results"]) == {38, 198}


def test_edit_kernels_count_accesses_and_occupancy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_kernels(monkeypatch)
    monkeypatch.setattr(timing_kernels, "_occupancy", {"naive": 0.5, "efficient": 0.5, "queue": 0.25}.__getitem__)
    case = CASE._replace(lengths=[60], kmer_lengths=[5], seed_length=12, max_edits=1)
    frame = timed(case, ["edit_kernels"], tmp_path, Settings(["paper"], ["cpu", "gpu"], [1]))
    times = frame[frame["metric"] == "time"]
    assert set(times["stage"]) == {"kernel"} and times["digest"].nunique() == 1
    named = times.groupby("device")["parameters"].unique().to_dict()
    shared = "k=5; length=60; seed_length=12; max_edits=1; kernel="
    assert [name.removeprefix(shared) for name in named["cpu"]] == ["naive", "efficient"]
    assert [name.removeprefix(shared) for name in named["gpu"]] == ["naive", "efficient", "queue"]
    counted = frame[frame["metric"] == "accesses"].set_index("parameters")["value"]
    assert len(counted) == 2 and 0 < counted[f"{shared}efficient"] < counted[f"{shared}naive"]
    assert frame[frame["metric"] == "occupancy"]["value"].tolist() == [0.5, 0.5, 0.25]


def test_both_structures_become_the_same_tree_bitmap(tmp_path: Path) -> None:
    frame = timed(CASE, ["structures"], tmp_path)
    codes = stream_of_case(CASE)
    for k in (3, 5):
        for length in (40, 200):
            bitmaps = Growing(k)
            words = [word for _, word in truth.words_at(codes[:length].tolist(), k)]
            bitmaps.insert(np.array(truth.codes_of_words(words), np.uint64))
            for structure in ("tree", "hybrid"):
                own = frame[frame["parameters"] == f"k={k}; length={length}; structure={structure}"]
                assert set(own["digest"]) == {digest(*bitmaps.to_bitmap())}
                assert set(own["results"]) == {bitmaps.trie_nodes} and set(own["queries"]) == {length}
                assert list(dict.fromkeys(own["stage"])) == ["insert", "to_bitmap", "total"]
                assert own["repeat"].nunique() == 4


def test_versions_say_the_same_and_have_events(tmp_path: Path) -> None:
    case = CASE._replace(lengths=[200], kmer_lengths=[3], seed_length=20)
    frame = timed(case, ["versions"], tmp_path)
    own = frame[frame["item"] == "versions"]
    answers, dictionary = truth.answers_to(stream_of_case(case).tolist(), 3, 20)
    expected = digest(np.array(answers, np.uint8), np.array(dictionary, np.uint64))
    assert set(own["digest"]) == {expected} and set(own["results"]) == {answers.count(truth.NEW)}
    named = own.groupby("parameters")["stage"].unique().to_dict()
    shared = "k=3; length=200; seed_length=20; version="
    parts = {"to_bitmap", "kernel", "deltas", "total"}
    assert {name.removeprefix(shared): set(stages) for name, stages in named.items()} == {
        "one_trie": {"match", "total"},
        "serial; chunk_length=50": parts,
        "concurrent; chunk_length=50": parts,
        "sorted; chunk_length=50": parts,
    }
    events = frame[frame["item"] == "events"]
    serial = events[events["parameters"].str.contains("version=serial")]
    kernels = serial[serial["stage"] == "kernel"].pivot(index="parameters", columns="metric", values="value")
    assert len(kernels) == 4 and (kernels["begin"] <= kernels["end"]).all()
    streams = [split_parameters(text)["stream"] for text in kernels.sort_values("begin").index]
    assert streams == ["0", "1", "0", "1"]
    total = own[(own["stage"] == "total") & own["parameters"].str.contains("version=serial")]
    last = total[total["repeat"] == 1]["value"].iloc[0]
    assert serial["value"].max() == last


@pytest.mark.parametrize("devices", [["cpu"], ["cpu", "gpu"]])
def test_counts_are_the_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: list[str]) -> None:
    """On every device and number of threads, by the fast tier."""
    if "gpu" in devices:
        play_table(monkeypatch)
    frame = timed(CASE, ["counts"], tmp_path, Settings(["paper", "fast"], devices, [1, 2]))
    codes = stream_of_case(CASE).tolist()
    assert set(frame["tier"]) == {"fast"} and set(frame["device"]) == set(devices)
    for k in (3, 5):
        for length in (40, 200):
            places: dict[Any, list[int]] = {}
            for place, word in truth.words_at(codes[:length], k):
                places.setdefault(word, []).append(place)
            kmers = np.array(truth.codes_of_words(places), np.uint64)
            counted = [(held[0], len(held)) for held in places.values()]
            firsts, counts = np.array(counted, np.int64).T
            own = frame[frame["parameters"] == f"k={k}; length={length}"]
            assert set(own["digest"]) == {digest(kmers, firsts, counts)} and set(own["results"]) == {len(kmers)}
            assert len(own[["device", "threads"]].drop_duplicates()) == len(devices) + 1


def test_in_memory_the_thesiss_version_is_one_thread(tmp_path: Path) -> None:
    frame = timed(CASE._replace(seed_length=10), ["in_memory"], tmp_path)
    paper = frame[frame["tier"] == "paper"]
    assert set(paper["threads"]) == {1}
    codes = stream_of_case(CASE)
    for (k, length), own in frame.groupby(
        [frame["parameters"].str.extract(r"k=(\d+)")[0], frame["parameters"].str.extract(r"length=(\d+)")[0]]
    ):
        answers, _ = truth.answers_to(codes[: int(length)].tolist(), int(k), 10)
        assert set(own["digest"]) == {digest(np.array(answers, np.uint8))}
        assert set(own["results"]) == {answers.count(truth.NEW)}


@pytest.mark.parametrize("is_there", [False, True])
def test_libraries_find_the_same_places(
    write_reference: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """Both strands of a reference with what is no base; an automaton with the other library's interface."""
    contigs = ["ACGTTGCANNACGTTA" * 3, "TTTACCAGN"]
    case = CASE._replace(reference=str(write_reference(contigs)), lengths=[1000], kmer_lengths=[4], kmers=5)
    tools = ["numpy"]
    if is_there:
        tools.append("ahocorasick_rs")
        monkeypatch.setitem(sys.modules, "ahocorasick_rs", SimpleNamespace(BytesAhoCorasick=PlainAutomaton))
    frame = timed(case._replace(tools=tools), ["fixed"], tmp_path)
    assert {*tools, "warpseed"} == set(frame["tool"]) and frame["digest"].nunique() == 1
    assert set(frame.loc[frame["tool"] != "warpseed", "tier"]) == {"-"} and set(frame["threads"]) == {1, 2}
    forward = "N".join(contigs)
    stream = forward + "N" + forward[::-1].translate(str.maketrans("ACGT", "TGCA"))
    fixed = peers.fixed_dictionary(next(works_of(case)), 5, 9)
    words = {"".join("ACGT"[int(kmer) >> 2 * i & 3] for i in (3, 2, 1, 0)) for kmer in fixed.kmers}
    assert len(words) == 5 and all(word in forward for word in words)
    places = [stream[i : i + 4] in words for i in range(len(stream))]
    assert set(frame["results"]) == {sum(places)} and set(frame["digest"]) == {digest(np.array(places))}


class PlainAutomaton:
    """What of ahocorasick_rs is used, by looking everywhere."""

    def __init__(self, patterns: list[bytes]) -> None:
        self.patterns = patterns

    def find_matches_as_indexes(self, text: bytes, *, overlapping: bool) -> list[tuple[int, int, int]]:
        assert overlapping
        return [
            (number, at, at + len(pattern))
            for at in range(len(text))
            for number, pattern in enumerate(self.patterns)
            if text.startswith(pattern, at)
        ]


def test_a_library_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    with pytest.raises(InputError, match=r"ahocorasick_rs is not installed.*pip install"):
        timed(CASE._replace(tools=["ahocorasick_rs"]), ["fixed"], tmp_path)


@pytest.mark.parametrize(
    ("arrays", "floor"),
    [
        ({"table": {True, False}}, 196 / 1e6 + 2 / 1e3),
        ({"seen": {False}, "turns": {True}}, 198 / 1e6 + 2 / 1e3),
    ],
    ids=["hash", "direct"],
)
def test_kernels_stand_beside_their_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrays: dict[str, set[bool]], floor: float
) -> None:
    """Of every place a sector of the hash table, and of distinct k-mers one that is written, too; or one of the bits,
    which is read, and of every distinct k-mer one of the turns. What runs on a device is not run here."""
    places = np.array([truth.NEW, truth.SEEN, truth.NEW], np.uint8)
    monkeypatch.setattr(device, "on_device", lambda number: nullcontext())
    monkeypatch.setattr(floors, "_search", lambda codes, k: (lambda: places, dict.fromkeys(arrays, np.zeros(8))))
    monkeypatch.setattr(floors, "kernel_seconds", lambda run, repeats: [0.5] * repeats)

    def rates(asked: Any, repeats: int, fields: Any, *, written: bool) -> Any:
        assert all(written in arrays[name] for name in asked) and len(asked) == 1 and fields["queries"] == -1
        return dict.fromkeys(asked, 1e3 if written else 1e6), []

    monkeypatch.setattr(floors, "gather_rates", rates)
    frame = timed(CASE._replace(kmer_lengths=[3]), ["on_device"], tmp_path, Settings(["fast"], ["cpu", "gpu"], [1]))
    assert set(frame["item"]) == {"limits"} and set(frame["results"]) == {2}
    own = frame[frame["case"] == "k=3, 200 bases"].set_index("metric")["value"]
    assert own["floor"] == pytest.approx(floor) and own["share"] == pytest.approx(floor / 0.5)
    assert own["throughput"] == pytest.approx(400) and own["time"].tolist() == [0.5, 0.5]
    assert timed(CASE, ["on_device"], tmp_path).empty


@pytest.mark.parametrize(("k", "arrays"), [(3, {"seen", "turns"}), (9, {"table"})])
def test_what_is_timed_on_a_device_is_a_search_in_blocks(
    monkeypatch: pytest.MonkeyPatch, k: int, arrays: set[str]
) -> None:
    play_table(monkeypatch)
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 64)
    codes = stream_of_case(CASE)
    search, held = floors._search(codes, k)
    for _ in range(2):
        assert search().tolist() == truth.answers_to(codes.tolist(), k)[0][: len(codes) - k + 1]
    assert set(held) == arrays


def test_streams_in_memory_are_timed_on_several_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From memory that they copy from at full speed; what has a stream on a GPU, or is of the paper, on one."""
    locked: list[int] = []
    monkeypatch.setattr(locked_memory, "locked_copy", lambda codes, _: locked.append(len(codes)) or codes.copy())
    play_table(monkeypatch, devices=2)
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 64)
    settings = Settings(["fast"], ["cpu", "gpu", "gpu:0,1"], [1])
    case = CASE._replace(kmer_lengths=[5], lengths=[200])
    frame = timed(case, ["in_memory", "counts", "fixed"], tmp_path, settings)
    for _, rows in frame.groupby("item"):
        assert set(rows["gpus"]) == {0, 1, 2} and rows["digest"].nunique() == 1
    assert locked == [200, 200, 401]  # (of each item once, for one GPU and two)
    play_kernels(monkeypatch)
    kernels = timed(case._replace(seed_length=30), ["exact_kernels"], tmp_path, settings._replace(tiers=["paper"]))
    assert set(kernels["gpus"]) == {0, 1}
    locked.clear()
    timed(case, ["in_memory"], tmp_path, settings._replace(devices=["cpu"]))
    assert locked == []


def test_the_paper_tier_is_timed_on_one_gpu() -> None:
    settings = Settings(["paper"], ["gpu", "gpu:0,1"], [1])
    (work,) = works_of(CASE._replace(kmer_lengths=[3], lengths=[50]))
    assert [side.fields["gpus"] for side in timing._in_memory(work, settings)] == [1]
