"""The page, from made-up records; and a second system beside kmer_seeds, with nothing lost or mixed."""

import base64
import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from made_up_records import (
    KMERS,
    PAPER,
    PUBLISHED,
    change,
    fields,
    load,
    local_rows,
    nothing,
    reference_rows,
)
from page_reader import read_page
from warpseed.errors import InputError
from warpseed.report import blocks, kmer_seeds, measurements, printed, style, tables
from warpseed.report.page import write_page
from warpseed.report.systems import draw_figures, write_tables
from warpseed.report.words import format_number


@pytest.fixture
def write(tmp_path):
    def build(given, machine=None, with_files=True):
        drawn = [tmp_path / "figures" / "kmer_seeds" / f"figure_5.{ending}" for ending in ("svg", "tsv")]
        written = [tmp_path / "tables" / "kmer_seeds" / "table_1.tsv"]
        drawn, written = (drawn, written) if with_files else ([], [])
        draw_figures(given, drawn)
        write_tables(given, written)
        write_page(
            tmp_path / "report.html",
            given,
            machine or {"cpu": "Test CPU", "cores": 2},
            table_paths=written,
            figure_paths=drawn,
        )
        return read_page(tmp_path / "report.html")

    return build


def test_page_is_self_contained_and_its_links_work(tmp_path, write):
    reader, _ = write(load(tmp_path, local_rows(), reference_rows()))
    assert {tag for tag in reader.tags if tag in ("script", "link", "iframe")} == set()
    pictures = [address for address in reader.addresses if address.startswith("data:")]
    assert len(pictures) == 1
    assert b"<svg" in base64.b64decode(pictures[0].partition("base64,")[2])
    files = {a for a in reader.addresses if not a.startswith(("data:", "#"))}
    names = {"figures/kmer_seeds/figure_5.svg", "figures/kmer_seeds/figure_5.tsv", "tables/kmer_seeds/table_1.tsv"}
    assert files == names
    assert all((tmp_path / name).is_file() for name in files)
    anchors = {address[1:] for address in reader.addresses if address.startswith("#")}
    assert anchors <= set(re.findall(r' id="([^"]+)"', (tmp_path / "report.html").read_text()))


def test_page_says_what_was_measured_where(tmp_path, write):
    _, text = write(load(tmp_path, local_rows(), reference_rows()))
    assert "test-cpu (here): 20,000 k-mers on 2 Mbp" in text
    assert "nvidia-test (reference machine)" in text
    assert "1094.0 s" in text
    assert "here: paper tier, n = 2" in text
    assert "Reference machine: nvidia-test" in text
    paper = nothing().papers["kmer_seeds"]
    assert all(entry["what"] in text for entry in paper.differences)
    assert "mean speedup" in text  # the paper prints it in its text: shown, not compared


def test_a_card_shows_the_index_open_and_the_process(tmp_path, write):
    _, text = write(load(tmp_path, local_rows()), with_files=False)
    process = [(c * 0.4 + 0.02) / (c * 0.05 + 0.02) for c in (0.13, 0.37, 0.42, 0.044, 2.9)]
    shown = f"8.00 × index open {format_number(sorted(process)[2])} × as a process "
    assert shown + "fast tier, CPU, 1 thread, over bowtie, CPU, 1 thread index open: median of 5 cases, " in text


def test_each_number_of_a_card_has_its_own_cases(tmp_path, write):
    """Of S30 bowtie's time less its loading is not known: four cases with the index open, five of processes."""
    named = {"tool": "bowtie", "case": "S30", "stage": "total"}
    rows = [row for row in local_rows() if any(row.get(key) != value for key, value in named.items())]
    _, text = write(load(tmp_path, rows), with_files=False)
    process = sorted((c * 0.4 + 0.02) / (c * 0.05 + 0.02) for c in (0.13, 0.37, 0.42, 0.044, 2.9))
    low, high = format_number(process[0]), format_number(process[-1])
    said = f"index open: median of 4 cases, 8.00 to 8.00; as a process: median of 5 cases, {low} to {high}; Table I; "
    assert said + "test-cpu (here)" in text


