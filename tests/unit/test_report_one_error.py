"""The tables and figures of paper 001, from made-up records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_figures import drawing, words
from made_up_records import ROOT, change, load
from page_reader import read_page
from warpseed.measure.records import index_rows
from warpseed.report import one_error
from warpseed.report.measurements import Measurements, load_measurements
from warpseed.report.page import write_page
from warpseed.report.papers import read_paper

PUBLISHED = ROOT / "resources" / "published" / "one_error.tsv"
PAPER = ROOT / "resources" / "papers" / "one_error.yaml"
SEARCHED = "edits=1; strands=2"
CPU_STAGES = {"search": 1.2}
GPU_STAGES = {"host_to_device": 0.01, "kernel": 0.1, "device_to_host": 0.04}


def record(item: str, device: str, tier: str = "paper", **more: Any) -> dict[str, Any]:
    """A record without stage and value."""
    fields = {"system": "one_error", "item": item, "tool": "warpseed", "tier": tier, "device": device, "threads": 1}
    fields |= {"case": "mixed", "parameters": SEARCHED, "queries": 4000, "results": 15_000, "digest": "d" * 64}
    return fields | {"machine": "test-cpu", **more}


def local_rows(gpu: bool = True) -> list[dict[str, Any]]:
    """All that a run measures."""
    rows: list[dict[str, Any]] = []

    def add(stages: dict[str, float], **fields: Any) -> None:
        rows.extend({**fields, "stage": stage, "value": value} for stage, value in stages.items())

    ways = {"cpu": CPU_STAGES, **({"gpu": GPU_STAGES} if gpu else {})}
    for device, stages in ways.items():
        for slots in (25, 50):
            named = record("fixed_slots", device, parameters=f"slots={slots}; {SEARCHED}")
            add({**stages, "total": sum(stages.values())}, **named)
        brought = {"index_to_device": 0.02} if device == "gpu" else {}
        whole = {"read_index": 0.03, "read": 0.01, "pack": 0.01, **brought, **stages, "write": 0.05}
        add(whole, **record("profile", device, parameters=f"slots=50; {SEARCHED}"))
        for tier, factor in (("paper", 1.0), ("fast", 0.02)):
            add({"total": factor * sum(stages.values())}, **record("in_memory", device, tier))
    for slots, kept, every in ((1, 3000, 0), (25, 14_000, 0), (80, 15_000, 1)):
        named = record("results", "cpu", parameters=f"slots={slots}; all={every}; launch=4000; {SEARCHED}", stage="-")
        rows.append({**named, "metric": "count", "value": kept, "unit": "results"})
        rows.append({**named, "metric": "memory", "value": 12 * 4000 * slots, "unit": "bytes"})
        rows.append({**named, "metric": "compact_memory", "value": 12 * kept, "unit": "bytes"})
    for block in (8, 32, 512) if gpu else ():
        named = record("block_sizes", "gpu", parameters=f"slots=50; block={block}; {SEARCHED}", stage="kernel")
        rows.append({**named, "value": 0.1 + 0.01 * block})
        rows.append({**named, "metric": "throughput", "value": 1.0, "unit": "reads/s"})
    add({"total": 0.04}, **record("file_to_file", "cpu", "fast", case="r100"))
    return rows


@pytest.fixture
def measured(tmp_path: Path) -> Measurements:
    return load(tmp_path, local_rows(), published=[PUBLISHED], papers=[PAPER]).of("one_error")


@pytest.fixture
def nothing() -> Measurements:
    return load_measurements([], [], [PUBLISHED], [PAPER]).of("one_error")


def test_the_papers_file_knows_every_published_value(nothing: Measurements) -> None:
    paper = read_paper(PAPER)
    published = nothing.published
    assert set(published["printed"]) - {"text"} == {"Table 4", "Table 5", "Figure 5", "Figure 6", "Figure 7"}
    assert set(published.loc[published["printed"] != "text", "item"]) <= set(paper.items)
    assert set(published["method"]) == set(paper.methods)
    assert list(paper.figures) == list(one_error.FIGURES)


def cells(table: Any, quantity: str) -> list[Any]:
    return table.set_index("quantity").loc[quantity].tolist()[1:]


def test_table_4_has_both_readings_of_the_print_and_ours(measured: Measurements) -> None:
    table = one_error.slots_table(measured, "Table 4")
    assert list(table.columns) == ["system", "quantity", "as printed, s", "read as ms", "here: mixed"]
    assert cells(table, "reads") == [2_000_000, 2_000_000, 4000]
    assert cells(table, "CPU, 1 thread: algorithm") == pytest.approx([243_430, 243.43, 1.2])
    assert cells(table, "GPU: kernel execution") == pytest.approx([30_658, 30.658, 0.1])
    # As the paper divides: the algorithm by copies and kernel, and by the kernel alone.
    assert cells(table, "speed-up") == pytest.approx([7.62, 7.62, 8.0])
    assert cells(table, "speed-up without copies") == pytest.approx([7.94, 7.94, 12.0])
    assert cells(table, "GPU kernel: a read") == pytest.approx([0.015329, 1.5329e-5, 2.5e-5])
    assert cells(one_error.slots_table(measured, "Table 5"), "GPU: copy to host") == pytest.approx([2026, 2.026, 0.04])


def test_no_speedup_where_results_differ(tmp_path: Path) -> None:
    rows = change(local_rows(), {"item": "fixed_slots", "device": "gpu"}, digest="e" * 64)
    table = one_error.slots_table(
        load(tmp_path, rows, published=[PUBLISHED], papers=[PAPER]).of("one_error"), "Table 4"
    )
    assert cells(table, "speed-up")[2] == cells(table, "speed-up without copies")[2] == "results differ"
    assert cells(table, "GPU: kernel execution")[2] == 0.1


def test_without_a_gpu_the_cells_of_one_are_empty(tmp_path: Path) -> None:
    rows = local_rows(gpu=False)
    table = one_error.slots_table(
        load(tmp_path, rows, published=[PUBLISHED], papers=[PAPER]).of("one_error"), "Table 4"
    )
    assert cells(table, "CPU, 1 thread: algorithm")[2] == 1.2
    assert [cells(table, name)[2] for name in ("GPU: kernel execution", "speed-up", "GPU kernel: a read")] == [""] * 3


def test_figure_5s_values(measured: Measurements) -> None:
    table = one_error.results_table(measured)
    own = table[~table["published"].astype(bool)].set_index("slots")
    assert own["results"].to_dict() == {1: 3000, 25: 14_000, 80: 15_000} and own["all"].tolist() == [0, 0, 1]
    assert own["fixed_bytes"].to_dict() == {1: 48_000, 25: 1_200_000, 80: 3_840_000}
    assert own["compact_bytes"].to_dict() == {1: 36_000, 25: 168_000, 80: 180_000}
    printed = table[table["published"].astype(bool)].set_index("slots")
    assert printed["fixed_bytes"].to_dict() == {25: 205e6, 209: 1.7e9}
    assert printed.loc[25, "results"] == 12_200_000 and printed["all"].tolist() == [0, 1]
    assert set(printed["launch"]) == {256_000}


@pytest.fixture
def draw() -> Iterator[Any]:
    with drawing(one_error.FIGURES) as call:
        yield call


@pytest.mark.parametrize("name", one_error.FIGURES)
def test_a_figure_without_measurements_says_so(name: str, draw: Any, nothing: Measurements) -> None:
    assert re.search("Nothing was measured", words(draw(name, nothing)[0]))


def test_figure_7_needs_a_gpu(tmp_path: Path, draw: Any) -> None:
    measurements = load(tmp_path, local_rows(gpu=False), published=[PUBLISHED], papers=[PAPER]).of("one_error")
    assert "this needs a GPU" in words(draw("figure_7", measurements)[0])


def test_what_figures_draw(measured: Measurements, draw: Any) -> None:
    drawn, _ = draw("figure_5", measured)
    upper, lower = drawn.axes
    assert upper.lines[0].get_ydata() == pytest.approx([0.75, 3.5, 3.75])
    assert [line.get_ydata().tolist() for line in upper.lines[1:]] == [[6.1]]
    assert lower.lines[0].get_ydata() == pytest.approx([12, 300, 960])
    assert sorted(float(line.get_ydata()[0]) for line in lower.lines[2:]) == pytest.approx([800.78, 6640.6], rel=1e-4)
    drawn, values = draw("figure_6", measured)
    legend = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert legend == ["read index", "index to device", "read", "pack", "host to device", "search", "kernel",
                      "device to host", "write"]  # fmt: skip
    assert values.groupby("device")["share"].sum().tolist() == pytest.approx([1.0, 1.0])
    drawn, values = draw("figure_7", measured)
    assert values.set_index("block")["us_per_read"].to_dict() == pytest.approx({8: 45.0, 32: 105.0, 512: 1305.0})
    assert [line.get_ydata().tolist() for line in drawn.axes[0].lines[1:]] == [[15.0]]


@pytest.mark.parametrize("name", one_error.FIGURES)
def test_texts_stay_inside_the_figure(name: str, measured: Measurements, draw: Any) -> None:
    drawn, _ = draw(name, measured)
    renderer = drawn.canvas.get_renderer()
    texts = [*drawn.texts, *(text for axes in drawn.axes for text in (*axes.texts, axes.yaxis.label, axes.xaxis.label))]
    texts += [label for axes in drawn.axes if axes.axison for label in axes.get_yticklabels()]
    for text in texts:
        if text.get_text().strip() and text.get_visible():
            box = text.get_window_extent(renderer)
            assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text.get_text()
            assert drawn.bbox.y0 <= box.y0 and box.y1 <= drawn.bbox.y1, text.get_text()
    for axes in drawn.axes:
        labels = [label for label in axes.get_xticklabels() if label.get_text() and label.get_visible()]
        boxes = [label.get_window_extent(renderer) for label in labels if axes.axison]
        assert all(one.x1 < other.x0 for one, other in zip(boxes, boxes[1:], strict=False)), name


def test_the_section_of_the_page(tmp_path: Path, measured: Measurements, nothing: Measurements) -> None:
    write_page(tmp_path / "report.html", measured, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "Table 4: at most 25 results a read as printed, s read as ms here: mixed" in text
    assert "CPU, 1 thread: algorithm 243,430 s 243 s 1.20 s" in text
    assert "speed-up 7.62 7.62 8.00" in text
    assert "paper tier, GPU paper tier, CPU, 1 thread 8.00" in text  # the summary
    assert "Other published values text reads per launch" in text.replace("Printed in of method what value ", "")
    write_page(tmp_path / "report.html", nothing, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "No speedup could be computed" in text and "243,430 s" in text


def peer_rows() -> list[dict[str, Any]]:
    """razers3 and bowtie beside ours; razers3 has another alignment of a hit."""
    rows: list[dict[str, Any]] = []
    for item, tool, factor in (("edits", "razers3", 20.0), ("substitutions", "bowtie", 10.0)):
        theirs = record(item, "cpu", "-", case="r100", tool=tool)
        ours = record(item, "cpu", "fast", case="r100")
        for fields, total, peak in ((theirs, 0.04 * factor, 50e6), (ours, 0.04, 120e6)):
            rows += [{**fields, "stage": "total", "value": total}, {**fields, "stage": "process", "value": total + 0.6}]
            rows.append({**fields, "stage": "process", "metric": "memory", "value": peak, "unit": "bytes"})
        counts = {"hits": 900, "hits_of_theirs": 899, "our_hits": 3000, "hits_of_ours": 2990}
        for metric, value in counts.items():
            rows.append({**theirs, "stage": "-", "metric": metric, "value": value, "unit": "hits", "digest": ""})
    return rows


def test_other_tools_stand_beside_ours(tmp_path: Path) -> None:
    given = load(tmp_path, local_rows() + peer_rows(), published=[PUBLISHED], papers=[PAPER]).of("one_error")
    hits = one_error.TABLES["peer_hits"](given).set_index("tool")
    assert hits.loc["razers3", ["hits", "hits_of_theirs", "our_hits", "hits_of_ours"]].tolist() == [
        900,
        899,
        3000,
        2990,
    ]
    assert hits.loc["bowtie", ["peak_bytes", "our_peak_bytes"]].tolist() == [50e6, 120e6]
    over = one_error.TABLES["peers"](given).set_index(["numerator_tool", "scope"])["speedup"]
    assert over["razers3", "index_open"] == pytest.approx(20.0)
    assert over["bowtie", "process"] == pytest.approx(1.0 / 0.64)
    write_page(tmp_path / "report.html", given, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "razers3, 1 thread test-cpu (here): r100 900 899 3,000 2,990 50 MB 120 MB" in text
    assert "Beside razers3" in text and "Beside bowtie" in text and "None of razers3" not in text


def test_how_far_results_differ_stands_beside_both_times(tmp_path: Path) -> None:
    rows = [row | {"results": 14_999, "digest": "e" * 64} if row["tool"] == "razers3" else row for row in peer_rows()]
    given = load(tmp_path, local_rows() + rows, published=[PUBLISHED], papers=[PAPER]).of("one_error")
    over = one_error.TABLES["peers"](given).set_index(["numerator_tool", "scope"]).loc[("razers3", "index_open")]
    assert over[["numerator_results", "denominator_results", "status"]].tolist() == [14_999, 15_000, "results differ"]
    write_page(tmp_path / "report.html", given, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "800 ms 40.0 ms results differ 14,999 and 15,000 1.40 s 640 ms results differ 14,999 and 15,000" in text
    assert "400 ms 40.0 ms 10.0 1.00 s 640 ms 1.56" in text  # bowtie's, as before


def test_without_other_tools_the_page_says_so(tmp_path: Path, measured: Measurements) -> None:
    write_page(tmp_path / "report.html", measured, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "None of razers3, yara, bwa, bowtie was measured" in text


def test_one_measurement_has_one_speedup(tmp_path: Path) -> None:
    """The median of totals is not the sum of the medians of what they are made of."""
    rows = [row for row in local_rows() if (row["item"], row["device"]) != ("fixed_slots", "gpu")]
    for repeat, (copy, kernel) in enumerate(((0.01, 0.15), (0.05, 0.10), (0.06, 0.18))):
        named = record("fixed_slots", "gpu", parameters=f"slots=25; {SEARCHED}", repeat=repeat)
        stages = {"host_to_device": copy, "kernel": kernel, "total": copy + kernel}
        rows += [{**named, "stage": stage, "value": value} for stage, value in stages.items()]
    given = load(tmp_path, rows, published=[PUBLISHED], papers=[PAPER]).of("one_error")
    over = one_error.speedups(given)
    over = over[(over["item"] == "fixed_slots") & (over["comparison"] == "gpu_over_cpu")]
    assert over["speedup"].tolist() == pytest.approx([1.2 / 0.16])
    assert cells(one_error.slots_table(given, "Table 4"), "speed-up")[2] == pytest.approx(1.2 / 0.16)


def test_a_card_names_the_genome_and_counts_cases(tmp_path: Path) -> None:
    named = index_rows([], bases=4_641_652, reference="ecoli", tool="warpseed", machine="test-cpu")
    given = load(tmp_path, local_rows() + named, published=[PUBLISHED], papers=[PAPER]).of("one_error")
    write_page(tmp_path / "report.html", given, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "CPU, 1 thread one case; In memory; test-cpu (here), ecoli, 4.64 Mbp" in text
    assert "1 cases" not in text
