"""The figures of paper 000's section: each is drawn from a table, and the table is saved beside it.

A figure says the sizes and the machine in its subtitle. Where nothing was measured it says so; a published
point that the paper does not print is not drawn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from warpseed.report import style, tables
from warpseed.report.style import plt
from warpseed.report.tables import DATA_SETS, Measurements, Method

__all__ = [
    "FIGURES",
    "draw_figures",
    "figure_5",
    "index_size",
    "kmer_times",
    "scaling",
    "stages",
    "throughput",
]

Drawn = tuple[plt.Figure, pd.DataFrame]

_NO_GPU = "No GPU was measured, here or on a reference machine."


def _with_reference_gpu(table: pd.DataFrame) -> pd.DataFrame:
    """Keep this run's rows, with the first reference machine's GPU rows where no GPU was measured here."""
    here = table[table["source"] == "here"]
    if (here["device"] == "gpu").any():
        return here
    gpu = table[(table["source"] == "reference") & (table["device"] == "gpu")]
    return pd.concat([here, gpu[gpu["machine"] == gpu["machine"].iloc[0]]]) if len(gpu) else here


def _one_source(table: pd.DataFrame) -> pd.DataFrame:
    """Keep what was measured here, or else the first reference machine's rows."""
    here = table[table["source"] == "here"]
    if len(here) or table.empty:
        return here
    return table[table["machine"] == table["machine"].iloc[0]]


def _colour(tool: str, tier: str, device: str) -> str:
    return style.COLOURS[(tier if tool == "warpseed" else "peer", device)]


def _method(row: dict[str, Any]) -> Method:
    threads = 0 if row["device"] == "gpu" else int(row["threads"])
    return Method(row["tool"], row["tier"], row["device"], threads)


def _empty(title: str, subtitle: str, text: str) -> plt.Figure:
    figure, axes = plt.subplots(figsize=(8, 2.4))
    style.heading(figure, title, subtitle)
    style.nothing_measured(axes, text)
    return figure


# Figure 5


def figure_5(measurements: Measurements) -> Drawn:
    """Figure 5: the GPU search with locating on the CPU, over 1 and over n CPU cores (paper tier)."""
    speedups = tables.speedup_table(measurements)
    values = _one_source(speedups[speedups["item"] == "Figure 5"])
    names = {data_set.case: data_set.name for data_set in DATA_SETS}
    known = _published_figure_5(measurements)
    figure, axes = plt.subplots(figsize=(8, 4.4))
    figure.subplots_adjust(left=0.08, right=0.98, top=0.82, bottom=0.11)
    threads = sorted(set(values["numerator_threads"])) if len(values) else [1, 4]
    shades = {t: shade for t, shade in zip(threads, ("#0072B2", "#56B4E9"), strict=False)}
    width = 0.36 if len(threads) == 2 else 0.5
    for rank, t in enumerate(threads):
        offset = (rank - (len(threads) - 1) / 2) * width
        own = values[values["numerator_threads"] == t]
        for row in tables.rows_of(own):
            x = list(names).index(row["case"]) + offset
            if row["status"] != "ok":
                axes.text(
                    x,
                    0.05,
                    row["status"],
                    rotation=90,
                    ha="center",
                    va="bottom",
                    fontsize=8,
                    color=style.GREY,
                )
                continue
            axes.bar(x, row["speedup"], width * 0.94, color=shades[t])
            text = tables.format_number(row["speedup"])
            axes.annotate(text, (x, row["speedup"]), (0, 3), textcoords="offset points", ha="center", fontsize=8.5)
    # The published point stands right of its data set's bars, where it can cover nothing.
    x = list(names.values()).index("S30") + 0.56
    for cores, speedup in known:
        axes.plot(x, speedup, marker="D", ms=7, mfc="white", mec=style.INK, mew=1.4, ls="none", zorder=3)
        text = f"published: {speedup:.1f}\nover {cores} core{'s' if cores > 1 else ''}"
        axes.annotate(text, (x, speedup), (9, 0), textcoords="offset points", va="center", fontsize=8.5)
    return _finish_figure_5(measurements, figure, axes, values, shades, known)


