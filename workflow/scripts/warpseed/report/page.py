"""results/report.html: one self-contained page that opens anywhere, on a phone and in print.

Styles and pictures are inside the page; the only links are relative ones to the tables and figures of the
same run. Every name that comes from outside (data sets, machines, versions, configuration) is escaped.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from warpseed.errors import InputError
from warpseed.report import tables
from warpseed.report.tables import DATA_SETS, Measurements
from warpseed.sequences.files import atomic_path

__all__ = ["DIFFERENCES", "FIGURE_CAPTIONS", "write_page"]

FIGURE_CAPTIONS = {
    "times": "Table I as bars: time per k-mer from the k-mer file to located hits in memory, the index "
    "being open. Per "
    "k-mer, because the paper's sets hold a million k-mers and a default run's fewer. Black ticks span the "
    "repeats.",
    "figure_5": "Figure 5: the GPU searches, the CPU locates the occurrences one by one. Speedup over the "
    "CPU version's "
    "whole time, paper tier. The paper prints one point of its figure in its text; the others are not known.",
    "throughput": "k-mers a second, both strands, with locations. Dashed: one thread. Solid with squares: "
    "more threads.",
    "scaling": "Speedup over one thread of the same tier. A point is drawn only where the results are the same.",
    "stages": "Share of each stage of the way from the k-mer file to hits in memory; opening the index is not in it.",
    "index": "What the index takes, part by part, beside the paper's formula where the paper has one.",
}
"""Figures in the order of the page, with their captions."""

DIFFERENCES = (
    (
        "The reference is simulated by default, and smaller than human",
        "So that a first run needs no network and takes minutes. A smaller genome has shorter suffix-array "
        "intervals and a "
        "table of counts that fits caches better, so times per k-mer are lower than on human. Compare "
        "speedups, not seconds.",
    ),
    (
        "Fewer k-mers by default",
        "The paper's sets hold a million k-mers each; config/paper.yaml asks for that many.",
    ),
    (
        "No texture memory, no L1 setting",
        "The paper chose global memory over texture memory and set a 48 KB L1 cache. Neither choice can be "
        "expressed in "
        "Numba; current GPUs cache global loads in L1 by themselves.",
    ),
    (
        "RSA look-ups are on the host, as in the paper",
        "The GPU computes the pairs (j, t) of Equations 2 and 3; the sampled suffix array stays in host "
        "memory, where the "
        "look-ups are made.",
    ),
    (
        "The number of occurrences is Ib - Ia + 1",
        "The paper prints Ia - Ib + 1, with the borders of the interval swapped.",
    ),
    (
        "Equation 3 is undefined at $",
        "A walk that reaches the row whose BWT character is $ has no predecessor. It stops there and the "
        "position is looked "
        "up. With more than one contig there are several such rows.",
    ),
    (
        "A query over the hit limit is dropped whole",
        "Figure 4's bare return would keep the hits found so far; the paper's text discards them. We follow the text.",
    ),
    (
        "Table II is the counting mode",
        "It searches and counts without locating. The fast tier verifies in the text, so it has no "
        "unlocated state apart "
        "from counting.",
    ),
    (
        "n cores are this machine's",
        "The paper used four. A ratio to its four-core times is printed only where n is 4.",
    ),
)
"""What differs from paper 000 and why: (headline, explanation)."""

_STYLE = """
:root{color-scheme:light;--ink:#222;--soft:#5f5f5f;--line:#dcdcdc;--tint:#f4f7fa;--blue:#0072b2}
*{box-sizing:border-box}
body{margin:0;color:var(--ink);background:#fff;
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header{max-width:64rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.6rem}
h1{font-size:1.7rem;margin:0 0 .2rem;line-height:1.25}
h2{font-size:1.35rem;margin:2.6rem 0 .6rem;padding-top:.6rem;border-top:3px solid var(--blue)}
h3{font-size:1.08rem;margin:2rem 0 .4rem}
p{margin:.5rem 0}
.soft,figcaption,.note{color:var(--soft);font-size:.92rem}
nav{font-size:.95rem;margin:.7rem 0}
nav a{margin-right:1rem;white-space:nowrap}
a{color:#005a8f}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(14.5rem,1fr));gap:.8rem;margin:1rem 0}
.card{border:1px solid var(--line);border-left:5px solid var(--blue);border-radius:4px;
 padding:.7rem .9rem;background:var(--tint)}
.card b{display:block;font-size:1.7rem;line-height:1.2}
.card span{display:block;font-size:.92rem}
.card .soft{font-size:.84rem;margin-top:.25rem}
.wide{overflow-x:auto;-webkit-overflow-scrolling:touch;margin:.6rem 0}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .7rem;text-align:right;vertical-align:top;border-bottom:1px solid var(--line)}
th:first-child,td:first-child,td.text,th.text{text-align:left}
thead th{border-bottom:2px solid var(--ink);font-weight:600;white-space:nowrap;vertical-align:bottom}
table.grouped td:first-child{white-space:nowrap}
td small{display:block;color:var(--soft);font-size:.76rem;white-space:nowrap}
tbody th{background:var(--tint);text-align:left}
tr.published td{font-style:italic}
tr.ratio td{color:#005a8f}
td.differ{color:#a33800;font-weight:600}
figure{margin:1.4rem 0}
figure .wide{margin:0}
figure img{display:block;width:100%;min-width:38rem;height:auto}
dl{margin:.5rem 0}
dt{font-weight:600;margin-top:.6rem}
dd{margin:0}
pre{background:var(--tint);border:1px solid var(--line);padding:.7rem;overflow-x:auto;font-size:.82rem}
#files{margin-bottom:3rem}
@media (max-width:40rem){body{font-size:15px}th,td{padding:.25rem .45rem}
 table.grouped td:first-child{position:sticky;left:0;background:#fff;white-space:normal;min-width:8.5rem}}
@media print{body{font-size:10pt}main,header{max-width:none}nav{display:none}
 figure,tbody,.card,dl div{break-inside:avoid}
 h2,h3{break-after:avoid}thead{display:table-header-group}.wide{overflow:visible}figure img{min-width:0}
 th,td{padding:.15rem .4rem}table{font-size:8.5pt}pre{white-space:pre-wrap}*{print-color-adjust:exact}}
"""


def write_page(
    path: str | Path,
    measurements: Measurements,
    provenance: str | Path | Mapping[str, Any],
    *,
    table_paths: Iterable[str | Path] = (),
    figure_paths: Iterable[str | Path] = (),
    reference_provenance: Iterable[str | Path] = (),
) -> None:
    """Write the report.

    Parameters
    ----------
    path : path
        The HTML file; links are relative to its folder.
    measurements : Measurements
        From `tables.load_measurements`.
    provenance : path or mapping
        The run's JSON from `provenance.write_provenance`, or its content.
    table_paths, figure_paths : iterable of paths
        Files of the run to link to. An SVG among the figures is put into the page.
    reference_provenance : iterable of paths
        JSON files of reference machines, each in its machine's folder.

    Raises
    ------
    InputError
        If a provenance file is no JSON object.
    """
    folder = Path(path).resolve().parent
    machine = dict(provenance) if isinstance(provenance, Mapping) else _read_json(Path(provenance))
    references = {Path(file).resolve().parent.name: _read_json(Path(file)) for file in reference_provenance}
    links = [Path(file) for file in table_paths]
    pictures = [Path(file) for file in figure_paths]
    body = [
        _head(machine),
        "<main>",
        _summary(measurements),
        _kmer_seeds(measurements, folder, links, pictures),
        _machines(measurements, machine, references),
        _files(folder, links, pictures),
        "</main>",
    ]
    with atomic_path(path) as temporary:
        Path(temporary).write_text(
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>warpseed report</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
            + "\n".join(body)
            + "\n</body>\n</html>\n",
            encoding="utf-8",
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable JSON ({error}); measure again to make it") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} holds no JSON object; measure again to make it")
    return document


def _head(machine: Mapping[str, Any]) -> str:
    hardware = [machine.get("cpu"), f"{machine.get('cores', '?')} cores", machine.get("gpu") or "no GPU"]
    facts = ", ".join(str(fact) for fact in hardware if fact)
    return (
        "<header>\n<h1>warpseed report</h1>\n"
        f'<p class="soft">Measured on {escape(facts)}; commit '
        f"{escape(str(machine.get('commit', 'unknown'))[:20])}; "
        f"written {escape(str(machine.get('written', 'at an unknown time')))}.</p>\n"
        '<nav><a href="#summary">Summary</a> <a href="#kmer_seeds">Paper 000: k-mer seeds</a> '
        '<a href="#machines">Machines and versions</a> <a href="#files">Files</a></nav>\n</header>'
    )


# Summary


_CARDS = (
    # kind, threads of the numerator: "1", or "n" for the most that was measured
    ("fast over bowtie", "1"),
    ("fast over paper", "1"),
    ("GPU over CPU", "1"),
    ("GPU over CPU", "n"),
)


_STAGE_WORDS = {
    "total": "from the k-mer file to hits in memory, the index being open",
    "process": "whole processes",
}


def _summary(measurements: Measurements) -> str:
    summary = tables.summary_table(measurements)
    shown = summary
    if len(summary):
        # Whole processes say something only beside another tool's.
        own_process = summary["kind"].str.contains("whole process") & summary["numerator"].str.contains("tier")
        shown = summary[~summary["kind"].str.contains("threads") & ~own_process]
    parts = ['<section id="summary">\n<h2>Summary</h2>']
    if shown.empty:
        return parts[0] + "\n<p>No speedup could be computed: nothing was measured, or only one method.</p>\n</section>"
    parts.append(
        "<p>How many times faster the first method is than the second: the second's time over the first's, "
        "on the "
        "same machine, for the same k-mers. Printed only where both returned the same hits. Lowest and "
        "highest are "
        "over the data sets.</p>"
    )
    parts.append(_cards(summary[summary["item"] == "Table I"]))
    bodies = []
    # Table II's speedups stand in its own table below.
    shown = shown[shown["item"] != "Table II"]
    for (source, machine, item, stage), group in shown.groupby(["source", "machine", "item", "stage"], sort=False):
        title = f"{tables.machine_label(str(source), str(machine))}: {item}, {_STAGE_WORDS.get(str(stage), stage)}"
        rows = [
            f'<tr><td>{escape(row["denominator"])}</td><td class="text">{escape(row["numerator"])}</td>'
            f"{_range_cells(row)}</tr>"
            for row in tables.rows_of(group)
        ]
        bodies.append(f'<tbody><tr><th colspan="6">{escape(title)}</th></tr>{"".join(rows)}</tbody>')
    parts.append(
        '<div class="wide"><table><thead><tr><th>Speedup of</th><th class="text">over</th>'
        "<th>median</th><th>lowest</th><th>highest</th><th>data sets</th></tr></thead>"
        + "\n".join(bodies)
        + "</table></div>\n</section>"
    )
    return "\n".join(parts)


def _range_cells(row: Mapping[str, Any]) -> str:
    count = f"{row['data_sets']}"
    if row["differ"]:
        count += f" <small>{row['differ']} left out: {tables.RESULTS_DIFFER} or not checked</small>"
    if not row["data_sets"]:
        return f'<td class="differ" colspan="3">{tables.RESULTS_DIFFER} or not checked</td><td>{count}</td>'
    cells = "".join(f"<td>{tables.format_number(row[key])}</td>" for key in ("median", "lowest", "highest"))
    return f"{cells}<td>{count}</td>"


def _cards(summary: pd.DataFrame) -> str:
    cards = []
    for kind, threads in _CARDS:
        own = summary[(summary["kind"] == kind) & (summary["data_sets"] > 0)]
        own = own[own["source"] == "here"] if (own["source"] == "here").any() else own
        if own.empty:
            continue
        # Rows run from one thread to all threads of a tier: the first is one thread's.
        paper = own[own["numerator"].str.startswith("paper")]
        tier = paper if len(paper) else own
        tier = tier[tier["machine"] == tier["machine"].iloc[0]]
        row = tier.iloc[0 if threads == "1" else min(len(tier), 2) - 1].to_dict()
        if threads == "n" and len(tier) < 2:
            continue
        cards.append(
            f'<div class="card"><b>{tables.format_number(row["median"])} &times;</b>'
            f"<span>{escape(row['denominator'])}, over {escape(row['numerator'])}</span>"
            f'<span class="soft">median; {tables.format_number(row["lowest"])} to '
            f"{tables.format_number(row['highest'])} over {row['data_sets']} data sets of Table I; "
            f"{escape(tables.machine_label(row['source'], row['machine']))}</span></div>"
        )
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


# Paper 000


def _kmer_seeds(measurements: Measurements, folder: Path, links: list[Path], pictures: list[Path]) -> str:
    sizes = tables.describe_sizes(
        measurements, tables.long_table(measurements, "Table I").query("source != 'published'")
    )
    parts = [
        '<section id="kmer_seeds">\n<h2>Paper 000: fixed-length seeds</h2>',
        "<p>k-mers against a genome's BWT and FM-index, both strands, with 0, 1 or 2 mismatches. The "
        "<b>paper tier</b> is "
        "the paper's algorithm and data layout; the <b>fast tier</b> answers the same question in the best "
        "way we know, "
        "with the same hits.</p>",
        f"<p><b>Sizes.</b> {escape(sizes) or 'Nothing was measured'}. "
        f"Published: {tables.PUBLISHED_KMERS:,} k-mers a set on the human genome, AMD Opteron 2378 (4 "
        f"cores) and Tesla "
        "C2050.</p>",
        "<h3>Table I: whole seed generation</h3>",
        '<p class="note">Seconds from the k-mer file to located hits in memory, with the index open; '
        "medians, with lowest "
        "and highest of the repeats below.</p>",
        _paper_table(measurements, "Table I"),
        _links_for(folder, links, ("table_1", "table_1_long", "speedups")),
        "<h3>Table II: search without locating</h3>",
        '<p class="note">Seconds of the search in counting mode.</p>',
        _paper_table(measurements, "Table II"),
        _links_for(folder, links, ("table_2", "table_2_long")),
        _ratio_note(),
        _peers(measurements),
        "<h3>Figures</h3>",
        *(_figure(stem, caption, folder, pictures) for stem, caption in FIGURE_CAPTIONS.items()),
        _index_build(measurements),
        _gpu_limits(measurements),
        "<h3>What differs from the paper, and why</h3>\n<dl>",
        *(f"<div><dt>{escape(what)}</dt><dd>{escape(why)}</dd></div>" for what, why in DIFFERENCES),
        "</dl>\n</section>",
    ]
    return "\n".join(part for part in parts if part)


def _ratio_note() -> str:
    return (
        '<p class="note">Ratio rows: for a time, the paper\'s time per k-mer over ours (above 1: ours is '
        "faster; genomes and "
        "machines differ); for a speedup, ours over the paper's. Ratios to the paper's four cores stand "
        "only where n is "
        "4.</p>"
    )


def _paper_table(measurements: Measurements, item: str) -> str:
    table = tables.long_table(measurements, item)
    speedups = tables.speedup_table(measurements)
    speedups = speedups[(speedups["item"] == item) & (speedups["kind"] == "GPU over CPU")]
    head = (
        '<div class="wide"><table class="grouped"><thead><tr><th>Method</th><th>k-mers</th><th>1 core, s</th>'
        "<th>n cores, s</th><th>GPU, s</th><th>GPU over<br>1 core</th><th>GPU over<br>n "
        "cores</th></tr></thead>"
    )
    bodies = []
    for data_set in DATA_SETS:
        own = table[table["dataset"] == data_set.name]
        rows = [_published_row(measurements, item, data_set.case, own)]
        of_set = speedups[speedups["case"] == data_set.case]
        measured = own[own["source"] != "published"]
        for (source, machine), group in measured.groupby(["source", "machine"], sort=False):
            theirs = of_set[(of_set["source"] == source) & (of_set["machine"] == machine)]
            rows += _machine_rows(measurements, item, data_set.case, group, theirs)
        plural = "" if data_set.mismatches == 1 else "es"
        title = f"{data_set.name}: k = {data_set.k}, {data_set.mismatches} mismatch{plural}"
        bodies.append(f'<tbody><tr><th colspan="7">{escape(title)}</th></tr>{"".join(rows)}</tbody>')
    return head + "\n".join(bodies) + "</table></div>"


def _row(label: str, cells: Iterable[str], css: str = "") -> str:
    opening = f'<tr class="{css}">' if css else "<tr>"
    return (
        f"{opening}<td>{label}</td>"
        + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in cells)
        + "</tr>\n"
    )


def _published_row(measurements: Measurements, item: str, case: str, own: pd.DataFrame) -> str:
    methods = ("1 CPU core", "4 CPU cores", "1 GPU", "GPU vs 1 core", "GPU vs 4 cores")
    values = [tables.published_value(measurements, item, case, method) for method in methods]
    cells = ["" if value is None else f"{value:.1f}" for value in values]
    return _row("published, n = 4", [f"{tables.PUBLISHED_KMERS:,}", *cells], "published")


def _machine_rows(
    measurements: Measurements, item: str, case: str, group: pd.DataFrame, speedups: pd.DataFrame
) -> list[str]:
    source, machine = group["source"].iloc[0], group["machine"].iloc[0]
    place = "here" if source == "here" else escape(str(machine))
    rows = []
    for (tool, tier), own in group.groupby(["tool", "tier"], sort=False):
        name = f"{tier} tier" if tool == "warpseed" else str(tool)
        cores = int(own.loc[own["device"] == "cpu", "threads"].max()) if (own["device"] == "cpu").any() else 0
        label = f"{place}: {escape(name)}" + (f", n = {cores}" if cores > 1 else "")
        cpu = {int(r["threads"]): r for r in tables.rows_of(own[own["device"] == "cpu"])}
        gpu = tables.rows_of(own[own["device"] == "gpu"])
        cells = [_time_cell(cpu.get(1)), _time_cell(cpu.get(cores) if cores > 1 else None)]
        cells.append(_time_cell(gpu[-1] if gpu else None))
        over = {t: _speedup(speedups, name, t) for t in (1, cores)}
        cells += [_speedup_cell(over[1]), _speedup_cell(over[cores] if cores > 1 else None)]
        rows.append(_row(label, [f"{int(own['queries'].max()):,}", *cells]))
        if tool == "warpseed" and tier == "paper":
            ratios = _ratio_cells(measurements, item, case, cpu, gpu, over)
            rows.append(_row(f"{place}: ratio to the paper", ["", *ratios], "ratio"))
    return rows


def _speedup(speedups: pd.DataFrame, name: str, threads: int) -> dict[str, Any] | None:
    chosen = speedups[(speedups["numerator_threads"] == threads) & speedups["numerator"].str.startswith(f"{name},")]
    return tables.rows_of(chosen)[0] if len(chosen) else None


def _time_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    text = tables.format_number(row["median_s"])
    if row["repeats"] > 1:
        text += f"<small>{tables.format_number(row['min_s'])} to {tables.format_number(row['max_s'])}</small>"
    return text


def _speedup_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    css = "" if row["status"] == "ok" else ' class="differ"'
    return f"<td{css}>{escape(tables.speedup_cell(row))}</td>"


def _ratio_cells(
    measurements: Measurements,
    item: str,
    case: str,
    cpu: Mapping[int, Mapping[str, Any]],
    gpu: list[dict[str, Any]],
    over: Mapping[int, dict[str, Any] | None],
) -> list[str]:
    """Ratios of the paper tier to the paper: times for 1 core, 4 cores and the GPU, then the two speedups."""
    timed = [cpu.get(1), cpu.get(tables.PUBLISHED_CORES), gpu[-1] if gpu else None]
    cells = [tables.format_number(row["published_over_measured"]) if row else "" for row in timed]
    for threads, method in ((1, "GPU vs 1 core"), (tables.PUBLISHED_CORES, "GPU vs 4 cores")):
        row, published = over.get(threads), tables.published_value(measurements, item, case, method)
        good = row is not None and row["status"] == "ok" and published is not None
        cells.append(tables.format_number(row["speedup"] / published) if good and row and published else "")
    return cells


def _peers(measurements: Measurements) -> str:
    peers = tables.peer_table(measurements)
    if peers.empty:
        return "<h3>Beside bowtie</h3>\n<p>bowtie was not measured: it was not installed, or not asked for.</p>"
    bodies = []
    for key, group in peers.groupby(["source", "machine", "numerator", "denominator"], sort=False):
        source, machine, peer, ours = key
        title = f"{tables.machine_label(str(source), str(machine))}: {ours}, over {peer}"
        rows = []
        for case, own in group.groupby("case", sort=False):
            whole = own["kind"].str.contains("whole process")
            cells = _peer_cells(own[~whole]) + _peer_cells(own[whole])
            rows.append(_row(escape(str(case).replace("; mismatches=", ", D = ")), cells))
        bodies.append(f'<tbody><tr><th colspan="7">{escape(title)}</th></tr>{"".join(rows)}</tbody>')
    head = "<th>bowtie, s</th><th>warpseed, s</th><th>speedup</th>"
    return (
        "<h3>Beside bowtie</h3>\n"
        '<p class="note">bowtie -v D -a in the same run on the same k-mers; a speedup stands only where its hits are '
        "ours. Index open: our stages with the index open against bowtie's wall time less its loading. Process: "
        "both as whole processes.</p>\n"
        '<div class="wide"><table class="grouped"><thead><tr><th></th><th colspan="3">index open</th>'
        f'<th colspan="3">process</th></tr><tr><th>Data set</th>{head}{head}</tr></thead>'
        + "\n".join(bodies)
        + "</table></div>"
    )


def _peer_cells(chosen: pd.DataFrame) -> list[str]:
    if chosen.empty:
        return ["", "", ""]
    row = tables.rows_of(chosen)[0]
    times = [tables.format_number(row["numerator_s"]), tables.format_number(row["denominator_s"])]
    return [*times, _speedup_cell(row)]


def _index_build(measurements: Measurements) -> str:
    built = tables.times(measurements, ["Index"])
    built = built[built["stage"].isin(["total", "save", "process"])]
    if built.empty:
        return ""
    words = {"total": "built in memory", "save": "written to disk", "process": "the whole process"}
    rows = [
        _row(
            escape(row["tool"]),
            [
                f'<td class="text">{escape(tables.machine_label(row["source"], row["machine"]))}</td>',
                f'<td class="text">{words[row["stage"]]}</td>',
                str(row["threads"]),
                tables.format_seconds(row["median_s"]),
            ],
        )
        for row in tables.rows_of(built)
    ]
    return (
        "<h3>Building the index</h3>\n"
        '<div class="wide"><table><thead><tr><th>Tool</th><th class="text">on</th><th class="text">what is timed</th>'
        "<th>threads</th><th>time</th></tr></thead><tbody>" + "".join(rows) + "</tbody></table></div>"
    )


def _gpu_limits(measurements: Measurements) -> str:
    limits = tables.gpu_limits_table(measurements)
    if limits.empty:
        return ""
    rows = [
        _row(
            escape(row["case"]),
            [f'<td class="text">{escape(tables.machine_label(row["source"], row["machine"]))}</td>']
            + [f'<td class="text">{escape(row[key])}</td>' for key in ("tier", "stage", "metric")]
            + [f"{tables.format_number(row['value'])} {escape(row['unit'].removesuffix('1'))}".rstrip()],
        )
        for row in tables.rows_of(limits)
    ]
    return (
        "<h3>GPU measurements beside their limits</h3>\n"
        '<p class="note">Floor: the memory sectors a search must touch over the rate at which the GPU '
        "fetches random ones "
        "from a table of that size, measured in the same run. Share: floor over time.</p>\n"
        '<div class="wide"><table><thead><tr><th>Case</th><th class="text">on</th><th class="text">tier</th>'
        '<th class="text">stage</th><th class="text">metric</th><th>value</th></tr></thead><tbody>'
        + "".join(rows)
        + "</tbody></table></div>"
    )


def _figure(stem: str, caption: str, folder: Path, pictures: list[Path]) -> str:
    own = [picture for picture in pictures if picture.stem == stem]
    svg = next((picture for picture in own if picture.suffix == ".svg"), None)
    if svg is None:
        return ""
    # As an image, so that the identifiers inside one SVG cannot meet those of another.
    content = svg.read_bytes()
    data = base64.b64encode(content).decode("ascii")
    # Points to CSS pixels: a small figure is not blown up to the page's width.
    size = re.search(rb'<svg[^>]*? width="([0-9.]+)pt"', content)
    limit = f' style="max-width:{float(size.group(1)) * 96 / 72:.0f}px"' if size else ""
    files = ", ".join(_link(folder, picture, picture.suffix[1:].upper()) for picture in own)
    return (
        f'<figure id="figure_{escape(stem)}"><div class="wide"><img{limit} alt="{escape(caption, quote=True)}" '
        f'src="data:image/svg+xml;base64,{data}"></div>\n'
        f"<figcaption>{escape(caption)} {files}</figcaption></figure>"
    )


# Machines and files


def _machines(
    measurements: Measurements, machine: Mapping[str, Any], references: Mapping[str, Mapping[str, Any]]
) -> str:
    parts = ['<section id="machines">\n<h2>Machines and versions</h2>', "<h3>Here</h3>", _facts(machine)]
    for name in measurements.machines("reference"):
        parts.append(f"<h3>Reference machine: {escape(name)}</h3>")
        parts.append(
            _facts(references[name])
            if name in references
            else f"<p>Its records lie in <code>resources/measurements/{escape(name)}/</code>.</p>"
        )
    if machine.get("config"):
        text = json.dumps(machine["config"], indent=2, default=str)
        parts.append(f"<h3>Configuration of this run</h3>\n<pre>{escape(text)}</pre>")
    return "\n".join(parts) + "\n</section>"


def _facts(machine: Mapping[str, Any]) -> str:
    memory = machine.get("memory_bytes")
    gpu_memory = machine.get("gpu_memory_bytes")
    gpu = machine.get("gpu") or "none"
    if gpu_memory:
        gpu += f", {gpu_memory / 2**30:.0f} GiB"
    facts = {
        "Machine": machine.get("machine"),
        "CPU": f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} usable cores",
        "Memory": f"{memory / 2**30:.0f} GiB" if memory else None,
        "GPU": gpu,
        "GPU driver": machine.get("driver"),
        "Platform": machine.get("platform"),
        "Commit": machine.get("commit"),
        "Versions": _pairs(machine.get("versions")),
        "Peers": _pairs(machine.get("peers")),
        "Seeds": _pairs(machine.get("seeds")),
    }
    rows = [
        f'<tr><td>{escape(name)}</td><td class="text">{escape(str(fact))}</td></tr>'
        for name, fact in facts.items()
        if fact
    ]
    return '<div class="wide"><table><tbody>' + "\n".join(rows) + "</tbody></table></div>"


def _pairs(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {'not installed' if v is None else v}" for name, v in (values or {}).items())


def _link(folder: Path, target: Path, text: str) -> str:
    relative = Path(os.path.relpath(target.resolve(), folder)).as_posix()
    return f'<a href="{escape(relative, quote=True)}">{escape(text)}</a>'


def _links_for(folder: Path, links: list[Path], stems: tuple[str, ...]) -> str:
    own = [_link(folder, link, link.name) for stem in stems for link in links if link.stem == stem]
    return f'<p class="note">Values: {", ".join(own)}</p>' if own else ""


def _files(folder: Path, links: list[Path], pictures: list[Path]) -> str:
    items = [f"<li>{_link(folder, link, link.name)}</li>" for link in links]
    stems = dict.fromkeys(picture.stem for picture in pictures)
    for stem in stems:
        own = [_link(folder, picture, picture.name) for picture in pictures if picture.stem == stem]
        items.append(f"<li>{', '.join(own)}</li>")
    listed = f"<ul>{''.join(items)}</ul>" if items else "<p>No files were named.</p>"
    return f'<section id="files">\n<h2>Files</h2>\n{listed}\n</section>'
