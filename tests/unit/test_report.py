"""Tables, figures and the page, from synthetic records."""

import base64
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from warpseed.errors import InputError
from warpseed.measure.records import index_rows, write_records
from warpseed.report import figures, page, tables
from warpseed.report.tables import DATA_SETS

PUBLISHED = Path(__file__).parents[2] / "resources" / "published" / "kmer_seeds.tsv"
KMERS = 20_000
# Seconds for the CPU on one thread, paper tier; the other methods are fractions of it.
ONE_CORE = {"S11": 0.13, "S15": 0.044, "S20": 0.42, "S24": 0.37, "S30": 2.9}
METHODS = {
    ("warpseed", "paper", "cpu", 1): 1.0,
    ("warpseed", "paper", "cpu", 2): 0.5,
    ("warpseed", "fast", "cpu", 1): 0.05,
    ("warpseed", "fast", "cpu", 2): 0.025,
    ("bowtie", "-", "cpu", 1): 0.4,
    ("bowtie", "-", "cpu", 2): 0.2,
}
GPU_METHODS = {("warpseed", "paper", "gpu", 1): 0.1, ("warpseed", "fast", "gpu", 1): 0.004}
SHARES = {"read": 0.1, "pack": 0.05, "search": 0.5, "locate": 0.25, "sort": 0.1, "write": 0.2}
GPU_SHARES = {
    "read": 0.3,
    "host_to_device": 0.1,
    "kernel": 0.25,
    "device_to_host": 0.2,
    "lookup": 0.15,
    "write": 0.4,
}


def fields(item, case, method, **more):
    tool, tier, device, threads = method
    return {
        "system": "kmer_seeds",
        "item": item,
        "tool": tool,
        "tier": tier,
        "device": device,
        "threads": threads,
        "case": case,
        "queries": KMERS,
        "results": 31_000,
        "digest": "d" * 64,
        "machine": "test-cpu",
        **more,
    }


def table_rows(item, methods, repeats=3, **more):
    rows = []
    for data_set in DATA_SETS:
        for method, factor in methods.items():
            common = fields(item, data_set.case, method, **more)
            total = ONE_CORE[data_set.name] * factor
            shares = {} if method[0] == "bowtie" else GPU_SHARES if method[2] == "gpu" else SHARES
            for repeat in range(repeats):
                seconds = total * (1 + 0.05 * (repeat - 1))
                rows.append({**common, "stage": "total", "repeat": repeat, "value": seconds})
                rows += [
                    {**common, "stage": stage, "repeat": repeat, "value": seconds * share}
                    for stage, share in shares.items()
                ]
                rows.append({**common, "stage": "process", "repeat": repeat, "value": seconds + 0.02})
    return rows


def other_rows(methods, **more):
    rows = []
    for mismatches in (0, 1, 2):
        for k in (12, 16, 20, 24, 30):
            for method, factor in methods.items():
                seconds = factor * 0.002 * (1 + abs(k - 18)) * 9**mismatches
                case = f"k={k}; mismatches={mismatches}"
                rows.append({**fields("Throughput", case, method, **more), "stage": "total", "value": seconds})
    for threads in (1, 2, 4, 8):
        for tier, part in (("paper", 0.02), ("fast", 0.12)):
            seconds = part + (1 - part) / threads
            for case in ("S20; mismatches=1", "S30; mismatches=2"):
                scaled = fields("Scaling", case, ("warpseed", tier, "cpu", threads), **more)
                rows.append({**scaled, "stage": "total", "value": seconds})
    report = [
        {"part": "bwt", "bytes": 1_250_000, "formula_bytes": 1_300_000},
        {"part": "rbwt", "bytes": 1_250_000, "formula_bytes": 1_300_000},
        {"part": "suffix_array", "bytes": 8_000_000, "formula_bytes": None},
        {"part": "sampled_suffix_array", "bytes": 250_000, "formula_bytes": 250_000},
        {"part": "bucket_table", "bytes": 4_194_308, "formula_bytes": None},
        {"part": "text", "bytes": 500_000},
    ]
    return rows + index_rows(report, bases=2_000_000, system="kmer_seeds", tool="warpseed", machine="test-cpu")


def local_rows(gpu=False, peers=True):
    methods = {m: f for m, f in METHODS.items() if peers or m[0] == "warpseed"}
    methods |= GPU_METHODS if gpu else {}
    rows = table_rows("Table I", methods) + other_rows(methods)
    rows += table_rows("Table II", {m: f * 0.6 for m, f in methods.items() if m[0] == "warpseed"})
    if gpu:
        rows += table_rows("Figure 5", {("warpseed", "paper", "gpu", 1): 0.2})
    return rows


