"""What a command says while it runs: how far it is, on a terminal, in a log, or nowhere."""

from __future__ import annotations

import gzip
import io
import itertools
import logging
import os
import pty
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import warpseed
from command_line import CONTIGS, QUERIES, expected_bed, fasta, save
from warpseed import cli
from warpseed.compute import stopwatch
from warpseed.compute.stopwatch import Stopwatch
from warpseed.kmer_seeds import iter_kmer_hits
from warpseed.output.totals import Totals
from warpseed.sequences import queries
from warpseed.sequences.queries import read_queries
from warpseed.tree_bitmap import cpu, output
from warpseed.workflow import progress
from warpseed.workflow.progress import Progress, hits_of


class Batch(NamedTuple):
    """As much of Hits as is counted."""

    first_query: int
    counts: np.ndarray
    continues: bool
    dropped_queries: int = 1
    dropped_hits: int = 7

    def __len__(self) -> int:
        return int(self.counts.sum())


def batches() -> Iterator[Any]:
    """2,500 queries in three batches; the hits of number 1,999 go on in the third."""
    for first, last, each in ((0, 1000, 2), (1000, 2000, 3), (1999, 2500, 0)):
        yield Batch(first, np.full(last - first, each), last == 2000)


def told(given: Iterable[Any], totals: Totals | None = None, watch: Stopwatch | None = None) -> int:
    """How many batches were told and counted."""
    totals = totals or Totals()
    number = 0
    for batch in Progress(hits_of(totals, "k-mers"), watch or Stopwatch()).told(given):
        totals.add(batch)
        number += 1
    return number


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six seconds pass from each look at the clock to the next."""
    seconds = itertools.count(100, 6)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))


def test_totals_count_a_query_once_whose_hits_are_in_two_batches() -> None:
    totals = Totals()
    for batch in batches():
        totals.add(batch)
    assert (totals.queries, totals.hits, totals.dropped_queries, totals.dropped_hits) == (2500, 5000, 3, 21)


def test_a_log_gets_a_line_now_and_then(clock: None, capsys: pytest.CaptureFixture[str]) -> None:
    watch = Stopwatch()
    watch.share = 0.456
    totals = Totals()
    assert told(batches(), totals, watch) == 3
    assert capsys.readouterr().err == "1,999 k-mers, 5,000 hits, 46% of the input read, 12 s\n"
    assert totals.queries == 2500


def test_a_terminal_has_one_line_that_is_written_anew_and_goes(clock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    assert told(batches()) == 3
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines == ["", "1,000 k-mers, 2,000", "1,999 k-mers, 5,000", "2,500 k-mers, 5,000", ""]
    assert "\n" not in terminal.getvalue()


def test_the_line_goes_when_the_search_fails(clock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(ValueError):
        told(itertools.chain(batches(), map(int, ["x"])))
    assert terminal.getvalue().endswith(" s\r\x1b[K")


@pytest.mark.parametrize("stream", ["none", "closed", "full"])
def test_nobody_to_tell_is_no_mistake(clock: None, monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    streams = {"none": None, "closed": Terminal(), "full": open("/dev/full", "w")}  # noqa: SIM115
    streams["closed"].close()
    monkeypatch.setattr(sys, "stderr", streams[stream])
    assert told(batches()) == 3


def test_what_stays_on_a_terminal_is_what_a_file_gets(tmp_path: Path, index: str, kmers: str) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
    command = [sys.executable, "-m", "warpseed", "kmers", index, kmers, "-o", str(tmp_path / "h.bed")]
    subprocess.run(command, env=environment, stderr=theirs, check=True)
    os.close(theirs)
    said = ""
    # What a terminal was told comes in pieces; behind the last there is nobody at the other end.
    with suppress(OSError):
        while piece := os.read(ours, 1 << 16):
            said += piece.decode()
    os.close(ours)
    lines = [line.rpartition("\r\x1b[K")[2] for line in said.split("\r\n")]
    assert [line.split()[:2] for line in lines] == [
        ["warpseed", f"{warpseed.__version__}:"], ["4", "k-mers,"], ["seconds:", "load"], ["peak", "memory:"], []
    ]  # fmt: skip


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_stream_tells_its_bases_and_what_is_written(
    tmp_path: Path, clock: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], threads: str
) -> None:
    monkeypatch.setattr(cpu, "BLOCK_PLACES", 100)
    monkeypatch.setattr(queries, "_PIECE_BYTES", 100)
    monkeypatch.setattr(output, "_BYTES_AT_ONCE", 1000)
    reads = save(tmp_path, "r.fa", fasta({f"r{i}": CONTIGS["chr1"][i : i + 90] for i in range(0, 600, 90)}))
    given = ["stream", reads, "-k", "9", "--threads", threads, "-o"]
    assert cli.main([*given, str(tmp_path / "k.tsv")]) == 0
    told = capsys.readouterr().err.splitlines()
    bases = [re.fullmatch(r"([0-9,]+) bases, (?:[0-9]+%|all) of the input read, [0-9]+ s", line) for line in told]
    numbers = [int(match[1].replace(",", "")) for match in bases if match]
    assert numbers == sorted(numbers) and len(numbers) > 1 and numbers[0] < 630 and (threads == "2" or numbers[0] > 0)
    lines = len((tmp_path / "k.tsv").read_text().splitlines()) - 1
    written = [line for line in told if f" of {lines:,} 9-mers written, " in line]
    assert len(written) > 2 and written[-1].split()[0] == f"{lines:,}"
    assert cli.main([*given, str(tmp_path / "k.tsv"), "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_quiet_says_nothing_but_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    genome, kmers = save(tmp_path, "g.fa", fasta(CONTIGS)), save(tmp_path, "k.fa", fasta(QUERIES))
    folder, bed = str(tmp_path / "i"), str(tmp_path / "h.bed")
    for command in (
        ["index", "-q", genome, "-o", folder], ["kmers", folder, kmers, "-o", bed, "--quiet", "--max-hits", "9"],
        ["verify", "-q", folder],
    ):  # fmt: skip
        assert cli.main(command) == 0
        said = capsys.readouterr()
        assert said.out == said.err == ""
    assert Path(bed).read_text() == expected_bed(CONTIGS, QUERIES, 0, 9)
    assert cli.main(["kmers", "-q", folder, str(tmp_path / "none.fa")]) == 1
    assert capsys.readouterr().err.startswith("Error: ")


def test_a_long_stage_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO, "warpseed")
    seconds = iter([0.0, 0.5, 10.0, 13.25])
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: next(seconds))
    watch = Stopwatch()
    for name in ("text", "suffix_array"):
        with watch.stage(name):
            pass
    assert [record.getMessage() for record in caplog.records] == ["suffix_array: 3.2 s"]


@pytest.mark.parametrize("kind", ["plain", "gzip", "memory", "pipe"])
def test_the_share_of_the_input_grows_to_all_of_it(tmp_path: Path, index: str, kind: str) -> None:
    draw = random.Random(1)
    text = "".join(f">r{i}\n{''.join(draw.choices('ACGT', k=20))}\n" for i in range(400_000)).encode()
    source: Any = save(tmp_path, "k.fa", gzip.compress(text, 1) if kind == "gzip" else text)
    watch, shares = Stopwatch(), []
    if kind == "memory":
        source = read_queries(source)
    if kind == "pipe":
        plain, source = source, tmp_path / "pipe"
        os.mkfifo(source)
        threading.Thread(target=lambda: source.write_bytes(Path(plain).read_bytes()), daemon=True).start()
    for _ in iter_kmer_hits(index, source, watch=watch):
        shares.append(watch.share)
    assert len(shares) > 3
    if kind == "pipe":
        assert set(shares) == {None}
    else:
        assert 0.0 < shares[0] < 0.5 and shares[-1] == pytest.approx(1.0, abs=0.001)
        assert kind == "gzip" or shares == sorted(shares)  # the size of what is compressed is estimated
