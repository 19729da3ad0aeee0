"""What building an index took: of ours and of other tools, on every machine, with the genome that it is of; and what
making that genome took, where it was simulated to be like a human one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from warpseed.errors import how_many
from warpseed.measure.records import SHARED, split_parameters
from warpseed.report.blocks import Block, Cell, Group, Heading, Row, Table, Text, texts
from warpseed.report.measurements import Measurements, rows_of, times
from warpseed.report.words import format_bases, format_bytes, format_seconds, machine_label

__all__ = ["Genome", "genomes", "index_build"]

_WORDS = {
    "suffix_array": "suffixes sorted",
    "tagged_rows": "rows with the bases behind them, on the GPU",
    "total": "built in memory",
    "save": "written to disk",
    "tags": "tags of its rows",
    "process": "the whole process",
}
"""Stages of a build that are shown."""
_NOTE = (
    "Medians of as many repeats as stand beside them. Each is of the version that its machine has (its commit stands "
    "under Machines and versions), so that times of one genome on like machines differ also by what was changed "
    "between them. A version that sorts both directions of the genome side by side adds the times of both, which may "
    "be more than all of building in memory."
)
_SIMULATION = "simulation"
_PEAK, _BESIDE = "peak memory", "beside a tiny genome's"
_NOTES_OF = {
    _PEAK: "Peak memory is that of a whole process, where it was recorded.",
    _BESIDE: (
        "In the last column that of a tiny genome is taken off, which is what Python and libraries take; where none "
        "was measured on as many threads, that on the nearest number of them."
    ),
}
"""What is said of columns, where these stand."""
_TINY = 10_000
"""Bases of a genome that take next to nothing."""


class Genome(NamedTuple):
    """What a machine's index is of: its name, and its bases (not a number where no record tells them)."""

    name: str
    bases: float

    @property
    def label(self) -> str:
        """Both for readers, such as "celegans_WS220, 100 Mbp"; "" where neither is known."""
        size = "" if self.bases != self.bases else format_bases(self.bases)
        return ", ".join(fact for fact in (self.name, size) if fact)


def genomes(measurements: Measurements) -> dict[tuple[str, str], Genome]:
    """What each machine's index is of, by source and machine; machines with records of several are left out."""
    records = measurements.records
    own = records[(records["item"] == "index") & (records["metric"] == "count") & (records["unit"] == "bases")]
    found: dict[tuple[str, str], Genome] = {}
    for (source, machine), group in own.groupby(["source", "machine"], sort=False):
        names = {split_parameters(parameters).get("reference", "") for parameters in group["parameters"]}
        if len(names) == 1 and group["value"].nunique() == 1:
            found[str(source), str(machine)] = Genome(names.pop(), float(group["value"].iloc[0]))
    return found


def index_build(measurements: Measurements, *, of_all: bool = False) -> list[Block]:
    """What building the index took, of ours and of peers, and the peak memory of whole processes; and what simulating
    its genome took.

    Parameters
    ----------
    of_all : bool
        Also the index that all systems search as machines built it that measured another system: for one section of
        the page, so that nothing stands there once for every system.
    """
    shown = times(measurements, ["index", _SIMULATION])
    if shown.empty:
        return []
    if not of_all:
        own = _machines_of_this_system(measurements)
        places = zip(shown["system"], shown["source"], shown["machine"], strict=True)
        shown = shown[[system != SHARED or (source, machine) in own for system, source, machine in places]]
    simulated = [_simulated(row) for row in rows_of(shown[shown["item"] == _SIMULATION])]
    built = shown[(shown["item"] == "index") & shown["stage"].isin(list(_WORDS))]
    if built.empty:
        return []
    known = genomes(measurements)
    peaks = _peaks(measurements)
    groups: dict[str, list[list[Cell]]] = {}
    for row in rows_of(built):
        title, cells = _cells(row, known, peaks)
        groups.setdefault(title, []).append(cells)
    heads = [*texts("Tool", "what is timed"), *map(Cell, ("threads", "repeats", "time"))]
    heads += map(Cell, (_PEAK, "bytes a base", _BESIDE))
    rows = [cells for group in groups.values() for cells in group]
    kept = [place for place in range(len(heads)) if any(cells[place].text for cells in rows)]
    shown_groups = [
        Group(title, [Row([cells[place] for place in kept]) for cells in group]) for title, group in groups.items()
    ]
    table = Table([[heads[place] for place in kept]], shown_groups, len(kept))
    notes = [_NOTE, *(_NOTES_OF[heads[place].text] for place in kept if heads[place].text in _NOTES_OF)]
    return [Heading("Building the index"), Text(" ".join(notes), soft=True), table, *simulated]