def _finish_figure_5(
    measurements: Measurements,
    figure: plt.Figure,
    axes: plt.Axes,
    values: pd.DataFrame,
    shades: dict[int, str],
    known: list[tuple[int, float]],
) -> Drawn:
    axes.set_xticks(range(len(DATA_SETS)), [f"{d.name}\n{_mismatches(d.mismatches)}" for d in DATA_SETS])
    axes.set_xlim(-0.6, len(DATA_SETS) + 0.45)
    axes.set_ylabel("speedup over the CPU (paper tier)")
    axes.grid(axis="y")
    axes.axhline(1, color=style.GREY, lw=0.9, ls=(0, (4, 3)))
    top = max([s for _, s in known] + list(values["speedup"].dropna()) + [1])
    axes.set_ylim(0, top * 1.15)
    measured = values.assign(published=False)
    if len(values):
        handles = [plt.Rectangle((0, 0), 1, 1, color=shade) for shade in shades.values()]
        names = [f"over {t} core{'s' if t > 1 else ''}" for t in shades]
        axes.legend(handles, names, frameon=False, loc="upper left", ncols=2)
        subtitle = tables.describe_sizes(measurements, values)
    else:
        axes.text(
            0.3,
            0.55,
            "Nothing measured.\n" + _NO_GPU,
            transform=axes.transAxes,
            ha="center",
            color=style.GREY,
            bbox={"facecolor": "white", "edgecolor": "none"},
        )
        subtitle = "the one published point in the text (1,000,000 k-mers, human, Tesla C2050, Opteron 2378)"
    style.heading(figure, "Figure 5: GPU search, locating on the CPU, over the CPU version", subtitle)
    rows = [
        {"source": "published", "item": "Figure 5", "case": "S30; mismatches=2", "numerator_threads": cores}
        | {"speedup": speedup, "status": "ok", "published": True}
        for cores, speedup in known
    ]
    return figure, pd.concat([frame for frame in (measured, pd.DataFrame(rows)) if len(frame)], ignore_index=True)


def _published_figure_5(measurements: Measurements) -> list[tuple[int, float]]:
    case = "S30; locating on the CPU"
    points = [
        (1, tables.published_value(measurements, "Figure 5", case, "GPU vs 1 core")),
        (4, tables.published_value(measurements, "Figure 5", case, "GPU vs 4 cores")),
    ]
    return [(cores, value) for cores, value in points if value is not None]


def _mismatches(count: int) -> str:
    return f"{count} mismatch{'' if count == 1 else 'es'}"


# Table I as bars


def kmer_times(measurements: Measurements) -> Drawn:
    """Table I as bars: microseconds per k-mer for each tier, device and peer, a panel a data set."""
    title = "Table I: time per k-mer, from k-mer file to located hits"
    table = tables.long_table(measurements, "Table I")
    measured = _with_reference_gpu(table[table["source"] != "published"])
    values = pd.concat([table[table["source"] == "published"], measured])
    if measured.empty:
        return _empty(title, "", "Nothing was measured."), values
    lanes = _lanes(values)
    figure, panels = plt.subplots(1, len(DATA_SETS), sharey=True, sharex=True, figsize=(11.5, 1.6 + 0.3 * len(lanes)))
    height = float(figure.get_size_inches()[1])
    figure.subplots_adjust(left=0.2, right=0.985, top=1 - 1.02 / height, bottom=0.55 / height, wspace=0.1)
    for axes, data_set in zip(panels, DATA_SETS, strict=True):
        _draw_lanes(axes, values[values["dataset"] == data_set.name], lanes)
        axes.set_title(f"{data_set.name}, {_mismatches(data_set.mismatches)}")
    low, high = values["us_per_kmer"].min(), values["us_per_kmer"].max()
    decades = (math.floor(math.log10(low) - 0.2), math.log10(high) + 1.9)
    step = max(1, math.ceil((decades[1] - decades[0]) / 3.2))
    ticks = range(decades[0], math.floor(decades[1] - 0.5), step)
    panels[0].set_xlim(10 ** decades[0], 10 ** decades[1])
    panels[0].set_xticks([10.0**tick for tick in ticks], [f"{10.0**tick:g}" for tick in ticks])
    panels[0].set_yticks(range(len(lanes)), list(lanes.values()))
    panels[0].set_ylim(len(lanes) - 0.4, -0.6)
    figure.supxlabel("microseconds per k-mer, log scale (lower is better)", fontsize=10, y=0.08 / height, va="bottom")
    style.heading(
        figure,
        title,
        tables.describe_sizes(measurements, measured) + "   ·   published: 1,000,000 k-mers on human",
    )
    return figure, values