def test_limits_stand_in_one_row_a_case(tmp_path, write):
    _, text = write(load(tmp_path, local_rows(gpu=True)), with_files=False)
    assert "paper tier fast tier Case time k-mers/s time k-mers/s floor share" in text
    assert "k=20, D=0 250 ms 4 M 4.82 ms 207 M 2.41 ms 50 %" in text
    assert "table test-cpu (here) 17.2 GB 38.1 G/s" in text


def test_a_share_that_is_next_to_nothing_is_not_none(tmp_path, write):
    rows = [{**row, "value": 0.003 if row.get("metric") == "share" else row["value"]} for row in local_rows(gpu=True)]
    _, text = write(load(tmp_path, rows), with_files=False)
    assert "k=20, D=0 250 ms 4 M 4.82 ms 207 M 2.41 ms < 1 %" in text


def test_what_was_searched_beside_limits_is_among_the_sizes(tmp_path, write):
    _, text = write(load(tmp_path, local_rows(gpu=True)), with_files=False)
    assert "Sizes: test-cpu (here): 20,000 k-mers, beside the GPU's limits 1,000,000 k-mers on 2 Mbp; " in text


def test_a_median_over_sets_of_unlike_sizes_says_so(tmp_path, write):
    """Four sets of 20,000 k-mers, and one of a million."""
    rows = change(local_rows(gpu=True), {"item": "whole", "case": "S30"}, queries=1_000_000)
    row = "fast tier, GPU paper tier, GPU 25.0 25.0 25.0 5 "
    _, text = write(load(tmp_path, rows), with_files=False)
    assert f"{row}20,000 to 1,000,000 k-mers" in text
    _, text = write(load(tmp_path, local_rows(gpu=True)), with_files=False)
    assert row in text and f"{row}20,000" not in text


def test_bowtie_is_shown_beside_whichever_item_it_was_timed_with(tmp_path, write):
    _, text = write(load(tmp_path, change(local_rows(), {"tool": "bowtie"}, item="file_to_file")), with_files=False)
    assert "From file to file, fast tier, CPU, 1 thread, over bowtie, CPU, 1 thread" in text
    assert re.search(r"as a process: median of 5 cases, [\d.]+ to [\d.]+; From file to file; test-cpu \(here\)", text)


def test_columns_that_nobody_fills_are_left_out(tmp_path, write):
    """Nothing ran on a GPU: from file to file there is no column for one; in Table I there is, for the paper's."""
    _, text = write(load(tmp_path, local_rows()), with_files=False)
    own = text.partition("From file to file: FASTA in, BED out")[2].partition("Beside bowtie")[0]
    assert "Method k-mers 1 core n cores S11: k = 11, 0 mismatches here: paper tier, n = 2" in own
    assert "GPU over 1 core" in text.partition("Table I: ")[2].partition("From file to file")[0]


