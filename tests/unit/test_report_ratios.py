"""Which ratios and speedups are printed, and which are not, from made-up records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from made_up_records import change, load, local_rows
from page_reader import read_page
from warpseed.report import kmer_seeds, tables
from warpseed.report.blocks import as_printed
from warpseed.report.measurements import REPEATS_DIFFER, STEADY
from warpseed.report.page import write_page


def page(folder: Path, rows: list[dict[str, Any]], machine: dict[str, Any] | None = None) -> str:
    write_page(folder / "report.html", load(folder, rows), machine or {"cpu": "Test CPU", "cores": 2})
    return read_page(folder / "report.html")[1]


def test_no_ratio_to_the_paper_where_nothing_was_found(tmp_path: Path) -> None:
    """Each k-mer has more hits than max_hits: ours beside ours stands, ours beside the paper's does not."""
    rows = change(local_rows(gpu=True), {"case": "S11"}, results=0)
    measurements = load(tmp_path, rows).of("kmer_seeds")
    for item in ("whole", "search"):
        table = tables.long_table(measurements, item)
        ratios = table[(table["tier"] == "paper") & (table["source"] == "here") & (table["threads"] == 1)]
        assert ratios.loc[ratios["case"] == "S11", "published_over_measured"].isna().all()
        assert ratios.loc[ratios["case"] != "S11", "published_over_measured"].notna().all()
    over = kmer_seeds.speedups(measurements)
    assert set(over.loc[over["case"] == "S11", "status"]) == {"ok"}
    first = page(tmp_path, rows).partition("Table I: ")[2].partition("S15: ")[0]
    assert "here: paper tier, n = 2 no hits: each query has more than max_hits, or none" in first
    assert "ratio to the paper" not in first
    assert "ratio to the paper" in page(tmp_path, local_rows(gpu=True)).partition("Table I: ")[2].partition("S15: ")[0]


def test_what_the_paper_says_of_table_1_stands_beside_ours(tmp_path: Path) -> None:
    """A GPU ten times as fast as one core, but twenty times with S30; of S11 nothing is found. No machine has the
    paper's four cores."""
    rows = change(local_rows(gpu=True), {"case": "S11"}, results=0)
    faster = {"item": "whole", "case": "S30", "device": "gpu", "tier": "paper", "stage": "total"}
    rows = [row | {"value": row["value"] / 2} if {**row, **faster} == row else row for row in rows]
    table = kmer_seeds.statements_table(load(tmp_path, rows).of("kmer_seeds"))
    assert table["published"].tolist() == ["9.5", "13.5", "2.9", "3.8"] and set(table["printed"]) == {"Table I"}
    assert table["here"].tolist()[:2] == pytest.approx([12.5, 20.0])
    assert table["here"].isna().tolist() == [False, False, True, True]
    assert "GPU vs 1 core, mean speedup 9.5 x 12.5 x" in page(tmp_path, rows)


def test_the_papers_four_cores_stand_beside_print_where_a_machine_has_more(tmp_path: Path) -> None:
    """A GPU ten times as fast as one core, four cores three times, and sixteen cores, which print has none of."""
    rows = change(local_rows(gpu=True), {"device": "cpu", "threads": 2}, threads=16)
    rows += [
        row | {"threads": 4, "value": row["value"] / 3}
        for row in rows
        if row.get("device") == "cpu" and row["threads"] == 1 and row["item"] in ("whole", "search")
    ]
    measurements = load(tmp_path, rows).of("kmer_seeds")
    table = kmer_seeds.statements_table(measurements)
    assert table["here"].tolist() == pytest.approx([10.0, 10.0, 10 / 3, 10 / 3])
    over = kmer_seeds.speedups(measurements)
    drawn = over[(over["item"] == "locate_on_cpu") & (over["case"] == "S30")]
    assert drawn["numerator_threads"].tolist() == [1, 4, 16]
    first = page(tmp_path, rows).partition("Table I: ")[2].partition("S15: ")[0]
    assert "here: paper tier, n = 4" in first and "here: ratio to the paper, n = 4" in first
    assert "here: fast tier, n = 4" not in first and "ratio to the paper, n = 16" not in first


