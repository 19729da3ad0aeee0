"""Processes that are timed, and the hits they print as rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from warpseed.errors import PeerError
from warpseed.kmer_seeds.timing import BED_HITS
from warpseed.measure.peers import process
from warpseed.measure.peers.process import find_program, parse_hits, program_version, run_process
from warpseed.output.rows import HIT_ROW

LENGTHS = np.array([4, 5])
CONTIGS = ["chr1", "a b"]


def python(text: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", text]


def test_a_process_is_timed_and_its_memory_is_its_own() -> None:
    """A child that allocates 80 MB, and one that does not, whatever this process holds."""
    ballast = bytearray(200 << 20)
    ballast[::4096] = b"x" * len(ballast[::4096])
    small = run_process(python("import time; time.sleep(0.05); print('unseen')"))
    large = run_process(python("x = bytearray(80 << 20); x[::4096] = b'x' * len(x[::4096])"))
    assert 0.05 <= small.seconds < 5
    assert 2 << 20 < small.peak_bytes < 60 << 20
    assert 80 << 20 < large.peak_bytes < 160 << 20


def test_variables_reach_the_process() -> None:
    text = "import os, sys; sys.exit(os.environ['SEED'] != '7' or 'PATH' not in os.environ)"
    run_process(python(text), environment={"SEED": "7"})


def test_a_failing_process_is_one_sentence() -> None:
    text = "import sys; print('Warning: x', file=sys.stderr); print('no such index', file=sys.stderr); sys.exit(3)"
    with pytest.raises(PeerError, match=r"ended with status 3 and said: no such index \(command: "):
        run_process(python(text))
    with pytest.raises(PeerError, match="ended with status -9 "):
        run_process(python("import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(PeerError, match="No such file"):
        run_process(["/no/such/program"])


def test_what_was_started_ends_with_us(tmp_path: Path) -> None:
    """Ctrl-C reaches a job alone: neither the process that it times nor the one that started it goes on."""
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    timer = threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_process(python(child))
    time.sleep(2.5)
    assert not mark.exists()


def test_a_program_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerError, match="sh is not on PATH: install it, or leave it out of this run"):
        find_program("sh", "install it")


def test_a_version_is_found_on_either_stream_whatever_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    both = ["sh", "-c", "echo tool; echo Version: 1.2 >&2; exit 3"]
    assert program_version(both, r"^Version: (\S+)") == "1.2"
    assert program_version(both, r"^Release: (\S+)") is None
    assert program_version(["warpseed-no-such-program"], "(.*)") is None

    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("sh", 20)

    monkeypatch.setattr(process.subprocess, "run", hang)
    assert program_version(both, r"^Version: (\S+)") is None


def test_a_bed_is_read_back_in_its_order(tmp_path: Path) -> None:
    bed = tmp_path / "hits.bed"
    bed.write_text('a b\t7\t12\t1\t2\t-\nchr1\t0\t4\t0\t0\t+\na b\t"3"\t8\t1\t0\t+\n'.replace('"', ""))
    expected: Sequence[tuple[int, ...]] = [(1, 1, 7, 12, 1, 2), (0, 0, 0, 4, 0, 0), (1, 1, 3, 8, 0, 0)]
    assert parse_hits(bed, BED_HITS, CONTIGS, LENGTHS).tolist() == expected
    bed.write_text("")
    empty = parse_hits(bed, BED_HITS, CONTIGS, LENGTHS)
    assert len(empty) == 0 and empty.dtype == HIT_ROW


@pytest.mark.parametrize(
    "line",
    [
        "chr1\t0\t5\t0\t0\t+",  # longer than its query
        "chr9\t0\t4\t0\t0\t+",
        "chr1\t0\t4\t2\t0\t+",
        "chr1\t0\t4\t-1\t0\t+",
        "chr1\t0\t4\tk0\t0\t+",
        "chr1\t0\t4\t0\t.\t+",
        "chr1\t0\t4\t0\t0\t*",
        "chr1\t0",
    ],
)
def test_a_line_that_is_no_hit_is_refused(tmp_path: Path, line: str) -> None:
    bed = tmp_path / "hits.bed"
    bed.write_text(f"chr1\t0\t4\t0\t0\t+\n{line}\n")
    with pytest.raises(PeerError, match="hits.bed is not what warpseed prints for queries named 0 to 1 on this"):
        parse_hits(bed, BED_HITS, CONTIGS, LENGTHS)
