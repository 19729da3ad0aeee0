"""What README and docs say of reads on a GPU and its host is what the record says."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
RECORDS = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-reads" / "one_error.tsv")
FILES = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-reads-files" / "one_error.tsv")
REAL = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-celegans" / "one_error.tsv")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = rows_of(README.split("### Reads with one error")[1], "| reads | where | time | reads/s |")
TABLES = rows_of(README, "| case | reads | CPU, 1 thread | GPU: copy in |")
PAGE = " ".join((ROOT / "docs" / "one_error.md").read_text(encoding="utf-8").split())
CASES = [
    ("limits", "r100_8M", "gpu", 16),
    ("limits", "real_8M", "gpu", 16),
    ("file_to_file", "mixed_2M", "gpu", 16),
    ("file_to_bam", "mixed_2M", "gpu", 16),
    ("file_to_bam", "mixed_2M", "cpu", 16),
    ("file_to_bam", "mixed_2M", "cpu", 1),
    ("file_to_file", "r100", "cpu", 1),
    ("file_to_file", "r100", "cpu", 16),
]
"""What each row is of: item, case, device, threads."""


def of(item: str, case: str, device: str, threads: int, slots: int = 0) -> pd.DataFrame:
    records = FILES if item.startswith("file_to") else REAL if case.startswith("real") else RECORDS
    own = records[(records["item"] == item) & (records["case"] == case) & (records["device"] == device)]
    own = own[own["threads"] == threads]
    return own[own["parameters"].str.startswith(f"slots={slots};")] if slots else own


@pytest.mark.parametrize(("row", "case"), list(zip(ROWS, CASES, strict=True)), ids=lambda value: str(value[1]))
def test_reads_on_the_machine_of_the_gpu(row: list[str], case: tuple[str, str, str, int]) -> None:
    own = of(*case)
    stage = "kernel" if case[0] == "limits" else "total"
    medians = own[own["stage"] == stage].groupby("metric")["value"].median()
    [reads] = set(own["queries"])
    seconds, rate = medians["time"], reads / medians["time"] / 1e6
    if stage == "kernel":
        assert f"{medians['share']:.2f} of the floor" in row[1]
        told = [f"{1e3 * seconds:.1f} ms", f"{rate:.0f} M"]
    else:
        told = [f"{seconds:.2f} s", f"{rate:.1f} M" if rate > 1 else f"{rate:.2f} M"]
    assert row[2:] == [*told, f"{own['results'].iloc[0]:,}"]
    assert len(set(own["digest"])) == 1
    if not row[0].startswith("the same"):
        assert row[0].startswith((f"{reads / 1e6:.0f}M ", f"{reads:,} "))


@pytest.mark.parametrize("row", TABLES, ids=lambda row: f"{row[0]}, {row[1]}")
def test_tables_4_and_5(row: list[str]) -> None:
    told = re.search(r"(\d+) slots", row[0])
    assert told
    slots, case = int(told[1]), {"125,000": "mixed", "2,000,000": "mixed_2M"}[row[1]]
    own = of("fixed_slots", case, "gpu", 16, slots)
    took = 1e3 * own[own["metric"] == "time"].groupby("stage")["value"].median()
    digits = 1 if case == "mixed" else 0
    stages = [f"{took[stage]:,.{digits}f} ms" for stage in ("host_to_device", "kernel", "device_to_host")]
    assert row[3:6] == stages
    if case == "mixed_2M":
        assert row[2] == row[6] == row[7] == ""
        return
    core = of("fixed_slots", case, "cpu", 1, slots)
    assert set(core["digest"]) == set(own["digest"])
    seconds = 1e3 * core[core["stage"] == "total"]["value"].median()
    assert [row[2], *row[6:8]] == [
        f"{seconds:,.0f} ms",
        f"{seconds / took['total']:.0f}",
        f"{seconds / took['kernel']:.0f}",
    ]


def test_what_the_page_says() -> None:
    """docs/one_error.md: reads on the device."""
    limits = RECORDS[(RECORDS["item"] == "limits") & (RECORDS["stage"] == "kernel") & (RECORDS["queries"] > 0)]
    medians = limits.groupby(["case", "metric"])["value"].median()
    few, simulated = (medians[case] for case in ("r100", "r100_8M"))
    took, floor = 1e3 * simulated["time"], 1e3 * simulated["floor"]
    assert f"reads of 100 bases take {took:.1f} ms, {8 / simulated['time']:.0f} M reads/s" in PAGE
    assert f"is {floor:.1f} ms, so that the share is {simulated['share']:.2f}." in PAGE
    alone, part = f"{1e3 * few['time']:.1f}", f"{125 * simulated['time']:.1f}"
    own = of("limits", "real_8M", "gpu", 16)
    real = own[own["stage"] == "kernel"].groupby("metric")["value"].median()
    took, floor = 1e3 * real["time"], 1e3 * real["floor"]
    assert f"take {took:.1f} ms, {8 / real['time']:.0f} M reads/s, of a floor of {floor:.1f} (records" in PAGE
    assert f"they take {alone} ms, where an eighth of the 8 million takes {part}" in PAGE
