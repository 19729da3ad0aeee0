"""Figures, from made-up records."""

import re
from dataclasses import replace

import pytest
from drawn_figures import boxes, drawing, overlapping
from made_up_records import change, load, local_rows, nothing, reference_rows
from warpseed.report import kmer_seeds, style
from warpseed.report.systems import draw_figures


def words(drawn):
    """Every text of a figure that shows."""
    return " | ".join(text.get_text() for text in drawn.findobj(match=lambda artist: hasattr(artist, "get_text")))


@pytest.fixture
def draw():
    opened = []

    def call(name, measurements):
        style.apply_style()
        drawn, values = kmer_seeds.FIGURES[name](measurements.of("kmer_seeds"))
        drawn.canvas.draw()
        opened.append(drawn)
        return drawn, values

    yield call
    for drawn in opened:
        style.pyplot().close(drawn)


@pytest.mark.parametrize("name", kmer_seeds.FIGURES)
def test_a_figure_without_measurements_says_so(name, draw):
    drawn, values = draw(name, nothing())
    assert re.search("[Nn]othing (was )?measured", words(drawn))
    if name == "figure_5":
        assert values["speedup"].tolist() == [11.0, 3.1]
        assert values["published"].all()
    elif name == "times":
        assert set(values["source"]) == {"published"}
    else:
        assert values.empty


def panels_of(drawn):
    """The titles of a figure's panels, each in one line."""
    return [axes.get_title("left").replace("\n", " ") for axes in drawn.axes]


def test_figure_5_takes_the_reference_machine_where_no_gpu_is_here(tmp_path, draw):
    drawn, values = draw("figure_5", load(tmp_path, local_rows(), reference_rows()))
    assert panels_of(drawn) == ["nvidia-test (reference machine): 1,000,000 k-mers on 2 Mbp"]
    assert set(values.loc[~values["published"].astype(bool), "machine"]) == {"nvidia-test"}


def test_figure_5_has_a_panel_for_each_machine_that_measured_it(tmp_path, draw):
    faster = change(reference_rows(), {"item": "locate_on_cpu"}, value=0.01)
    faster = change(faster, {"metric": "count"}, value=3.02e9)
    drawn, values = draw("figure_5", load(tmp_path, local_rows(gpu=True), faster))
    assert panels_of(drawn) == [
        "test-cpu (here): 20,000 k-mers on 2 Mbp",
        "nvidia-test (reference machine): 1,000,000 k-mers on 3.02 Gbp",
    ]
    own = values[~values["published"].astype(bool)]
    for axes, machine in zip(drawn.axes, ("test-cpu", "nvidia-test"), strict=True):
        speedups = own.loc[own["machine"] == machine, "speedup"]
        heights = sorted(bar.get_y() + bar.get_height() for bar in axes.patches)
        assert heights == pytest.approx(sorted(speedups)) and len(heights) == 10
    assert drawn.axes[0].get_ylim() == drawn.axes[1].get_ylim()
    assert words(drawn).count("published: 11.0") == 2


def test_long_titles_of_figure_5s_panels_lie_on_nothing(tmp_path):
    given = load(tmp_path, local_rows(gpu=True), reference_rows())
    given = replace(given, records=given.records.replace("test-cpu", "a-machine-whose-name-is" + 4 * "-longer"))
    with drawing(kmer_seeds.FIGURES) as draw:
        drawn, _ = draw("figure_5", given.of("kmer_seeds"))
        assert [axes.get_title("left").count("\n") for axes in drawn.axes] == [1, 0]
        assert overlapping(drawn) == []
        assert all(drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1 for _, box in boxes(drawn))


def test_rates_of_one_axis_are_written_alike(tmp_path, draw):
    """Of one method they lie close together, so that numbers between the powers of ten are labelled, too."""
    own = ("throughput", "paper", "cpu", 1)
    rows = [row for row in local_rows() if tuple(row.get(key) for key in ("item", "tier", "device", "threads")) == own]
    drawn, _ = draw("throughput", load(tmp_path, [row for row in rows if "mismatches=0" in row["parameters"]]))
    axis = drawn.axes[0].yaxis
    labels = [text.get_text() for text in (*axis.get_ticklabels(), *axis.get_ticklabels(minor=True))]
    shown = [label for label in labels if label]
    assert len(shown) >= 3 and all(re.fullmatch(r"[\d.]+ [kM]", label) for label in shown)


def test_figure_5_writes_that_results_differ(tmp_path, draw):
    rows = change(local_rows(gpu=True), {"item": "locate_on_cpu", "case": "S20"}, digest="e" * 64)
    drawn, _ = draw("figure_5", load(tmp_path, rows))
    assert words(drawn).count("results differ") == 2


