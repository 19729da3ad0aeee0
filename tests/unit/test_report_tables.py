"""Medians, speedups and tables, from made-up records."""

import math
import subprocess
import sys

import pytest
from made_up_records import (
    KMERS,
    PAPER,
    PUBLISHED,
    ROOT,
    change,
    limit_rows,
    load,
    local_rows,
    nothing,
    reference_rows,
)
from warpseed.errors import InputError
from warpseed.report import kmer_seeds, tables
from warpseed.report.measurements import headline, load_measurements, published_of, times
from warpseed.report.papers import read_paper
from warpseed.report.systems import draw_figures, write_tables
from warpseed.report.words import format_bytes, format_number, format_range, format_scaled, format_seconds, side_of

FAST_OVER_PAPER = {"item": "whole", "case": "S30", "comparison": "fast_over_paper", "numerator_threads": 1}
FAST_OVER_PAPER |= {"scope": "index_open"}


@pytest.fixture
def measure(tmp_path):
    def build(local, reference=None):
        return load(tmp_path, local, reference).of("kmer_seeds")

    return build


def only(table, **where):
    """The one row of a table that has all of `where`."""
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1, table
    return table.iloc[0]


def test_published_values_are_the_papers():
    published = nothing().of("kmer_seeds")

    def value(item, case, parameters, method):
        table = published_of(published, item, case, parameters)
        return table.loc[table["method"] == method, "value"].tolist()

    assert value("whole", "S30", "k=30; mismatches=2", "1 CPU core") == [1094.0]
    assert value("search", "S11", "k=11; mismatches=0", "GPU vs 4 cores") == [0.5]
    assert value("locate_on_cpu", "S30", "k=30; mismatches=2", "GPU vs 1 core") == [11.0]
    assert value("locate_on_cpu", "S11", "k=11; mismatches=0", "GPU vs 1 core") == []
    wide = kmer_seeds.TABLES["table_1"](published)
    assert wide["case"].tolist() == ["S11", "S15", "S20", "S24", "S30"]
    assert wide["published_1_GPU_s"].tolist() == [10.6, 12.4, 17.6, 15.8, 80.9]
    assert wide["published_GPU_vs_1_core"].tolist() == [5.7, 9.9, 10.2, 8.2, 13.5]
    assert not any(column.startswith("here") for column in wide)


def test_the_papers_file_knows_every_published_value():
    """Every item, case and method of the published values has its entry, or is shown as it is printed in the text."""
    paper = read_paper(PAPER)
    published = nothing().published
    assert set(published["printed"]) - {facts["printed"] for facts in paper.items.values()} == {"text"}
    assert set(published["method"]) == set(paper.methods)
    assert set(published.loc[published["printed"] != "text", "case"]) == set(paper.cases)
    for line in PUBLISHED.read_text().splitlines()[1:]:
        _, _, case, *_ = line.split("\t")
        name, _, stated = case.partition("; ")
        assert "=" not in stated or stated in paper.case_parameters(name)
    assert list(paper.figures) == list(kmer_seeds.FIGURES)


def test_median_and_spread_over_repeats(measure):
    rows = change(local_rows(), {"repeat": 2}, value=100.0)
    row = only(headline(times(measure(rows), ["whole"])), case="S30", tier="paper", threads=1)
    assert row["median_s"] == pytest.approx(2.9)
    assert (row["min_s"], row["max_s"], row["repeats"]) == (pytest.approx(2.9 * 0.95), 100.0, 3)


def test_a_measurement_without_total_shows_its_first_stage(measure):
    rows = [row for row in local_rows() if row["stage"] not in ("total", "search")]
    table = headline(times(measure(rows), ["whole"]))
    assert only(table, case="S30", tier="paper", threads=1)["stage"] == "read"


