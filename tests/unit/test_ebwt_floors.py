"""The floor of the order on a GPU: what must be moved and read at least, at rates that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_ebwt_fast import play_fast_kernels
from warpseed.compute.warp import LANES
from warpseed.ebwt import floors, gpu_distances, gpu_groups, gpu_order
from warpseed.ebwt.words import words_of


@pytest.mark.parametrize(
    ("count", "bytes_each"), [(1, 5), (256, 5), (257, 21), (1 << 16, 21), (10**7, 37), (1 << 24, 37), (10**8, 53)]
)
def test_a_sort_takes_a_pass_for_each_eight_bits(count: int, bytes_each: int) -> None:
    """A byte read and four written; and eight bytes written and read again between two passes."""
    assert floors.bytes_to_sort(count) == bytes_each * count


@pytest.mark.parametrize("counts", [{}, {"letters": 30}, {"letters": 30, "ranks": 70}])
def test_the_floor_is_of_what_is_moved_and_what_ties_read(
    monkeypatch: pytest.MonkeyPatch, counts: dict[str, int]
) -> None:
    play_fast_kernels(monkeypatch)
    asked: list[str] = []

    def order(words: Any, watch: Any = None) -> np.ndarray:
        for name, number in counts.items() if watch is not None else ():
            watch.count(name, number)
        return np.arange(300, dtype=np.uint32)

    def rates(arrays: Any, repeats: int, fields: Any) -> tuple[dict[str, float], list[dict[str, Any]]]:
        asked.extend(arrays)
        # A table of letters has two bits for each conjugate, one of ranks four bytes.
        assert all(array.nbytes == {"letters": 80, "ranks": 1200}[name] for name, array in arrays.items())
        return {name: {"letters": 5.0, "ranks": 7.0}[name] for name in arrays}, []

    monkeypatch.setattr(gpu_order, "order_of", order)
    monkeypatch.setattr(gpu_distances, "distances_of", lambda words, order: None)
    monkeypatch.setattr(floors, "gather_rates", rates)
    monkeypatch.setattr(floors, "kernel_seconds", lambda run, repeats: [100.0])
    monkeypatch.setattr(floors, "_copy_rate", lambda count, repeats: 21.0)
    words = words_of(["ab" * 100, "c" * 100])
    fields = {"case": "a", "parameters": "letters=300; words=2"}
    rows = floors.measure_limits(words, 1, fields, with_distances=True)
    assert asked == list(counts)
    told = {(row["parameters"], row["metric"]): row["value"] for row in rows}
    step = f"letters=300; words=2; step=order; moved=6300; read={sum(counts.values())}"
    floor = 300 + counts.get("letters", 0) / 5 + counts.get("ranks", 0) / 7
    assert told[step, "time"] == 100 and told[step, "floor"] == floor and told[step, "share"] == floor / 100
    assert {metric for parameters, metric in told if "distances" in parameters} == {"time", "throughput"}
    assert {row["item"] for row in rows} == {"limits"} and {row["queries"] for row in rows} == {300}


def test_what_is_compared_of_a_group_is_the_codes() -> None:
    """In docs."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    pages = [" ".join((docs / name).read_text(encoding="utf-8").split()) for name in ("ebwt.md", "decisions.md")]
    bases = gpu_groups.PackedLetters(None, 2).compared
    assert (
        f"Where fewer than {LANES} share such a key a warp compares the letters that follow, {bases:,} bases"
        in pages[0]
    )
    told = f"among its {gpu_groups.STRETCH} keys; a lane has a conjugate of a group of up to {LANES - 1}"
    assert told in pages[1] and f"up to {gpu_groups.ROUNDS} times, {bases:,} bases" in pages[1]