@pytest.fixture
def measure(tmp_path):
    def build(local, reference=None):
        write_records(tmp_path / "here.tsv", local)
        references = []
        if reference is not None:
            references = [tmp_path / "measurements" / "nvidia-test" / "kmer_seeds.tsv"]
            write_records(references[0], reference)
        return tables.load_measurements([tmp_path / "here.tsv"], references, PUBLISHED)

    return build


def reference_rows():
    return [{**row, "queries": 1_000_000} for row in local_rows(gpu=True)]


def change(rows, where, **new):
    """The rows, with new values in those that have all of `where`."""
    return [{**row, **new} if all(row.get(k) == v for k, v in where.items()) else row for row in rows]


def speedup(measurements, **where):
    table = tables.speedup_table(measurements)
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1, table
    return table.iloc[0]


PAPER_OVER = {"item": "Table I", "case": "S30; mismatches=2", "kind": "fast over paper", "numerator_threads": 1}


# Tables


def test_published_values_are_the_papers():
    published = tables.load_measurements([], [], PUBLISHED)
    assert tables.published_value(published, "Table I", "S30; mismatches=2", "1 CPU core") == 1094.0
    assert tables.published_value(published, "Table II", "S11; mismatches=0", "GPU vs 4 cores") == 0.5
    assert tables.published_value(published, "Figure 5", "S11; locating on the CPU", "GPU vs 1 core") is None
    wide = tables.wide_table(published, "Table I")
    assert wide["dataset"].tolist() == ["S11", "S15", "S20", "S24", "S30"]
    assert wide["mismatches"].tolist() == [0, 0, 1, 1, 2]
    assert wide["published_gpu_s"].tolist() == [10.6, 12.4, 17.6, 15.8, 80.9]
    assert wide["published_gpu_vs_1_core"].tolist() == [5.7, 9.9, 10.2, 8.2, 13.5]
    assert not any(column.startswith("here") for column in wide)


def test_median_and_spread_over_repeats(measure):
    rows = change(local_rows(), {"repeat": 2}, value=100.0)
    table = tables.headline(tables.times(measure(rows), ["Table I"]))
    row = table[(table["case"] == "S30; mismatches=2") & (table["tier"] == "paper") & (table["threads"] == 1)]
    assert len(row) == 1
    assert row["median_s"].item() == pytest.approx(2.9)
    assert (row["min_s"].item(), row["max_s"].item()) == (pytest.approx(2.9 * 0.95), 100.0)
    assert row["repeats"].item() == 3


def test_a_speedup_names_its_sides(measure):
    row = speedup(measure(local_rows()), **PAPER_OVER)
    assert row["speedup"] == pytest.approx(20.0)
    assert (row["numerator"], row["denominator"]) == ("paper tier, CPU, 1 thread", "fast tier, CPU, 1 thread")
    assert (row["numerator_threads"], row["denominator_threads"]) == (1, 1)
    assert (row["stage"], row["status"], row["queries"]) == ("total", "ok", KMERS)


@pytest.mark.parametrize("new", [{"digest": "e" * 64}, {"results": 30_999}])
def test_no_speedup_where_results_differ(measure, new):
    fast = {"item": "Table I", "case": "S30; mismatches=2", "tier": "fast", "threads": 1}
    measurements = measure(change(local_rows(), fast, **new))
    row = speedup(measurements, **PAPER_OVER)
    assert row["status"] == "results differ"
    assert math.isnan(row["speedup"])
    wide = tables.wide_table(measurements, "Table I").set_index("dataset")
    cells = wide["here_paper_tier_CPU_1_thread_over_fast_tier_CPU_1_thread"]
    assert cells["S30"] == "results differ"
    assert cells["S24"] == "20.0"
    summary = tables.summary_table(measurements)
    chosen = summary[(summary["kind"] == "fast over paper") & summary["numerator"].str.contains("1 thread")]
    chosen = chosen[chosen["item"] == "Table I"]
    assert (chosen["data_sets"].item(), chosen["differ"].item()) == (4, 1)


def test_no_speedup_where_repeats_disagree(measure):
    fast = {"item": "Table I", "case": "S30; mismatches=2", "tier": "fast", "threads": 1, "repeat": 1}
    row = speedup(measure(change(local_rows(), fast, digest="e" * 64)), **PAPER_OVER)
    assert row["status"] == "results differ"


