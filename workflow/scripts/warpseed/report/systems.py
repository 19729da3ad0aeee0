"""The systems that are reported, and whose a file is.

A system's module has TABLES and FIGURES (functions of the system's measurements by the stem of their files, in the
order of the page), `speedups` (all that its summary is made of) and `section` (the blocks of its part of the page);
one whose samples are searched in no reference has SAMPLES, their table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from warpseed.report import ebwt, kmer_seeds, mems, one_error, tree_bitmap
from warpseed.report.blocks import SampleTable
from warpseed.report.measurements import Measurements

__all__ = ["SAMPLE_TABLES", "SYSTEMS", "draw_figures", "write_tables"]

SYSTEMS: Mapping[str, Any] = {
    "kmer_seeds": kmer_seeds,
    "one_error": one_error,
    "mems": mems,
    "tree_bitmap": tree_bitmap,
    "ebwt": ebwt,
}
"""System to its module, in the order of the page."""
SAMPLE_TABLES: Mapping[str, SampleTable] = {
    system: module.SAMPLES for system, module in SYSTEMS.items() if hasattr(module, "SAMPLES")
}
"""System to the table of its samples, of every system that searches none."""


def _function(systems: Mapping[str, Any], kind: str, path: Path) -> Any:
    """What makes the file: the folder that it lies in names the system, its stem the table or figure."""
    system = path.parent.name
    if system not in systems:
        raise ValueError(f"{path}: {system!r}, the folder, is no system; systems are {', '.join(systems)}")
    known = getattr(systems[system], f"{kind.upper()}S")
    if path.stem not in known:
        raise ValueError(f"{path}: no {kind} is called {path.stem!r}; {system} has {', '.join(known)}")
    return known[path.stem]


def write_tables(measurements: Measurements, paths: Iterable[str | Path], systems: Mapping[str, Any] = SYSTEMS) -> None:
    """Write the tables that the files are named after.

    Parameters
    ----------
    measurements : Measurements
    paths : iterable of paths
        `<system>/<table>.tsv`, below any folder; tables are those of the system's TABLES.
    systems : mapping, optional
        System to module.

    Raises
    ------
    ValueError
        If a folder is no system's, or a stem no table's.
    """
    from warpseed.report.tables import write_table

    for path in map(Path, paths):
        make = _function(systems, "table", path)
        write_table(path, make(measurements.of(path.parent.name)))


def draw_figures(measurements: Measurements, paths: Iterable[str | Path], systems: Mapping[str, Any] = SYSTEMS) -> None:
    """Draw the figures that the files are named after, each once, in every format asked for.

    Parameters
    ----------
    measurements : Measurements
    paths : iterable of paths
        `<system>/<figure>.<ending>`, below any folder; figures are those of the system's FIGURES, endings .svg,
        .pdf, .png, or .tsv for the plotted values.
    systems : mapping, optional
        System to module.

    Raises
    ------
    ValueError
        If a folder is no system's, or a stem no figure's.
    """
    from warpseed.report.style import apply_style, save_figure
    from warpseed.report.tables import write_table

    apply_style()
    wanted: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in map(Path, paths):
        _function(systems, "figure", path)
        wanted[path.parent.name, path.stem].append(path)
    for (system, _), files in wanted.items():
        figure, values = _function(systems, "figure", files[0])(measurements.of(system))
        for path in files:
            if path.suffix == ".tsv":
                write_table(path, values)
        save_figure(figure, [path for path in files if path.suffix != ".tsv"])
