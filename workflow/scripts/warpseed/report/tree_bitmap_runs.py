"""Figures 40 and 41 of paper 003: what a run of the dynamic system did when, from its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warpseed.report import style, timelines
from warpseed.report.measurements import Measurements, rows_of
from warpseed.report.tree_bitmap_values import events_table
from warpseed.report.words import format_letters, format_seconds, machine_label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["WORK", "run_lines"]

WORK = {
    "host_to_device": ("copies to GPU", "#E69F00"),
    "kernel": ("kernel", "#D55E00"),
    "device_to_host": ("copies to host", "#CC79A7"),
    "deltas": ("deltas", "#0072B2"),
    "to_bitmap": ("conversion", "#009E73"),
    "match": ("CPU alone", "#56B4E9"),
}
"""Kinds of work by the names of events: their words and colours, in the order of Figure 40."""
_OF_STREAMS = ("host_to_device", "kernel", "device_to_host")
"""Kinds of work that a CUDA stream does; the others are the host's."""
_NAMES = {"one_trie": "CPU alone", "serial": "serial", "concurrent": "concurrent"}
_METRICS = {"one_trie": "total of the CPU alone", "serial": "total of serial", "concurrent": "total of concurrent"}
"""What the thesis prints of each version, by its name in what is published."""
_PRINTED_SIZES = (15, 1_000_000, 100_000)
"""k, bases and a chunk's bases, of the thesis."""


def run_lines(measurements: Measurements, versions: Sequence[str], title: str) -> tuple[Figure, pd.DataFrame]:
    """The events of versions of one stream on one machine, with the totals that the thesis prints.

    On a GPU where there is one, which may be a reference machine's; of the longest stream of which that machine has
    most of the versions.
    """
    events = _of_one_stream(events_table(measurements), versions)
    if events.empty:
        return style.empty_figure(title, "Nothing was measured."), events
    first = rows_of(events)[0]
    sizes = (first["k"], first["length"], int(events["chunk_length"].max()))
    printed = "published" if sizes == _PRINTED_SIZES else f"published, of {format_letters(_PRINTED_SIZES[1])}"
    shown = []
    for version in versions:
        own = events[events["version"] == version]
        if own.empty:
            continue
        device = "" if version == "one_trie" else f", {str(own['device'].iloc[0]).upper()}"
        total = format_seconds(float(own["end"].max()))
        lanes = _lanes(own, by_stream=version == "concurrent")
        theirs = "".join(f"; {printed}: {row['digits']} {row['unit']}" for row in _printed(measurements, version))
        shown.append(timelines.Run(f"{_NAMES[version]}{device}: {total}{theirs}", lanes))
        if (window := _last_turn(own)) is not None:
            title_of_turn = f"the last chunk's copies and kernel, from {format_seconds(window[0])} on"
            shown.append(timelines.Run(title_of_turn, _within(lanes, window), window))
    place = machine_label(first["source"], first["machine"])
    same = ", as published" if sizes == _PRINTED_SIZES else f"\npublished: {_size(*_PRINTED_SIZES)}"
    return timelines.timelines(shown, title, f"{place}: {_size(*sizes)}{same}"), events


def _printed(measurements: Measurements, version: str) -> list[dict[str, Any]]:
    """The row of what the thesis prints as the total of a version."""
    return rows_of(measurements.published[measurements.published["metric"] == _METRICS[version]])


def _of_one_stream(events: pd.DataFrame, versions: Sequence[str]) -> pd.DataFrame:
    """The events to draw; those of the first version, which a GPU may have, are needed."""
    best, chosen = None, events[:0]
    for (source, _, _, k, length), own in events.groupby(["source", "machine", "case", "k", "length"], sort=False):
        own = own[own["version"].isin(list(versions))]
        needed = own[own["version"] == versions[0]]
        if needed.empty:
            continue
        on_gpu = bool((needed["device"] == "gpu").any())
        rank = (on_gpu, source == "here", own["version"].nunique(), length, k)
        if best is None or rank > best:
            best, chosen = rank, own[(own["device"] == ("gpu" if on_gpu else "cpu")) | (own["version"] == "one_trie")]
    return chosen


def _lanes(events: pd.DataFrame, by_stream: bool) -> list[timelines.Lane]:
    """A lane each kind of work; with `by_stream` of each CUDA stream, and of the host."""
    lanes = []
    for stream in [*sorted(set(events["stream"])), None] if by_stream else [None]:
        for name, (words, colour) in WORK.items():
            own = events[events["name"] == name]
            if by_stream:
                own = own[own["stream"] == stream] if stream is not None else own
                if (stream is None) == (name in _OF_STREAMS):
                    continue
            if len(own):
                place = "host: " if stream is None else f"{'AB'[int(stream)]}: "
                label = f"{place}{words}" if by_stream else words
                lanes.append(timelines.Lane(label, colour, list(zip(own["begin"], own["end"], strict=True))))
    return lanes


def _last_turn(events: pd.DataFrame) -> tuple[float, float] | None:
    """From before the last copy to the GPU until behind the kernel and the copy back; None without a GPU."""
    copies = events[events["name"] == "host_to_device"]
    if copies.empty or (events["name"] == "device_to_host").sum() == 0:
        return None
    begin = float(copies["begin"].max())
    end = float(events.loc[events["name"] == "device_to_host", "end"].max())
    around = 0.06 * (end - begin)
    return max(begin - around, 0.0), end + around


def _within(lanes: Sequence[timelines.Lane], window: tuple[float, float]) -> list[timelines.Lane]:
    """The lanes that have something to show between two moments."""
    first, last = window
    return [lane for lane in lanes if any(end >= first and begin <= last for begin, end in lane.spans)]


def _size(k: int, length: int, chunk: int) -> str:
    return f"k = {k}, a stream of {format_letters(length)}, chunks of {chunk:,}"
