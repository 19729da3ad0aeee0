"""What the Python interface takes as k-mers, numbers and an index, and the sentence for everything else."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import warpseed
from warpseed.batches import Options, checked_options, find_all, iter_batches, write_results
from warpseed.compute.devices import devices_of, target_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import iter_kmer_hits
from warpseed.output.rows import Found, Result
from warpseed.sequences.packed import NamedSet, Packed, pack
from warpseed.sequences.queries import Queries
from warpseed.tasks import Room


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SeedIndex:
    path = tmp_path_factory.mktemp("batches") / "genome.fa"
    path.write_text(">c\nACGTTGCAAGCTTACGGATC\n")
    return build_index(path)


@pytest.mark.parametrize(
    "kmers",
    [
        np.frombuffer(b"ACGTACGT", np.uint8),
        np.arange(4),
        pd.DataFrame({"ACGT": ["TTTT"]}),
        {"ACGT": "TTTT"},
        {"ACGT", "TTTT"},
        None,
        7,
        np.array("ACGT"),
        np.array([["ACGT", "TTTT"]]),
    ],
    ids=["bytes as numbers", "numbers", "frame", "dictionary", "set", "None", "a number", "a text", "a table"],
)
def test_what_is_no_kmers_is_refused(index: SeedIndex, kmers: Any) -> None:
    with pytest.raises(InputError, match="were expected"):
        warpseed.find_kmers(index, kmers)


@pytest.mark.parametrize("kmers", [b"ACGT", bytearray(b"ACGT"), memoryview(b"ACGT")])
def test_one_sequence_alone_is_refused(index: SeedIndex, kmers: Any) -> None:
    kind = type(kmers).__name__
    with pytest.raises(InputError, match=f"the queries are {kind}, which is one sequence: put it in a list"):
        warpseed.find_kmers(index, kmers)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_mismatch", r"did you mean 'max_mismatches'\?"),
        ("thread", r"did you mean 'threads'\?"),
        ("zzz", r"known are k, step, max_mismatches, watch, tier, device, threads, max_hits, devices\."),
    ],
)
def test_an_option_that_is_none_is_a_sentence(index: SeedIndex, name: str, hint: str) -> None:
    options: dict[str, Any] = {name: 1}
    for search in (warpseed.find_kmers, iter_kmer_hits):
        with pytest.raises(InputError, match=rf"^the option '{name}' is not known: {hint}$"):
            search(index, ["ACGT"], **options)


def test_the_package_lists_what_it_gives() -> None:
    assert set(warpseed.__all__) <= set(dir(warpseed)) and all(hasattr(warpseed, name) for name in dir(warpseed))


@pytest.mark.parametrize("value", [np.array(["cpu", "gpu"]), 1, None, b"cpu", ["fast"]], ids=str)
@pytest.mark.parametrize("name", ["tier", "device", "report"])
def test_a_choice_that_is_no_text_is_a_sentence(index: SeedIndex, name: str, value: Any) -> None:
    search = warpseed.find_reads if name == "report" else warpseed.find_kmers
    with pytest.raises(InputError, match=rf"^{name} is {re.escape(repr(value))}, but '"):
        search(index, ["ACGT"], **{name: value})


WATCHED = {
    name: call
    for name, call in ((name, getattr(warpseed, name)) for name in warpseed.__all__)
    if inspect.isfunction(call) and "watch" in inspect.signature(call).parameters
}
"""The public functions that take a stopwatch."""


@pytest.mark.parametrize("watch", [3, 0, True, Stopwatch, "watch"])
@pytest.mark.parametrize("name", WATCHED)
def test_a_watch_that_is_none_is_a_sentence(tmp_path: Path, name: str, watch: Any) -> None:
    """Before anything is read."""
    call, missing = WATCHED[name], tmp_path / "missing"
    given = ["paper"] if name == "add_parts" else [missing] * name.startswith(("find", "iter"))
    sentence = f"watch is {watch!r}, but a warpseed.compute.stopwatch.Stopwatch was expected, or None."
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        call(missing, *given, watch=watch)
    assert len(WATCHED) == 10


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"devices": 1}, "devices is 1, but numbers of GPUs, such as [0, 1], were expected."),
        ({"devices": []}, "devices is [], but numbers of GPUs, such as [0, 1], were expected."),
        ({"devices": "01"}, "devices is '01', but numbers of GPUs, such as [0, 1], were expected."),
        ({"devices": [-1]}, "devices is [-1], but numbers of GPUs, such as [0, 1], were expected."),
        ({"devices": [0], "device": "cpu"}, "devices goes with device='gpu', but device is 'cpu'."),
        (
            {"devices": [1, 1], "device": "gpu"},
            "device is 'gpu:1,1', but 'cpu' or 'gpu' was expected, or",
        ),
    ],
)
def test_devices_by_numbers_are_checked(index: SeedIndex, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        warpseed.find_kmers(index, ["ACGT"], **options)


@pytest.mark.parametrize("kind", ["mem", ["super"], None])
def test_a_kind_of_match_that_is_none_is_a_sentence(index: SeedIndex, kind: Any) -> None:
    with pytest.raises(InputError, match=f"^kind is {re.escape(repr(kind))}, but 'super', 'paper', 'maximal' were exp"):
        warpseed.find_mems(index, ["ACGT"], kind=kind)


def test_devices_by_numbers_are_a_device() -> None:
    assert checked_options({"device": "gpu", "devices": np.array([1, 0])}).device == "gpu:1,0"
    assert checked_options({"devices": (2,)}).device == "gpu:2"
    assert checked_options({"device": "gpu", "devices": None}).device == "gpu"


class Repeats:
    """A played search: every query has `each` hits, at text positions 0, 1, 2, …."""

    text_length = 1 << 20
    on_device = False
    as_written = False

    def __init__(self, each: int, threads: int) -> None:
        self.options = Options(threads=threads)
        self.each = each
        self.rooms: list[tuple[int, int]] = []

    def queries(self, records: Queries, watch: Stopwatch) -> Queries:
        return records

    def pack(self, queries: Queries, first: int) -> Packed:
        return pack(queries)

    def find(self, queries: Packed, room: Room, watch: Stopwatch) -> Found:
        low, high = max(0, room.text[0]), min(self.each, room.text[1])
        here = max(0, high - low)
        done = min(len(queries.lengths), room.results // max(1, here))
        self.rooms.append((len(queries.lengths), done))
        return Found(np.tile(np.arange(low, low + here, dtype=np.uint64), done), np.full(done, here), 0, 0)

    def hits(self, queries: Queries, found: Found, first: int, continues: bool) -> Any:
        return found.hits.sum()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("each", [0, 1, 2000, 300_000, 20_000_000])
def test_no_batch_has_more_results_than_there_is_room(each: int, threads: int) -> None:
    count = 3000 if each <= 2000 else 3
    search: Any = Repeats(each, threads)
    search.text_length = 2 * each + 1
    batches = list(
        iter_batches(["ACGT"] * count, search, make=lambda hits: hits, watch=Stopwatch())
    )  # fmt: skip
    assert [len(batch.found.hits) for batch in batches if len(batch.found.hits) > 1 << 22] == []
    numbers, place = [], 0
    for batch in batches:
        assert batch.first == place and batch.found.counts.sum() == len(batch.found.hits)
        assert len(batch.queries) == len(batch.found.counts)
        numbers += [place + i for i in range(len(batch.queries))]
        place += len(batch.queries) - batch.continues
        assert batch.made is None if len(batch.found.hits) > 1 << 18 else batch.made == batch.found.hits.sum()
    assert place == count and sorted(set(numbers)) == list(range(count))
    queries, found = find_all(["ACGT"] * count, search, watch=Stopwatch())
    assert len(queries) == count and (found.counts == each).all()
    assert np.array_equal(found.hits, np.tile(np.arange(each, dtype=np.uint64), count))
    if each == 2000:
        assert all(done for asked, done in search.rooms) and len(search.rooms) < 2 * 2 * 3000 * 2000 / (1 << 16)


class BesideDevice(Repeats):
    """The same on a played device, where packing takes a while."""

    on_device = True

    def pack(self, queries: Queries, first: int) -> Packed:
        time.sleep(0.06)
        return super().pack(queries, first)

    def stream(self, sets: Iterator[NamedSet], watch: Stopwatch, line: None) -> Iterator[Result]:
        for queries in sets:
            yield Result(self.find(queries.packed, Room(1 << 17), watch), False)


def test_a_stage_is_the_mean_of_the_threads_that_do_it() -> None:
    """Beside a device six of sixteen threads work: 0.06 s of one are 0.01 s of each."""
    search: Any = BesideDevice(1, 16)
    watch = Stopwatch()
    assert len(list(iter_batches(["ACGT"] * 3, search, watch=watch))) == 1
    assert watch.seconds["pack"] >= 0.06 / 6


class SlowWriter:
    """A played writer, which takes a tenth of a second for each batch, and as long to close."""

    line = None

    def __init__(self) -> None:
        self.totals: Any = "the totals"
        self.said: list[Any] = []

    def __enter__(self) -> SlowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.said.append("closed" if kind is None else kind)
        time.sleep(0.1)

    def make(self, hits: int) -> int:
        return hits + 1

    def put(self, hits: int, made: int | None = None) -> None:
        self.said.append((hits, made))
        time.sleep(0.1)


def test_results_are_written_as_they_come_and_the_writer_is_timed() -> None:
    search: Any = Repeats(2, 1)
    writer, watch, told = SlowWriter(), Stopwatch(), []

    def tell(totals: Any, batches: Any) -> Any:
        for batch in batches:
            yield batch
            told.append((totals, len(writer.said)))

    assert write_results(["ACGT"] * 3, search, writer, watch=watch, tell=tell) == "the totals"  # type: ignore[comparison-overlap]
    assert writer.said == [(3, 4), "closed"] and told == [("the totals", 1)]
    assert watch.seconds["write"] >= 0.2
    other = SlowWriter()
    write_results(["ACGT"] * 3, search, other, watch=Stopwatch(), share=(1, 2))
    assert other.said == ["closed"]
    failing = SlowWriter()
    with pytest.raises(InputError):
        write_results(["ACGT", 7], search, failing, watch=Stopwatch())  # type: ignore[list-item]
    assert failing.said == [InputError]


@pytest.mark.parametrize("kmers", [["ACG", 7], [b"ACG", None], [["A"]]])
def test_what_is_no_kmer_among_them_is_refused(index: SeedIndex, kmers: Any) -> None:
    with pytest.raises(InputError, match="no sequence of bases"):
        warpseed.find_kmers(index, kmers)


def test_sequences_of_every_container_are_taken(index: SeedIndex) -> None:
    found = warpseed.find_kmers(index, ["ACG", "TTG"])
    assert len(found) > 2
    sources: list[Any] = [
        ("ACG", "TTG"), np.array(["ACG", "TTG"]), np.array([b"ACG", b"TTG"]), np.array(["ACG", "TTG"], object),
        pd.Series(["ACG", "TTG"]), (kmer for kmer in ("ACG", "TTG")),
    ]  # fmt: skip
    for source in sources:
        assert warpseed.find_kmers(index, source).digest() == found.digest()


def test_whole_numbers_of_numpy_are_taken(index: SeedIndex) -> None:
    options: dict[str, Any] = {"max_mismatches": np.int64(1), "threads": np.uint8(2), "max_hits": np.int32(50)}
    expected = warpseed.find_kmers(index, ["ACG"], max_mismatches=1, threads=2, max_hits=50)
    assert warpseed.find_kmers(index, ["ACG"], **options).digest() == expected.digest()


@pytest.mark.parametrize("name", ["max_mismatches", "threads", "max_hits"])
@pytest.mark.parametrize("value", [1.0, "1", True, [1]])
def test_other_numbers_are_refused(index: SeedIndex, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} is .*, but a whole number was expected"):
        warpseed.find_kmers(index, ["ACG"], **{name: value})


@pytest.mark.parametrize("other", [None, 7, ["index"], b"index"])
def test_what_is_no_index_is_refused(other: Any) -> None:
    with pytest.raises(InputError, match="^index is .*, but an index .* or the folder of one was expected"):
        warpseed.find_kmers(other, ["ACG"])


def test_a_file_in_the_place_of_an_index(tmp_path: Path) -> None:
    (tmp_path / "g.fa").write_text(">c\nACGT\n")
    with pytest.raises(warpseed.WarpseedError, match="is a file, but an index is a folder"):
        warpseed.find_kmers(tmp_path / "g.fa", ["ACG"])
    with pytest.raises(warpseed.WarpseedError, match="there is no such folder"):
        warpseed.find_kmers(tmp_path / "none", ["ACG"])


@pytest.mark.parametrize(
    ("device", "target"),
    [
        ("cpu", ("cpu", ())),
        ("gpu", ("gpu", (0,))),
        ("gpu:2", ("gpu", (2,))),
        ("gpu:1,0", ("gpu", (1, 0))),
        ("gpu:all", ("gpu", ())),
    ],
)
def test_names_of_devices(device: str, target: tuple[str, tuple[int, ...]]) -> None:
    assert target_of(device) == target


def test_the_numbers_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only to know which all are, the GPUs are asked for."""
    assert [devices_of(name) for name in ("cpu", "gpu", "gpu:2", "gpu:1,0")] == [(), (0,), (2,), (1, 0)]
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    monkeypatch.setattr("warpseed.compute.gpu.device_count", lambda: 3)
    assert devices_of("gpu:all") == (0, 1, 2)


@pytest.mark.parametrize("device", ["tpu", "", "gpu:", "gpu:0,0", "gpu:-1", "gpu:0,", "GPU", None, 0])
def test_what_is_no_device_is_refused(index: SeedIndex, device: Any) -> None:
    with pytest.raises(InputError, match="device is .*, but 'cpu' or 'gpu' was expected"):
        warpseed.find_kmers(index, ["ACGT"], device=device)
