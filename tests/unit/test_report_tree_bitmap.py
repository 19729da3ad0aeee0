"""The tables and figures of paper 003, from made-up records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_figures import boxes, drawing, overlapping, words
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


def version_rows(device: str, length: int = 3000, scale: float = 1.0) -> list[dict[str, Any]]:
    """Three chunks; the second kernel begins 0.3 s after the first has ended, the third 0.5 s after the second. On a
    GPU a copy to the host takes 10 µs. All times are `scale` times as long."""
    rows = []
    totals = {"one_trie": 0.2} if device == "cpu" else {}
    for version, total in {**totals, "serial": 2.0, "concurrent": 1.5}.items():
        shared = f"k=15; length={length}; version={version}"
        shared += "" if version == "one_trie" else f"; chunk_length={length // 3}"
        rows.append({**record("versions", shared, device), "stage": "total", "value": total * scale})
        kernels = [(0.1, 0.2), (0.5, 0.6), (1.1, 1.2)]
        spans = {"kernel": kernels, "deltas": [(0.2, 0.4), (0.6, 0.9), (1.2, total)]}
        if device == "gpu":
            spans["host_to_device"] = [(begin - 0.05, begin) for begin, _ in kernels]
            spans["device_to_host"] = [(end, end + 1e-5) for _, end in kernels]
        for name, times in ({"match": [(0.0, total)]} if version == "one_trie" else spans).items():
            rows.append({**record("versions", shared, device), "stage": name, "value": 0.1 * scale})
            for number, span in enumerate(times):
                event = record("events", f"{shared}; stream={number % 2}; event={number}", device, digest="")
                for metric, value in zip(("begin", "end"), span, strict=True):
                    rows.append({**event, "stage": name, "metric": metric, "value": value * scale})
    return rows


def stream_rows(gpu: bool, lengths: Iterable[int] = (1000, 10_000)) -> list[dict[str, Any]]:
    rows = []
    for length in lengths:
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


def loaded(folder: Path, rows: list[dict[str, Any]], reference: list[dict[str, Any]] | None = None) -> Measurements:
    return load(folder, rows, reference, published=[PUBLISHED], papers=[PAPER]).of("tree_bitmap")


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


def test_times_beside_the_thesis_are_of_the_longest_stream(tmp_path: Path) -> None:
    measured = loaded(tmp_path, version_rows("cpu", 3000) + version_rows("cpu", 30_000, 10.0))
    ours = values.statements_table(measured).set_index("statement")["here"]
    assert ours["total of serial"] == pytest.approx(20) and ours["total of the CPU alone"] == pytest.approx(2)
    assert ours["time between kernels, first"] == pytest.approx(3000)
    write_page(tmp_path / "report.html", measured, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "Totals and times between kernels are of streams of 30 kbases on test-cpu (here); the thesis's has" in text
    assert "the naive kernel visits all trie-nodes for each base" in text and "falls by whole blocks" in text


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


def test_searching_is_its_own_stage_not_what_is_left_of_the_total(tmp_path: Path) -> None:
    """Medians of three repeats, of which another one is the middle one of each stage; without the stage, nothing."""
    rows = []
    for build, search in ((1.0, 5.0), (2.0, 1.0), (4.0, 3.0)):
        for row in fixed_rows()[:3]:
            value = {"build": build, "search": search, "total": build + search}[row["stage"]]
            rows.append({**row, "repeat": len(rows) // 3, "value": value})
    table = values.fixed_table(loaded(tmp_path, rows))
    assert table[["build_s", "search_s", "total_s"]].to_numpy().tolist() == [[2.0, 3.0, 6.0]]
    alone = [row for row in rows if row["stage"] != "search"]
    assert values.fixed_table(loaded(tmp_path / "older", alone))["search_s"].isna().all()


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


def test_subtitles_of_kernels_tell_the_streams_that_are_drawn(tmp_path: Path, draw: Any) -> None:
    """Of two streams the longer one; and what the CPU counted, where the GPU did not, of a stream of its own."""
    rows = []
    for row in kernel_rows("gpu", 0.001):
        longer = row["parameters"].replace("length=1000", "length=5000").replace("seed_length=100", "seed_length=700")
        rows += [row, {**row, "parameters": longer}] if row.get("metric") != "accesses" else []
    rows += [row for row in kernel_rows("cpu", 0.1) if row.get("metric") == "accesses"]
    given = loaded(tmp_path, rows)
    told = "test-cpu (here): streams of 5 kbases, seed 700 bases, GPU"
    for name, also in (("figure_37", ", and of 1 kbases, seed 100 bases, CPU"), ("figure_38", "")):
        drawn, plotted = draw(name, given)
        assert f"{told}{also}" in {text.get_text().replace("\n", " ") for text in drawn.texts}
        assert set(plotted["length"]) == {1000, 5000}  # the table beside it has both


def test_kernels_are_drawn_of_the_thesis_streams_where_these_were_timed(tmp_path: Path, draw: Any) -> None:
    """Figure 37's has 500,000 bases, Figure 38's 100,000."""
    rows = []
    for row in kernel_rows("gpu", 0.001):
        for length in (1000, 100_000, 500_000, 700_000):
            rows.append({**row, "parameters": row["parameters"].replace("length=1000;", f"length={length};")})
    given = loaded(tmp_path, rows)
    for name, length in (("figure_37", "500 kbases"), ("figure_38", "100 kbases")):
        drawn, _ = draw(name, given)
        assert f"streams of {length}, seed" in words(drawn).replace("\n", " ")


def test_streams_are_drawn_of_the_kind_that_has_the_longest(tmp_path: Path, draw: Any) -> None:
    genome = record("in_memory", "k=15; length=20000; bases=genome", tier="fast")
    rows = [*stream_rows(True), {**genome, "stage": "total", "value": 1.0}]
    drawn, plotted = draw("streams", loaded(tmp_path, rows))
    assert set(plotted["bases"]) == {"genome"} and plotted["length"].tolist() == [20_000]


def test_names_that_are_long_take_no_room_from_the_curves(tmp_path: Path, draw: Any) -> None:
    """A reference machine's GPU beside this one's CPU: names stand above, each once, and panels are as wide as the
    figure."""
    beside = loaded(tmp_path, local_rows(gpu=False), local_rows())
    for name in ("figure_36", "figure_37", "figure_38", "streams"):
        drawn, _ = draw(name, beside)
        assert all(axes.get_position().width > 0.8 for axes in drawn.axes), name
        (legend,) = drawn.legends
        named = [text.get_text() for text in legend.get_texts()]
        assert len(named) == len(set(named)) >= 3 and any("(nvidia-test)" in text for text in named)
        assert {text.get_text() for axes in drawn.axes for text in axes.texts}.isdisjoint(named)


def test_lengths_whose_labels_would_touch_have_none(tmp_path: Path, draw: Any) -> None:
    lengths = (10_000, 50_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
    drawn, _ = draw("streams", loaded(tmp_path, stream_rows(True, lengths)))
    assert overlapping(drawn) == []
    labels = [label.get_text() for label in drawn.axes[-1].get_xticklabels()]
    assert labels == ["10 k", "", "100 k", "1 M", "10 M", "100 M", "1 G"]


def test_time_lines_are_the_gpus_where_there_is_one(tmp_path: Path, measured: Measurements, draw: Any) -> None:
    drawn, plotted = draw("figure_40", measured)
    text = words(drawn)
    assert "serial, GPU: 2.00 s; published, of 1 Mbases: 3.4 s" in text
    assert "CPU alone: 200 ms; published, of 1 Mbases: 1.55 s" in text
    assert len(drawn.axes) == 3 and set(plotted["device"]) == {"cpu", "gpu"}
    drawn, _ = draw("figure_41", measured)
    lanes = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    works = ["copies to GPU", "kernel", "copies to host"]
    assert lanes == [*(f"A: {work}" for work in works), *(f"B: {work}" for work in works), "host: deltas"]
    alone = loaded(tmp_path / "cpu", local_rows(gpu=False))
    assert "serial, CPU: 2.00 s" in words(draw("figure_40", alone)[0])
    assert "this needs a GPU" in words(draw("figure_38", alone)[0])


def test_time_lines_are_of_one_stream_on_one_machine(tmp_path: Path, draw: Any) -> None:
    """The longest stream of which a machine with a GPU has all versions: not this run's short one on the CPU alone, and
    not a longer one without it."""
    reference = version_rows("cpu", 1_000_000, 2.0) + version_rows("gpu", 1_000_000, 2.0)
    reference += version_rows("cpu", 1000, 4.0) + version_rows("gpu", 1000, 4.0) + version_rows("gpu", 2_000_000, 3.0)
    drawn, plotted = draw("figure_40", loaded(tmp_path, local_rows(gpu=False), reference))
    assert set(plotted["length"]) == {1_000_000} and set(plotted["machine"]) == {"nvidia-test"}
    text = words(drawn)
    assert "serial, GPU: 4.00 s;" in text and "CPU alone: 400 ms;" in text and "nvidia-test (reference machine)" in text


def test_sizes_of_time_lines_stand_beside_those_of_the_thesis(tmp_path: Path, draw: Any) -> None:
    as_printed = [
        {**row, "parameters": row["parameters"].replace("chunk_length=333333", "chunk_length=100000")}
        for row in version_rows("cpu", 1_000_000)
    ]
    text = words(draw("figure_40", loaded(tmp_path / "same", as_printed))[0]).replace("\n", " ")
    assert "CPU alone: 200 ms; published: 1.55 s" in text and "chunks of 100,000, as published" in text
    text = words(draw("figure_40", loaded(tmp_path / "short", version_rows("cpu")))[0]).replace("\n", " ")
    assert "a stream of 3 kbases, chunks of 1,000 published: k = 15, a stream of 1 Mbases, chunks of 100,000" in text


def test_what_took_almost_no_time_is_seen(measured: Measurements, draw: Any) -> None:
    """A lane a kind of work, with its sum; each event has an edge, and the last chunk's turn is drawn large."""
    drawn, _ = draw("figure_40", measured)
    whole, turn, _ = drawn.axes
    labels = [label.get_text() for label in whole.get_yticklabels()]
    assert labels == ["copies to GPU", "kernel", "copies to host", "deltas"]
    assert [text.get_text() for text in whole.texts] == ["150 ms", "300 ms", "30.0 µs", "1.30 s"]
    bars = whole.collections[labels.index("copies to host")]
    assert len(bars.get_paths()) == 3 and bars.get_linewidth()[0] >= 0.8
    assert bars.get_edgecolor().tolist() == bars.get_facecolor().tolist()
    # From a copy to the GPU at 1.05 s to the end of the kernel at 1.2 s; the deltas, which go on, have no sum.
    assert [text.get_text() for text in turn.texts] == ["50.0 ms", "100 ms", "10.0 µs"]
    assert turn.get_xlim()[1] == pytest.approx(150.01 * 1.12) and "from 1.04 s on" in turn.get_title("left")