def test_the_page_never_scrolls_sideways(tmp_path, write):
    """In a browser, 320 to 1280 pixels wide: what is wider than the page scrolls in its own box."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium is installed")
    write(load(tmp_path, local_rows(gpu=True), reference_rows()))
    probe = tmp_path / "probe.html"
    frames = "".join(f'<iframe src="report.html" width="{w}" height="900"></iframe>' for w in (320, 400, 1280))
    script = """onload = () => { document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(f => {
        const page = f.contentDocument, box = e => e.getBoundingClientRect().right;
        return [page.documentElement.clientWidth, page.documentElement.scrollWidth,
                Math.max(...[...page.querySelectorAll("img, .wide, .card")].map(box))]; })) }"""
    probe.write_text(f"<title></title>{frames}<script>{script}</script>")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"]
    command = [browser, *options, f"--user-data-dir={tmp_path / 'profile'}", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    widths = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1])
    assert len(widths) == 3
    for width, scrolled, rightmost in widths:
        assert 300 < width <= 1280
        assert scrolled == width
        assert rightmost <= width


def test_the_peak_memory_of_building_stands_beside_its_time(tmp_path, write):
    build = {"system": "kmer_seeds", "item": "index", "case": "build", "stage": "process", "machine": "test-cpu"}
    rows = []
    for tool, seconds, peak in (("warpseed", 1.5, 80e6), ("bwa", 3.0, 20e6)):
        row = {**build, "tool": tool, "threads": 1}
        rows += [{**row, "value": seconds}, {**row, "metric": "memory", "value": peak, "unit": "bytes"}]
    _, text = write(load(tmp_path, local_rows() + rows), with_files=False)
    assert text.count("test-cpu (here): made_up, 2 Mbp ") == 1
    _, below = text.split("test-cpu (here): made_up, 2 Mbp ")
    assert "warpseed the whole process 1 1 1.50 s 80 MB 40.00" in below
    assert "bwa the whole process 1 1 3.00 s 20 MB 10.00" in below


def test_the_peak_memory_of_smaller_genomes_stands_beside_their_bases(tmp_path, write):
    shared = {"item": "index", "tool": "warpseed", "machine": "test-cpu", "threads": 1}
    rows = [
        {**shared, "system": "-", "case": "reference", "stage": "-", "metric": "count", "value": 1e8, "unit": "bases"}
    ]
    for case, parameters, peak in (("build", "", 7e8), ("build of the first 35000000 bases", "bases=35000000", 3e8)):
        build = {**shared, "system": "kmer_seeds", "case": case, "parameters": parameters, "stage": "process"}
        rows += [{**build, "value": 2.0}, {**build, "metric": "memory", "value": peak, "unit": "bytes"}]
    others = [row for row in local_rows() if row["item"] != "index"]
    _, text = write(load(tmp_path, others + rows), with_files=False)
    assert "test-cpu (here): 100 Mbp warpseed the whole process 1 1 2.00 s 700 MB 7.00" in text
    assert "test-cpu (here): the first 35 Mbp warpseed the whole process 1 1 2.00 s 300 MB 8.57" in text


def test_what_the_paper_does_not_print_stands_in_tables_of_its_own(tmp_path, write):
    _, text = write(load(tmp_path, local_rows()), with_files=False)
    assert "From file to file: FASTA in, BED out" in text
    assert "here: fast tier, n = 2 20,000 218 ms" in text
    assert "In memory: packed k-mers in, hits out" not in text  # not measured


def test_page_without_peers_and_without_a_gpu(tmp_path, write):
    _, text = write(load(tmp_path, local_rows(peers=False)))
    assert "bowtie was not measured" in text
    assert "paper tier, GPU" not in text


def test_page_without_measurements(write):
    _, text = write(nothing())
    assert "No speedup could be computed" in text
    assert "Nothing was measured" in text
    assert "311.2 s" in text


def test_page_says_that_results_differ(tmp_path, write):
    rows = change(local_rows(gpu=True), {"item": "whole", "device": "gpu", "tier": "paper"}, digest="e" * 64)
    _, text = write(load(tmp_path, rows))
    assert "results differ" in text


def test_page_prints_the_ratio_to_four_cores_only_with_four(tmp_path, write):
    rows = [{**row, "threads": 4} if row.get("threads") == 2 else row for row in local_rows(gpu=True)]
    _, four = write(load(tmp_path, rows), with_files=False)
    _, two = write(load(tmp_path, local_rows(gpu=True)), with_files=False)
    # 311.2 s a million k-mers over 1.45 s for 20,000.
    assert f" {format_number(311.2 / 1e6 / (1.45 / KMERS))} " in four
    assert f" {format_number(311.2 / 1e6 / (1.45 / KMERS))} " not in two


def test_k_is_what_was_measured(tmp_path, write):
    _, text = write(load(tmp_path, change(local_rows(), {"case": "S20"}, parameters="k=25; mismatches=1")))
    assert "S20: k = 25, 1 mismatch" in text


def test_names_are_escaped(tmp_path, write):
    evil = '<script>alert("x")</script>'
    rows = [{**row, "machine": evil} for row in local_rows()]
    rows += [{**row, "case": evil} for row in rows if row["case"] == "S11"]
    reader, text = write(load(tmp_path, rows), {"cpu": evil, "config": {evil: 1}, "versions": {evil: evil}})
    assert "script" not in reader.tags
    assert evil in text
    assert json.dumps({evil: 1}, indent=2).split("\n")[1] in " ".join(reader.text)


def test_a_wrong_provenance_is_named(tmp_path):
    (tmp_path / "p.json").write_text("[]")
    with pytest.raises(InputError, match="p.json holds no JSON object"):
        write_page(tmp_path / "r.html", nothing(), tmp_path / "p.json")


# A second system


OTHER = "other_system"


def other_figure(given):
    style.apply_style()
    values = tables.long_table(given, "whole")
    figure, axes = style.pyplot().subplots(figsize=(5, 3))
    axes.set_title("the other system's Figure 5")
    return figure, values


def other_section(given, files):
    speedups = measurements.speedups(given, ["whole"])
    return [*printed.printed_table(given, "whole", speedups), *blocks.figures(given, files, ["figure_5"])]


MODULE = SimpleNamespace(
    TABLES={
        "table_1": lambda given: tables.wide_table(given, "whole", measurements.speedups(given, ["whole"])),
        "table_1_long": lambda given: tables.long_table(given, "whole"),
    },
    FIGURES={"figure_5": other_figure},
    speedups=lambda given: measurements.speedups(given, ["whole"]),
    section=other_section,
)


@pytest.fixture
def two_systems(tmp_path):
    """kmer_seeds, and a system that prints a Figure 5 too, beside 24 CPU threads, of a data set that is called S30."""
    paper = yaml.safe_load(PAPER.read_text())
    item = {"printed": "Figure 5", "title": "the other system's bars", "stage": "total", "note": "None."}
    paper |= {"id": "999", "name": "the other", "title": "The other paper", "queries": 77, "queries_name": "reads"}
    paper |= {"items": {"whole": item}, "cases": {}, "methods": {"1 GPU": {"device": "gpu", "gpus": 1}}}
    paper |= {"figures": {"figure_5": "The other's Figure 5."}, "differences": []}
    (tmp_path / f"{OTHER}.yaml").write_text(yaml.safe_dump(paper))
    printed_rows = [("1 GPU", "time", 5.5, "s"), ("24 CPU threads", "time", 66.6, "s")]
    printed_rows.append(("24 CPU threads", "rate", 7, "x"))
    lines = ["paper\titem\tcase\tmethod\tmetric\tvalue\tunit\tnote"]
    lines += ["\t".join(map(str, (OTHER, "Figure 5", "S30", *row, ""))) for row in printed_rows]
    (tmp_path / f"{OTHER}.tsv").write_text("\n".join(lines) + "\n")
    rows = local_rows(gpu=True)
    # The same case, method and number of queries as kmer_seeds' own Figure 5.
    for method, seconds in ((("warpseed", "paper", "cpu", 1), 48.0), (("warpseed", "paper", "gpu", 1), 0.125)):
        for name in ("locate_on_cpu", "whole"):
            row = fields(name, "S30", method, system=OTHER, results=123)
            rows += [{**row, "stage": "total", "repeat": repeat, "value": seconds} for repeat in range(3)]
    papers, published = [PAPER, tmp_path / f"{OTHER}.yaml"], [PUBLISHED, tmp_path / f"{OTHER}.tsv"]
    return load(tmp_path, rows, published=published, papers=papers), load(tmp_path, local_rows(gpu=True))


def test_a_second_system_goes_through_tables_with_nothing_lost_or_mixed(two_systems, tmp_path):
    both, alone = two_systems
    systems = {"kmer_seeds": kmer_seeds, OTHER: MODULE}
    for folder, given in (("both", both), ("alone", alone)):
        write_tables(given, [tmp_path / folder / "kmer_seeds" / f"{name}.tsv" for name in kmer_seeds.TABLES], systems)
    for name in kmer_seeds.TABLES:
        own, same = (tmp_path / folder / "kmer_seeds" / f"{name}.tsv" for folder in ("both", "alone"))
        assert own.read_bytes() == same.read_bytes(), name
    write_tables(both, [tmp_path / OTHER / "table_1.tsv", tmp_path / OTHER / "table_1_long.tsv"], systems)
    long = pd.read_csv(tmp_path / OTHER / "table_1_long.tsv", sep="\t")
    assert set(long["system"]) == {OTHER}
    assert sorted(long["median_s"]) == [0.125, 5.5, 48.0, 66.6]
    assert long.loc[long["method"] == "24 CPU threads", "published_over_measured"].isna().all()
    wide = pd.read_csv(tmp_path / OTHER / "table_1.tsv", sep="\t")
    assert wide["published_24_CPU_threads_s"].tolist() == [66.6]
    assert wide["published_24_CPU_threads"].tolist() == [7]
    assert wide["here_paper_tier_CPU_1_thread_over_paper_tier_GPU"].tolist() == [384]
    # Both search the index, whose records are no system's.
    assert "on 2 Mbp" in tables.describe_sizes(both.of(OTHER), measurements.times(both.of(OTHER), ["whole"]))
    assert len(tables.index_table(both.of(OTHER))) == len(tables.index_table(both)) > 0
    # Asked for all systems at once, one keeps to itself as well.
    everything = measurements.times(both)
    assert len(everything) == len(measurements.times(alone)) + 4


def test_a_second_system_goes_through_figures_and_page_with_nothing_lost_or_mixed(two_systems, tmp_path):
    both, alone = two_systems
    systems = {"kmer_seeds": kmer_seeds, OTHER: MODULE}
    figures = [
        tmp_path / "figures" / system / f"figure_5.{ending}"
        for system in ("kmer_seeds", OTHER)
        for ending in ("svg", "tsv")
    ]
    draw_figures(both, figures, systems)
    draw_figures(alone, [tmp_path / "alone" / "kmer_seeds" / "figure_5.svg"])
    ours, others = figures[0].read_bytes(), figures[2].read_bytes()
    assert ours == (tmp_path / "alone" / "kmer_seeds" / "figure_5.svg").read_bytes()
    assert ours != others
    written = [tmp_path / "tables" / system / "table_1.tsv" for system in systems]
    write_tables(both, written, systems)
    page = tmp_path / "report.html"
    write_page(page, both, {"cpu": "x"}, table_paths=written, figure_paths=figures, systems=systems)
    reader, text = read_page(page)
    first, second = (re.search(rf'<section id="{name}">.*?</section>', page.read_text(), re.S)[0] for name in systems)
    for section, picture, name in ((first, ours, "kmer_seeds"), (second, others, OTHER)):
        assert base64.b64encode(picture).decode() in section
        assert f'id="figure_{name}_figure_5"' in section
        assert set(re.findall(r'href="figures/(\w+)/', section)) == {name}
    assert "published, 24 CPU threads" in second and "66.6 s" in second and "rate 7 x" in second
    assert "24 CPU threads" not in first and "66.6" not in first
    assert "48.0 s" in second and "48.0 s" not in first
    assert "Paper 000: k-mer seeds Paper 999: the other" in text
    assert {str(path.relative_to(tmp_path)) for path in (*written, *figures)} <= set(reader.addresses)
