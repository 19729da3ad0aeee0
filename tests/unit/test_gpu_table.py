"""The README's table of k-mers on a GPU is what the record of C. elegans says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "resources" / "measurements" / "nvidia-h200"
RECORDS = read_records(FOLDER / "kmer_seeds.tsv")
PROVENANCE = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))
README, HEAD = (ROOT / "README.md").read_text(encoding="utf-8"), "| case on the GPU |"
ABOVE, ROWS = README.split(HEAD)[0], rows_of(README, HEAD)
SCALES = {"ms": 1e3, "M k-mers/s": 1e-6, "G k-mers/s": 1e-9, "": 1}
"""By what a record's value is multiplied for a unit of the table."""


def case_of(name: str) -> str:
    """The record's name of what a row is of; without D there are no mismatches."""
    told = re.fullmatch(r"(\d+)M (\d+)-mers(?: of the genome|(, 1 % errors))(?:, D=(\d)|(, letters to columns))*", name)
    assert told, f"what does the row '{name}' stand for?"
    millions, k, errors, mismatches, columns = told.groups()
    rate = "0.01" if errors else "0"
    return f"k={k}, D={mismatches or 0}, errors={rate}, {int(millions):,},000,000 k-mers{columns or ''}"


def rounded(cell: str, value: float) -> str:
    """A value with the unit and the decimals of a cell, which shows two digits or more."""
    number, _, unit = cell.partition(" ")
    assert len(re.sub(r"\D", "", number).lstrip("0")) >= 2, f"'{cell}' has too few digits"
    decimals = len(number.partition(".")[2])
    return f"{value * SCALES[unit]:,.{decimals}f} {unit}".strip()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_kmers_on_a_gpu(row: list[str]) -> None:
    name, time, throughput, share, paper = row
    own = RECORDS[(RECORDS["item"] == "limits") & (RECORDS["case"] == case_of(name))]
    assert len(own), f"the record has no {case_of(name)}"
    values = own.groupby(["tier", "metric"])["value"].median()
    shown = {("fast", "time"): time, ("fast", "throughput"): throughput, ("fast", "share"): share}
    if ("paper", "time") in values or paper:
        shown["paper", "time"] = paper
    assert shown == {what: rounded(cell, values[what]) for what, cell in shown.items()}


TIMES = re.findall(r"^\| (S\d\d), D=\d \| ([\d,]+) \|(.*(?:\|.*){11})\|$", README, re.M)
"""Of Table I on that machine, each row's data set, k-mers and other cells."""


def three_digits(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.1f}"


def two_digits(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


@pytest.mark.parametrize("case, kmers, others", TIMES, ids=[row[0] for row in TIMES])
def test_table_i_of_a_worm(case: str, kmers: str, others: str) -> None:
    own = RECORDS[(RECORDS["item"] == "whole") & (RECORDS["case"] == case) & (RECORDS["stage"] == "total")]
    assert len(set(own["digest"])) == 1 and set(own["queries"]) == {int(kmers.replace(",", ""))}
    took = 1e3 * own.groupby(["tier", "device", "threads"])["value"].median()
    cores = {cores: ("cpu", cores) for cores in (1, 4, 16)}
    paper = [took["paper", *side] for side in (*cores.values(), ("gpu", 16))]
    fast = [took["fast", *side] for side in (cores[1], cores[16], ("gpu", 16))]
    cells = [cell.strip() for cell in others.split("|")]
    assert cells[:7] == [three_digits(each) for each in (*paper, *fast)]
    ratios = paper[0] / paper[3], paper[1] / paper[3], fast[0] / fast[2]
    assert cells[7::2] == [two_digits(ratio) for ratio in ratios]  # (between them stands what is printed)


def test_all_rows_of_table_i_are_there() -> None:
    assert [row[0] for row in TIMES] == ["S11", "S15", "S20", "S24", "S30"]


def test_the_machine_of_these_kmers() -> None:
    paragraph = " ".join(ABOVE.split("\n\n")[-2].split())
    told = re.search(
        r"^C\. elegans .*, at most (\d+) hits a k-mer\. "
        r".* Machine: one (.+) \(driver (\S+)\), (\d+) cores of an (.+) \(records: `nvidia-h200`\)\.$",
        paragraph,
    )
    assert told
    max_hits, gpu, driver, cores, cpu = told.groups()
    measured = PROVENANCE["config"]
    assert measured["reference"].startswith("celegans") and measured["kmer_seeds"]["max_hits"] == int(max_hits)
    assert (PROVENANCE["gpu_count"], PROVENANCE["gpu"], PROVENANCE["cores"]) == (1, gpu, int(cores))
    assert f"{PROVENANCE['driver']}.".startswith(f"{driver}.")
    assert PROVENANCE["cpu"].replace("(R)", "").startswith(cpu)