def test_no_speedup_where_nothing_was_checked(measure):
    row = speedup(measure(change(local_rows(), {"item": "Table I", "tier": "fast"}, digest="")), **PAPER_OVER)
    assert row["status"] == "results not checked"


def test_no_speedup_between_unlike_numbers_of_kmers(measure):
    row = speedup(measure(change(local_rows(), {"item": "Table I", "tier": "fast"}, queries=7)), **PAPER_OVER)
    assert row["status"] == "results differ"


def test_no_speedup_across_machines(measure):
    table = tables.speedup_table(measure(local_rows(), reference_rows()))
    here = table[table["source"] == "here"]
    assert not here["denominator"].str.contains("GPU").any()
    assert set(here["machine"]) == {"test-cpu"}
    assert set(table.loc[table["source"] == "reference", "machine"]) == {"nvidia-test"}


def test_ratio_to_four_cores_only_with_four_cores(measure):
    def ratios(measurements):
        table = tables.long_table(measurements, "Table I")
        table = table[(table["dataset"] == "S30") & (table["source"] == "here")]
        return {
            (row["tool"], row["tier"], row["threads"]): row["published_over_measured"]
            for row in table.to_dict("records")
        }

    two = ratios(measure(local_rows()))
    assert two[("warpseed", "paper", 1)] == pytest.approx(1094.0 / 1e6 / (2.9 / KMERS))
    assert math.isnan(two[("warpseed", "paper", 2)])
    assert math.isnan(two[("warpseed", "fast", 1)])
    assert math.isnan(two[("bowtie", "-", 1)])
    four = ratios(measure([{**row, "threads": 4} if row.get("threads") == 2 else row for row in local_rows()]))
    assert four[("warpseed", "paper", 4)] == pytest.approx(311.2 / 1e6 / (1.45 / KMERS))


def test_figure_5_divides_table_1_by_the_gpu_that_locates_on_the_cpu(measure):
    measurements = measure(local_rows(gpu=True))
    table = tables.speedup_table(measurements)
    table = table[table["item"] == "Figure 5"]
    assert len(table) == 2 * len(DATA_SETS)
    assert table.groupby("numerator_threads")["speedup"].median().to_dict() == pytest.approx({1: 5.0, 2: 2.5})
    changed = change(local_rows(gpu=True), {"item": "Figure 5", "case": "S30; mismatches=2"}, digest="e" * 64)
    table = tables.speedup_table(measure(changed))
    table = table[table["item"] == "Figure 5"]
    assert set(table.loc[table["case"] == "S30; mismatches=2", "status"]) == {"results differ"}
    assert (table["status"] == "ok").sum() == 8


def test_peers_by_stage_and_by_process(measure):
    table = tables.peer_table(measure(local_rows()))
    s30 = table[(table["case"] == "S30; mismatches=2") & (table["numerator_threads"] == 1)].set_index("kind")
    assert s30.loc["fast over bowtie", "speedup"] == pytest.approx(8.0)
    whole = s30.loc["fast over bowtie, whole process", "speedup"]
    assert whole == pytest.approx((2.9 * 0.4 + 0.02) / (2.9 * 0.05 + 0.02))
    assert tables.peer_table(measure(local_rows(peers=False))).empty


def test_stage_shares_add_up_and_name_the_rest(measure):
    table = tables.stage_table(measure(local_rows()))
    own = table[(table["case"] == "S30; mismatches=2") & (table["tier"] == "paper") & (table["threads"] == 1)]
    assert own["share"].sum() == pytest.approx(1.0)
    assert "other" not in set(own["stage"])
    less = [row for row in local_rows() if row["stage"] != "sort"]
    table = tables.stage_table(measure(less))
    own = table[(table["case"] == "S30; mismatches=2") & (table["tier"] == "paper") & (table["threads"] == 1)]
    assert own.set_index("stage")["median_s"]["other"] == pytest.approx(0.29)


def test_index_table(measure):
    table = tables.index_table(measure(local_rows())).set_index("part")
    assert table["bytes_per_base"]["bwt"] == pytest.approx(0.625)
    assert table["formula_bytes_per_base"]["bwt"] == pytest.approx(0.65)
    assert math.isnan(table["formula_bytes_per_base"]["text"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (math.nan, ""), (0, "0.00"), (1094.4, "1,094"), (999.7, "1,000"), (9.9999, "10.0")]
    + [(311.2, "311"), (12.34, "12.3"), (0.01234, "0.0123"), (0.99999, "1.00"), (0.00001234, "1.23e-05")],
)
def test_format_number(value, text):
    assert tables.format_number(value) == text