def test_figure_5s_values_are_not_struck_by_the_line_at_1(tmp_path, draw):
    drawn, _ = draw("figure_5", load(tmp_path, local_rows(gpu=True)))
    axes = drawn.axes[0]
    line = axes.transData.transform((0, 1))[1]
    boxes = [text.get_window_extent(drawn.canvas.get_renderer()) for text in axes.texts]
    assert len(boxes) == 12
    assert not [box for box in boxes if box.y0 <= line <= box.y1]


def test_scaling_leaves_out_what_differs(tmp_path, draw):
    bad = {"item": "scaling", "case": "S30", "tier": "fast", "threads": 4}
    drawn, values = draw("scaling", load(tmp_path, change(local_rows(), bad, digest="e" * 64)))
    assert (values["status"] == "results differ").sum() == 1
    points = [len(line.get_xdata()) for line in drawn.axes[1].lines]
    assert sorted(points) == [2, 3, 4]  # the ideal line, the fast tier less one, the paper tier


def test_stages_of_any_name_are_drawn(tmp_path, draw):
    rows = [{**row, "stage": "descend"} if row["stage"] == "search" else row for row in local_rows(gpu=True)]
    drawn, values = draw("stages", load(tmp_path, rows))
    legend = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert legend[:3] == ["read", "pack", "descend"]
    assert set(values["stage"]) == {name.replace(" ", "_") for name in legend}


def test_more_data_sets_than_the_papers_stand_in_a_second_row_of_panels(tmp_path, draw):
    more = [{**row, "case": "mine", "parameters": "k=17; mismatches=0"} for row in local_rows() if row["case"] == "S11"]
    drawn, _ = draw("times", load(tmp_path, local_rows() + more))
    shown = [axes.get_title("left") for axes in drawn.axes if axes.axison]
    assert [title.split("\n")[0] for title in shown] == ["S11", "S15", "S20", "S24", "S30", "mine"]


def test_a_data_set_of_which_nothing_is_drawn_has_no_panel(tmp_path, draw):
    """Such as one that a reference machine measured on its CPU alone."""
    more = [
        {**row, "case": "theirs", "parameters": "k=17; mismatches=0"} for row in local_rows() if row["case"] == "S11"
    ]
    drawn, _ = draw("times", load(tmp_path, local_rows(), reference_rows() + more))
    shown = [axes.get_title("left").split("\n")[0] for axes in drawn.axes if axes.axison]
    assert shown == ["S11", "S15", "S20", "S24", "S30"]


@pytest.mark.parametrize("name", kmer_seeds.FIGURES)
def test_texts_stay_inside_the_figure_and_have_three_sizes(name, tmp_path, draw):
    drawn, _ = draw(name, load(tmp_path, local_rows(), reference_rows()))
    renderer = drawn.canvas.get_renderer()
    texts = list(drawn.texts) + [text for axes in drawn.axes for text in (*axes.texts, axes.yaxis.label)]
    shown = [text for text in texts if text.get_text().strip()]
    assert len(shown) > 2
    for text in shown:
        box = text.get_window_extent(renderer)
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text.get_text()
    everything = drawn.findobj(match=lambda artist: hasattr(artist, "get_fontsize") and artist.get_text().strip())
    assert {text.get_fontsize() for text in everything} <= {9, 10, 12.5}
    assert drawn.get_size_inches()[0] == style.WIDTH
    for axes in drawn.axes:
        labels = [label for label in axes.get_xticklabels() if label.get_text() and label.get_visible()]
        boxes = [label.get_window_extent(renderer) for label in labels if axes.axison]
        assert all(one.x1 < other.x0 for one, other in zip(boxes, boxes[1:], strict=False)), name


def test_figures_are_written_in_every_format_and_are_the_same_each_time(tmp_path):
    measurements = load(tmp_path, local_rows(), reference_rows())
    endings = ("svg", "pdf", "png", "tsv")
    folders = [tmp_path / run / "kmer_seeds" for run in "ab"]
    for folder in folders:
        draw_figures(measurements, [folder / f"figure_5.{ending}" for ending in endings])
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert first == second
    assert first["figure_5.png"].startswith(b"\x89PNG")
    assert first["figure_5.pdf"].startswith(b"%PDF")
    assert b"<svg" in first["figure_5.svg"]
    assert first["figure_5.tsv"].splitlines()[0].split(b"\t")[:2] == [b"system", b"source"]
    assert len(first) == len(endings)


def test_spread_keeps_labels_apart_in_order_and_inside():
    moved = style.spread([0.5, 0.51, 0.02, 0.52, 0.03], 0.1)
    order = sorted(range(5), key=[0.5, 0.51, 0.02, 0.52, 0.03].__getitem__)
    placed = [moved[i] for i in order]
    assert placed == sorted(placed)
    assert min(b - a for a, b in zip(placed, placed[1:], strict=False)) >= 0.1 - 1e-9
    assert placed[0] >= 0
    assert style.spread([0.2, 0.8], 0.1) == [0.2, 0.8]
