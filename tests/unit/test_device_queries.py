"""Queries that lie on a GPU, on one that the CPU plays: packed as the host packs them, and bad ones told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from queries_there import letters_of, there, words
from test_gpu_searches import index, pretended
from warpseed import find_kmers
from warpseed.compute import gpu as device
from warpseed.errors import InputError
from warpseed.sequences import device_queries
from warpseed.sequences.alphabet import BASE_CODE, IS_IUPAC
from warpseed.sequences.packed import Packed, pack
from warpseed.sequences.queries import Queries

__all__ = ["index", "pretended"]

ON_GPU: dict[str, Any] = {"device": "gpu", "on_device": True}


def test_a_letter_has_the_code_that_the_host_gives() -> None:
    codes = [device_queries.code_of_letter(letter) for letter in range(256)]
    assert codes == np.where(IS_IUPAC, BASE_CODE, 5).tolist()


@pytest.mark.parametrize("longest", [32, 100])
def test_the_kernel_packs_as_the_host(longest: int) -> None:
    queries = words(30, longest)
    letters, offsets = letters_of(queries)
    expected = pack(Queries.from_sequences(queries))
    found, marks = np.full(len(expected.words), 7, np.uint64), np.full(len(expected.words), 7, np.uint64)
    seen = np.array([len(letters), 0])
    arguments = letters.view(np.ndarray), offsets, expected.first, found, marks, seen
    run_kernel([device_queries], (), (device_queries.pack_letters, len(found), 32), *arguments)
    assert found.tolist() == expected.words.tolist() and marks.tolist() == expected.marks.tolist()
    assert seen.tolist() == [len(letters), 1]


def test_the_kernel_finds_the_first_byte_that_is_no_letter() -> None:
    letters, offsets = letters_of(["ACGTACGT", "AC-TACG.", "ACGTACGT", "ACG!"])
    arguments = letters.view(np.ndarray), offsets, np.empty(0, np.uint32), *np.zeros((2, 4), np.uint64)
    seen = np.array([len(letters), 0])
    run_kernel([device_queries], (), (device_queries.pack_letters, 4, 32), *arguments, seen)
    assert seen.tolist() == [10, 1]


@pytest.mark.parametrize("lengths", [(20,), (40,), (8, 30), (8, 90)])
def test_queries_on_the_device_are_packed_as_on_the_host(pretended: Any, lengths: tuple[int, ...]) -> None:
    queries = [word[:20] if lengths == (20,) else word for word in words(50, lengths[-1]) if len(word) >= 20]
    source: Any = letters_of(queries)
    if len(lengths) == 1:
        queries = [(word * 5)[: lengths[0]] for word in queries]
        source = there([list(word.encode()) for word in queries])
    packed = device_queries.pack_on_device(source, device_queries.Bounds("read", 1000))
    for mine, expected in zip(packed, pack(Queries.from_sequences(queries)), strict=True):
        assert mine.dtype == expected.dtype and mine.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (there([[65, 67], [65, 45]]), "number 1: found '-' at position 1; only IUPAC letters"),
        (letters_of(["ACGT", "AC\x01T"]), "number 1: found the byte 0x01 at position 2"),
        (
            letters_of(["ACGT", "", "ACG"]),
            r"k-mer number 2 \('1'\) has 0 bases, but 1 to 255 were expected; cut",
        ),
        (letters_of(["ACGT", "A" * 256]), r"k-mer number 2 \('1'\) has 256 bases"),
        (there(np.zeros((3, 0))), r"k-mer number 1 \('0'\) has 0 bases"),
        (there([65, 67]), "are uint8 of 1 dimensions, but letters were expected, uint8: a query a row"),
        (there([[65, 67]], np.int64), "are int64 of 2 dimensions"),
        ((there([65, 67]), np.array([0.0, 2.0])), "offsets of the queries on the GPU are float64, but whole numbers"),
        ((there([65, 67]), np.array([], np.int64)), "offsets of the queries on the GPU"),
        ((there([65, 67]), ("a", "b")), "offsets of the queries on the GPU are <U1, but whole numbers"),
        ((there([65, 67]), 2), "offsets of the queries on the GPU"),
        ((there([65, 67]), [0, 3]), "go from 0 to 3, but 0 to 2 was expected"),
        ((there([65, 67]), [0, 2, 1, 2]), r"k-mer number 2 \('1'\) has -1 bases"),
    ],
)
def test_bad_queries_are_told_by_their_number(index: Any, pretended: Any, source: Any, told: str) -> None:
    with pytest.raises(InputError, match=f"^the queries on the GPU.*{told}|^offsets of.*{told}|^{told}"):
        find_kmers(index, source, **ON_GPU)


def test_queries_of_another_device_are_refused(index: Any, pretended: Any) -> None:
    with pytest.raises(InputError, match=r"lie on GPU 0, but GPU 1 is to search; name that one \(device='gpu:0'\)"):
        find_kmers(index, there([[65, 67]]), device="gpu:1", on_device=True)


def test_arrays_of_the_host_lie_on_no_gpu(index: Any) -> None:
    assert find_kmers(index, np.array(["GATTACA"])) == find_kmers(index, ["GATTACA"])


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (SimpleNamespace(__cuda_array_interface__={"data": (4096, False)}), 2),
        (SimpleNamespace(__cuda_array_interface__={"data": (0, False)}), 1),
        (SimpleNamespace(__dlpack_device__=lambda: (2, 3)), 3),
    ],
    ids=["interface", "no memory", "dlpack"],
)
def test_the_device_of_an_array_of_others(
    pretended: Any, monkeypatch: pytest.MonkeyPatch, array: Any, expected: int
) -> None:
    """By its memory, or by what it says: CuPy is not asked, which would copy it to the current device."""
    devices = {4096: SimpleNamespace(device=2)}
    monkeypatch.setattr(pretended[0].cuda.runtime, "pointerGetAttributes", devices.__getitem__)
    with device.on_device(1):
        assert device_queries._device_of(array) == expected
        if expected != 1:
            with pytest.raises(InputError, match=f"lie on GPU {expected}, but GPU 1 is to search"):
                device_queries._there(array)


def test_device_arrays_stay_where_they_are(pretended: Any) -> None:
    words_there = pretended[0].zeros(3, np.uint64)
    assert device.to_device(Packed(words_there, *np.zeros((3, 0), np.uint64))).words is words_there