def test_wrong_inputs_are_named(tmp_path):
    wrong = tmp_path / "published.tsv"
    wrong.write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match="published.tsv has the columns a, b"):
        tables.load_measurements([], [], wrong)
    with pytest.raises(ValueError, match="no table is called 'tabel'"):
        tables.write_tables(tables.load_measurements([], [], PUBLISHED), [tmp_path / "tabel.tsv"])
    with pytest.raises(ValueError, match="no figure is called 'figure_6'"):
        figures.draw_figures(tables.load_measurements([], [], PUBLISHED), [tmp_path / "figure_6.svg"])
    (tmp_path / "p.json").write_text("[]")
    with pytest.raises(InputError, match="p.json holds no JSON object"):
        page.write_page(tmp_path / "r.html", tables.load_measurements([], [], PUBLISHED), tmp_path / "p.json")


# Figures


def words(drawn):
    """Every text of a figure that shows."""
    return " | ".join(text.get_text() for text in drawn.findobj(match=lambda artist: hasattr(artist, "get_text")))


@pytest.fixture
def draw():
    opened = []

    def call(function, measurements):
        figures.style.apply_style()
        drawn, values = function(measurements)
        drawn.canvas.draw()
        opened.append(drawn)
        return drawn, values

    yield call
    for drawn in opened:
        figures.plt.close(drawn)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_without_measurements_says_so(name, draw):
    drawn, values = draw(figures.FIGURES[name], tables.load_measurements([], [], PUBLISHED))
    assert re.search("[Nn]othing (was )?measured", words(drawn))
    if name == "figure_5":
        assert values["speedup"].tolist() == [11.0, 3.1]
        assert values["published"].all()
    elif name == "times":
        assert set(values["source"]) == {"published"}
    else:
        assert values.empty


def test_figure_5_takes_the_reference_machine_where_no_gpu_is_here(measure, draw):
    drawn, values = draw(figures.figure_5, measure(local_rows(), reference_rows()))
    assert "nvidia-test (reference machine): 1,000,000 k-mers" in words(drawn)
    assert set(values.loc[~values["published"].astype(bool), "machine"]) == {"nvidia-test"}
    drawn, values = draw(figures.figure_5, measure(local_rows(gpu=True), reference_rows()))
    assert "test-cpu (here): 20,000 k-mers on 2 Mbp" in words(drawn)
    assert "nvidia-test" not in words(drawn)


def test_figure_5_writes_that_results_differ(measure, draw):
    rows = change(local_rows(gpu=True), {"item": "Figure 5", "case": "S20; mismatches=1"}, digest="e" * 64)
    drawn, _ = draw(figures.figure_5, measure(rows))
    assert words(drawn).count("results differ") == 2


def test_scaling_leaves_out_what_differs(measure, draw):
    bad = {"item": "Scaling", "case": "S30; mismatches=2", "tier": "fast", "threads": 4}
    drawn, values = draw(figures.scaling, measure(change(local_rows(), bad, digest="e" * 64)))
    assert (values["status"] == "results differ").sum() == 1
    points = [len(line.get_xdata()) for line in drawn.axes[1].lines]
    assert sorted(points) == [2, 3, 4]  # the ideal line, the fast tier less one, the paper tier


@pytest.mark.parametrize("name", figures.FIGURES)
def test_texts_stay_inside_the_figure(name, measure, draw):
    drawn, _ = draw(figures.FIGURES[name], measure(local_rows(), reference_rows()))
    renderer = drawn.canvas.get_renderer()
    texts = list(drawn.texts) + [text for axes in drawn.axes for text in (*axes.texts, axes.yaxis.label)]
    shown = [text for text in texts if text.get_text().strip()]
    assert len(shown) > 2
    for text in shown:
        box = text.get_window_extent(renderer)
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text.get_text()


def test_figures_are_written_in_every_format_and_are_the_same_each_time(measure, tmp_path):
    measurements = measure(local_rows(), reference_rows())
    endings = ("svg", "pdf", "png", "tsv")
    for folder in ("a", "b"):
        figures.draw_figures(measurements, [tmp_path / folder / f"figure_5.{ending}" for ending in endings])
    first = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    assert first["figure_5.png"].startswith(b"\x89PNG")
    assert first["figure_5.pdf"].startswith(b"%PDF")
    assert b"<svg" in first["figure_5.svg"]
    assert first["figure_5.tsv"].splitlines()[0].split(b"\t")[:2] == [b"source", b"machine"]
    assert len(first) == len(endings)


