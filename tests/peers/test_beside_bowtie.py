"""Processes beside bowtie's: as many repeats on both sides, each with the digest of what it wrote itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from warpseed import build_index, find_kmers
from warpseed.kmer_seeds.peers import time_beside_bowtie
from warpseed.kmer_seeds.timing import Case
from warpseed.measure import processes
from warpseed.measure.beside import Beside
from warpseed.measure.peers.process import Process
from warpseed.measure.records import read_records, write_records

pytestmark = pytest.mark.peer("bowtie")


@pytest.fixture
def beside(write_reference: Callable[..., Path], tmp_path: Path) -> tuple[Beside, Case]:
    """A small genome and our index of it, and k-mers of it."""
    contig = "ACGTTGCATGCCATGATTGACCATGAGGCTA" * 10 + "GATTACAGGC" * 8
    fasta = write_reference([contig, "CCGTAAGCTTGCA" * 9])
    build_index(fasta).save(tmp_path / "index")
    kmers = [contig[start : start + 20] for start in range(0, 300, 7)] + ["ACGTNACGTTACGTTACGTA"]
    (tmp_path / "kmers.fa").write_text("".join(f">read {i}\n{kmer}\n" for i, kmer in enumerate(kmers)))
    (tmp_path / "work").mkdir()
    given = Beside(str(fasta), str(tmp_path / "index"), ["c0", "c1"], tmp_path / "work")
    return given, Case("S20", "k=20; mismatches=1", str(tmp_path / "kmers.fa"), 1, 9)


def test_both_sides_are_repeated_and_find_the_same(beside: tuple[Beside, Case], tmp_path: Path) -> None:
    given, case = beside
    rows = time_beside_bowtie(given, [case], item="whole", threads=[1, 2], repeats=2)
    write_records(tmp_path / "a.tsv", rows)
    frame = read_records(tmp_path / "a.tsv")
    built, frame = frame[frame["item"] == "index"], frame[frame["item"] != "index"]
    assert built["tool"].tolist() == ["bowtie"] * 2 and built["metric"].tolist() == ["time", "memory"]
    processes = frame[(frame["stage"] == "process") & (frame["metric"] == "time")]
    memory = frame[frame["metric"] == "memory"]
    assert memory["tool"].tolist() == processes["tool"].tolist() and memory["value"].min() > 1e6
    frame = frame[frame["metric"] == "time"]
    assert processes.groupby(["tool", "tier", "threads"])["repeat"].apply(list).to_dict() == {
        ("bowtie", "-", 1): [0, 1],
        ("bowtie", "-", 2): [0, 1],
        ("warpseed", "fast", 1): [0, 1],
        ("warpseed", "fast", 2): [0, 1],
    }
    hits = find_kmers(given.our_index, case.kmers, max_mismatches=1, max_hits=9)
    assert len(hits) > 30 and hits.dropped_queries > 0
    assert set(frame["digest"]) == {hits.digest()} and set(frame["results"]) == {len(hits)}
    # In turns: what is slow for a while is slow for both.
    assert processes["tool"].tolist() == ["bowtie", "warpseed"] * 4
    bowtie = frame[frame["tool"] == "bowtie"].set_index(["threads", "repeat", "stage"])["value"]
    for (threads, repeat, stage), seconds in bowtie.items():
        if stage == "total":
            assert seconds == bowtie[threads, repeat, "process"] - bowtie[threads, repeat, "load"]
    assert set(frame["case"]) == {"S20"} and set(frame["item"]) == {"whole"}


def test_a_process_that_loses_hits_has_another_digest(
    beside: tuple[Beside, Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No digest is borrowed: ours comes from the file that this very process wrote."""
    run_warpseed = processes.run_warpseed

    def lose_a_hit(arguments: list[str]) -> Process:
        took = run_warpseed(arguments)
        output = Path(arguments[arguments.index("-o") + 1])
        output.write_text("".join(output.read_text().splitlines(keepends=True)[:-1]))
        return took

    monkeypatch.setattr(processes, "run_warpseed", lose_a_hit)
    given, case = beside
    rows = time_beside_bowtie(given, [case], item="whole", threads=[1], repeats=1)
    digests = {row["tool"]: (row["digest"], row["results"]) for row in rows if row["item"] == "whole"}
    assert digests["warpseed"][0] != digests["bowtie"][0]
    assert digests["warpseed"][1] == digests["bowtie"][1] - 1
