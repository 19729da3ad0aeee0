"""The tables and figures of paper 004, from made-up records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drawn_figures import boxes, drawing, overlapping, words
from made_up_records import ROOT, change, load
from warpseed.report import ebwt, ebwt_values
from warpseed.report.measurements import Measurements, load_measurements
from warpseed.report.page import write_page
from warpseed.report.papers import read_paper

PUBLISHED = ROOT / "resources" / "published" / "ebwt.tsv"
PAPER = ROOT / "resources" / "papers" / "ebwt.yaml"


def record(item: str, case: str, stage: str, value: float, **more: Any) -> dict[str, Any]:
    fields = {"system": "ebwt", "item": item, "tool": "warpseed", "tier": "paper", "device": "cpu", "threads": 1}
    fields |= {"case": case, "parameters": "pattern=6; tau=0.2; sequences=128; patterns=4", "queries": 9, "results": 9}
    return fields | {"digest": "d" * 64, "machine": "test-cpu", "stage": stage, "value": value, **more}


def rows_of_tables(factor: float = 1.0, **more: Any) -> list[dict[str, Any]]:
    rows = []
    for positions in (100, 260):
        case = f"{positions} positions"
        for item, stages in {"table_1": ["sort"], "table_2": ["sort"], "table_3": ["sort", "distance"]}.items():
            seconds = {stage: factor * positions / 1000 * rank for rank, stage in enumerate(stages, 1)}
            seconds["total"] = sum(seconds.values())
            rows += [record(item, case, stage, value, **more) for stage, value in seconds.items()]
    return rows


def rows_of_collections() -> list[dict[str, Any]]:
    rows = []
    for letters in (1000, 100_000):
        named = {"parameters": f"letters={letters}; words={letters // 100}", "queries": letters, "tier": "fast"}
        rows.append(record("transform", "some", "total", letters * 1e-7, **named))
        rows.append(record("files", "some", "process", 0.2 + letters * 1e-7, **named))
        rows.append(record("files", "some", "process", 9e7 + 8 * letters, **named, metric="memory", unit="bytes"))
    return rows


@pytest.fixture
def made_up(tmp_path: Path) -> Measurements:
    rows = [*rows_of_tables(), *rows_of_tables(0.1, tier="fast"), *rows_of_collections()]
    reference = [*rows_of_tables(0.01, device="gpu", gpus=1, machine="test-gpu")]
    return load(tmp_path, rows, reference, published=[PUBLISHED], papers=[PAPER]).of("ebwt")


def test_printed_seconds_stand_beside_ours(made_up: Measurements) -> None:
    table = ebwt.printed_values(made_up, "table_3")
    own = table[table["positions"] == 260].set_index(["source", "tier", "device", "stage"])["seconds"]
    assert own["published", "-", "gpu", "sort"] == 2.70 and own["published", "-", "cpu", "total"] == 64.46
    assert own["here", "paper", "cpu", "distance"] == pytest.approx(0.52)
    assert own["reference", "paper", "gpu", "total"] == pytest.approx(0.0078)
    assert sorted(set(table["positions"])) == list(range(50, 270, 10))
    # Every printed time of sorting, distance and all of it is there.
    assert (table["source"] == "published").sum() == 22 * 2 * 3


def test_every_figure_and_table_is_made_of_records(made_up: Measurements) -> None:
    for name, draw in ebwt.FIGURES.items():
        figure, values = draw(made_up)
        assert len(values) and set(values["system"]) == {"ebwt"}, name
        assert len(figure.axes) == {"table_3": 3, "collections": 3}.get(name, 1)
    collections = ebwt.collection_values(made_up)
    peaks = collections[collections["what"] == "peak"].set_index("letters")["value"]
    assert peaks.to_dict() == {1000: 90_008_000, 100_000: 90_800_000}
    memory = collections[collections["what"] == "memory"]
    assert memory["value"].tolist() == pytest.approx([100, 100])
    for name, make in ebwt.TABLES.items():
        assert set(make(made_up)["system"]) <= {"ebwt"}, name


def test_distances_by_two_gpus_stand_beside_those_of_one(tmp_path: Path) -> None:
    shared: dict[str, Any] = {"tier": "fast", "device": "gpu", "parameters": "letters=40; words=2", "threads": 16}
    rows = [record("pairs", "2 words of 20 letters", "total", 0.6 / gpus, gpus=gpus, **shared) for gpus in (1, 2)]
    published: dict[str, Any] = {"published": [PUBLISHED], "papers": [PAPER]}
    measured = load(tmp_path, [*rows_of_tables(), *rows], **published).of("ebwt")
    over = ebwt.speedups(measured)
    [twice] = over[over["comparison"] == "gpus"].to_dict("records")
    assert (twice["item"], twice["numerator_gpus"], twice["denominator_gpus"]) == ("pairs", 1, 2)
    assert twice["speedup"] == pytest.approx(2.0)
    write_page(tmp_path / "r.html", measured, {"cpu": "x"})
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for label, seconds in (("here: fast tier", "600 ms"), ("here: fast tier, 2 GPUs", "300 ms")):
        assert f"<tr><td>{label}</td><td>9</td><td>{seconds}</td></tr>" in page


def test_the_page_has_a_row_for_each_printed_length(made_up: Measurements, tmp_path: Path) -> None:
    write_page(tmp_path / "r.html", made_up, {"cpu": "x"})
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for title in ("Table 1: bitonic sort", "Table 2: the library", "Table 3: sort, distances"):
        assert title in page
    # 1,452.141 s are printed of the bitonic sort of 260 positions, ours took 0.26 s.
    assert "5,585" in page


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    nothing = load_measurements([], [], [PUBLISHED], [PAPER]).of("ebwt")
    for draw in ebwt.FIGURES.values():
        figure, values = draw(nothing)
        assert "Nothing was measured." in [
            text.get_text() for text in figure.texts + [t for a in figure.axes for t in a.texts]
        ]
        assert not len(values[values["source"] != "published"])


def rows_with_gpu() -> list[dict[str, Any]]:
    """Both devices of one machine, whose GPU is four times as fast."""
    return [*rows_of_tables(), *rows_of_tables(0.25, device="gpu", gpus=1)]


def measured(folder: Path, rows: list[dict[str, Any]]) -> Measurements:
    return load(folder, rows, None, published=[PUBLISHED], papers=[PAPER]).of("ebwt")


def test_statements_stand_beside_ours(made_up: Measurements, tmp_path: Path) -> None:
    table = ebwt_values.statements_table(measured(tmp_path, rows_with_gpu()))
    assert table["here"].tolist() == pytest.approx([4.0] * 4)
    # The text says 2 of Table 3, whose printed totals give less; bitonic sort is slower on the printed GPU.
    assert table["published"].tolist() == ["0.625", "374", "1.5", "2"]
    # A GPU of another machine is not divided by our CPU.
    assert list(ebwt_values.statements_table(made_up).columns) == ebwt_values.STATEMENT_COLUMNS


def test_unlike_results_make_no_statement(tmp_path: Path) -> None:
    rows = change(rows_with_gpu(), {"device": "gpu", "item": "table_2"}, digest="e" * 64)
    table = ebwt_values.statements_table(measured(tmp_path, rows)).set_index("printed")["here"]
    assert table["Table 1"] == pytest.approx(4) and table.isna().to_dict()["Table 2"]


def test_rows_beside_limits_say_which_step_and_which_floor(tmp_path: Path) -> None:
    shared = {"item": "limits", "tier": "fast", "device": "gpu", "gpus": 1, "queries": 100, "stage": "kernel"}
    rows = []
    for step, seconds in (("order", 0.5), ("order; moved=2100; read=3", 0.5), ("distances", 0.25)):
        named = {**shared, "parameters": f"letters=100; words=2; step={step}"}
        rows.append({**record("limits", "2 words of 50 letters", "kernel", seconds), **named})
    write_page(tmp_path / "r.html", measured(tmp_path, rows), {"cpu": "x"})
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for step in ("order<", "order, 21 bytes a letter", "distances"):
        assert f"2 words of 50 letters: {step}" in page
    assert "bytes that a radix sort must move" in page and "hits stay there" not in page


def test_a_curve_is_of_words_of_one_length(tmp_path: Path) -> None:
    longer = {"parameters": "letters=5000; words=1", "queries": 5000, "tier": "fast"}
    changed = {"parameters": "letters=900; words=9; differ=0.1", "queries": 900, "tier": "fast"}
    rows = [*rows_of_collections(), record("transform", "long", "total", 9.0, **longer)]
    rows.append(record("files", "changed", "process", 9e9, **changed, metric="memory", unit="bytes"))
    loaded = measured(tmp_path, rows)
    assert 900 not in set(ebwt.collection_values(loaded)["letters"])
    with drawing(ebwt.FIGURES) as draw:
        figure, _ = draw("collections", loaded)
        assert "words of 100 random letters" in words(figure)
        assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [2]


def test_texts_lie_in_their_figure_and_not_on_each_other(tmp_path: Path) -> None:
    fast = [row for rows in (rows_of_tables(0.1, tier="fast", threads=n) for n in (1, 16)) for row in rows]
    rows = [*rows_with_gpu(), *fast, *rows_of_tables(0.01, tier="fast", device="gpu", gpus=1), *rows_of_collections()]
    large = {"parameters": "letters=100000000; words=1000000", "queries": 10**8, "tier": "fast"}
    rows.append(record("transform", "large", "total", 9.0, **large))
    loaded = measured(tmp_path, rows)
    with drawing(ebwt.FIGURES) as draw:
        for name in ebwt.FIGURES:
            figure, _ = draw(name, loaded)
            assert not overlapping(figure), name
            width = figure.get_size_inches()[0] * figure.dpi
            assert [text for text, box in boxes(figure) if box.x0 < 0 or box.x1 > width] == [], name
        labels = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
        assert labels == ["1 k", "100 k", "100 M"]


def test_every_figure_has_a_caption() -> None:
    assert list(read_paper(PAPER).figures) == list(ebwt.FIGURES)
