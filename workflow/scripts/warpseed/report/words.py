"""Numbers, names and labels as the report shows them. Labels are made when something is shown, and read nowhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from warpseed.errors import how_many
from warpseed.measure.records import split_parameters
from warpseed.report.papers import Paper

_COUNTED = {
    "mismatches": ("mismatch", "mismatches"),
    "edits": ("edit", "edits"),
    "strands": ("strand", "strands"),
    "slots": ("slot", "slots"),
    "block": ("thread a block", "threads a block"),
}
"""Parameters that are a number of something: one of it, and several."""

__all__ = [
    "METHOD",
    "Method",
    "case_title",
    "describe_parameters",
    "format_bases",
    "format_bytes",
    "format_ends",
    "format_letters",
    "format_number",
    "format_range",
    "format_scaled",
    "format_seconds",
    "machine_label",
    "method_of",
    "side_of",
    "slug",
    "speedup_cell",
]


METHOD = ["source", "machine", "tier", "device", "gpus", "threads"]
"""Columns that tell the methods of one tool on all machines apart."""


class Method(NamedTuple):
    """What was timed: a tool's tier on a device with so many GPUs, or so many CPU threads (0 for every GPU run)."""

    tool: str
    tier: str
    device: str
    gpus: int
    threads: int

    @property
    def name(self) -> str:
        """The tier of ours, or the tool's name."""
        return f"{self.tier} tier" if self.tool == "warpseed" else self.tool

    @property
    def label(self) -> str:
        """A name for readers, such as "fast tier, CPU, 2 threads"."""
        return f"{self.name}, {self.place}"

    @property
    def place(self) -> str:
        """Where it ran, such as "CPU, 2 threads" or "GPU"."""
        if self.device == "gpu":
            return "GPU" if self.gpus < 2 else f"{self.gpus} GPUs"
        return f"CPU, {how_many(self.threads, 'thread')}"


def method_of(row: Mapping[str, Any]) -> Method:
    """The method of a row of `times`: host threads do not tell GPU runs apart."""
    threads = 0 if row["device"] == "gpu" else int(row["threads"])
    return Method(row["tool"], row["tier"], row["device"], int(row["gpus"]), threads)


def side_of(row: Mapping[str, Any], side: str, paper: Paper | None = None) -> str:
    """The label of a speedup's `numerator` or `denominator`, with what its item says of its methods."""
    label = Method(*(row[f"{side}_{key}"] for key in Method._fields)).label
    special = paper.items.get(row[f"{side}_item"], {}).get("method") if paper else None
    return f"{label}, {special}" if special else label


def format_number(value: float | None) -> str:
    """Three significant digits without an exponent where that stays short; "" for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    if abs(value) < 1000:
        value = float(f"{value:.3g}")  # first, or 9.999 would become 10.00
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or value == 0:
        return f"{value:.2f}"
    if size >= 1e-4:
        return f"{value:.{2 - math.floor(math.log10(size))}f}"
    return f"{value:.2e}"


def _unit_of(seconds: float) -> tuple[float, str]:
    return next(((size, unit) for size, unit in ((1.0, "s"), (1e-3, "ms")) if seconds >= size), (1e-6, "µs"))


def format_seconds(seconds: float | None) -> str:
    """A time in the unit that suits it: s, ms or µs; "" for None and NaN."""
    if seconds is None or math.isnan(seconds):
        return ""
    size, unit = _unit_of(seconds)
    return f"{format_number(seconds / size)} {unit}"


def format_range(low: float, high: float) -> str:
    """Two times in one unit, such as "4.53 to 4.79 ms"."""
    size, unit = _unit_of(high)
    return f"{format_number(low / size)} to {format_number(high / size)} {unit}"


def format_ends(counts: Iterable[int], written: Callable[[int], str] = "{:,}".format) -> str:
    """The least and the most of some numbers, such as "1,000 to 20,000"; one of them where they are the same."""
    known = sorted({int(count) for count in counts})
    return " to ".join(written(count) for count in dict.fromkeys((known[0], known[-1])))


def format_scaled(value: float) -> str:
    """Three significant digits, with k, M or G behind them, such as "204 M" or "6.34 G"; "" for NaN."""
    if math.isnan(value):
        return ""
    value = float(f"{value:.3g}")  # first, or 999,700 would become 1000 k
    size, letter = next(((size, s) for size, s in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if value >= size), (1.0, ""))
    return f"{value / size:.3g}{letter}"


def format_bytes(size: float) -> str:
    """Bytes in the decimal unit that suits them, such as "17.2 GB"."""
    scaled = format_scaled(size)
    return f"{scaled}B" if size >= 1e3 else f"{scaled} bytes"


def format_bases(count: float) -> str:
    """A number of bases for readers, such as "4.64 Mbp"."""
    for size, unit in ((1e9, "Gbp"), (1e6, "Mbp"), (1e3, "kbp")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bp"


def format_letters(count: float) -> str:
    """A number of bases of a stream for readers, such as "2 Mbases"."""
    return format_bases(count).replace("bp", "bases")


def machine_label(source: str, machine: str) -> str:
    """A machine's name, and whether the numbers are from this run or from a reference run."""
    return f"{machine} (here)" if source == "here" else f"{machine} (reference machine)"


def describe_parameters(parameters: str) -> str:
    """Parameters for readers: "k=20; mismatches=1" becomes "k = 20, 1 mismatch"."""
    words = []
    for key, value in split_parameters(parameters).items():
        one, many = _COUNTED.get(key, ("", ""))
        words.append(f"{value} {one if value == '1' else many}" if one else f"{key} = {value}")
    return ", ".join(words)


def case_title(case: str, parameters: str) -> str:
    """A case for readers, such as "S20: k = 20, 1 mismatch"."""
    words = describe_parameters(parameters)
    return f"{case}: {words}" if words else case


def speedup_cell(row: Mapping[str, Any]) -> str:
    """A speedup as a table shows it: the number, or the reason why there is none."""
    return format_number(row["speedup"]) if row["status"] == "ok" else str(row["status"])


def slug(text: str) -> str:
    """A text as a part of a column's name: no blanks or commas."""
    return text.replace(", ", "_").replace(" ", "_")
