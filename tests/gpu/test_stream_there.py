"""What is known of a stream's places and stays on a GPU: what the host has, of streams from there and from here."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed import match_stream
from warpseed.compute import gpu as device
from warpseed.errors import InputError
from warpseed.tree_bitmap import gpu_edits, gpu_memory

pytestmark = pytest.mark.gpu

ON_GPU: dict[str, Any] = {"device": "gpu", "on_device": True}


def there(records: list[str]) -> tuple[Any, Any]:
    """The letters of records on the GPU, and the offsets between them."""
    xp = device.cupy()
    letters = np.frombuffer("".join(records).encode(), np.uint8)
    return xp.asarray(letters), xp.asarray(np.cumsum([0, *map(len, records)]))


def streams() -> dict[str, list[str]]:
    draw = random.Random(4)
    some = "".join(draw.choices("ACGT", k=900))
    return {
        "random": ["".join(draw.choices("ACGTacgtN", k=draw.randint(1, 400))) for _ in range(30)],
        "repeats": [some, some[100:], "GATTACA" * 90, "A" * 700, some],
        "one base each": list("ACGTNACGTT"),
        "shorter than a k-mer": ["ACG"],
        "no record": [],
    }


def assert_same(found: Any, expected: Any, name: str) -> None:
    found = found.to_host()
    assert found.stream.codes.tolist() == expected.stream.codes.tolist(), name
    assert found.stream.starts.tolist() == expected.stream.starts.tolist(), name
    assert found.stream.names.decoded().tolist() == expected.stream.names.decoded().tolist(), name
    assert found.answers.tolist() == expected.answers.tolist(), name
    assert found.dictionary.kmers.tolist() == expected.dictionary.kmers.tolist(), name
    assert (found.distances is None) == (expected.distances is None)
    assert found.distances is None or found.distances.tolist() == expected.distances.tolist(), name


@pytest.mark.parametrize("k", [1, 4, 7, 14, 21, 31])
@pytest.mark.parametrize("block", [64, 1 << 23])
def test_answers(monkeypatch: pytest.MonkeyPatch, k: int, block: int) -> None:
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", block)
    known = np.unique(np.random.default_rng(k).integers(0, 4**k, 40, np.uint64))
    for name, records in streams().items():
        for asked in ({}, {"seed_length": 300, "dictionary": known}, {"seed_length": 300, "grows": False}):
            expected = match_stream(records, k, **asked)  # type: ignore[arg-type]
            for source in (records, there(records)):
                assert_same(match_stream(source, k, **ON_GPU, **asked), expected, name)


@pytest.mark.parametrize(("k", "max_edits"), [(5, 1), (9, 2), (14, 3), (25, 1)])
@pytest.mark.parametrize("block", [64, 1 << 24])
def test_distances(monkeypatch: pytest.MonkeyPatch, k: int, max_edits: int, block: int) -> None:
    monkeypatch.setattr(gpu_edits, "BLOCK_BASES", block)
    for name, records in streams().items():
        asked: dict[str, Any] = {"seed_length": 60, "grows": False, "max_edits": max_edits}
        expected = match_stream(records, k, **asked)
        for source in (records, there(records)):
            assert_same(match_stream(source, k, **ON_GPU, **asked), expected, name)


def test_a_long_stream_on_the_stream_of_the_caller() -> None:
    """Counted on the device: how many places of each record begin with a k-mer that was there before."""
    xp = device.cupy()
    letters = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), (3000, 3000))
    letters[2000:] = letters[:1000]
    expected = match_stream([row.tobytes() for row in letters], 15)
    with xp.cuda.Stream(non_blocking=True) as stream:
        found = match_stream(xp.asarray(letters), 15, **ON_GPU)
        record = xp.searchsorted(found.starts, xp.flatnonzero(found.answers == 2), side="right") - 1
        seen = xp.bincount(record, minlength=3000)
        stream.synchronize()
    assert_same(found, expected, "long")
    records, _ = expected.stream.records_of(np.flatnonzero(expected.answers == 2))
    assert seen.get().tolist() == np.bincount(records, minlength=3000).tolist()


def test_bytes_that_are_no_letters_are_told() -> None:
    with pytest.raises(InputError, match="number 1: found '-' at position 2"):
        match_stream(there(["ACGT", "AC-T", "*"]), 3, **ON_GPU)
