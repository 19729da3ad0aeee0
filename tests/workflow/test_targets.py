"""Targets named as a system: what they measure, and that they measure nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from workflow_runs import SMOKE, snakemake

pytestmark = pytest.mark.workflow

NO_MEMS = "mems={datasets: {pacbio: null, pacbio_20: null, pacbio_index: null}}"
NO_READS = "one_error={datasets: {mixed: null, r100: null}}"


def planned(target: str, folder: Path, *more: str) -> set[str]:
    """The rules of a dry run."""
    done = snakemake(target, "-n", "--configfile", SMOKE, *more, directory=folder)
    assert done.returncode == 0, done.stdout
    return set(re.findall(r"^(\w+) +\d+$", done.stdout, re.MULTILINE)) - {"total"}


@pytest.mark.parametrize(
    ("target", "timed"),
    [
        ("mems", {"time_mems"}),
        ("one_error", {"time_one_error"}),
        ("tree_bitmap", {"time_tree_bitmap"}),
        ("results/figures/ebwt/table_1.svg", {"time_ebwt", "time_collections"}),
        ("results/tables/kmer_seeds/table_1.tsv", {"time_kmer_seeds"}),
    ],
)
def test_only_the_system_that_is_asked_for_is_measured(target: str, timed: set[str], tmp_path: Path) -> None:
    rules = planned(target, tmp_path, "--config", "peers=False")
    assert {rule for rule in rules if rule.startswith("time_")} - {"time_gpu_limits"} == timed
    assert len([rule for rule in rules if rule.startswith("draw_")]) == 1


@pytest.mark.parametrize(("target", "without"), [("mems", NO_MEMS), ("one_error", NO_READS)])
def test_a_system_without_data_sets_asks_for_no_index(target: str, without: str, tmp_path: Path) -> None:
    assert planned(target, tmp_path, "--config", without) == {f"draw_{target}", target}