def test_a_speedup_names_its_sides(measure):
    row = only(kmer_seeds.speedups(measure(local_rows())), **FAST_OVER_PAPER)
    assert row["speedup"] == pytest.approx(20.0)
    assert side_of(row, "numerator") == "paper tier, CPU, 1 thread"
    assert side_of(row, "denominator") == "fast tier, CPU, 1 thread"
    assert (row["numerator_stage"], row["status"], row["queries"]) == ("total", "ok", KMERS)


@pytest.mark.parametrize("new", [{"digest": "e" * 64}, {"results": 30_999}])
def test_no_speedup_where_results_differ(measure, new):
    fast = {"item": "whole", "case": "S30", "tier": "fast", "threads": 1}
    measurements = measure(change(local_rows(), fast, **new))
    row = only(kmer_seeds.speedups(measurements), **FAST_OVER_PAPER)
    assert row["status"] == "results differ"
    assert math.isnan(row["speedup"])
    cells = kmer_seeds.TABLES["table_1"](measurements).set_index("case")
    cells = cells["here_paper_tier_CPU_1_thread_over_fast_tier_CPU_1_thread"]
    assert (cells["S30"], cells["S24"]) == ("results differ", "20.0")
    summary = only(
        kmer_seeds.TABLES["summary"](measurements),
        item="whole",
        comparison="fast_over_paper",
        scope="index_open",
        numerator_threads=1,
    )
    assert (summary["cases"], summary["differ"]) == (4, 1)


@pytest.mark.parametrize(
    ("where", "new", "status"),
    [
        ({"case": "S30", "threads": 1, "repeat": 1}, {"digest": "e" * 64}, "results differ"),
        ({}, {"queries": 7}, "results differ"),
        ({}, {"digest": ""}, "results not checked"),
    ],
)
def test_no_speedup_of_unlike_runs(measure, where, new, status):
    rows = change(local_rows(), {"item": "whole", "tier": "fast", **where}, **new)
    assert only(kmer_seeds.speedups(measure(rows)), **FAST_OVER_PAPER)["status"] == status


def test_no_speedup_across_machines(measure):
    table = kmer_seeds.speedups(measure(local_rows(), reference_rows()))
    here = table[table["source"] == "here"]
    assert set(here["denominator_device"]) == {"cpu"}
    assert set(here["machine"]) == {"test-cpu"}
    assert set(table.loc[table["source"] == "reference", "machine"]) == {"nvidia-test"}


def test_runs_on_several_gpus_are_runs_of_their_own(measure):
    rows = local_rows(gpu=True)
    rows += [{**row, "gpus": 2, "value": row["value"] / 2} for row in rows if row.get("device") == "gpu"]
    table = kmer_seeds.speedups(measure(rows))
    fast = {"item": "whole", "case": "S30", "scope": "index_open", "denominator_tier": "fast", "numerator_threads": 1}
    over = table[table["comparison"] == "gpu_over_cpu"]
    assert only(over, denominator_gpus=1, **fast)["speedup"] == pytest.approx(12.5)
    assert only(over, denominator_gpus=2, **fast)["speedup"] == pytest.approx(25.0)
    twice = only(table, comparison="gpus", item="whole", case="S30", denominator_tier="fast")
    assert twice["speedup"] == pytest.approx(2.0)
    assert side_of(twice, "denominator") == "fast tier, 2 GPUs"


def test_ratio_to_four_cores_only_with_four_cores(measure):
    def ratios(measurements):
        table = tables.long_table(measurements, "whole")
        table = table[(table["case"] == "S30") & (table["source"] == "here")]
        return {(r["tool"], r["tier"], r["threads"]): r["published_over_measured"] for r in table.to_dict("records")}

    two = ratios(measure(local_rows()))
    assert two[("warpseed", "paper", 1)] == pytest.approx(1094.0 / 1e6 / (2.9 / KMERS))
    assert math.isnan(two[("warpseed", "paper", 2)])
    assert math.isnan(two[("warpseed", "fast", 1)])
    assert math.isnan(two[("bowtie", "-", 1)])
    four = ratios(measure([{**row, "threads": 4} if row.get("threads") == 2 else row for row in local_rows()]))
    assert four[("warpseed", "paper", 4)] == pytest.approx(311.2 / 1e6 / (1.45 / KMERS))


