"""Draw docs/figures/*.svg, the figures of README and docs, from the committed records of a reference machine.

``PYTHONPATH=workflow/scripts python tools/draw_figures.py`` after new records; ``--check`` only says whether they
agree, with exit code 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from warpseed.report.measurements import load_measurements
from warpseed.report.systems import draw_figures

ROOT = Path(__file__).resolve().parent.parent
FIGURES = {
    "h200_times.svg": ("nvidia-h200", "kmer_seeds", "times"),
    "h200_figure_5.svg": ("nvidia-h200", "kmer_seeds", "figure_5"),
    "h200_human_figure_5.svg": ("nvidia-h200-human", "kmer_seeds", "figure_5"),
    "h200_reads_figure_5.svg": ("nvidia-h200-reads", "one_error", "figure_5"),
    "h200_reads_figure_6.svg": ("nvidia-h200-reads", "one_error", "figure_6"),
    "h200_reads_figure_7.svg": ("nvidia-h200-reads", "one_error", "figure_7"),
}
"""File in docs/figures to the machine, the system and the figure of the report."""


def drawn(folder: Path) -> dict[str, bytes]:
    """Draw every figure below `folder`, each from the records of its machine alone; return file name and content."""
    resources = ROOT / "resources"
    published, papers = sorted((resources / "published").glob("*.tsv")), sorted((resources / "papers").glob("*.yaml"))
    paths = {name: folder / machine / system / f"{figure}.svg" for name, (machine, system, figure) in FIGURES.items()}
    for machine in dict.fromkeys(machine for machine, _, _ in FIGURES.values()):
        records = sorted((resources / "measurements" / machine).glob("*.tsv"))
        own = [paths[name] for name, (measured_on, _, _) in FIGURES.items() if measured_on == machine]
        draw_figures(load_measurements([], records, published, papers), own)
    return {name: path.read_bytes() for name, path in paths.items()}


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        figures = drawn(Path(folder))
    there = {name: ROOT / "docs" / "figures" / name for name in figures}
    stale = [name for name, path in there.items() if not path.exists() or path.read_bytes() != figures[name]]
    if check and stale:
        print(f"docs/figures: {', '.join(stale)} differ from the records: run tools/draw_figures.py.", file=sys.stderr)
        return 1
    for name in stale:
        there[name].write_bytes(figures[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
