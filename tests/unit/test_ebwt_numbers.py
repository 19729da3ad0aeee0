"""Numbers of the transform in the documentation are those of its records."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
H200, MANY, EPYC, GPU = "nvidia-h200-ebwt", "nvidia-h200-ebwt-many", "amd-epyc-ebwt", ("fast", "gpu", 0)
STRAINS = "5 words of 4,600,000 letters"


@cache
def records_of(machine: str) -> Any:
    return read_records(ROOT / "resources" / "measurements" / machine / "ebwt.tsv")


def medians_of(machine: str, item: str, case: str, stage: str = "total") -> Any:
    """Seconds by tier, device and threads, 0 of a GPU."""
    records = records_of(machine)
    own = records[(records["item"] == item) & (records["case"] == case) & (records["stage"] == stage)]
    own = own[own["metric"] == "time"]
    threads = own["threads"].where(own["device"] == "cpu", 0)
    return own.groupby([own["tier"], own["device"], threads])["value"].median()


def readme() -> str:
    """What the README says of the transform."""
    return (ROOT / "README.md").read_text(encoding="utf-8").split("### Weighted sequences and rotations")[1]


def readmes_sentences() -> str:
    """The same, in one line."""
    return " ".join(readme().split())


def cells_of(table: str, row: int) -> list[str]:
    """Of a table of docs/ebwt.md, by how its header begins, the cells of a row behind the first."""
    page = (ROOT / "docs" / "ebwt.md").read_text(encoding="utf-8")
    assert page.count(table) == 1
    return [cell.strip() for cell in page.split(table)[1].splitlines()[2 + row].split("|")[2:-1]]


@pytest.mark.parametrize(
    ("row", "item", "case", "stage"),
    [
        (0, "transform", "100,000 words of 100 letters", "total"),
        (1, "files", "100,000 words of 100 letters", "process"),
        (2, "transform", "5 words of 4,600,000 letters", "total"),
        (3, "pairs", "5 words of 4,600,000 letters", "total"),
        (4, "pairs", "1,000 words of 10,000 letters", "total"),
        (5, "files", "100,000 words of 100 letters", "process"),
    ],
)
def test_transforms_on_two_cores_are_the_records(row: int, item: str, case: str, stage: str) -> None:
    """The table of docs/ebwt.md, seconds and the peak memory of a process, and what the README says of it."""
    records = records_of(EPYC)
    metric = "memory" if row == 5 else "time"
    own = records[(records["item"] == item) & (records["case"] == case) & (records["metric"] == metric)]
    medians = own[own["stage"] == stage].groupby("threads")["value"].median()
    cells = cells_of("| words | 1 thread |", row)
    if metric == "memory":
        assert cells[:2] == [f"{medians[threads] / 1e6:.0f} MB" for threads in (1, 2)]
        return
    assert [float(cell) for cell in cells[:2]] == [float(f"{medians[threads]:.3g}") for threads in (1, 2)]
    if cells[2]:
        assert float(cells[3]) == float(f"{float(cells[2]) / medians[1]:.2g}")
    text = readmes_sentences()
    line = {0: r"takes (\S+) s on one core, (\S+) s on two", 3: r"of 4.6 Mb (\S+) and (\S+) s"}.get(row)
    if line:
        told = re.search(line, text)
        assert told and list(told.groups()) == [f"{medians[threads]:.2f}" for threads in (1, 2)]


@pytest.mark.parametrize(
    ("row", "item", "case"),
    [
        (0, "transform", "100,000 words of 100 letters"),
        (1, "transform", "1,000,000 words of 100 letters"),
        (2, "transform", STRAINS),
        (3, "pairs", STRAINS),
        (4, "pairs", "1,000 words of 10,000 letters"),
        (5, "pairs", "2,000 words of 20,000 letters"),
        (6, "pairs", "10,000 words of 4,000 letters"),
        (7, "pairs", "20,000 words of 5,000 letters"),
    ],
)
def test_transforms_on_a_gpu_are_the_record(row: int, item: str, case: str) -> None:
    """The table of docs/ebwt.md: milliseconds, and the share of the floor."""
    machine = H200 if row < 4 else MANY
    records = records_of(machine)
    step = {"transform": "order", "pairs": "distances"}[item]
    limits = records[(records["item"] == "limits") & (records["case"] == case)]
    limits = limits[limits["parameters"].str.contains(f"step={step}")]
    medians = limits.groupby("metric")["value"].median()
    totals = medians_of(machine, item, case)
    told = [medians["time"], totals[GPU], totals["fast", "cpu", 16]]
    cells = cells_of("| words | on the device |", row)
    assert [float(cells[i]) for i in (0, 3, 4)] == [float(f"{1e3 * value:.3g}") for value in told]
    if step == "order":
        told = [1e3 * medians["floor"], medians["share"]]
        assert [float(cell) for cell in cells[1:3]] == [float(f"{value:.2g}") for value in told]
    else:
        assert cells[1:3] == ["", ""]


@pytest.mark.parametrize(("row", "positions"), list(enumerate((50, 100, 200, 260))))
def test_table_1_on_a_gpu_is_the_record(row: int, positions: int) -> None:
    cells = cells_of("| positions | paper tier: 1 thread |", row)
    medians = medians_of(H200, "table_1", f"{positions} positions")
    sides = [("paper", "cpu", 1), ("paper", "gpu", 0), ("fast", "cpu", 1), ("fast", "cpu", 16), GPU]
    assert [float(cell) for cell in cells] == [float(f"{1e3 * medians[side]:.3g}") for side in sides]


def test_from_how_many_positions_a_gpu_is_the_faster_one() -> None:
    """What docs/ebwt.md says of Tables 1 to 3: the last number of positions at which the GPU is slower."""

    def last(item: str, slow: tuple[str, str, int], fast: tuple[str, str, int]) -> int:
        medians = {number: medians_of(H200, item, f"{number} positions") for number in range(50, 270, 10)}
        return max((number for number, own in medians.items() if own[slow] > own[fast]), default=0)

    items = "table_1", "table_2", "table_3"
    assert [last(item, GPU, ("fast", "cpu", 16)) for item in items] == [0, 0, 0]
    assert [last(item, GPU, ("fast", "cpu", 1)) for item in items] == [0, 0, 0]
    assert [last(item, ("paper", "gpu", 0), ("paper", "cpu", 1)) for item in items] == [0, 0, 60]
    page = (ROOT / "docs" / "ebwt.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    for item in items:
        records = records_of(H200)
        own = records[(records["item"] == item) & (records["tier"] == "fast") & (records["stage"] == "total")]
        own = own[own["metric"] == "time"]
        on_gpu = own["device"] == "gpu"
        slowest, fastest = own[on_gpu].groupby("case")["value"].max(), own[~on_gpu].groupby("case")["value"].min()
        assert len(slowest) == 22 and (slowest < fastest).all()
    assert "At every size that the paper has, from 50 positions on, the fast tier's GPU is faster than its CPU" in text
    assert "in all three tables, beside one thread and beside 16: each repeat than each" in text
    assert "The paper tier's beats its one thread from 70 positions on in all three" in text
    assert "from 50 positions on, a GPU compares words faster than 16 threads" in readmes_sentences()


def test_what_a_command_takes_on_a_gpu_is_the_record() -> None:
    page = " ".join((ROOT / "docs" / "ebwt.md").read_text(encoding="utf-8").split())
    pairs = r"100 words take (\S+) s on the GPU and (\S+) on 16 threads, 100,000 words (\S+) and (\S+)\."
    told = re.search(pairs, page)
    few, many = (medians_of(H200, "files", f"{count} words of 100 letters", "process") for count in ("100", "100,000"))
    sides = GPU, ("fast", "cpu", 16)
    assert told and list(told.groups()) == [f"{own[side]:.2f}" for own in (few, many) for side in sides]
    assert all(own[GPU] > own["fast", "cpu", 16] for own in (few, many))
    pairs = r"(\S+) s against (\S+) for 100 words of 100 letters, (\S+) against (\S+) for\s+100,000"
    told = re.search(pairs, readmes_sentences())
    assert told and list(told.groups()) == [f"{own[side]:.1f}" for own in (few, many) for side in sides]


def test_what_the_floor_was_computed_with_is_the_record() -> None:
    """Rates of copies and of random sectors, and the share that five bytes a letter alone would be."""
    records = records_of(H200)
    limits = records[records["item"] == "limits"]
    sectors = limits[limits["metric"] == "rate"].groupby("parameters")["value"].median()
    of_five, rates, shares = sectors["array=letters; bytes=5750000"], [], []
    for letters in (10**7, 10**8, 23 * 10**6):
        own = limits[
            limits["parameters"].str.contains(f"letters={letters};") & limits["parameters"].str.contains("moved")
        ]
        own = own[~own["case"].str.startswith("1,000 words")]
        medians = own.groupby("metric")["value"].median()
        [moved, read] = [int(part) for part in re.findall(r"moved=(\d+); read=(\d+)", own["parameters"].iloc[0])[0]]
        rates.append(moved / (medians["floor"] - read / sectors[f"array=letters; bytes={letters // 4}"]))
        shares.append(5 * letters / rates[-1] / medians["time"])
    page = " ".join((ROOT / "docs" / "ebwt.md").read_text(encoding="utf-8").split())
    assert f"memory, {min(rates) / 1e12:.1f} to {max(rates) / 1e12:.1f} TB/s (records" in page
    assert f"at {of_five / 1e9:.0f} G/s in these records" in page
    assert f"(a share of {min(shares):.3f} to {max(shares):.3f})" in page


def test_distances_of_many_words_in_decisions_are_the_record() -> None:
    text = " ".join((ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").split())
    [told] = re.findall(r"on an H200 (\S+), (\S+) and (\S+) ms \(records", text)
    cases = "1,000 words of 10,000 letters", "2,000 words of 20,000 letters", "10,000 words of 4,000 letters"
    assert list(told) == [f"{1e3 * medians_of(MANY, 'pairs', case, 'distances')[GPU]:.3g}" for case in cases]


def test_what_decisions_say_of_an_h200_is_the_record() -> None:
    text = " ".join((ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").split())
    million = "1,000,000 words of 100 letters"
    tables = [medians_of(H200, table, "100 positions")[GPU] for table in ("table_1", "table_3")]
    transform = medians_of(H200, "transform", million, "transform")[GPU]
    records = records_of(H200)
    limits = records[(records["item"] == "limits") & (records["case"] == million) & (records["metric"] == "time")]
    assert f"On another host it is {1e3 * tables[0]:.2f} and {1e3 * tables[1]:.2f} (records" in text
    assert f"A million words of 100 letters take {1e3 * limits['value'].median():.1f} ms where they took 31" in text
    assert f"A hundred million take {1e3 * transform:.1f} ms (2.9 in the record of commit" in text


def test_what_the_transform_was_to_reach_is_the_records() -> None:
    """The table of docs/ebwt.md."""
    million = "1,000,000 words of 100 letters"
    of_a_million = sum(medians_of(H200, "transform", million, stage)[GPU] for stage in ("order", "transform"))
    records = records_of(EPYC)
    records = records[(records["metric"] == "memory") & records["case"].str.startswith("100,000 words")]
    told = [
        f"{2.703 / medians_of(H200, 'table_1', '260 positions')[GPU]:,.0f} times",
        "never slower; at 50 faster, too",
        f"{medians_of(MANY, 'pairs', '1,000 words of 10,000 letters')[GPU]:.3f} s",
        f"{of_a_million:.3f} s",
        f"{medians_of(H200, 'pairs', STRAINS)[GPU]:.3f} s",
        f"{medians_of(EPYC, 'transform', '100,000 words of 100 letters')['fast', 'cpu', 2]:.3f} s",
        f"{records['value'].median() / 1e7:.1f} bytes",
    ]
    assert [cells_of("| | wanted | measured |", row)[-1] for row in range(len(told))] == told


@pytest.mark.parametrize("positions", [100, 260])
def test_table_3_is_the_records(positions: int) -> None:
    """The README's table: both tiers on a core and on a GPU, beside what is printed."""
    core, gpu = (medians_of(machine, "table_3", f"{positions} positions") for machine in (EPYC, H200))
    text = readme()
    line = re.search(rf"^\| {positions} \|.*$", text, re.MULTILINE)
    assert line
    cells = [cell.strip() for cell in line.group().split("|")[2:-1]]
    assert cells[2:4] == [f"{core['paper', 'cpu', 1]:.3g}", f"{core['fast', 'cpu', 1]:.2g}"]
    assert cells[4:] == [f"{gpu[tier, 'gpu', 0]:.4f}" for tier in ("paper", "fast")]
    printed = (ROOT / "resources" / "published" / "ebwt.tsv").read_text().splitlines()
    for cell, method in zip(cells, ("CPU", "CUDA"), strict=False):
        head = f"ebwt\tTable 3\t{positions} positions; "
        [row] = [row for row in printed if row.startswith(head) and f"\t{method}\ttotal\t" in row]
        assert row.split("\t")[5] == cell


def test_the_readmes_gpu_is_the_record() -> None:
    cases = "100,000 words of 100 letters", "1,000,000 words of 100 letters"
    few, many = (medians_of(H200, "transform", case)[GPU] for case in cases)
    order = medians_of(H200, "limits", cases[1], "kernel")[GPU]
    same, million = (
        r"same takes (\S+) and (\S+) ms, and the",
        r"such words, in memory that is locked, (\S+) ms,\s+where the\s+kernels\s+of\s+their\s+order\s+take (\S+) ms",
    )
    told = re.search(rf"{same} transform of a million {million}", readmes_sentences())
    assert told
    seconds = few, medians_of(H200, "pairs", STRAINS)[GPU], many, order
    assert list(told.groups()) == [f"{1e3 * value:.3g}" for value in seconds]
