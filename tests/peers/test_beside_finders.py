"""Long reads beside mummer and bwa fastmap: as many repeats on all sides, each with the digest of what it wrote."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warpseed import build_index, find_mems
from warpseed.measure import processes
from warpseed.measure.beside import Beside
from warpseed.measure.peers.mummer import mummer_version
from warpseed.measure.peers.process import Process
from warpseed.measure.records import read_records, write_records
from warpseed.mems.peers import time_beside_peers
from warpseed.mems.timing import Case
from warpseed.sequences.queries import write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

pytestmark = [pytest.mark.peer("mummer"), pytest.mark.peer("bwa")]


@pytest.fixture
def beside(write_reference: Callable[..., Path], tmp_path: Path) -> tuple[Beside, Case]:
    """An index of a small genome, and long reads of it with errors."""
    draw = random.Random(4)
    fasta = write_reference(
        ["".join(draw.choices("ACGT", k=6000)), "".join(draw.choices("ACGT", k=3000)) + "GATTACA" * 9]
    )
    build_index(fasta, parts=["fast"]).save(tmp_path / "index")
    rates = {"error_rate": 0.02, "insertion_rate": 0.04, "deletion_rate": 0.03}
    reads = simulate_reads(read_reference(fasta), count=40, length=[100, 500, 2000], **rates, seed=3)
    write_fasta(reads, tmp_path / "reads.fa")
    (tmp_path / "work").mkdir()
    given = Beside(str(fasta), str(tmp_path / "index"), ["c0", "c1"], tmp_path / "work")
    return given, Case("long", str(tmp_path / "reads.fa"), None, [12, 20], ["super"], 2)


def timed(beside: tuple[Beside, Case], tmp_path: Path, **options: Any) -> Any:
    write_records(tmp_path / "a.tsv", time_beside_peers(*beside, **options))
    return read_records(tmp_path / "a.tsv")


def test_all_sides_find_the_same(beside: tuple[Beside, Case], tmp_path: Path) -> None:
    frame = timed(beside, tmp_path, tools=["bwa", "mummer"], repeats=2)
    sides = frame[frame["item"].isin(["super", "maximal"]) & (frame["metric"] == "time")]
    tools = sides.groupby("item")["tool"].apply(set).to_dict()
    assert tools == {"super": {"bwa", "warpseed"}, "maximal": {"mummer", "warpseed"}}
    assert (sides.groupby(["item", "parameters"])[["digest", "results", "queries"]].nunique() == 1).all().all()
    for kind in ("super", "maximal"):
        for length in (12, 20):
            named = sides[sides["parameters"] == f"min_length={length}; kind={kind}; strands=2"]
            assert set(named["results"]) == {
                len(find_mems(beside[0].our_index, beside[1].reads, min_length=length, kind=kind))
            }
    ended = sides[sides["stage"] == "process"]
    assert set(ended.groupby(["item", "parameters", "tool"])["repeat"].apply(tuple)) == {(0, 1)}
    memory = frame[(frame["metric"] == "memory") & (frame["item"] != "index")]
    assert len(memory) == len(ended) and memory["value"].min() > 1e6
    counts = frame[frame["unit"] == "hits"].groupby(["tool", "parameters"])["value"].nunique()
    assert len(counts) == 4 and set(counts) == {1}
    assert set(frame.loc[frame["item"] == "index", "tool"]) == {"bwa"}


@pytest.mark.skipif(mummer_version("mummer4") is None, reason="no mummer4 is installed")
def test_both_mummers_stand_beside_ours_in_turns(beside: tuple[Beside, Case], tmp_path: Path) -> None:
    case = beside[1]._replace(min_lengths=[20])
    frame = timed((beside[0], case), tmp_path, tools=["mummer", "mummer4"], repeats=1)
    ended = frame[(frame["stage"] == "process") & (frame["metric"] == "time")]
    assert list(ended["tool"]) == ["mummer", "mummer4", "warpseed"] and ended["digest"].nunique() == 1
    assert set(frame.loc[frame["unit"] == "hits", "tool"]) == {"mummer", "mummer4"}


def test_a_process_that_loses_a_match_has_another_digest(
    beside: tuple[Beside, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_warpseed = processes.run_warpseed

    def lose_the_last_match(arguments: list[str]) -> Process:
        took = run_warpseed(arguments)
        output = Path(arguments[arguments.index("-o") + 1])
        output.write_text("".join(output.read_text().splitlines(keepends=True)[:-1]))
        return took

    monkeypatch.setattr(processes, "run_warpseed", lose_the_last_match)
    case = beside[1]._replace(min_lengths=[20])
    frame = timed((beside[0], case), tmp_path, tools=["mummer"], repeats=1)
    process = frame[(frame["stage"] == "process") & (frame["metric"] == "time")].set_index("tool")
    assert process.loc["warpseed", "digest"] != process.loc["mummer", "digest"]
    assert process.loc["warpseed", "results"] == process.loc["mummer", "results"] - 1