def _simulated(row: Mapping[str, Any]) -> Text:
    """A sentence on the genome that was made: its bases, Ns among them, seconds, threads and machine."""
    bases = format_bases(float(split_parameters(row["parameters"])["bases"]))
    threads, machine = how_many(row["threads"], "thread"), machine_label(row["source"], row["machine"])
    return Text(
        f"The genome {row['case']}, {bases} with runs of N, was simulated and written in "
        f"{format_seconds(row['median_s'])} on {threads}: {machine}."
    )


def _machines_of_this_system(measurements: Measurements) -> set[tuple[str, str]]:
    """Source and name of the machines with records of the system itself."""
    records = measurements.records
    own = records[records["system"] != SHARED]
    return set(zip(own["source"], own["machine"], strict=True))


_SAME_COMMAND = ["source", "machine", "tool", "tier", "device", "stage"]
_MEMORY_KEYS = [*_SAME_COMMAND, "threads", "case", "parameters"]


def _peaks(measurements: Measurements) -> dict[Any, float]:
    records = measurements.records
    memory = records[(records["item"] == "index") & (records["metric"] == "memory")]
    peaks: dict[Any, float] = memory.groupby(_MEMORY_KEYS)["value"].median().to_dict()
    return peaks


def _of_a_tiny_genome(row: Mapping[str, Any], peaks: Mapping[Any, float]) -> float:
    """The peak of the same command on the same machine where it indexes next to nothing, on as many threads or about as
    many; not a number if unknown."""
    found: dict[int, float] = {}
    for place, peak in peaks.items():
        other = dict(zip(_MEMORY_KEYS, place, strict=True))
        bases = float(split_parameters(other["parameters"]).get("bases") or math.inf)
        if bases <= _TINY and all(row[key] == other[key] for key in _SAME_COMMAND):
            found[abs(other["threads"] - row["threads"])] = peak
    return found[min(found)] if found else math.nan


def _cells(
    row: Mapping[str, Any], known: Mapping[tuple[str, str], Genome], peaks: Mapping[Any, float]
) -> tuple[str, list[Cell]]:
    """The machine and the genome, and a row: what built it, the stage, and how long it took."""
    genome = known.get((row["source"], row["machine"]), Genome("", math.nan))
    first = split_parameters(row["parameters"]).get("bases")
    if first:
        part = f"the first {format_bases(float(first))}"
        genome, label = Genome(genome.name, float(first)), f"{genome.name}, {part}" if genome.name else part
    else:
        label = genome.label
    title = ": ".join(fact for fact in (machine_label(row["source"], row["machine"]), label) if fact)
    cells = texts(_builder(row), _WORDS[row["stage"]])
    cells += [Cell(str(row["threads"])), Cell(str(row["repeats"])), Cell(format_seconds(row["median_s"]))]
    peak = peaks.get(tuple(row[key] for key in _MEMORY_KEYS))
    if peak is None:
        return title, [*cells, *texts("", "", "")]
    beside = peak - _of_a_tiny_genome(row, peaks)
    return title, [*cells, Cell(format_bytes(peak)), *(Cell(_a_base(taken, genome)) for taken in (peak, beside))]


def _a_base(taken: float, genome: Genome) -> str:
    """Bytes a base; "" of a tiny genome, or where either is not known."""
    return f"{taken / genome.bases:.2f}" if genome.bases > _TINY and taken == taken else ""


def _builder(row: Mapping[str, Any]) -> str:
    """What builds an index: a tool, of ours the run's own index or the parts of one tier, on the CPU or on a GPU."""
    parts = "" if row["tier"] == "-" else f", the {row['tier']} tier's parts"
    return f"{row['tool']}{' on a GPU' if row['device'] == 'gpu' else ''}{parts}"
