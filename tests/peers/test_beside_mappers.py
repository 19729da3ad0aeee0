"""Reads beside razers3, yara, bwa and bowtie: as many repeats on all sides, each with the digest of what it wrote."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warpseed import build_index
from warpseed.measure import processes
from warpseed.measure.beside import Beside
from warpseed.measure.peers.process import Process
from warpseed.measure.records import read_records, write_records
from warpseed.one_error.peers import time_beside_peers
from warpseed.one_error.reads import Criteria
from warpseed.one_error.timing import Case
from warpseed.sequences.queries import write_fastq
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

pytestmark = [pytest.mark.peer("seqan-apps"), pytest.mark.peer("bwa"), pytest.mark.peer("bowtie")]
TOOLS = ["bowtie", "razers3", "yara", "bwa"]


@pytest.fixture
def beside(write_reference: Callable[..., Path], tmp_path: Path) -> tuple[Beside, Case]:
    """An index of a small genome, and reads of it with errors; some are too short to be compared."""
    draw = random.Random(4)
    fasta = write_reference(["".join(draw.choices("ACGT", k=6000)), "".join(draw.choices("ACGT", k=3000))])
    build_index(fasta).save(tmp_path / "index")
    rates = {"error_rate": 0.005, "insertion_rate": 0.002, "deletion_rate": 0.002}
    reads = simulate_reads(read_reference(fasta), count=300, length=[90, 130], **rates, qualities=True, seed=3)
    write_fastq(reads, tmp_path / "reads.fq")
    (tmp_path / "work").mkdir()
    given = Beside(str(fasta), str(tmp_path / "index"), ["c0", "c1"], tmp_path / "work")
    return given, Case("r100", str(tmp_path / "reads.fq"), None, (100, 199), Criteria(1, 2), [], [])


def timed(beside: tuple[Beside, Case], tmp_path: Path, **options: Any) -> Any:
    write_records(tmp_path / "a.tsv", time_beside_peers(*beside, **options))
    return read_records(tmp_path / "a.tsv")


def test_all_sides_find_the_same(beside: tuple[Beside, Case], tmp_path: Path) -> None:
    frame = timed(beside, tmp_path, tools=TOOLS, threads=[1], repeats=2)
    sides = frame[frame["item"].isin(["edits", "substitutions"]) & (frame["metric"] == "time")]
    assert sides.groupby("item")["tool"].apply(set).to_dict() == {
        "edits": {"razers3", "yara", "bwa", "warpseed"}, "substitutions": {"bowtie", "warpseed"},
    }  # fmt: skip
    assert sides.groupby("item")[["digest", "results", "queries"]].nunique().to_numpy().tolist() == [[1, 1, 1]] * 2
    assert 0 < sides["queries"].iloc[0] < 300 and 0 < sides["results"].min() < sides["queries"].iloc[0]
    processes = sides[sides["stage"] == "process"]
    assert set(processes.groupby(["item", "tool"])["repeat"].apply(tuple)) == {(0, 1)}
    memory = frame[(frame["metric"] == "memory") & (frame["item"] != "index")]
    assert len(memory) == len(processes) and memory["value"].min() > 1e6
    own = sides[(sides["tool"] == "warpseed") & (sides["repeat"] == 1) & (sides["item"] == "edits")]
    assert {"process", "read", "search", "format", "write", "total"} <= set(own["stage"])
    hits = frame[frame["unit"] == "hits"].set_index(["tool", "metric"])["value"]
    for tool in TOOLS:
        assert hits[tool, "hits_of_theirs"] == hits[tool, "hits"] > 100
        assert hits[tool, "hits_of_ours"] <= hits[tool, "our_hits"] == hits["yara", "our_hits"]
    assert set(frame.loc[frame["item"] == "index", "tool"]) == {"bowtie", "yara", "bwa"}


def test_a_process_that_loses_a_read_has_another_digest(
    beside: tuple[Beside, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_warpseed = processes.run_warpseed

    def lose_the_last_read(arguments: list[str]) -> Process:
        took = run_warpseed(arguments)
        output = Path(arguments[arguments.index("-o") + 1])
        lines = output.read_text().splitlines(keepends=True)
        last = lines[-1].split("\t")[0]
        output.write_text("".join(line for line in lines if line.split("\t")[0] != last))
        return took

    monkeypatch.setattr(processes, "run_warpseed", lose_the_last_read)
    frame = timed(beside, tmp_path, tools=["yara"], threads=[1], repeats=1)
    process = frame[(frame["stage"] == "process") & (frame["metric"] == "time")].set_index("tool")
    process = process[process["item"] == "edits"]
    assert process.loc["warpseed", "digest"] != process.loc["yara", "digest"]
    assert process.loc["warpseed", "results"] == process.loc["yara", "results"] - 1


def test_what_yara_leaves_out(write_reference: Callable[..., Path], tmp_path: Path) -> None:
    """A base more or less in the middle of a read whose halves have more than 300 hits together; we, and razers3, place
    it."""
    draw = random.Random(1)
    unit = "".join(draw.choices("ACGT", k=101))
    read = unit[:50] + unit[51:]
    changed = unit[:40] + {"A": "C", "C": "G", "G": "T", "T": "A"}[unit[40]] + unit[41:100]
    placed = {}
    for copies in (150, 151):
        folder = tmp_path / str(copies)
        (folder / "work").mkdir(parents=True)
        contig = "".join(unit + "".join(draw.choices("ACGT", k=60)) for _ in range(copies))
        fasta, reads = write_reference([contig]), folder / "reads.fq"
        build_index(fasta).save(folder / "index")
        reads.write_text("".join(f"@{bases[:60]}\n{bases}\n+\n{'I' * 100}\n" for bases in (read, changed)))
        given = Beside(str(fasta), str(folder / "index"), ["c0"], folder / "work")
        case = Case("r100", str(reads), None, None, Criteria(1, 2), [], [])
        frame = timed((given, case), tmp_path, tools=["razers3", "yara"], threads=[1], repeats=1)
        sides = frame[(frame["stage"] == "process") & (frame["metric"] == "time") & (frame["item"] == "edits")]
        placed[copies] = sides.set_index("tool")["results"].to_dict()
    assert placed == {
        150: {"razers3": 2, "yara": 2, "warpseed": 2},
        151: {"razers3": 2, "yara": 1, "warpseed": 2},
    }
