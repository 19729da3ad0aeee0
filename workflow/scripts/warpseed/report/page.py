"""results/report.html: one self-contained page that opens anywhere, on a phone and in print.

Styles and pictures are inside the page; the only links are relative ones to the tables and figures of the
same run. page.html.j2 escapes every text, so that no name that comes from outside (data sets, machines, versions,
configuration) can become markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.errors import InputError
from warpseed.measure.provenance import CHANGED
from warpseed.report import parts, tables
from warpseed.report.blocks import Block, Cell, Files, Group, Heading, Link, Row, Table, Text, link_to
from warpseed.report.building import Genome, genomes
from warpseed.report.measurements import Measurements, rows_of
from warpseed.report.papers import Paper
from warpseed.report.systems import SYSTEMS
from warpseed.report.words import Method, format_number, machine_label, side_of
from warpseed.sequences.files import atomic_path

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_page"]

_FOLDER = Path(__file__).parent


class _Card(NamedTuple):
    """Speedups and what they hold for, such as ("20.3", "index open"); of what over what; the spread of each, and where
    they were measured."""

    speedups: list[tuple[str, str]]
    what: str
    spread: str


class _Section(NamedTuple):
    """What the page shows of one system."""

    system: str
    title: str
    citation: str
    cards: list[_Card]
    summary: Table
    blocks: list[Block]
    files: list[list[Link]]


def write_page(
    path: str | Path,
    measurements: Measurements,
    provenance: str | Path | Mapping[str, Any],
    *,
    table_paths: Iterable[str | Path] = (),
    figure_paths: Iterable[str | Path] = (),
    reference_provenance: Iterable[str | Path] = (),
    samples: Iterable[Block] = (),
    systems: Mapping[str, Any] = SYSTEMS,
) -> None:
    """Write the report.

    Parameters
    ----------
    path : path
        The HTML file; links are relative to its folder.
    measurements : Measurements
        From `load_measurements`.
    provenance : path or mapping
        The run's JSON from `provenance.write_provenance`, or its content.
    table_paths, figure_paths : iterable of paths
        Files of the run to link to, each in the folder of its system. An SVG among the figures is put into the page.
    reference_provenance : iterable of paths
        JSON files of reference machines, each in its machine's folder.
    samples : iterable of Block, optional
        What stands of the user's samples, before everything else (`samples.section`).
    systems : mapping, optional
        System to module; those with a paper among the measurements have a section.

    Raises
    ------
    InputError
        If a provenance file is no JSON object.
    ValueError
        If a file lies in no system's folder.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(path).resolve().parent
    machine = dict(provenance) if isinstance(provenance, Mapping) else _read_json(Path(provenance))
    references = {Path(file).resolve().parent.name: _read_json(Path(file)) for file in reference_provenance}
    files = _files_of(folder, list(map(Path, table_paths)), list(map(Path, figure_paths)), measurements.papers)
    shown = {name: module for name, module in systems.items() if name in measurements.papers}
    known = _configurations(measurements, machine, references)
    sections = [
        _section(measurements.of(name), module, files[name]._replace(configurations=known))
        for name, module in shown.items()
    ]
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    config = machine.get("config")
    text = environment.get_template("page.html.j2").render(
        css=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        measured_on=_measured_on(machine),
        samples=list(samples),
        sections=sections,
        machines=_machines(measurements, machine, references),
        configuration=json.dumps(config, indent=2, default=str) if config else "",
    )
    with atomic_path(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable JSON ({error}); measure again to make it") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} holds no JSON object; measure again to make it")
    return document


def _configurations(
    measurements: Measurements, machine: Mapping[str, Any], references: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str], Mapping[str, Any]]:
    """What each machine was configured to measure, by source and machine."""
    here = {("here", name): machine.get("config") or {} for name in measurements.machines("here")}
    return here | {("reference", name): facts.get("config") or {} for name, facts in references.items()}


def _files_of(
    folder: Path, table_paths: list[Path], figure_paths: list[Path], papers: Mapping[str, Paper]
) -> dict[str, Files]:
    """Each system's files: those in the folder of its name."""
    lost = [path for path in (*table_paths, *figure_paths) if path.parent.name not in papers]
    if lost:
        raise ValueError(f"{lost[0]}: {lost[0].parent.name!r}, the folder, is no system of these measurements")
    return {
        system: Files(
            folder,
            system,
            [path for path in table_paths if path.parent.name == system],
            [path for path in figure_paths if path.parent.name == system],
        )
        for system in papers
    }


def _section(measurements: Measurements, module: Any, files: Files) -> _Section:
    paper = measurements.paper
    summary = tables.summary_table(module.speedups(measurements))
    heads = [Cell("Speedup of"), Cell("over", css="text"), *map(Cell, ("median", "lowest", "highest", "cases"))]
    groups = parts.speedup_rows(_worth_a_row(summary, paper), measurements)
    listed = [[link_to(files.folder, path, path.name)] for path in files.tables]
    for stem in dict.fromkeys(path.stem for path in files.figures):
        own = [path for path in files.figures if path.stem == stem]
        listed.append([link_to(files.folder, path, path.name) for path in own])
    return _Section(
        paper.system,
        f"Paper {paper.id}: {paper.name}",
        ". ".join(str(fact) for fact in (paper.authors, paper.title, paper.year) if fact) + ".",
        _cards(summary, measurements),
        Table([heads], groups, len(heads)),
        module.section(measurements, files),
        listed,
    )


# Summary


def _worth_a_row(summary: pd.DataFrame, paper: Paper) -> pd.DataFrame:
    """Leave out what stands in a figure (threads), in a table of its own, or says something beside a peer alone."""
    quiet = [item for item, facts in paper.items.items() if not facts.get("summary", True)]
    among_ours = (summary["scope"] == "process") & (summary["comparison"] != "fast_over_peer")
    return summary[~summary["comparison"].isin(["threads", "gpus"]) & ~among_ours & ~summary["item"].isin(quiet)]