def test_spread_keeps_labels_apart_in_order_and_inside():
    moved = figures.style.spread([0.5, 0.51, 0.02, 0.52, 0.03], 0.1)
    order = sorted(range(5), key=[0.5, 0.51, 0.02, 0.52, 0.03].__getitem__)
    placed = [moved[i] for i in order]
    assert placed == sorted(placed)
    assert min(b - a for a, b in zip(placed, placed[1:], strict=False)) >= 0.1 - 1e-9
    assert placed[0] >= 0
    assert figures.style.spread([0.2, 0.8], 0.1) == [0.2, 0.8]


# The page


class Reader(HTMLParser):
    """Tags that were opened and not closed, addresses, and the text."""

    VOID = ("meta", "img", "br")

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text, self.tags = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read_page(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader, " ".join(" ".join(reader.text).split())


@pytest.fixture
def write(tmp_path):
    def build(measurements, machine=None, with_files=True):
        drawn = [tmp_path / "figures" / f"figure_5.{ending}" for ending in ("svg", "tsv")] if with_files else []
        written = [tmp_path / "tables" / "table_1.tsv"] if with_files else []
        figures.draw_figures(measurements, drawn)
        tables.write_tables(measurements, written)
        page.write_page(
            tmp_path / "report.html",
            measurements,
            machine or {"cpu": "Test CPU", "cores": 2},
            table_paths=written,
            figure_paths=drawn,
        )
        return read_page(tmp_path / "report.html")

    return build


def test_page_is_self_contained_and_its_links_work(measure, write, tmp_path):
    reader, _ = write(measure(local_rows(), reference_rows()))
    assert {tag for tag in reader.tags if tag in ("script", "link", "iframe")} == set()
    pictures = [address for address in reader.addresses if address.startswith("data:")]
    assert len(pictures) == 1
    assert b"<svg" in base64.b64decode(pictures[0].partition("base64,")[2])
    files = {a for a in reader.addresses if not a.startswith(("data:", "#"))}
    assert files == {"figures/figure_5.svg", "figures/figure_5.tsv", "tables/table_1.tsv"}
    assert all((tmp_path / name).is_file() for name in files)
    anchors = {address[1:] for address in reader.addresses if address.startswith("#")}
    assert anchors <= set(re.findall(r' id="([^"]+)"', (tmp_path / "report.html").read_text()))


def test_page_says_what_was_measured_where(measure, write):
    _, text = write(measure(local_rows(), reference_rows()))
    assert "test-cpu (here): 20,000 k-mers on 2 Mbp" in text
    assert "nvidia-test (reference machine)" in text
    assert "1094.0" in text
    assert "here: paper tier, n = 2" in text
    assert "Reference machine: nvidia-test" in text
    assert all(what in text for what, _ in page.DIFFERENCES)


def test_page_without_peers_and_without_a_gpu(measure, write):
    _, text = write(measure(local_rows(peers=False)))
    assert "bowtie was not measured" in text
    assert "paper tier, GPU" not in text


def test_page_without_measurements(write):
    _, text = write(tables.load_measurements([], [], PUBLISHED))
    assert "No speedup could be computed" in text
    assert "Nothing was measured" in text
    assert "311.2" in text


def test_page_says_that_results_differ(measure, write):
    rows = change(local_rows(gpu=True), {"item": "Table I", "device": "gpu", "tier": "paper"}, digest="e" * 64)
    _, text = write(measure(rows), with_files=False)
    assert "results differ" in text


def test_page_prints_the_ratio_to_four_cores_only_with_four(measure, write):
    rows = [{**row, "threads": 4} if row.get("threads") == 2 else row for row in local_rows(gpu=True)]
    _, four = write(measure(rows), with_files=False)
    _, two = write(measure(local_rows(gpu=True)), with_files=False)
    # 311.2 s a million k-mers over 1.45 s for 20,000.
    assert f" {tables.format_number(311.2 / 1e6 / (1.45 / KMERS))} " in four
    assert f" {tables.format_number(311.2 / 1e6 / (1.45 / KMERS))} " not in two


def test_names_are_escaped(measure, write):
    evil = '<script>alert("x")</script>'
    rows = [{**row, "machine": evil} for row in local_rows()]
    reader, text = write(measure(rows), {"cpu": evil, "config": {evil: evil}, "versions": {evil: evil}})
    assert "script" not in reader.tags
    assert evil in text