@pytest.mark.parametrize("name", tree_bitmap.FIGURES)
@pytest.mark.parametrize("reference", [False, True])
def test_texts_stay_inside_the_figure_and_apart(name: str, reference: bool, tmp_path: Path, draw: Any) -> None:
    drawn, _ = draw(name, loaded(tmp_path, local_rows(gpu=not reference), local_rows() if reference else None))
    for text, box in boxes(drawn):
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text
        assert drawn.bbox.y0 <= box.y0 and box.y1 <= drawn.bbox.y1, text
    assert overlapping(drawn) == []


def test_the_section_of_the_page(tmp_path: Path, measured: Measurements, nothing: Measurements) -> None:
    write_page(tmp_path / "report.html", measured, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "most speedup of shuffle over naive about 3 orders of magnitude 1,000 x 24.0 x" in text
    assert "total of the CPU alone 1.55 s 0.200 s" in text
    assert "ahocorasick_rs, CPU, 1 thread 9 300 ms 10.0 s 10.3 s 3.00 10.0" in text
    assert "CPU alone, one trie 200 ms" in text and "fast tier, CPU, 1 thread" in text
    write_page(tmp_path / "report.html", nothing, {"cpu": "x"})
    _, text = read_page(tmp_path / "report.html")
    assert "No speedup could be computed" in text and "total of concurrent without initialization 2.9 s" in text


def shown(folder: Path, given: Measurements) -> str:
    write_page(folder / "report.html", given, {"cpu": "x"})
    return read_page(folder / "report.html")[1]


def test_the_stream_of_a_fixed_dictionary_is_as_long_as_it_is(tmp_path: Path) -> None:
    """Its 2,001 places are those of a stream of 1,000 bases and of its reverse complement."""
    assert "Sizes: test-cpu (here): streams of 1 kbases, CPU;" in shown(tmp_path, loaded(tmp_path, fixed_rows()))


def test_what_the_cpu_counted_on_a_machine_with_a_gpu_is_said(tmp_path: Path) -> None:
    rows = [row for row in local_rows() if row["device"] == "cpu" or row.get("metric") != "accesses"]
    said = "Accesses to memory are counted by the twins: of 1,000 bases with a seed of 100 on test-cpu (here)."
    assert said in shown(tmp_path, loaded(tmp_path, rows))
    assert said not in shown(tmp_path, loaded(tmp_path, local_rows()))  # there the GPU counted


def test_rates_of_sectors_that_are_written_say_so(tmp_path: Path) -> None:
    rate = record("limits", "length=1", "gpu", "-", stage="kernel", metric="rate", value=12e9, unit="1/s")
    own = {"case": "random sectors of the table, read and written", "parameters": "array=table; bytes=2133376"}
    text = shown(tmp_path, loaded(tmp_path, [*stream_rows(gpu=True), {**rate, **own}]))
    assert "table, read and written test-cpu (here) 2.13 MB 12 G/s" in text


def test_why_a_gpus_build_has_no_time_of_its_own_is_said(tmp_path: Path, measured: Measurements) -> None:
    assert "On a GPU building and searching are not told apart" in shown(tmp_path, measured)


def test_in_memory_is_said_once(tmp_path: Path, measured: Measurements) -> None:
    text = shown(tmp_path, measured)
    assert "test-cpu (here): In memory fast tier" in text and "In memory, in memory" not in text


def test_two_gpus_stand_beside_one(tmp_path: Path, draw: Any) -> None:
    """In the table of speedups, on the page, and as a curve that has its own name."""
    rows = []
    for row in stream_rows(True):
        if row["device"] == "gpu" and row["item"] == "in_memory":
            rows.append({**row, "gpus": 2, "value": row["value"] / 1.6})
        rows.append({**row, "gpus": int(row["device"] == "gpu")})
    given = loaded(tmp_path, rows)
    over = tree_bitmap.speedups(given)
    assert over[over["comparison"] == "gpus"]["speedup"].tolist() == pytest.approx([1.6, 1.6])
    assert "here: fast tier, 2 GPUs 1,000 0.625 µs" in shown(tmp_path, given)
    drawn, _ = draw("streams", given)
    assert {"GPU, both copies", "2 GPUs, both copies"} < set(words(drawn).split(" | "))


def test_labels_at_the_left_are_whole(tmp_path: Path, draw: Any) -> None:
    """Also of two lines, where numbers beside them are long."""
    rows = [{**row, "value": row["value"] / 1000} for row in stream_rows(True)]
    drawn, _ = draw("streams", loaded(tmp_path, rows))
    assert any(label.get_text() == "100 G" for label in drawn.axes[0].get_yticklabels())
    assert min(box.x0 for _, box in boxes(drawn)) >= 0


def test_each_k_of_many_lengths_has_a_panel(tmp_path: Path, draw: Any) -> None:
    """Though one has a length more than the other, and another a single one."""
    rows = [row | {"parameters": row["parameters"].replace("k=15", "k=31")} for row in stream_rows(False, (10, 1000))]
    rows += [row | {"parameters": row["parameters"].replace("k=15", "k=3")} for row in stream_rows(False, [1000])]
    drawn, _ = draw("streams", loaded(tmp_path, [*stream_rows(False, (10, 100, 1000)), *rows]))
    assert [axes.get_ylabel() for axes in drawn.axes] == ["k = 15\nbases a second", "k = 31\nbases a second"]