_CARDS = (
    # comparison, device of the numerator and of the denominator, threads of the numerator: fewest or most
    ("fast_over_peer", "cpu", "cpu", "fewest"),
    ("fast_over_paper", "cpu", "cpu", "fewest"),
    ("gpu_over_cpu", "cpu", "gpu", "fewest"),
    ("gpu_over_cpu", "cpu", "gpu", "most"),
)


def _cards(summary: pd.DataFrame, measurements: Measurements) -> list[_Card]:
    """The speedups of the paper's first item or else another; of this run and the paper tier where there are such."""
    first = next(iter(measurements.paper.items), "")
    known = genomes(measurements) if measurements.paper.searches_an_index else {}
    cards = []
    for comparison, top, bottom, threads in _CARDS:
        own = summary[(summary["comparison"] == comparison) & (summary["cases"] > 0)]
        own = own[(own["numerator_device"] == top) & (own["denominator_device"] == bottom)]
        for column, preferred in (
            ("item", first),
            ("scope", "index_open"),
            ("source", "here"),
            ("numerator_tier", "paper"),
        ):
            own = own[own[column] == preferred] if (own[column] == preferred).any() else own
        if own.empty:
            continue
        own = own[own["machine"] == own["machine"].iloc[0]].sort_values("numerator_threads", kind="stable")
        if threads == "most" and own["numerator_threads"].nunique() < 2:
            continue
        cards.append(_card(rows_of(own)[0 if threads == "fewest" else -1], summary, measurements, known))
    return cards


def _card(
    row: dict[str, Any],
    summary: pd.DataFrame,
    measurements: Measurements,
    known: Mapping[tuple[str, str], Genome],
) -> _Card:
    process = _as_processes(row, summary) if row["scope"] == "index_open" else None
    sides = {measurements.paper.inside if row["scope"] == "index_open" else "as a process": row}
    sides |= {"as a process": process} if process is not None else {}
    spreads = [f"{scope}: {_spread(side)}" if len(sides) > 1 else _spread(side) for scope, side in sides.items()]
    where = machine_label(row["source"], row["machine"]) + _on_genome(row, known)
    return _Card(
        [(format_number(side["median"]), scope) for scope, side in sides.items()],
        f"{side_of(row, 'denominator')}, over {side_of(row, 'numerator')}",
        "; ".join([*spreads, measurements.paper.printed(row["item"]), where]),
    )


def _spread(row: Mapping[str, Any]) -> str:
    """What a median is of."""
    low, high = format_number(row["lowest"]), format_number(row["highest"])
    return f"median of {row['cases']} cases, {low} to {high}" if row["cases"] > 1 else "one case"


def _on_genome(row: Mapping[str, Any], known: Mapping[tuple[str, str], Genome]) -> str:
    """The genome that a machine's index is of, where it is known."""
    genome = known.get((row["source"], row["machine"]))
    return f", {genome.label}" if genome and genome.label else ""


def _as_processes(row: dict[str, Any], summary: pd.DataFrame) -> dict[str, Any] | None:
    """The summary of the same two methods as whole processes, where both were measured so: maybe in other cases."""
    same = ["source", "machine", "item", "comparison"]
    same += [f"{side}_{key}" for side in ("numerator", "denominator") for key in Method._fields]
    own = summary[(summary["scope"] == "process") & (summary["cases"] > 0)]
    for column in same:
        own = own[own[column] == row[column]]
    return rows_of(own)[0] if len(own) else None


# Machines


def _measured_on(machine: Mapping[str, Any]) -> str:
    hardware = [machine.get("cpu"), f"{machine.get('cores', '?')} cores", _gpus(machine) or "no GPU"]
    facts = ", ".join(str(fact) for fact in hardware if fact)
    commit = str(machine.get("commit", "unknown"))[:20]
    return f"Measured on {facts}; commit {commit}; written {machine.get('written', 'at an unknown time')}."


def _machines(
    measurements: Measurements, machine: Mapping[str, Any], references: Mapping[str, Mapping[str, Any]]
) -> list[Block]:
    blocks: list[Block] = [Heading("Here"), _facts(machine)]
    for name in measurements.machines("reference"):
        blocks.append(Heading(f"Reference machine: {name}"))
        known = name in references
        blocks.append(_facts(references[name]) if known else Text(f"Its records: resources/measurements/{name}/."))
    shown = [machine, *references.values()]
    if any(str(facts.get("commit", "")).endswith(CHANGED) for facts in shown):
        blocks.append(Text(f"A commit with {CHANGED}: the files of the checkout differed from it.", soft=True))
    return blocks


def _facts(machine: Mapping[str, Any]) -> Table:
    memory, gpu_memory = machine.get("memory_bytes"), machine.get("gpu_memory_bytes")
    gpu = _gpus(machine) or "none"
    if gpu_memory:
        gpu += f", {gpu_memory / 2**30:.0f} GiB" + (" each" if (machine.get("gpu_count") or 1) > 1 else "")
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
    rows = [Row([Cell(name), Cell(str(fact), css="text facts")]) for name, fact in facts.items() if fact]
    return Table([], [Group("", rows)], 2)


def _gpus(machine: Mapping[str, Any]) -> str:
    """What GPUs a machine has, such as "2 × NVIDIA H200"; "" for none."""
    name, count = machine.get("gpu") or "", machine.get("gpu_count") or 1
    return f"{count} × {name}" if name and count > 1 else name


def _pairs(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {'not installed' if v is None else v}" for name, v in (values or {}).items())
