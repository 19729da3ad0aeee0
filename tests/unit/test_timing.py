"""How runs are timed, whatever they are: turns, warm-up, what happens once, outcomes off the clock; and floors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warpseed.batches import Options
from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.cells import Cell
from warpseed.measure.floors import floor_seconds, limit_rows
from warpseed.measure.records import read_records, write_records
from warpseed.measure.timing import Outcome, Run, Side, add_total, side_fields, time_sides
from warpseed.sequences.queries import Queries

FIELDS = {"item": "whole", "case": "S20", "machine": "m"}


class Clock:
    """A clock that moves only when somebody works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.calls: list[str] = []
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def side(
        self, name: str, seconds: float, *, found: str = "d" * 64, on_device: bool = False, **more: object
    ) -> Side:
        """A side that reads for a tenth of its time, and counts what it found for an hour."""

        def run(watch: Stopwatch) -> Callable[[], Outcome]:
            self.calls.append(name)
            with watch.stage("read"):
                self.now += seconds / 10
            with watch.stage("search"):
                self.now += seconds * 9 / 10

            def finish() -> Outcome:
                self.now += 3600
                return Outcome(10, 20, found)

            return finish

        def warm_up(watch: Stopwatch) -> None:
            self.calls.append(f"{name} warms up")
            if on_device:
                watch.add("index_to_device", 5.0)
            run(watch)

        device = "gpu" if on_device else "cpu"
        fields = FIELDS | side_fields("kmer_seeds", tier=name, device=device, threads=1)
        return Side(add_total(run), warm_up, fields, **more)  # type: ignore[arg-type]


def test_sides_take_turns_and_each_is_warmed_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    rows = time_sides([clock.side("fast", 1.0), clock.side("paper", 2.0)], 3)
    turns = ["fast", "paper"]
    assert [call for call in clock.calls if "warms" not in call] == ["fast", "fast", "paper", "paper", *turns, *turns]
    assert [call for call in clock.calls if "warms" in call] == ["fast warms up", "paper warms up"]
    totals = [(row["tier"], row["repeat"], row["value"]) for row in rows if row["stage"] == "total"]
    expected = [(tier, repeat, seconds) for repeat in range(3) for tier, seconds in (("fast", 1.0), ("paper", 2.0))]
    assert [(tier, repeat, pytest.approx(seconds)) for tier, repeat, seconds in expected] == totals


def test_what_a_run_found_is_worked_out_after_the_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hour that counting takes is in no stage; the records hold what was counted, once a run."""
    rows = time_sides([Clock(monkeypatch).side("fast", 1.0)], 2)
    assert sum(row["value"] for row in rows) == pytest.approx(2 * 2.0)  # stages and total, of two repeats
    write_records(tmp_path / "a.tsv", rows)
    frame = read_records(tmp_path / "a.tsv")
    assert set(frame["digest"]) == {"d" * 64} and set(frame["results"]) == {20} and set(frame["queries"]) == {10}
    assert frame["stage"].tolist() == ["read", "search", "total"] * 2


def test_loading_and_moving_are_said_and_in_no_total(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    rows = time_sides([clock.side("fast", 1.0, on_device=True, once={"load": 7.0})], 2)
    stages = {row["stage"]: row["value"] for row in rows if row["repeat"] == 1}
    assert list(stages) == ["load", "index_to_device", "read", "search", "total"]
    assert stages["load"] == 7.0 and stages["index_to_device"] == 5.0 and stages["total"] == pytest.approx(1.0)
    assert {(row["device"], row["gpus"]) for row in rows} == {("gpu", 1)}


def test_a_rate_is_queries_over_the_total_of_the_same_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = time_sides([Clock(monkeypatch).side("fast", 0.5, rate_unit="k-mers/s")], 2)
    rates = [row for row in rows if row["metric"] == "throughput"]
    assert [(row["repeat"], row["stage"], row["unit"]) for row in rates] == [
        (0, "total", "k-mers/s"),
        (1, "total", "k-mers/s"),
    ]
    assert [row["value"] for row in rates] == pytest.approx([20.0, 20.0])


def test_a_floor_is_the_time_of_all_its_sectors() -> None:
    assert floor_seconds({"table": 40, "rows": 10}, {"table": 4.0, "rows": 5.0, "text": 1.0}) == 12.0


def test_limits_are_time_throughput_floor_and_share() -> None:
    rows = limit_rows([0.5, 0.25, 1.0], 0.125, {"queries": 100, "tier": "fast"}, unit="k-mers/s")
    assert [(row["metric"], row.get("repeat"), row["value"], row["unit"]) for row in rows] == [
        ("time", 0, 0.5, "s"),
        ("time", 1, 0.25, "s"),
        ("time", 2, 1.0, "s"),
        ("throughput", None, 200.0, "k-mers/s"),
        ("floor", None, 0.125, "s"),
        ("share", None, 0.25, "1"),
    ]
    assert {row["stage"] for row in rows} == {"kernel"}
    assert [row["metric"] for row in limit_rows([np.float64(1.0)], None, {"queries": 1}, unit="1/s")] == [
        "time",
        "throughput",
    ]


@pytest.mark.parametrize(("device", "expected"), [("cpu", [10]), ("gpu", [20]), ("gpu:0,1", [20, 20])])
def test_several_gpus_are_warmed_up_with_the_index_on_all_of_them(device: str, expected: list[int]) -> None:
    """The first time the index may come to one of them while another does all the work, so it takes a second."""
    searched: list[int] = []

    def run_of(cell: Cell) -> Run:
        def run(watch: Stopwatch) -> Callable[[], Outcome]:
            searched.append(len(cell.queries))
            return lambda: Outcome(20, 0, "")

        return run

    index: Any = None
    queries = Queries.from_sequences(20 * ["ACGT"])
    cell = Cell("in_memory", index, "", 0.0, queries, "", Options(device=device), Path("out"), {})
    cell.side(run_of, 10).warm_up(Stopwatch())
    assert searched == expected