def with_a_slow_repeat(factor: float) -> list[dict[str, Any]]:
    """Of bowtie on one thread the last repeat of one case takes `factor` times as long as the first."""
    where = {"item": "whole", "case": "S30", "tool": "bowtie", "threads": 1, "stage": "total"}
    rows = local_rows()
    (first,) = [row["value"] for row in rows if {**row, **where, "repeat": 0} == row]
    return change(rows, {**where, "repeat": 2}, value=factor * first)


@pytest.mark.parametrize(("factor", "status"), [(STEADY * 0.99, "ok"), (STEADY * 1.01, REPEATS_DIFFER)])
def test_no_speedup_over_a_peer_whose_repeats_differ(tmp_path: Path, factor: float, status: str) -> None:
    measurements = load(tmp_path, with_a_slow_repeat(factor)).of("kmer_seeds")
    table = kmer_seeds.TABLES["peers"](measurements)
    own = table[(table["case"] == "S30") & (table["numerator_threads"] == 1)].set_index("scope")
    assert own["status"].to_dict() == {"index_open": status, "process": "ok"}
    assert math.isnan(own.loc["index_open", "speedup"]) == (status != "ok")
    summary = kmer_seeds.TABLES["summary"](measurements)
    summary = summary[(summary["comparison"] == "fast_over_peer") & (summary["numerator_threads"] == 1)]
    found = summary.set_index("scope")["cases"].to_dict()
    assert found == {"index_open": 4 if status != "ok" else 5, "process": 5}


def test_the_page_says_that_repeats_differ(tmp_path: Path) -> None:
    text = page(tmp_path, with_a_slow_repeat(2 * STEADY))
    beside = text.partition("Beside bowtie")[2]
    assert f"took more than {STEADY} times as long" in beside and "145 ms repeats differ" in beside
    assert "median of 4 cases, " in text  # the card


def test_a_machine_has_as_many_gpus_as_it_has(tmp_path: Path) -> None:
    facts = {"cpu": "x", "cores": 2, "gpu": "NVIDIA H200", "gpu_count": 2, "gpu_memory_bytes": 140 << 30}
    assert "GPU 2 × NVIDIA H200, 140 GiB each" in page(tmp_path, local_rows(), facts)
    assert "GPU NVIDIA H200, 140 GiB Files" in page(tmp_path, local_rows(), facts | {"gpu_count": 1})


def test_what_is_published_has_the_digits_of_the_print(tmp_path: Path) -> None:
    assert [as_printed(digits) for digits in ("25249", "7", "1094.0", "0.5")] == ["25,249", "7", "1094.0", "0.5"]
    text = page(tmp_path, local_rows())
    assert "1094.0 s" in text and "311.2 s" in text  # as printed, with what stands behind the point


def test_sizes_are_of_all_machines_whose_rows_stand_below(tmp_path: Path) -> None:
    """The reference machine timed files alone, the run all."""
    there = [row for row in local_rows() if row["item"] in ("file_to_file", "index")]
    write_page(tmp_path / "report.html", load(tmp_path, local_rows(), there), {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    sizes = text.partition("Sizes: ")[2].partition("; published")[0]
    assert "test-cpu (here): 20,000 k-mers on 2 Mbp" in sizes
    assert "nvidia-test (reference machine): 20,000 k-mers on 2 Mbp" in sizes


def test_what_names_of_limits_say_is_explained(tmp_path: Path) -> None:
    text = page(tmp_path, local_rows(gpu=True)).partition("GPU measurements beside their limits")[2]
    assert "Errors: the share of wrong bases" in text and "Letters to columns: the whole search" in text


@pytest.mark.parametrize("commit", ["abc", "abc+changes"])
def test_a_changed_checkout_is_explained(tmp_path: Path, commit: str) -> None:
    text = page(tmp_path, local_rows(), {"cpu": "x", "commit": commit})
    assert ("A commit with +changes: the files" in text) == (commit != "abc")


def test_how_many_repeats_a_median_is_of_is_said(tmp_path: Path) -> None:
    assert "Medians of 3 repeats." in page(tmp_path, local_rows())
