"""The tables and figures of paper 003, from made-up records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_figures import drawing, words
from made_up_records import ROOT, load
from page_reader import read_page
from warpseed.report import tree_bitmap
from warpseed.report import tree_bitmap_values as values
from warpseed.report.measurements import Measurements, load_measurements
from warpseed.report.page import write_page
from warpseed.report.papers import read_paper

PUBLISHED = ROOT / "resources" / "published" / "tree_bitmap.tsv"
PAPER = ROOT / "resources" / "papers" / "tree_bitmap.yaml"


def record(item: str, parameters: str, device: str = "cpu", tier: str = "paper", **more: Any) -> dict[str, Any]:
    """A record without stage and value."""
    fields = {"system": "tree_bitmap", "item": item, "tool": "warpseed", "tier": tier, "device": device, "threads": 1}
    length = int(re.search(r"length=(\d+)", parameters)[1])  # type: ignore[index]
    fields |= {"case": item, "parameters": parameters, "queries": length, "results": 9, "digest": "d" * 64}
    return fields | {"machine": "test-cpu", **more}


def kernel_rows(device: str, seconds: float) -> list[dict[str, Any]]:
    """The naive kernels slow down with k."""
    rows = []
    for k in (6, 9, 12):
        shared = f"k={k}; length=1000"
        for kernel, factor in (("naive", float(k)), ("shuffle", 0.5)):
            named = record("exact_kernels", f"{shared}; kernel={kernel}", device)
            rows.append({**named, "stage": "kernel", "value": seconds * factor})
        counted = {"naive": (100.0, 1.0), "efficient": (75.0 + k, 0.8), "queue": (75.0 + k, 0.4)}
        for kernel, (accesses, occupancy) in counted.items():
            named = record("edit_kernels", f"{shared}; seed_length=100; kernel={kernel}", device)
            factor = {"naive": 2.0, "efficient": 1.0, "queue": 1.5}[kernel]
            rows.append({**named, "stage": "kernel", "value": seconds * factor * k})
            own = {**named, "stage": "-", "digest": "", "unit": "1"}
            rows.append({**own, "metric": "accesses", "value": accesses})
            if device == "gpu":
                rows.append({**own, "metric": "occupancy", "value": occupancy})
    return [row for row in rows if device == "gpu" or "kernel=queue" not in row["parameters"]]


def structure_rows() -> list[dict[str, Any]]:
    rows = []
    for k in (6, 9):
        for length in (1000, 5000):
            for structure, insert, convert in (("tree", 3.0, 4.0), ("hybrid", float(k) / 3, 0.5)):
                named = record("structures", f"k={k}; length={length}; structure={structure}")
                stages = {"insert": insert, "to_bitmap": convert, "total": insert + convert}
                rows += [{**named, "stage": stage, "value": value * length} for stage, value in stages.items()]
    return rows


def version_rows(device: str) -> list[dict[str, Any]]:
    """Three chunks; the second kernel begins 0.3 s after the first has ended, the third 0.5 s after the second."""
    rows = []
    totals = {"one_trie": 0.2} if device == "cpu" else {}
    for version, total in {**totals, "serial": 2.0, "concurrent": 1.5}.items():
        shared = f"k=15; length=3000; version={version}"
        shared += "" if version == "one_trie" else "; chunk_length=1000"
        rows.append({**record("versions", shared, device), "stage": "total", "value": total})
        spans = {"kernel": [(0.1, 0.2), (0.5, 0.6), (1.1, 1.2)], "deltas": [(0.2, 0.4), (0.6, 0.9), (1.2, total)]}
        for name, times in ({"match": [(0.0, total)]} if version == "one_trie" else spans).items():
            rows.append({**record("versions", shared, device), "stage": name, "value": 0.1})
            for number, span in enumerate(times):
                event = record("events", f"{shared}; stream={number % 2}; event={number}", device, digest="")
                for metric, value in zip(("begin", "end"), span, strict=True):
                    rows.append({**event, "stage": name, "metric": metric, "value": value})
    return rows


def stream_rows(gpu: bool) -> list[dict[str, Any]]:
    rows = []
    for length in (1000, 10_000):
        named = f"k=15; length={length}"
        for tier, device, rate in (("paper", "cpu", 1e6), ("fast", "cpu", 5e7), ("fast", "gpu", 1e9)):
            if device == "cpu" or gpu:
                rows.append({**record("in_memory", named, device, tier), "stage": "total", "value": length / rate})
        if gpu:
            limit = record("limits", named, "gpu", "fast", case=f"k=15, {length:,} bases", stage="kernel")
            rows.append({**limit, "value": length / 5e9})
            rows.append({**limit, "metric": "floor", "value": length / 1e10})
    return rows


def fixed_rows() -> list[dict[str, Any]]:
    """A library that takes ten times as long to search, and one that finds something else."""
    rows = []
    sides = [("warpseed", 0.1, 1.0, "d"), ("ahocorasick_rs", 0.3, 10.0, "d"), ("numpy", 0.1, 9.0, "e")]
    for tool, build, search, digest in sides:
        tier = "fast" if tool == "warpseed" else "-"
        named = record("fixed", "k=20; length=2001; kmers=50", tier=tier, tool=tool, digest=digest * 64)
        for stage, value in (("build", build), ("search", search), ("total", build + search)):
            rows.append({**named, "stage": stage, "value": value})
    return rows


def local_rows(gpu: bool = True) -> list[dict[str, Any]]:
    """All that a run measures."""
    rows = kernel_rows("cpu", 0.1) + structure_rows() + version_rows("cpu") + stream_rows(gpu) + fixed_rows()
    return rows + (kernel_rows("gpu", 0.001) + version_rows("gpu") if gpu else [])


def loaded(folder: Path, rows: list[dict[str, Any]]) -> Measurements:
    return load(folder, rows, published=[PUBLISHED], papers=[PAPER]).of("tree_bitmap")


@pytest.fixture
def measured(tmp_path: Path) -> Measurements:
    return loaded(tmp_path, local_rows())


@pytest.fixture
def nothing() -> Measurements:
    return load_measurements([], [], [PUBLISHED], [PAPER]).of("tree_bitmap")


def test_the_papers_file_knows_every_published_value(nothing: Measurements) -> None:
    paper, published = read_paper(PAPER), nothing.published
    assert set(published["item"]) == set(values.VARIANTS) <= set(paper.items)
    assert list(paper.figures) == list(tree_bitmap.FIGURES)
    assert len(published) == len(values.statements_table(nothing)) == 12


def test_ratios_stand_where_both_have_the_same_results(measured: Measurements, tmp_path: Path) -> None:
    table = values.ratio_table(measured, "exact_kernels", ("naive", "shuffle"), "kernel")
    own = table[table["device"] == "gpu"].set_index("k")["speedup"]
    assert own.to_dict() == pytest.approx({6: 12.0, 9: 18.0, 12: 24.0})
    rows = [row | {"digest": "e" * 64} if "kernel=naive" in row["parameters"] else row for row in local_rows()]
    table = values.ratio_table(loaded(tmp_path / "other", rows), "exact_kernels", ("naive", "shuffle"), "kernel")
    assert table["speedup"].isna().all() and set(table["status"]) == {"results differ"}


def test_what_the_thesis_says_stands_beside_ours(measured: Measurements, tmp_path: Path) -> None:
    ours = values.statements_table(measured).set_index("statement")["here"].to_dict()
    assert ours == pytest.approx(
        {
            "most speedup of shuffle over naive": 24.0,
            "fewer memory accesses, k = 6": 19.0,
            "fewer memory accesses, k = 12": 13.0,
            "least occupancy lost with queues": 50.0,
            "most occupancy lost with queues": 50.0,
            "least speedup of construction": 1.0,
            "most speedup of construction": 1.5,
            "total of serial": 2.0,
            "total of the CPU alone": 0.2,
            "total of concurrent": 1.5,
            "time between kernels, first": 300.0,
            "time between kernels, last": 500.0,
        }
    )
    alone = values.statements_table(loaded(tmp_path / "cpu", local_rows(gpu=False))).set_index("statement")["here"]
    assert (
        alone["most speedup of shuffle over naive"] == pytest.approx(24)
        and alone.isna()["most occupancy lost with queues"]
    )


def test_streams_are_bases_a_second(measured: Measurements) -> None:
    table = values.streams_table(measured)
    rates = table[table["length"] == 10_000].set_index(["tier", "device", "scope"])["bases_per_s"]
    assert rates["fast", "gpu", "end_to_end"] == pytest.approx(1e9)
    assert rates["fast", "gpu", "on_device"] == pytest.approx(5e9)
    assert rates["fast", "gpu", "floor"] == pytest.approx(1e10)
    assert rates["paper", "cpu", "end_to_end"] == pytest.approx(1e6)


def test_libraries_stand_beside_ours_where_they_found_the_same(measured: Measurements) -> None:
    table = values.fixed_table(measured).set_index("tool")
    assert table["search_s"].to_dict() == pytest.approx({"warpseed": 1.0, "ahocorasick_rs": 10.0, "numpy": 9.0})
    assert table.loc["ahocorasick_rs", ["build_speedup", "search_speedup"]].tolist() == pytest.approx([3.0, 10.0])
    assert table.loc["numpy", ["build_speedup", "search_speedup"]].isna().all()


@pytest.fixture
def draw() -> Iterator[Any]:
    with drawing(tree_bitmap.FIGURES) as call:
        yield call


@pytest.mark.parametrize("name", tree_bitmap.FIGURES)
def test_a_figure_without_measurements_says_so(name: str, draw: Any, nothing: Measurements) -> None:
    drawn, plotted = draw(name, nothing)
    assert "Nothing was measured" in words(drawn) and plotted.empty


def test_what_figures_draw(measured: Measurements, draw: Any) -> None:
    drawn, _ = draw("figure_36", measured)
    assert [len(axes.lines) for axes in drawn.axes] == [4, 2]
    assert drawn.axes[1].lines[0].get_ydata() == pytest.approx([12, 18, 24])
    drawn, _ = draw("figure_37", measured)
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in drawn.axes[2].lines if len(line.get_xdata()) == 1]
    assert points == [(6, 20), (12, 17)]
    drawn, _ = draw("figure_38", measured)
    assert drawn.axes[2].lines[0].get_ydata() == pytest.approx([50, 50, 50])
    drawn, _ = draw("figure_39a", measured)
    assert [line.get_ydata().tolist() for line in drawn.axes[0].lines] == [[1.5, 1.5], [1.0, 1.0]]
    drawn, _ = draw("figure_39b", measured)
    assert drawn.axes[0].lines[0].get_ydata() == pytest.approx([8, 8])
    drawn, _ = draw("streams", measured)
    assert len(drawn.axes) == 1 and len(drawn.axes[0].lines) == 4


def test_streams_are_drawn_of_the_kind_that_has_the_longest(tmp_path: Path, draw: Any) -> None:
    genome = record("in_memory", "k=15; length=20000; bases=genome", tier="fast")
    rows = [*stream_rows(True), {**genome, "stage": "total", "value": 1.0}]
    drawn, plotted = draw("streams", loaded(tmp_path, rows))
    assert set(plotted["bases"]) == {"genome"} and plotted["length"].tolist() == [20_000]


def test_time_lines_are_the_gpus_where_there_is_one(tmp_path: Path, measured: Measurements, draw: Any) -> None:
    drawn, plotted = draw("figure_40", measured)
    text = words(drawn)
    assert "serial, GPU: 2.00 s (test-cpu); published: 3.4 s" in text and "CPU alone: 200 ms" in text
    assert len(drawn.axes) == 2 and set(plotted["device"]) == {"cpu", "gpu"}
    drawn, _ = draw("figure_41", measured)
    assert "kernel, A | kernel, B" in words(drawn).replace("deltas, A | ", "") and "published: 2.9 s" in words(drawn)
    alone = loaded(tmp_path / "cpu", local_rows(gpu=False))
    assert "serial, CPU: 2.00 s" in words(draw("figure_40", alone)[0])
    assert "this needs a GPU" in words(draw("figure_38", alone)[0])


@pytest.mark.parametrize("name", tree_bitmap.FIGURES)
def test_texts_stay_inside_the_figure(name: str, measured: Measurements, draw: Any) -> None:
    drawn, _ = draw(name, measured)
    renderer = drawn.canvas.get_renderer()
    texts = [*drawn.texts]
    for axes in drawn.axes:
        texts += [*axes.texts, axes.yaxis.label, axes.xaxis.label, axes.title, *axes.get_yticklabels()]
        texts.append(axes._left_title)
    for text in (text for text in texts if text.get_text().strip() and text.get_visible()):
        box = text.get_window_extent(renderer)
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text.get_text()
        assert drawn.bbox.y0 <= box.y0 and box.y1 <= drawn.bbox.y1, text.get_text()


def test_the_section_of_the_page(tmp_path: Path, measured: Measurements, nothing: Measurements) -> None:
    write_page(tmp_path / "report.html", measured, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "most speedup of shuffle over naive about 3 orders of magnitude 1000.0 x 24.0 x" in text
    assert "total of the CPU alone 1.55 s 0.200 s" in text
    assert "ahocorasick_rs, CPU, 1 thread 9 300 ms 10.0 s 10.3 s 3.00 10.0" in text
    assert "CPU alone, one trie 200 ms" in text and "fast tier, CPU, 1 thread" in text
    write_page(tmp_path / "report.html", nothing, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "No speedup could be computed" in text and "total of concurrent without initialization 2.9 s" in text