def _lanes(values: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Rows of the bar chart: published first, then CPU, GPU and peers; only what was measured."""
    ranks = {"published": 0, "paper": 1, "fast": 2}
    lanes = {}
    for row in tables.rows_of(values):
        method = _method(row)
        kind = "published" if row["source"] == "published" else row["tier"]
        label = method.label
        if kind == "published":
            cores = f"{row['threads']} core{'s' if row['threads'] > 1 else ''}"
            label = "published, " + ("GPU" if row["device"] == "gpu" else f"CPU, {cores}")
        elif row["source"] == "reference":
            label += f" ({row['machine']})"
        key = (
            ranks.get(kind, 3),
            row["device"] == "gpu",
            row["threads"],
            row["source"],
            row["machine"],
            method,
        )
        lanes[key] = label
    return {key: lanes[key] for key in sorted(lanes)}


def _draw_lanes(axes: plt.Axes, values: pd.DataFrame, lanes: dict[tuple[Any, ...], str]) -> None:
    places = {(key[-1], key[3], key[4]): rank for rank, key in enumerate(lanes)}
    for row in tables.rows_of(values):
        y = places[(_method(row), row["source"], row["machine"])]
        published = row["source"] == "published"
        colour = "white" if published else _colour(row["tool"], row["tier"], row["device"])
        scale = row["us_per_kmer"] / row["median_s"]
        edge = style.INK if published else colour
        axes.barh(y, row["us_per_kmer"], height=0.72, color=colour, edgecolor=edge, linewidth=1)
        end = row["us_per_kmer"]
        if row["repeats"] > 1:
            axes.plot([row["min_s"] * scale, row["max_s"] * scale], [y, y], color=style.INK, lw=1.3)
            end = max(end, row["max_s"] * scale)
        text = tables.format_number(row["us_per_kmer"])
        axes.annotate(text, (end, y), (4, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_xscale("log")
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", which="minor", length=0)


# Curves


def throughput(measurements: Measurements) -> Drawn:
    """k-mers a second against k, a panel a number of mismatches, log axis."""
    title = "Throughput against k: k-mers a second, both strands, located"
    values = _with_reference_gpu(tables.throughput_table(measurements))
    if values.empty:
        return _empty(title, "", "Nothing was measured."), values
    counts = sorted(set(values["mismatches"]))
    figure, panels = plt.subplots(
        1, len(counts), sharey=True, squeeze=False, figsize=(max(8.6, 3.1 + 2.7 * len(counts)), 4.4)
    )
    width = float(figure.get_size_inches()[0])
    figure.subplots_adjust(left=0.75 / width, right=1 - 2.35 / width, top=0.79, bottom=0.13, wspace=0.08)
    for axes, count in zip(panels[0], counts, strict=True):
        curves = _curves(values[values["mismatches"] == count], "k", "kmers_per_s")
        _draw_curves(axes, curves)
        axes.set_title(_mismatches(count))
        axes.set_yscale("log")
        axes.set_xlabel("k (bases)")
        axes.set_xticks(sorted(set(values["k"])))
        axes.grid(axis="y")
    panels[0][0].set_ylabel("k-mers per second, log scale")
    low, high = values["kmers_per_s"].min(), values["kmers_per_s"].max()
    panels[0][0].set_ylim(low / 1.6, high * 1.6)
    _label_curves(figure, panels[0], values, "mismatches", counts)
    style.heading(figure, title, tables.describe_sizes(measurements, values))
    return figure, values


def scaling(measurements: Measurements) -> Drawn:
    """Speedup over one thread against threads, with the ideal line."""
    title = "Scaling with CPU threads"
    values = _one_source(tables.scaling_table(measurements))
    good = values[values["status"] == "ok"]
    if good.empty:
        text = "Nothing was measured." if values.empty else "Nothing to draw: results differ between thread counts."
        return _empty(title, "", text), values
    cases = list(dict.fromkeys(values["case"]))
    figure, panels = plt.subplots(1, len(cases), sharey=True, squeeze=False, figsize=(1.9 + 3.1 * len(cases), 4.2))
    width = float(figure.get_size_inches()[0])
    figure.subplots_adjust(left=0.7 / width, right=1 - 1.1 / width, top=0.77, bottom=0.13, wspace=0.08)
    most = int(values["threads"].max())
    for axes, case in zip(panels[0], cases, strict=True):
        axes.plot([1, most], [1, most], color=style.GREY, lw=1, ls=(0, (4, 3)))
        axes.annotate(
            "ideal",
            (most, most),
            (-6, 0),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=style.GREY,
        )
        curves = _curves(good[good["case"] == case].assign(threads_shown=lambda t: t["threads"]), "threads", "speedup")
        _draw_curves(axes, curves)
        axes.set_title(case.replace("; mismatches=", ", D = "))
        axes.set_xticks(sorted(set(values["threads"])))
        axes.set_xlabel("CPU threads")
        axes.grid()
    panels[0][0].set_ylabel("speedup over one thread")
    panels[0][0].set_ylim(0, max(most, good["speedup"].max()) * 1.08)
    _label_curves(figure, panels[0], good, "case", cases, with_threads=False)
    style.heading(figure, title, tables.describe_sizes(measurements, good))
    return figure, values


def _curves(values: pd.DataFrame, x: str, y: str) -> list[tuple[dict[str, Any], list[float], list[float]]]:
    keys = ["source", "machine", "tool", "tier", "device"] + (["threads"] if x != "threads" else [])
    curves = []
    for _, group in values.groupby(keys, sort=False):
        ordered = group.sort_values(x)
        curves.append((tables.rows_of(ordered)[-1], list(ordered[x]), list(ordered[y])))
    return curves


def _draw_curves(axes: plt.Axes, curves: list[tuple[dict[str, Any], list[float], list[float]]]) -> None:
    for last, xs, ys in curves:
        many = last["device"] == "cpu" and last["threads"] > 1
        axes.plot(
            xs,
            ys,
            color=_colour(last["tool"], last["tier"], last["device"]),
            marker="s" if many else "o",
            ls="-" if many or last["device"] == "gpu" else (0, (5, 2)),
            lw=2,
            ms=5,
        )


def _label_curves(
    figure: plt.Figure,
    panels: Iterable[plt.Axes],
    values: pd.DataFrame,
    panel_key: str,
    panel_values: list[Any],
    with_threads: bool = True,
) -> None:
    """Name each curve beside the last panel; a curve absent there is named inside its own last one."""
    y_name = "kmers_per_s" if "kmers_per_s" in values else "speedup"
    x_name = "k" if "k" in values else "threads"
    keys = ["source", "machine", "tool", "tier", "device"] + (["threads"] if with_threads else [])
    ends: dict[Any, list[tuple[dict[str, Any], float, float]]] = defaultdict(list)
    for _, group in values.groupby(keys, sort=False):
        place = max(panel_values.index(value) for value in group[panel_key])
        in_panel = group[group[panel_key] == panel_values[place]].sort_values(x_name)
        last = tables.rows_of(in_panel)[-1]
        ends[place].append((last, float(last[x_name]), float(last[y_name])))
    for place, axes in enumerate(panels):
        _label_panel(figure, axes, ends[place], outside=place == len(panel_values) - 1, with_threads=with_threads)


def _label_panel(
    figure: plt.Figure,
    axes: plt.Axes,
    ends: list[tuple[dict[str, Any], float, float]],
    outside: bool,
    with_threads: bool,
) -> None:
    points_high = figure.get_size_inches()[1] * 72 * axes.get_position().height
    fractions = [float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1]) for _, x, y in ends]
    moved = style.spread(fractions, 14 / points_high)
    for (row, x, _), fraction in zip(ends, moved, strict=True):
        label = _method(row).label if with_threads else _method(row).label.split(", CPU")[0]
        if row["source"] == "reference":
            label += f" ({row['machine']})"
        axes.annotate(
            label,
            (1.03, fraction) if outside else (x, fraction),
            (0, 0) if outside else (0, 8),
            xycoords="axes fraction" if outside else ("data", "axes fraction"),
            textcoords="offset points",
            ha="left" if outside else "right",
            va="center",
            fontsize=9,
            color=_text_colour(_colour(row["tool"], row["tier"], row["device"])),
            annotation_clip=False,
        )


def _text_colour(colour: str) -> str:
    """A darker form of a colour: light hues are hard to read as text on white."""
    factor = min(1.0, 0.42 / style.luminance(colour))
    return "#" + "".join(f"{int(int(colour[i : i + 2], 16) * factor):02x}" for i in (1, 3, 5))


# Shares and sizes


def stages(measurements: Measurements) -> Drawn:
    """Where the time goes from k-mer file to hits in memory: share of each stage, a panel a method."""
    title = "Where the time goes, from k-mer file to hits in memory"
    table = tables.stage_table(measurements)
    values = _with_reference_gpu(table[table["tool"] == "warpseed"])
    if values.empty:
        return _empty(title, "", "Nothing was measured."), values
    panels = _stage_panels(values)
    rows = math.ceil(len(panels) / 2)
    figure, grid = plt.subplots(rows, 2, squeeze=False, sharex=True, figsize=(11, 1.75 + 2.0 * rows))
    height = float(figure.get_size_inches()[1])
    figure.subplots_adjust(left=0.05, right=0.93, top=1 - 1.3 / height, bottom=0.4 / height, wspace=0.26, hspace=0.36)
    names = [s for s in style.STAGE_COLOURS if s in set(values["stage"])]
    unknown = [s for s in dict.fromkeys(values["stage"]) if s not in names]
    colours = {s: style.STAGE_COLOURS.get(s, "#4d4d4d") for s in names + unknown}
    for axes, (label, group) in zip(grid.flat, panels.items(), strict=False):
        _draw_stages(axes, group, colours)
        axes.set_title(label)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    legend_at = (0.12 / 11, 1 - 0.66 / height)
    figure.legend(
        handles,
        [name.replace("_", " ") for name in colours],
        loc="upper left",
        bbox_to_anchor=legend_at,
        ncols=len(colours),
        frameon=False,
        borderaxespad=0,
        handlelength=1,
        columnspacing=1.2,
        fontsize=9.5,
    )
    style.heading(figure, title, tables.describe_sizes(measurements, values) + "; at the right: the sum of the stages")
    return figure, values


def _stage_panels(values: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One panel for each tier and device; on the CPU with the fewest threads, where stages are plainest."""
    panels = {}
    for (tier, device), group in values.groupby(["tier", "device"], sort=False):
        threads = group["threads"].min() if device == "cpu" else group["threads"].max()
        chosen = group[group["threads"] == threads]
        label = _method(tables.rows_of(chosen)[0]).label
        if chosen["source"].iloc[0] == "reference":
            label += f" ({chosen['machine'].iloc[0]})"
        panels[(device, tier != "paper", label)] = chosen
    return {key[2]: panels[key] for key in sorted(panels)}


def _draw_stages(axes: plt.Axes, group: pd.DataFrame, colours: dict[str, str]) -> None:
    present = [data_set for data_set in DATA_SETS if data_set.case in set(group["case"])]
    for y, data_set in enumerate(present):
        own = group[group["case"] == data_set.case].set_index("stage")
        left = 0.0
        for stage, colour in colours.items():
            share = float(own["share"].get(stage, 0.0))
            axes.barh(y, share, left=left, height=0.72, color=colour, edgecolor="white", linewidth=0.5)
            if share >= 0.07:
                ink = style.ink_on(colour)
                axes.text(left + share / 2, y, f"{share:.0%}", ha="center", va="center", fontsize=8.5, color=ink)
            left += share
        seconds = tables.format_seconds(float(own["median_s"].sum()))
        axes.text(1.012, y, seconds, va="center", fontsize=9, color=style.GREY)
    axes.set_yticks(range(len(present)), [data_set.name for data_set in present])
    axes.set_ylim(len(present) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.tick_params(axis="y", length=0)


def index_size(measurements: Measurements) -> Drawn:
    """Bytes per base of each part of the index, beside the paper's formula."""
    title = "Index: bytes per base of each part"
    values = _one_source(tables.index_table(measurements))
    if values.empty:
        return _empty(title, "", "Nothing was measured."), values
    values = values.sort_values("bytes_per_base", ascending=False, kind="stable")
    figure, axes = plt.subplots(figsize=(8, 1.75 + 0.34 * len(values)))
    height = float(figure.get_size_inches()[1])
    longest = max(len(part) for part in values["part"])
    figure.subplots_adjust(left=(0.5 + 0.085 * longest) / 8, right=0.97, top=1 - 0.95 / height, bottom=0.6 / height)
    has_formula = values["formula_bytes_per_base"].notna()
    for y, row in enumerate(tables.rows_of(values)):
        formula = row["formula_bytes_per_base"]
        axes.barh(y, row["bytes_per_base"], height=0.7, color="#56B4E9")
        text = tables.format_number(row["bytes_per_base"])
        end = row["bytes_per_base"]
        if not math.isnan(formula):
            axes.plot(formula, y, marker="D", ms=6.5, mfc="white", mec=style.INK, mew=1.3, ls="none", zorder=3)
            text += f"   (formula {tables.format_number(formula)})"
            end = max(end, formula)
        axes.annotate(text, (end, y), (8, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(values)), list(values["part"]))
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlim(0, float(values[["bytes_per_base", "formula_bytes_per_base"]].max().max()) * 1.28)
    axes.set_xlabel("bytes per base of the reference" + ("   (◇ the paper's formula)" if has_formula.any() else ""))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    row = tables.rows_of(values)[0]
    total = values["bytes"].sum()
    subtitle = (
        f"{tables.machine_label(row['source'], row['machine'])}: {tables.format_bases(float(row['bases']))}, "
        f"{total / 1e6:,.1f} MB in all, "
        f"{tables.format_number(total / float(row['bases']))} bytes a base"
    )
    style.heading(figure, title, subtitle)
    return figure, values


FIGURES = {
    "figure_5": figure_5,
    "times": kmer_times,
    "throughput": throughput,
    "scaling": scaling,
    "stages": stages,
    "index": index_size,
}
"""Figures by the stem of their files."""


def draw_figures(measurements: Measurements, paths: Iterable[str | Path]) -> None:
    """Draw the figures that the files are named after, each once, in every format asked for.

    Parameters
    ----------
    measurements : Measurements
    paths : iterable of paths
        Stems from `FIGURES`, endings .svg, .pdf, .png, or .tsv for the plotted values.

    Raises
    ------
    ValueError
        If a stem is no figure's name.
    """
    style.apply_style()
    wanted: dict[str, list[Path]] = defaultdict(list)
    for path in map(Path, paths):
        if path.stem not in FIGURES:
            raise ValueError(f"{path}: no figure is called {path.stem!r}; figures are {', '.join(FIGURES)}")
        wanted[path.stem].append(path)
    for stem, files in wanted.items():
        figure, values = FIGURES[stem](measurements)
        for path in files:
            if path.suffix == ".tsv":
                tables.write_table(path, values)
        style.save_figure(figure, [path for path in files if path.suffix != ".tsv"])
