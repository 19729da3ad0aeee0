"""The tables and figures of paper 002, from made-up records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_figures import drawing, words
from made_up_records import ROOT, load
from page_reader import read_page
from warpseed.fm_index.binned import PAPER_PARAMETERS
from warpseed.report import mems, mems_values
from warpseed.report.measurements import Measurements, load_measurements, published_band
from warpseed.report.page import write_page
from warpseed.report.papers import read_paper

PUBLISHED = ROOT / "resources" / "published" / "mems.tsv"
PAPER = ROOT / "resources" / "papers" / "mems.yaml"
LENGTHS = (12, 14, 16, 18, 20)
BASES = 700_000
STAGES = {"pack": 0.01, "intervals": 0.7, "filter": 0.01, "split": 0.02, "locate": 0.05, "sort": 0.01}


def record(item: str, device: str = "cpu", tier: str = "paper", threads: int = 1, **more: Any) -> dict[str, Any]:
    """A record without stage and value."""
    fields = {"system": "mems", "item": item, "tool": "warpseed", "tier": tier, "device": device, "threads": threads}
    fields |= {"case": "pacbio", "parameters": "min_length=20; kind=super; strands=2", "queries": 100}
    return fields | {"results": 5000, "digest": "d" * 64, "machine": "test-cpu", **more}


def stage_rows(device: str, tier: str, threads: int, stages: dict[str, float], **more: Any) -> list[dict[str, Any]]:
    """Of each least length; locating matches of 12 bases takes ten times as long."""
    rows = []
    for length in LENGTHS:
        own = {name: value * (10 if length == 12 and name == "locate" else 1) for name, value in stages.items()}
        named = record(
            "stages", device, tier, threads, parameters=f"min_length={length}; kind=paper; strands=2", **more
        )
        own = own | {"total": sum(own.values()) + 0.02}
        rows += [{**named, "stage": stage, "value": value} for stage, value in own.items()]
    return rows


def local_rows(gpu: bool = True) -> list[dict[str, Any]]:
    """All that a run measures."""
    rows = [{**record("reads"), "stage": "-", "metric": "count", "value": BASES, "unit": "bases"}]
    rows += stage_rows("cpu", "paper", 1, STAGES)
    rows += stage_rows("cpu", "paper", 2, {name: value / 2 for name, value in STAGES.items()})
    rows += stage_rows("cpu", "fast", 1, {"search": 0.05})
    if gpu:
        own = {name: value / (10 if name == "locate" else 4) for name, value in STAGES.items()}
        rows += stage_rows("gpu", "paper", 2, own | {"split": 0.0, "host_to_device": 0.001, "device_to_host": 0.002})
    for length in LENGTHS:
        for kind, count in (("super", 7000), ("paper", 14_000), ("maximal", 21_000)):
            named = record("kinds", tier="fast", parameters=f"min_length={length}; kind={kind}; strands=2", stage="-")
            rows.append({**named, "metric": "count", "value": count / length, "unit": "matches"})
    rows.append({**record("parts", parameters=""), "stage": "-", "metric": "count", "value": 2e6, "unit": "bases"})
    for part, size in (("BWT in bins of 64", 1e6), ("C", 20), ("SP, every 7", 1.2e6), ("intervals of 10 bases", 8e6)):
        for metric in ("size", "formula"):
            named = record("parts", parameters=f"part={part}", stage="-")
            rows.append({**named, "metric": metric, "value": size, "unit": "bytes"})
    for bins, factor in ((64, 1.0), (256, 2.0)):
        named = record(
            "settings", parameters=f"bin_size={bins}; sa_ratio=7; pre_calc_length=10; min_length=16; kind=paper"
        )
        named["parameters"] += "; strands=2"
        own = {name: value * factor for name, value in STAGES.items()}
        rows += [
            {**named, "stage": stage, "value": value} for stage, value in (own | {"total": sum(own.values())}).items()
        ]
        rows.append({**named, "stage": "-", "metric": "size", "value": 1e7 / factor, "unit": "bytes"})
    rows.append({**record("in_memory", tier="fast"), "stage": "total", "value": 0.004})
    return rows


def peer_rows() -> list[dict[str, Any]]:
    """bwa and both mummers beside ours."""
    rows: list[dict[str, Any]] = []
    for item, tool, factor in (("super", "bwa", 20.0), ("maximal", "mummer", 40.0), ("maximal", "mummer4", 15.0)):
        named = f"min_length=20; kind={item}; strands=2"
        theirs, ours = (record(item, tier=tier, parameters=named) for tier in ("-", "fast"))
        theirs["tool"] = tool
        for fields, total, peak in ((theirs, 0.01 * factor, 50e6), (ours, 0.01, 100e6)):
            rows += [{**fields, "stage": "total", "value": total}, {**fields, "stage": "process", "value": total + 0.1}]
            rows.append({**fields, "stage": "process", "metric": "memory", "value": peak, "unit": "bytes"})
        counts = {"hits": 5000, "hits_of_theirs": 5000, "our_hits": 5000, "hits_of_ours": 5000}
        for metric, value in counts.items():
            rows.append({**theirs, "stage": "-", "metric": metric, "value": value, "unit": "hits", "digest": ""})
    return rows


def loaded(folder: Path, rows: list[dict[str, Any]]) -> Measurements:
    return load(folder, rows, published=[PUBLISHED], papers=[PAPER]).of("mems")


@pytest.fixture
def measured(tmp_path: Path) -> Measurements:
    return loaded(tmp_path, local_rows())


@pytest.fixture
def nothing() -> Measurements:
    return load_measurements([], [], [PUBLISHED], [PAPER]).of("mems")


def test_the_papers_file_knows_every_published_value(nothing: Measurements) -> None:
    paper, published = read_paper(PAPER), nothing.published
    assert set(published["printed"]) - {"text"} == {
        *("Figure 3", "Figure 4", "Figure 5", "section 5"),
        *("section 4.2", "section 4.5"),
    }
    assert set(published.loc[published["printed"] != "text", "item"]) == {"stages", "parts"} <= set(paper.items)
    assert set(published.loc[published["item"] == "stages", "method"]) == set(paper.methods)
    assert list(paper.figures) == list(mems.FIGURES)
    assert mems_values.published_times(nothing)["find intervals"][12] == pytest.approx(7e9 / (25_249 * 7000))
    assert mems_values.published_times(nothing)["locate"] == pytest.approx({12: 42e9 / (25_249 * 7000)})


def test_stages_are_parts_of_the_paper_and_shown_a_base(measured: Measurements) -> None:
    table = mems_values.stages_table(measured)
    own = table[(table["device"] == "cpu") & (table["threads"] == 1) & (table["min_length"] == 12)]
    paper = own[own["tier"] == "paper"].set_index("part")["ns_per_base"]
    seconds = {"find intervals": 0.7, "filter": 0.01, "locate": 0.52, "other": 0.04, "total": 1.27}
    assert paper.to_dict() == pytest.approx({part: value / BASES * 1e9 for part, value in seconds.items()})
    assert own[own["tier"] == "fast"]["part"].tolist() == ["total"]
    gpu = table[(table["device"] == "gpu") & (table["min_length"] == 20)].set_index("part")["seconds"]
    assert gpu["copies"] == pytest.approx(0.003) and gpu["locate"] == pytest.approx(0.005)


def test_what_the_paper_says_stands_beside_ours(measured: Measurements) -> None:
    table = mems_values.statements_table(measured).set_index("statement")["here"]
    bases = 25_249 * 7000
    assert table["find intervals, 14 bases or more"] == pytest.approx(0.175 / BASES * bases)
    assert table["locate over find intervals, 12 bases or more"] == pytest.approx(0.05 / 0.175)
    assert table["share of filter"] == pytest.approx(100 * 0.0025 / (0.185 + 0.005 + 0.003 + 0.02 - 0.0025), rel=0.05)
    assert table["share of pre-processing"] == pytest.approx(100 * 0.0025 / 0.2105)
    assert table["share of splitting"] == 0
    # Two threads over one GPU: half of the time over a quarter, and for locate a tenth.
    assert table["least speedup of find intervals"] == table["most speedup of find intervals"] == pytest.approx(2)
    assert table["least speedup of locate"] == pytest.approx((0.25 + 0.01) / 0.05)
    assert table["most speedup of locate"] == pytest.approx((0.025 + 0.01) / 0.005)
    assert table["least speedup"] <= table["most speedup"]


def test_no_speedup_where_results_differ(tmp_path: Path) -> None:
    rows = [row | {"digest": "e" * 64} if row["device"] == "gpu" else row for row in local_rows()]
    measured = loaded(tmp_path, rows)
    assert mems_values.gpu_over_cpu(mems_values.stages_table(measured)).empty
    assert mems_values.statements_table(measured).set_index("statement")["here"].isna()["least speedup"]


def test_matches_of_each_kind_are_counted_a_base(measured: Measurements) -> None:
    table = mems_values.kinds_table(measured)
    own = table[table["min_length"] == 20].set_index("kind")["per_1000_bases"]
    assert own.to_dict() == pytest.approx({"super": 0.5, "paper": 1.0, "maximal": 1.5})


def test_memory_stands_beside_what_is_printed(measured: Measurements, nothing: Measurements) -> None:
    table = mems_values.memory_table(measured).set_index("part")
    assert table.loc["BWT in bins of 64", ["published_bytes", "bytes"]].tolist() == [1.6e9, 1e6]
    assert table["published_bytes"].tolist()[:3] == [1.6e9, 20, 1.8e9]
    assert math.isnan(table.loc["intervals of 10 bases", "published_bytes"])  # the paper's are of 13
    assert table.loc["SP, every 7", "bytes_per_base"] == pytest.approx(0.6)
    assert table.loc["SP, every 7", "published_bytes_per_base"] == pytest.approx(0.58, abs=0.01)
    printed = mems_values.memory_table(nothing)
    assert set(printed["source"]) == {"published"} and printed["bytes"].isna().all() and len(printed) == 4


def test_settings_say_what_was_changed(measured: Measurements) -> None:
    table = mems_values.settings_table(measured)
    assert table["changed"].tolist() == ["", "bin of 256 rows"]
    assert table["locate_s"].tolist() == pytest.approx([0.07, 0.14]) and table["bytes"].tolist() == [1e7, 5e6]


@pytest.fixture
def draw() -> Iterator[Any]:
    with drawing(mems.FIGURES) as call:
        yield call


@pytest.mark.parametrize("name", mems.FIGURES)
def test_a_figure_without_measurements_says_so(name: str, draw: Any, nothing: Measurements) -> None:
    assert re.search("Nothing was measured", words(draw(name, nothing)[0]))


def test_what_needs_a_gpu_says_so_or_is_left_out(tmp_path: Path, draw: Any) -> None:
    measured = loaded(tmp_path, local_rows(gpu=False))
    assert "this needs a GPU" in words(draw("figure_3", measured)[0])
    assert [len(draw(name, measured)[0].axes) for name in ("figure_4", "figure_5")] == [2, 1]


def test_a_reference_machines_gpu_over_its_cpu_is_drawn_where_no_gpu_is_here(tmp_path: Path, draw: Any) -> None:
    rows, there = local_rows(gpu=False), [row | {"machine": "big"} for row in local_rows()]
    both = load(tmp_path, rows, there, published=[PUBLISHED], papers=[PAPER]).of("mems")
    for name, panels, band in (("figure_4", 3, "published: locate, 7 to 9"), ("figure_5", 2, "published: 7 to 9")):
        drawn, values = draw(name, both)
        assert len(drawn.axes) == panels
        assert set(values["speedup"].dropna()) == {line for axes in drawn.axes[-1:] for curve in axes.lines
                                                   for line in curve.get_ydata()}  # fmt: skip
        (legend,) = drawn.legends
        named = [text.get_text() for text in legend.get_texts()]
        text = words(drawn).replace("\n", " ")
        assert "GPU over 2 CPU threads, 100 reads" in text and band in text
        assert any(label.startswith(("locate (", "paper tier, all of it (")) for label in named)


def test_bands_and_words_are_what_is_published(tmp_path: Path, draw: Any) -> None:
    """Of a table of published values in which one says otherwise, the figure does, too."""
    printed = PUBLISHED.read_text(encoding="utf-8")
    other = tmp_path / "mems.tsv"
    other.write_text(re.sub(r"(most speedup of locate\t)9", r"\g<1>23", printed), encoding="utf-8")
    measured = load(tmp_path, local_rows(), published=[other], papers=[PAPER]).of("mems")
    assert published_band(measured, "speedup of locate", "locate, ") == [(7, 23, "published: locate, 7 to 23")]
    assert published_band(measured, "speedup of nothing") == []
    assert "published: locate, 7 to 23" in words(draw("figure_4", measured)[0])


def test_what_figures_draw(measured: Measurements, draw: Any) -> None:
    drawn, _ = draw("figure_3", measured)
    (axes,) = drawn.axes
    curves = [line for line in axes.lines if len(line.get_xdata()) == 5]
    assert curves[0].get_ydata() == pytest.approx([0.175 / BASES * 1e9] * 5)
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
    assert len(points) == 6 and points[0] == (12, pytest.approx(39.6, abs=0.1))
    drawn, _ = draw("figure_4", measured)
    assert len(drawn.axes) == 3
    assert [line.get_ydata()[1] for line in drawn.axes[2].lines] == pytest.approx([2, 7])
    assert "published: locate" in words(drawn)
    drawn, _ = draw("figure_5", measured)
    assert [len(axes.lines) for axes in drawn.axes] == [4, 1]
    drawn, _ = draw("kinds", measured)
    assert [line.get_ydata()[-1] for line in drawn.axes[0].lines] == pytest.approx([1.5, 1.0, 0.5])


def test_a_reference_machines_gpu_stands_beside_what_was_measured_here(tmp_path: Path) -> None:
    here = loaded(tmp_path, local_rows(gpu=False)).records
    there = loaded(tmp_path / "other", local_rows()).records.assign(source="reference", machine="big")
    there.loc[:, "case"] = there["case"].replace("pacbio", "other")
    measured = loaded(tmp_path, [])
    import pandas as pd

    alone = there[there["device"] == "cpu"].assign(machine="before")  # one without a GPU, whose name comes first
    both = Measurements(pd.concat([here, alone, there]), measured.published, measured.papers)
    table = mems_values.side_by_side(mems_values.stages_table(both))
    assert set(zip(table["source"], table["device"], strict=True)) == {("here", "cpu"), ("reference", "gpu")}
    assert set(table.loc[table["device"] == "gpu", "machine"]) == {"big"}
    assert list(mems_values.statements_table(both).columns[-3:]) == ["here", "before", "big"]


def test_each_method_is_drawn_with_the_most_reads_that_it_was_timed_with(tmp_path: Path, draw: Any) -> None:
    many = {"case": "pacbio_1000", "queries": 1000, "digest": "e" * 64}
    rows = [*local_rows(), *stage_rows("gpu", "paper", 2, dict.fromkeys(STAGES, 0.01), **many)]
    rows.append({**record("reads"), **many, "stage": "-", "metric": "count", "value": 10 * BASES, "unit": "bases"})
    measured = loaded(tmp_path, rows)
    for name in ("figure_4", "figure_5"):
        drawn, values = draw(name, measured)
        own = values.groupby("device")[["case", "queries"]].first()
        assert own.loc["gpu"].tolist() == ["pacbio_1000", 1000] and own.loc["cpu"].tolist() == ["pacbio", 100]
        text = words(drawn).replace("\n", " ")
        assert "pacbio, 100 reads (700 kbp) on CPU" in text and "pacbio_1000, 1,000 reads (7 Mbp) on GPU" in text
        assert "threads, 100 reads" in text  # a speedup stands where both had the same
    drawn, _ = draw("figure_5", measured)
    assert min(line.get_ydata()[-1] for line in drawn.axes[0].lines if len(line.get_ydata()) == 5) == pytest.approx(
        0.08 / (10 * BASES) * 1e9
    )
    table = mems_values.statements_table(measured).set_index("statement")["here"]
    assert table["least speedup of find intervals"] == pytest.approx(2)


@pytest.mark.parametrize("name", mems.FIGURES)
def test_texts_stay_inside_the_figure(name: str, measured: Measurements, draw: Any) -> None:
    drawn, _ = draw(name, measured)
    renderer = drawn.canvas.get_renderer()
    texts = [*drawn.texts, *(text for axes in drawn.axes for text in (*axes.texts, axes.yaxis.label, axes.xaxis.label))]
    for text in (text for text in texts if text.get_text().strip() and text.get_visible()):
        box = text.get_window_extent(renderer)
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text.get_text()
        assert drawn.bbox.y0 <= box.y0 and box.y1 <= drawn.bbox.y1, text.get_text()


def test_the_section_of_the_page(tmp_path: Path, measured: Measurements, nothing: Measurements) -> None:
    write_page(tmp_path / "report.html", measured, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "most speedup of find intervals printed as 2-3x 3 x 2.00 x" in text
    assert "BWT in bins of 64 1.6 GB 1 MB 0.516 0.500 0.500" in text
    assert "bin of 256 rows 16 5 MB 1.40 s 140 ms 1.60 s" in text
    assert "None of bwa, mummer, mummer4 was measured" in text
    assert "paper tier, GPU paper tier, CPU, 2 threads" in text  # the summary
    write_page(tmp_path / "report.html", nothing, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "No speedup could be computed" in text and "pre-calculated intervals, length 13 512 MB" in text


def test_other_tools_stand_beside_ours(tmp_path: Path) -> None:
    given = loaded(tmp_path, local_rows() + peer_rows())
    over = mems.TABLES["peers"](given).set_index(["numerator_tool", "scope"])["speedup"]
    assert over["bwa", "index_open"] == pytest.approx(20.0) and over["mummer", "process"] == pytest.approx(0.5 / 0.11)
    assert over["mummer4", "index_open"] == pytest.approx(15.0)
    write_page(tmp_path / "report.html", given, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "bwa, 1 thread test-cpu (here): pacbio 5,000 5,000 5,000 5,000 50 MB 100 MB" in text
    assert "Beside bwa" in text and "Beside mummer" in text and "None of bwa" not in text


def shown(folder: Path, given: Measurements, machine: dict[str, Any] | None = None) -> str:
    write_page(folder / "report.html", given, machine or {"cpu": "x"})
    return read_page(folder / "report.html")[1]


def test_what_a_speedup_beside_the_papers_is_of_is_said(tmp_path: Path, measured: Measurements) -> None:
    said = shown(tmp_path, measured).partition("What the paper says of its figures")[2].partition("Figure 3")[0]
    assert "the paper's over 24 CPU threads; on test-cpu (here) of 100 reads (pacbio), over 2 CPU threads" in said


def test_a_machine_without_a_gpu_has_no_column_of_statements(tmp_path: Path) -> None:
    text = shown(tmp_path, loaded(tmp_path, local_rows(gpu=False)))
    said = text.partition("What the paper says of its figures")[2].partition("most speedup")[0]
    assert "only machines with a GPU have a column" in said and "published Figure 3" in said and "here" not in said


def test_limits_of_one_data_set_say_which_matches(tmp_path: Path) -> None:
    limit = {"stage": "kernel", "queries": 500, "value": 0.001}
    rows = [
        {**record("limits", "gpu", "fast", parameters=f"min_length=20; kind={kind}; strands=2"), **limit}
        for kind in ("super", "maximal")
    ]
    table = shown(tmp_path, loaded(tmp_path, rows)).partition("GPU measurements beside their limits")[2]
    assert "pacbio: super matches of 20 bases or more" in table
    assert "pacbio: maximal matches of 20 bases or more" in table


def test_the_parameters_of_the_first_row_are_named_beside_the_papers(tmp_path: Path, measured: Measurements) -> None:
    text = shown(tmp_path, measured)
    papers = "bin of 64 rows, suffix positions every 7, PRE_CALC_LEN 13"
    assert f"from those of the first row, which names them. The paper's are {papers}." in text
    assert f"nothing {papers.replace('13', '10')} 16 10 MB" in text


@pytest.mark.parametrize("source", ["simulated", "/data/real_ont.fa.gz"])
def test_real_reads_are_named(tmp_path: Path, measured: Measurements, source: str) -> None:
    reads = {"long": {"source": source}, "other": {"source": "never.fa"}}
    sets = {"pacbio": {"reads": "long"}, "not_measured": {"reads": "other"}, "left_out": None}
    facts = {"cpu": "x", "config": {"reads": reads, "mems": {"datasets": sets}}}
    above = shown(tmp_path, measured, facts).partition("What the paper says of its figures")[0]
    named = "Not simulated: test-cpu (here): pacbio, real reads of the file real_ont.fa.gz."
    assert (named in above) == (source != "simulated") and "never.fa" not in above and "/data" not in above


def test_the_paper_s_parameters_are_those_that_its_index_has():
    assert PAPER_PARAMETERS._asdict() == mems_values.PAPERS_SETTINGS
