"""Long reads, or of low complexity, on the CPU: threads share them, signals end them, what is held is bounded."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import fasta, program, save
from warpseed import build_index, cli, find_mems, open_index
from warpseed.mems import cpu, cpu_steps
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.queries import Queries

DRAW = random.Random(31)
GENOME = "".join(DRAW.choices("ACGT", k=20_000))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an index of a genome that ends in 60,000 As, searches compiled, which a signal would wait for."""
    path = tmp_path_factory.mktemp("steps")
    genome = save(path, "g.fa", fasta({"a": GENOME + "A" * 60_000}))
    assert cli.main(["index", genome, "-o", str(path / "index")]) == 0
    reads = save(path, "r.fa", fasta({"long": "C" * cpu.LONG_READ, "short": GENOME[50:90], "run": "A" * 3_000}))
    for tier, kind in (("fast", "paper"), ("fast", "maximal"), ("paper", "paper")):
        search = ["mems", str(path / "index"), reads, "--tier", tier, "--kind", kind, "--threads", "2"]
        assert cli.main([*search, "-o", str(path / "compiled.paf")]) == 0
    return str(path / "index")


@pytest.mark.parametrize("kind", ["super", "paper", "maximal"])
def test_threads_share_a_single_read(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The bytes are those of one thread; which reads are searched in steps does not matter."""
    changed = "".join(base if DRAW.random() > 0.05 else DRAW.choice("ACGT") for base in GENOME * 2)
    reads = save(tmp_path, "r.fa", fasta({"long": changed, "short": GENOME[50:90]}))
    taken, step = [], cpu_steps.cpu_fast.scan_step
    others = threading.Event()

    def watched(*each: Any) -> Any:
        """A step, which begins when a second thread is at one, too, however busy the machine is."""
        taken.append(threading.get_ident())
        if len(set(taken)) > 1:
            others.set()
        others.wait(60)
        return step(*each)

    monkeypatch.setattr(cpu_steps.cpu_fast, "scan_step", watched)
    written = []
    for threads, long in (("1", 1 << 40), ("1", 1000), ("3", 1000)):
        monkeypatch.setattr(cpu, "LONG_READ", long)
        taken.clear()
        others.clear() if threads == "3" else others.set()
        output = tmp_path / f"{threads}-{long}.paf"
        assert cli.main(["mems", folder, reads, "-o", str(output), "--kind", kind, "--threads", threads]) == 0
        written.append(output.read_bytes())
        assert (len(taken) > 8) == (long == 1000) and (len(set(taken)) > 1) == (threads == "3")
    assert written[0] == written[1] == written[2] and written[0].count(b"\n") > 100


def test_a_part_of_a_read_goes_on_until_it_has_many_matches(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps it takes: what is left of one would wait until those before it are done."""
    steps, rests = [], []
    step, ordered = cpu_steps.cpu_fast.scan_step, cpu_steps.ordered

    def watched(tasks: Any, run: Any, threads: int) -> Any:
        def ran(task: Any) -> Any:
            hits, rest = run(task)
            rests.append((len(hits), rest))
            return hits, rest

        return ordered(tasks, ran, threads)

    monkeypatch.setattr(cpu_steps.cpu_fast, "scan_step", lambda *each: steps.append(1) or step(*each))
    monkeypatch.setattr(cpu_steps, "ordered", watched)
    monkeypatch.setattr(cpu_steps, "_MOST_WORK", 100)
    monkeypatch.setattr(cpu, "LONG_READ", 1000)
    index, read = open_index(folder), [GENOME + "A" * 40]
    whole = find_mems(index, read, kind="super", threads=2)
    assert len(steps) > 4 * len(rests) and all(rest is None for _, rest in rests)
    steps.clear(), rests.clear()
    monkeypatch.setattr(cpu_steps, "_STEP_ROOM", 600)
    monkeypatch.setattr(cpu_steps, "_HELD", 1)
    assert find_mems(index, read, kind="super", threads=2) == whole
    found = find_mems(index, read, kind="maximal", threads=2)
    assert len(found) > 60_000 and len(found) <= sum(count for count, _ in rests)
    assert any(rest is not None for _, rest in rests) and max(count for count, _ in rests) < 2 * 600


@pytest.mark.parametrize("kind", ["super", "paper"])
def test_a_read_that_is_the_genome_does_not_take_its_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Of matches so short that each base's longest one is looked up, and goes on to the end of the genome."""
    genome = "".join(DRAW.choices("ACGT", k=200_000))
    index = build_index(save(tmp_path, "g.fa", fasta({"a": genome})))
    taken, step = [], cpu_steps.cpu_fast.scan_step
    monkeypatch.setattr(cpu_steps.cpu_fast, "scan_step", lambda *each: taken.append(1) or step(*each))
    rows = find_mems(index, [genome], kind=kind, min_length=10).rows()
    assert max(rows["length"]) == len(genome) and 16 <= len(taken) < 60


def test_reads_are_dealt_out_by_bases() -> None:
    lengths = [5, *[1000] * 400, cpu.LONG_READ, 7, 7, cpu.LONG_READ - 1, cpu.LONG_READ + 9, 300_000, *[90] * 5000]
    packed = pack_long_reads(Queries.from_sequences(["A" * length for length in lengths]))
    for threads in (1, 2, 8):
        parts = cpu._parts(packed.lengths, threads)
        assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])] and parts[-1][1] == len(lengths)
        most = max(cpu._LEAST_BASES, sum(lengths) // (cpu._SHARES * threads))
        for begin, end in parts:
            assert end == begin + 1 or (sum(lengths[begin:end]) <= most and max(lengths[begin:end]) < cpu.LONG_READ)
    assert cpu._parts(packed.lengths[:0], 2) == []


def run_on_low_complexity(
    folder: str, tmp_path: Path, tier: str, threads: str, **options: Any
) -> subprocess.Popen[bytes]:
    """A search that takes a minute: each of a read's As is at each of the genome's."""
    reads = save(tmp_path, "r.fa", fasta({f"a{number}": "A" * 100_000 for number in range(200)}))
    output = tmp_path / "out" / "x.paf"
    kind = {"fast": "maximal", "paper": "paper"}[tier]
    arguments = ["mems", folder, reads, "-o", str(output), "--tier", tier, "--kind", kind, "--threads", threads]
    return program(*arguments, **options)


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("tier, number", [("fast", signal.SIGINT), ("fast", signal.SIGTERM), ("paper", signal.SIGTERM)])
def test_a_signal_does_not_wait_for_a_read(folder: str, tmp_path: Path, threads: str, tier: str, number: int) -> None:
    (tmp_path / "out").mkdir()
    with run_on_low_complexity(folder, tmp_path, tier, threads) as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "out").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1)
        process.send_signal(number)
        began = time.monotonic()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number and time.monotonic() - began < 10
    assert b"Traceback" not in said and said.decode().splitlines()[-1].endswith("no half-written file is left.")
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_held_of_a_read_is_bounded(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of As is at some thousand places: its matches come part by part of the text, and are those of the whole."""
    read = ["A" * 3000 + "C" + "A" * 500]
    index = build_index(save(tmp_path, "g.fa", fasta({"a": "A" * 3000 + "T" + "A" * 999})))
    whole = find_mems(index, read, kind="maximal")
    assert len(whole) > 10_000
    held: list[int] = []
    found = cpu_steps.find_in_steps

    def find(*given: Any, **options: Any) -> Any:
        results = found(*given, **options)
        held.append(len(results.hits))
        return results

    monkeypatch.setattr(cpu, "find_in_steps", find)
    monkeypatch.setattr("warpseed.tasks._ROOM", 1000)
    monkeypatch.setattr("warpseed.tasks._LARGE_ROOM", 1000)
    for threads in (1, 3):
        held.clear()
        assert find_mems(index, read, kind="maximal", threads=threads) == whole
        assert len(held) > 10 and max(held) <= len(read[0])  # as many as begin at one place


def test_the_paper_tier_stops_in_a_read_and_goes_on(tmp_path: Path) -> None:
    """Each of 3,000 As goes back to the first: more than are extended without a signal being answered."""
    index = build_index(save(tmp_path, "g.fa", fasta({"a": "A" * 3000 + "T" + GENOME})))
    reads = ["A" * 3000 + "C", GENOME[100:200]]
    expected = find_mems(index, reads, kind="paper")
    assert len(expected) > 2900
    for threads in (1, 2):
        assert find_mems(index, reads, kind="paper", tier="paper", threads=threads) == expected
