"""What the docs say of other tools beside ours on the CPU is what the records say: k-mers, reads, indexes, memory."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(README.split())
TABLES = README.split("| k, mismatches | index open: warpseed |")[1:]
CASES = {"k=20, D=0": "k20_D0", "k=20, D=1": "k20_D1", "k=20, D=2": "k20_D2", "k=30, D=2": "k30_D2"}


def records_of(machine: str, system: str) -> pd.DataFrame:
    return read_records(ROOT / "resources" / "measurements" / machine / f"{system}.tsv")


def shown(seconds: float) -> str:
    """Two places behind the point, or three figures."""
    return f"{seconds:#.3g}".rstrip(".") if seconds >= 10 else f"{seconds:.2f}"


def medians_of(records: pd.DataFrame, *keys: str, metric: str = "time") -> dict[tuple[object, ...], float]:
    found: dict[tuple[object, ...], float] = (
        records[records["metric"] == metric].groupby(list(keys))["value"].median().to_dict()
    )
    return found


@pytest.mark.parametrize(("machine", "table", "rows"), [("intel-xeon", 0, 4), ("nvidia-h200-cores", 1, 3)])
def test_kmers_beside_bowtie_are_the_records(machine: str, table: int, rows: int) -> None:
    """Seconds with the index open and of processes, and how many times bowtie's are ours."""
    records = records_of(machine, "kmer_seeds")
    own = records[records["item"] == "file_to_file"]
    assert own.groupby("case")["digest"].nunique().max() == 1
    medians = medians_of(own, "case", "tool", "stage")
    lines = TABLES[table].splitlines()[2 : 2 + rows]
    for line in lines:
        name, *cells = (cell.strip().removesuffix(" s") for cell in line.split("|")[1:-1])
        told = []
        for stage in ("total", "process"):
            ours, theirs = (medians[CASES[name], tool, stage] for tool in ("warpseed", "bowtie"))
            told += [f"{ours:.2f}", shown(theirs), f"{theirs / ours:.1f}"]
        assert cells == told
    assert not TABLES[table].splitlines()[2 + rows]


def test_cores_from_file_to_file_are_the_record() -> None:
    records = records_of("nvidia-h200-cores", "kmer_seeds")
    own = records[(records["item"] == "scaling") & (records["stage"] == "total")]
    medians = own.groupby("threads")["value"].median()
    told = re.findall(r"([\d.]+) s on (\d+)", PROSE.split("From file to file, k=20, D=0, there: ")[1].split(".\n")[0])[
        :5
    ]
    assert told == [(f"{medians[count]:.2f}", str(count)) for count in (1, 2, 4, 8, 16)]


def test_memory_beside_other_tools_is_the_record() -> None:
    """Peak resident memory of processes, MB, medians."""

    def peaks(machine: str, system: str) -> dict[tuple[object, ...], float]:
        records = records_of(machine, system)
        return medians_of(records[records["item"] != "index"], "case", "item", "tool", metric="memory")

    def megabytes(*values: float) -> list[str]:
        return [f"{value / 1e6:.0f}" for value in values]

    coli, worm = peaks("intel-xeon-reads", "one_error"), peaks("intel-xeon-celegans", "one_error")
    others = [value for (_, item, tool), value in coli.items() if item == "edits" and tool != "warpseed"]
    ours = [coli[case, "edits", "warpseed"] for case in ("r100", "r100_two_edits")]
    told = re.search(
        r"warpseed takes (\d+) MB, with two edits (\d+), where razers3, yara and bwa take (\d+) to (\d+)", PROSE
    )
    assert told and list(told.groups()) == megabytes(*ours, min(others), max(others))
    told = re.search(r"(\d+) and (\d+) MB, where razers3 takes (\d+) and (\d+), yara (\d+) and (\d+)", PROSE)
    both = [
        worm[case, "edits", tool] for tool in ("warpseed", "razers3", "yara") for case in ("r100", "r100_two_edits")
    ]
    assert told and list(told.groups()) == megabytes(*both)
    long_reads = records_of("amd-epyc-mems-celegans", "mems")
    medians = medians_of(long_reads, "item", "tool", metric="memory")
    told = re.search(r"in (\S+) GB of memory against (\S+) \(records: `amd-epyc-mems-celegans`", PROSE)
    sides = [medians["maximal", tool] for tool in ("warpseed", "mummer4")]
    assert told and list(told.groups()) == [f"{value / 1e9:.2f}" for value in sides]


