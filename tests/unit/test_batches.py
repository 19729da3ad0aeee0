"""What the Python interface takes as k-mers, numbers and an index, and the sentence for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import warpseed
from warpseed.batches import iter_batches, target_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.output.rows import Found
from warpseed.sequences.queries import Queries


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
    ],
    ids=["bytes as numbers", "numbers", "frame", "dictionary", "set", "None", "a number"],
)
def test_what_is_no_kmers_is_refused(index: SeedIndex, kmers: Any) -> None:
    with pytest.raises(InputError, match="were expected"):
        warpseed.find_kmers(index, kmers)


def test_a_batch_is_cut_by_the_results_it_should_have() -> None:
    queries = Queries.from_sequences(["ACGT"] * 100_000)
    sizes: list[int] = []

    def search(part: Queries, first: int) -> Found:
        assert first == sum(sizes)
        sizes.append(len(part))
        return Found(np.zeros(2 * len(part), np.uint64), np.full(len(part), 2), 0, 0)

    parts = list(iter_batches(queries, search, watch=Stopwatch(), results_at_once=6000))
    assert sizes[0] == 1 << 16 and len(sizes) > 9 and set(sizes[1:-1]) == {3000}
    assert [part.first for part in parts] == [sum(sizes[:i]) for i in range(len(sizes))] and sum(sizes) == 100_000


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


@pytest.mark.parametrize("device", ["tpu", "", "gpu:", "gpu:0,0", "gpu:-1", "gpu:0,", "GPU", None, 0])
def test_what_is_no_device_is_refused(index: SeedIndex, device: Any) -> None:
    with pytest.raises(InputError, match="device is .*, but 'cpu' or 'gpu' was expected"):
        warpseed.find_kmers(index, ["ACGT"], device=device)
