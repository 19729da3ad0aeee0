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
MEASUREMENTS = ROOT / "resources" / "measurements"
README, HEAD = (ROOT / "README.md").read_text(encoding="utf-8"), "| queries | results | one GPU | two |"
ABOVE, ROWS = README.split(HEAD)[0], rows_of(README, HEAD)
BELOW = " ".join(README.split(HEAD)[1].split())
DECISIONS = " ".join((ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").split())


def searches_of(machine: str) -> pd.DataFrame:
    """Times of a machine's searches in memory."""
    paths = [MEASUREMENTS / machine / f"{system}.tsv" for system in ("kmer_seeds", "one_error", "mems")]
    records = read_records(paths)
    return records[(records["item"] == "in_memory") & (records["metric"] == "time")]


SEARCHES = searches_of("nvidia-h200-two")


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
    told = re.search(r"differ by at most (\d+) % \(`super` on one GPU, the others (\d+) %\)", text)
    apart = 100 * (totals.max() / totals.min() - 1)
    [named] = {int(results.replace(",", "")) for name, results, *_ in ROWS if "`super`" in name}
    assert told and list(told.groups()) == [f"{apart[named, 1]:.0f}", f"{apart.drop((named, 1)).max():.0f}"]


@pytest.mark.parametrize("machine", ["nvidia-h100-two", "nvidia-h200-two"])
def test_how_many_times_as_fast_two_are(machine: str) -> None:
    """The sentence below the table, and what is left of it in docs/decisions.md."""
    took = 1e3 * searches_of(machine).groupby(["stage", "gpus", "results"])["value"].median()
    ratios = took["total", 1] / took["total", 2]
    told = f"{ratios.min():.2f} to {ratios.max():.2f} times"
    more = {stage: took[stage, 2] - took[stage, 1] / 2 for stage in ("kernel", "host_to_device", "device_to_host")}
    kernels, copies = more["kernel"], pd.concat([more["host_to_device"], more["device_to_host"]])
    left = [f"{own.min():.1f} to {own.max():.1f}" for own in (kernels, copies)]
    if machine == "nvidia-h100-two":
        assert f"Two H100s of 80 GB are {told} as fast as one (records: `{machine}`" in BELOW
        assert f"Two GPUs are now {told} as fast as one (record: `{machine}`)" in DECISIONS
        assert f"kernels take {left[0]} ms more than half" in DECISIONS
        assert f"Copies take {left[1]} ms more" in DECISIONS
    else:
        assert f"two H200s, in a later version, {told} (record: `{machine}`)" in DECISIONS
        assert f"those of the H200s at most {kernels.max():.1f};" in DECISIONS
        assert f"those of the H200s {left[1]}." in DECISIONS


def test_all_that_was_measured_is_there() -> None:
    assert {int(row[1].replace(",", "")) for row in ROWS} == set(SEARCHES["results"])


def test_the_machine_of_two_gpus() -> None:
    machine = json.loads((MEASUREMENTS / "nvidia-h200-two" / "provenance.json").read_text(encoding="utf-8"))
    [cores] = re.findall(r"host with (\d+) cores", " ".join(ABOVE.split("\n\n")[-2].split()))
    assert (machine["gpu_count"], machine["gpu"], machine["cores"]) == (2, "NVIDIA H200", int(cores))


def test_distances_of_words_on_two_gpus() -> None:
    """The table of docs/ebwt.md, and what it says of it."""
    records = read_records([MEASUREMENTS / "nvidia-h200-two-ebwt" / "ebwt.tsv"])
    assert set(records["repeat"]) == set(range(9)) and (records.groupby("case")["digest"].nunique() == 1).all()
    took = 1e3 * records[records["metric"] == "time"].groupby(["item", "case", "gpus", "stage"])["value"].median()
    page = (ROOT / "docs" / "ebwt.md").read_text(encoding="utf-8")
    lines = page.split("| words | GPUs | all |")[1].split("\n\n")[0].splitlines()[2:]
    stages = "total", "host_to_device", "order", "transform", "distances", "device_to_device", "device_to_host"
    cases = [
        ("pairs", "2,000 words of 20,000 letters"),
        ("pairs", "20,000 words of 5,000 letters"),
        ("pairs", "40,000 words of 5,000 letters"),
        ("transform", "4,000,000 words of 100 letters"),
    ]
    assert set(cases) == set(zip(records["item"], records["case"], strict=True)) and len(lines) == 2 * len(cases)
    for number, line in enumerate(lines):
        (item, case), gpus = cases[number // 2], 1 + number % 2
        name, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        sign = {"pairs": "δ", "transform": "L"}[item]
        assert (name, cells[0]) == (f"{sign}, {case.replace('words of', 'of')}" if gpus == 1 else "", str(gpus))
        own = [took.get((item, case, gpus, stage)) for stage in stages]
        assert cells[1:] == ["" if each is None else f"{each:.{1 if each < 100 else 0}f}" for each in own]
    ratios = [f"{took[(*case, 1, 'total')] / took[(*case, 2, 'total')]:.2f}" for case in cases]
    assert "Two are {}, {}, {} and {} times as fast as one.".format(*ratios) in " ".join(page.split())


def test_streams_on_two_gpus() -> None:
    """The table of docs/tree_bitmap.md, and README's sentence."""
    records = read_records([MEASUREMENTS / "nvidia-h200-two-tree-bitmap" / "tree_bitmap.tsv"])
    own = records[(records["metric"] == "time") & (records["stage"] == "total")]
    assert set(own["repeat"]) == set(range(9)) and set(own["gpus"]) == {1, 2}
    page = (ROOT / "docs" / "tree_bitmap.md").read_text(encoding="utf-8")
    rows = rows_of(page, "| stream | k | bases | one GPU | two |")
    assert len(rows) == len(set(own["parameters"]))
    ratios = []
    for _, k, bases, *cells in rows:
        stream = own[own["parameters"].str.match(rf"k={k}; length={bases.replace(',', '')}(;|$)")]
        assert len(set(stream["digest"])) == 1
        took = 1e3 * stream.groupby("gpus")["value"].median()
        ratios.append(f"{took[1] / took[2]:.2f}")
        assert cells == [f"{took[1]:.1f}", f"{took[2]:.1f}", ratios[-1]]
    assert (
        f"{ratios[0]} times for k = 15 and {ratios[1]} for 31 as fast on two, counted k-mers {ratios[2]} times" in BELOW
    )
    assert f"and a fixed dictionary {ratios[3]} times" in BELOW
    assert "With all that two are {}, {}, {} and {} times as fast".format(*ratios) in DECISIONS
    fixed = own[own["item"] == "fixed"].groupby("gpus")["value"].median()
    rates = [f"{4.000000001 / fixed[gpus]:.0f}" for gpus in (2, 1)]
    assert "gives and takes {} GB a second each way for two, {} for one".format(*rates) in " ".join(page.split())