def test_hits_of_other_mappers_are_the_record() -> None:
    """How many of ours are near one of theirs, with two edits; with one, all are."""
    records = records_of("intel-xeon-reads", "one_error")
    counted = records[
        (records["metric"].isin(["our_hits", "hits_of_ours", "hits", "hits_of_theirs"])) & (records["item"] == "edits")
    ]
    numbers = counted.groupby(["case", "tool", "metric"])["value"].last().astype(int).to_dict()
    for (case, tool, metric), value in numbers.items():
        if metric == "hits":
            assert value == numbers[case, tool, "hits_of_theirs"]
        if metric == "our_hits" and case == "r100":
            assert value == numbers[case, tool, "hits_of_ours"]
    told = re.search(r"with two ([\d,]+) of ([\d,]+) \(razers3\), ([\d,]+) \(yara\)", PROSE)
    two = [
        numbers["r100_two_edits", tool, metric]
        for tool, metric in (("razers3", "hits_of_ours"), ("razers3", "our_hits"), ("yara", "hits_of_ours"))
    ]
    assert told and list(told.groups()) == [f"{value:,}" for value in two]


def test_mappers_on_one_core_are_the_record() -> None:
    """The README's two tables of reads: seconds of both sides, how many times, and what ours takes in memory."""
    rows = re.findall(r"^\| (1|2|1 mismatch), beside (\w+)[^|]*\|(.*)\|$", README, re.MULTILINE)
    assert len(rows) == 10
    for number, (edits, tool, cells) in enumerate(rows):
        records = records_of("intel-xeon-reads" if number < 6 else "intel-xeon-celegans", "one_error")
        case = "r100_two_edits" if edits == "2" else "r100"
        own = records[(records["case"] == case) & (records["metric"] == "time")]
        sides = own[own["item"] == ("substitutions" if tool == "bowtie" else "edits")]
        medians = medians_of(sides, "tool", "stage")
        same = sides[sides["tool"].isin([tool, "warpseed"])]["digest"].nunique() == 1
        told = [cell.strip() for cell in cells.split("|")]
        for place, stage in ((0, "total"), (3, "process")):
            ours, theirs = medians["warpseed", stage], medians[tool, stage]
            assert told[place : place + 2] == [f"{ours:.2f} s", f"{shown(theirs)} s"]
            times = f"{theirs / ours:.1f}" if theirs / ours < 12.5 or number > 5 else f"{theirs / ours:.0f}"
            assert told[place + 2] == (times if same else "results differ")
        if told[6]:
            inside = own[(own["item"] == "in_memory") & (own["stage"] == "total")]
            memory = inside["value"].median()
            assert told[6].startswith(f"{memory:.3f} s, ")


def test_the_index_beside_others_is_the_record() -> None:
    records = records_of("intel-xeon", "kmer_seeds")
    medians = medians_of(records[records["item"] == "index"], "tool", "threads", "stage")
    one, two = (f"{medians['warpseed', threads, 'total']:.3f}" for threads in (1, 2))
    sorted_in = f"{medians['libdivsufsort', 1, 'suffix_array']:.3f}"
    assert f"| {one} s on one thread, {two} on two; `libdivsufsort` {sorted_in} for the suffix array alone |" in README
    one, two = (f"{medians['warpseed', threads, 'process']:.2f}" for threads in (1, 2))
    bwa, bowtie = (f"{medians[tool, 1, 'process']:.2f}" for tool in ("bwa", "bowtie"))
    assert f"| {one} s on one thread, {two} on two; `bwa index` {bwa}, `bowtie-build` {bowtie} (one run) |" in README
    rate = records[(records["item"] == "in_memory") & (records["case"] == "k20_D0") & (records["stage"] == "total")]
    per_second = (rate[rate["metric"] == "time"]["queries"] / rate[rate["metric"] == "time"]["value"]).median()
    assert f"located, one thread | {per_second / 1e6:.1f} M k-mers/s |" in README


def test_matches_of_nanopore_reads_are_the_record() -> None:
    """The table of docs/mems.md of reads of E. coli: in memory, index open, process."""
    records = records_of("intel-xeon-mems-nanopore", "mems")
    own = records[(records["metric"] == "time") & (records["threads"] == 1)]
    page = (ROOT / "docs" / "mems.md").read_text(encoding="utf-8")
    lines = page.split("| in turns | matches | in memory | index open | process |")[1].splitlines()[2:6]
    for line, (kind, tool) in zip(
        lines, [("super", "warpseed"), ("super", "bwa"), ("maximal", "warpseed"), ("maximal", "mummer")], strict=True
    ):
        sides = own[own["item"] == kind]
        assert sides["digest"].nunique() == 1
        medians = medians_of(sides, "tool", "stage")
        inside = own[(own["item"] == "in_memory") & own["parameters"].str.contains(f"kind={kind}")]
        memory = f"{inside.loc[inside['stage'] == 'total', 'value'].median():.3g}" if tool == "warpseed" else ""
        told = [cell.strip() for cell in line.split("|")[2:-1]]
        assert told == [
            f"{sides['results'].max():,}",
            memory,
            *(f"{medians[tool, stage]:.3g}" for stage in ("total", "process")),
        ]