def test_a_data_set_of_any_name_is_shown_and_k_is_what_was_measured(measure):
    """A name of the user's follows the paper's; S20 with another k than the paper's is compared with no print."""
    rows = change(local_rows(), {"case": "S24"}, case="mine", parameters="k=17; mismatches=3")
    rows = change(rows, {"case": "S20"}, parameters="k=25; mismatches=1")
    measurements = measure(rows)
    wide = kmer_seeds.TABLES["table_1"](measurements)
    shown = list(zip(wide["case"], wide["parameters"], strict=True))
    assert shown[-1] == ("mine", "k=17; mismatches=3")
    assert ("S20", "k=25; mismatches=1") in shown and ("S20", "k=20; mismatches=1") in shown
    ours = wide[wide["parameters"] == "k=25; mismatches=1"].iloc[0]
    assert math.isnan(ours["published_1_GPU_s"])
    assert ours["here_paper_1_core_s"] == pytest.approx(0.42)
    long = tables.long_table(measurements, "whole")
    compared = long[long["published_over_measured"].notna()]
    assert set(compared["case"]) == {"S11", "S15", "S30"}
    assert {"mine", "S20"} <= set(long.loc[long["source"] == "here", "case"])


def test_figure_5_divides_table_1_by_the_gpu_that_locates_on_the_cpu(measure):
    table = kmer_seeds.speedups(measure(local_rows(gpu=True)))
    table = table[table["item"] == "locate_on_cpu"]
    assert len(table) == 10
    assert set(table["numerator_item"]) == {"whole"}
    assert table.groupby("numerator_threads")["speedup"].median().to_dict() == pytest.approx({1: 5.0, 2: 2.5})
    changed = change(local_rows(gpu=True), {"item": "locate_on_cpu", "case": "S30"}, digest="e" * 64)
    table = kmer_seeds.speedups(measure(changed))
    table = table[table["item"] == "locate_on_cpu"]
    assert set(table.loc[table["case"] == "S30", "status"]) == {"results differ"}
    assert (table["status"] == "ok").sum() == 8


def test_peers_by_stage_and_by_process(measure):
    table = kmer_seeds.TABLES["peers"](measure(local_rows()))
    s30 = table[(table["case"] == "S30") & (table["numerator_threads"] == 1)].set_index("scope")
    assert s30.loc["index_open", "speedup"] == pytest.approx(8.0)
    assert s30.loc["process", "speedup"] == pytest.approx((2.9 * 0.4 + 0.02) / (2.9 * 0.05 + 0.02))
    assert kmer_seeds.TABLES["peers"](measure(local_rows(peers=False))).empty


def test_stage_shares_add_up_and_name_the_rest(measure):
    table = tables.stage_table(measure(local_rows()), "whole")
    own = table[(table["case"] == "S30") & (table["tier"] == "paper") & (table["threads"] == 1)]
    assert own["share"].sum() == pytest.approx(1.0)
    assert "other" not in set(own["stage"])
    less = [row for row in local_rows() if row["stage"] != "sort"]
    table = tables.stage_table(measure(less), "whole")
    own = table[(table["case"] == "S30") & (table["tier"] == "paper") & (table["threads"] == 1)]
    assert own.set_index("stage")["median_s"]["other"] == pytest.approx(0.29)


def test_index_table(measure):
    table = tables.index_table(measure(local_rows())).set_index("part")
    assert table["bytes_per_base"]["bwt"] == pytest.approx(0.625)
    assert table["formula_bytes_per_base"]["bwt"] == pytest.approx(0.65)
    assert math.isnan(table["formula_bytes_per_base"]["text"])


