"""What README says of two GPUs beside one is what their record says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "resources" / "measurements" / "nvidia-h100-two"
README, HEAD = (ROOT / "README.md").read_text(encoding="utf-8"), "| queries | results | one GPU | two |"
ABOVE, ROWS = README.split(HEAD)[0], rows_of(README, HEAD)
RECORDS = pd.concat([read_records(FOLDER / f"{system}.tsv") for system in ("kmer_seeds", "one_error", "mems")])
SEARCHES = RECORDS[(RECORDS["item"] == "in_memory") & (RECORDS["metric"] == "time")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_two_gpus_beside_one(row: list[str]) -> None:
    name, results, *cells = row
    own = SEARCHES[SEARCHES["results"] == int(results.replace(",", ""))]
    [queries] = set(own["queries"])
    told = re.match(r"([\d.,]+)(M?) ", name)
    assert told
    number = float(told[1].replace(",", ""))
    assert number == (round(queries / 1e6, 1) if told[2] else queries)
    assert len(set(own["parameters"])) == len(set(own["digest"])) == 1
    took = 1e3 * own.groupby(["stage", "gpus"])["value"].median()
    ratio = took["total", 1] / took["total", 2]
    totals = [f"{took['total', 1]:.1f}", f"{took['total', 2]:.1f}", f"{ratio:.2f}"]
    assert cells == [*totals, f"{took['kernel', 1]:.1f}", f"{took['kernel', 2]:.1f}"]


def test_what_is_said_above_the_table() -> None:
    """How stages shrink, and how far repeats are apart."""
    own = SEARCHES.groupby(["results", "stage", "gpus"])["value"].median()
    text = " ".join(ABOVE.split())
    told = re.search(
        r"Kernels take (\S+) to (\S+) of the time, copies to the GPUs (\S+) to (\S+), results (\S+) to (\S+):", text
    )
    assert told
    expected = []
    for stage in ("kernel", "host_to_device", "device_to_host"):
        shares = [own[results, stage, 2] / own[results, stage, 1] for results in set(SEARCHES["results"])]
        expected += [f"{min(shares):.2f}", f"{max(shares):.2f}"]
    assert list(told.groups()) == expected
    totals = SEARCHES[SEARCHES["stage"] == "total"].groupby(["results", "gpus"])["value"]
    told = re.search(r"differ by at most (\d+) %", text)
    assert told and told[1] == f"{100 * (totals.max() / totals.min() - 1).max():.0f}"


def test_all_that_was_measured_is_there() -> None:
    assert {int(row[1].replace(",", "")) for row in ROWS} == set(SEARCHES["results"])


def test_the_machine_of_two_gpus() -> None:
    machine = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))
    [cores] = re.findall(r"host with (\d+) cores", " ".join(ABOVE.split("\n\n")[-2].split()))
    assert (machine["gpu_count"], machine["gpu"], machine["cores"]) == (2, "NVIDIA H100 80GB HBM3", int(cores))