def test_limits_have_one_row_a_case_with_the_tiers_side_by_side(measure):
    measurements = measure(limit_rows())
    table = tables.limits_table(measurements).set_index("case")
    assert list(table.index) == ["k=20, D=0", "k=30, D=0"]
    first, second = table.loc["k=20, D=0"], table.loc["k=30, D=0"]
    assert (first["paper_time_s"], first["fast_time_s"]) == (0.25, pytest.approx(0.00482))
    assert (first["fast_floor_s"], first["fast_share"], first["queries"]) == (0.00241, 0.5, 1_000_000)
    assert first["paper_throughput_per_s"] == pytest.approx(4e6)
    assert math.isnan(first["paper_floor_s"]) and math.isnan(second["paper_time_s"])
    rate = only(tables.rates_table(measurements), array="table")
    assert (rate["bytes"], rate["per_s"]) == (17179869188, 38.1e9)


def test_a_floor_above_the_time_is_none(measure):
    rows = [row | ({"value": 1.5} if row.get("metric") == "share" else {}) for row in limit_rows()]
    assert any(row["value"] == 1.5 for row in rows)
    table = tables.limits_table(measure(rows))
    assert table[["fast_floor_s", "fast_share"]].isna().all(axis=None) and table["fast_time_s"].notna().all()


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (math.nan, ""), (0, "0.00"), (1094.4, "1,094"), (999.7, "1,000"), (9.9999, "10.0")]
    + [(311.2, "311"), (12.34, "12.3"), (0.01234, "0.0123"), (0.99999, "1.00"), (0.00001234, "1.23e-05")],
)
def test_format_number(value, text):
    assert format_number(value) == text


def test_large_numbers_and_bytes_have_a_fitting_unit():
    assert [format_scaled(v) for v in (685_123, 204e6, 6.337e9, 999_960, 12, math.nan)] == [
        "685 k", "204 M", "6.34 G", "1 M", "12", "",
    ]  # fmt: skip
    assert [format_bytes(size) for size in (17_179_869_188, 51e6, 700)] == ["17.2 GB", "51 MB", "700 bytes"]


def test_times_have_a_fitting_unit():
    assert [format_seconds(s) for s in (12.34, 0.00461, 4.4e-7, None)] == ["12.3 s", "4.61 ms", "0.440 µs", ""]
    assert format_range(0.00453, 0.00479) == "4.53 to 4.79 ms"


def test_wrong_inputs_are_named(tmp_path):
    wrong = tmp_path / "published.tsv"
    wrong.write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match="published.tsv has the columns a, b"):
        load_measurements([], [], [wrong], [PAPER])
    paper = tmp_path / "paper.yaml"
    paper.write_text(PAPER.read_text().replace("about:", "abuot:"))
    with pytest.raises(InputError, match="paper.yaml lacks keys of a paper, or has others .about, abuot"):
        load_measurements([], [], [PUBLISHED], [paper])
    with pytest.raises(ValueError, match="no table is called 'tabel'"):
        write_tables(nothing(), [tmp_path / "kmer_seeds" / "tabel.tsv"])
    with pytest.raises(ValueError, match="no figure is called 'figure_6'"):
        draw_figures(nothing(), [tmp_path / "kmer_seeds" / "figure_6.svg"])
    with pytest.raises(ValueError, match="'tables', the folder, is no system"):
        write_tables(nothing(), [tmp_path / "tables" / "table_1.tsv"])


def test_records_of_a_system_without_a_paper_are_refused(tmp_path):
    rows = [{**row, "system": "other"} for row in local_rows()]
    with pytest.raises(InputError, match="measurements or published values of 'other', but no resources/papers/other"):
        load(tmp_path, rows)


def test_names_of_files_cost_no_import():
    """The rules ask for the names of tables and figures in the process that runs Snakemake."""
    code = "import sys, warpseed.report.systems as s; assert s.SYSTEMS['kmer_seeds'].FIGURES; "
    code += "print([m for m in ('pandas', 'matplotlib', 'numba', 'numpy', 'jinja2', 'yaml') if m in sys.modules])"
    path = str(ROOT / "workflow" / "scripts")
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
