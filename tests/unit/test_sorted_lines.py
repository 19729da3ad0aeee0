"""Lines sorted by coordinates: equal to a plain sort, in any memory, from any number of batches, threads and parts."""

from __future__ import annotations

import errno
import gzip
import os
import threading
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_hits import batches_of, draw_hits, hits_of, sorted_text
from warpseed.errors import InputError
from warpseed.kmer_seeds.output import LINES, write_hits
from warpseed.output import runs, sorted_lines
from warpseed.output.hits import Hits
from warpseed.output.runs import MAGIC, open_run_file
from warpseed.output.sorted_lines import merge_run_files, open_run_writer, open_sorted
from warpseed.output.sorting import Before, HeldRun, SortedLines, merge_runs, stable_order
from warpseed.output.totals import Totals
from warpseed.output.writers import open_writer

BED, TSV = LINES["bed"], LINES["tsv"]
KILOBYTES = 1 << 10


@pytest.fixture(scope="module")
def hits() -> Hits:
    return draw_hits(1)


def write(path: Path, batches: Iterator[Hits], *, make: bool = True, **options: Any) -> Totals:
    """Write sorted lines as a pipeline does, with hits made beside or not at all."""
    with open_sorted(path, BED, **options) as writer:
        for number, batch in enumerate(batches):
            writer.put(batch, writer.make(batch) if make and number % 3 else None)
    return writer.totals


# ------------------------------------------------------------------------------------------------------------ order


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2**62), st.integers(-(2**62), 2**62)), max_size=40
    ),
    st.booleans(),
)  # fmt: skip
def test_rows_are_ordered_by_any_keys(rows: list[tuple[int, int, int]], narrow: bool) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    keys = [columns[0].astype(np.uint64), *(column % 5 if narrow else column for column in columns[1:])]
    assert stable_order(*keys).tolist() == np.lexsort(keys[::-1]).tolist()


def lines_with(keys: list[tuple[int, int, int]], names: str) -> HeldRun:
    """A run with lines of one letter."""
    place, shape, query = (np.array(column) for column in zip(*keys, strict=True))
    lines = SortedLines(
        place.astype(np.uint64), shape.astype(np.uint64), query, np.arange(len(keys) + 1),
        np.frombuffer(names.encode(), np.uint8),
    )  # fmt: skip
    return HeldRun(lines)


@pytest.mark.parametrize("memory", [1, 300, 1 << 20])
def test_lines_with_equal_keys_stay_in_the_order_of_the_runs(memory: int) -> None:
    same = (5, 1, 2)
    runs = [
        lines_with([same, same, same, (6, 0, 0)], "abcx"),
        lines_with([(4, 9, 9), same, same, same], "tdef"),
        lines_with([same, (5, 1, 3)], "gu"),
    ]
    merged = merge_runs(runs, memory=memory, threads=1, make=lambda lines, before: lines.used_text().tobytes())
    assert b"".join(merged) == b"tabcdefgux"


def evenly(first: int, last: int, lines: int) -> HeldRun:
    """A run of so many lines at places [first, last), as far from each other."""
    places = np.linspace(first, last, lines, endpoint=False).astype(np.int64)
    return lines_with([(place, 0, lines) for place in places.tolist()], "x" * lines)


@pytest.mark.parametrize(
    "runs",
    [
        [evenly(0, 1 << 20, 20_000), *(evenly(0, 1 << 20, 500) for _ in range(40))],
        [evenly(i << 20, (i + 1) << 20, 4000) for i in range(10)],
        [evenly(0, 10 << 20, 100), *(evenly(i << 20, (i + 1) << 20, 4000) for i in range(10))],
    ],
    ids=["a long one and short ones", "one behind the other", "one behind the other, beside one of few lines"],
)
def test_parts_are_about_as_large_as_there_is_room_for(runs: list[HeldRun]) -> None:
    room = 1 << 14
    sizes = list(merge_runs(runs, memory=6 * room, threads=1, make=lambda lines, before: lines.size()))
    assert sum(sizes) == sum(run.held.size() for run in runs)
    assert max(sizes) < 2 * room
    assert len(sizes) < 2 * sum(sizes) / room + 2 * len(runs)


# ---------------------------------------------------------------------------------------------- the same bytes, always


@pytest.mark.parametrize("kind", ["bed", "tsv"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_sorted_hits_are_those_of_a_plain_sort(tmp_path: Path, hits: Hits, kind: str, ending: str) -> None:
    path = tmp_path / f"h.{kind}{ending}"
    assert write_hits(path, hits, sorted=True) == len(hits) == 3000
    text = gzip.decompress(path.read_bytes()) if ending else path.read_bytes()
    assert text == sorted_text(hits, kind)
    beside = {path.name, path.name + ".tbi"} if (kind, ending) == ("bed", ".gz") else {path.name}
    assert {each.name for each in tmp_path.iterdir()} == beside


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("memory", [1, 2 * KILOBYTES, 20 * KILOBYTES, 1 << 28])
@pytest.mark.parametrize("make", [True, False])
def test_memory_threads_and_batches_do_not_change_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, memory: int, make: bool
) -> None:
    hits = draw_hits(5, queries=90, hits=500)
    monkeypatch.setattr(sorted_lines, "LINES_AT_ONCE", 100)
    write_hits(tmp_path / "whole.bed.gz", hits, sorted=True)
    batches = batches_of(hits, cycle([1, 5, 0, 0, 40]))
    totals = write(tmp_path / "h.bed.gz", batches, make=make, threads=threads, memory=memory)
    for ending in ("", ".tbi"):
        assert (tmp_path / f"h.bed.gz{ending}").read_bytes() == (tmp_path / f"whole.bed.gz{ending}").read_bytes()
    assert gzip.decompress((tmp_path / "h.bed.gz").read_bytes()) == sorted_text(hits, "bed")
    assert (totals.queries, totals.hits) == (90, 500)


def test_little_memory_means_many_runs(tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch) -> None:
    added = []
    begin_run = runs.Spool.begin_run

    def begun(self: runs.Spool, lines: int, text_bytes: int) -> Callable[[SortedLines, Before], None]:
        added.append(lines)
        return begin_run(self, lines, text_bytes)

    monkeypatch.setattr(runs.Spool, "begin_run", begun)
    write(tmp_path / "h.bed", batches_of(hits, cycle([10])), memory=5 * KILOBYTES)
    assert len(added) > 20 and sum(added) < len(hits)
    assert (tmp_path / "h.bed").read_bytes() == sorted_text(hits, "bed")


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("memory", [5 * KILOBYTES, 1 << 28])
def test_any_number_of_parts_is_merged_to_the_same_bytes(tmp_path: Path, parts: int, memory: int) -> None:
    hits = draw_hits(2, places=12)  # hundreds at one place: the queries' numbers decide
    whole = write(tmp_path / "whole.bed.gz", iter([hits]))
    pieces = list(batches_of(hits, cycle([30])))
    for part in range(parts):
        with open_run_writer(tmp_path / f"{part}.runs", BED, memory=memory, threads=1 + part % 2) as writer:
            for piece in pieces[part::parts]:
                writer.put(piece, writer.make(piece))
    files = [tmp_path / f"{part}.runs" for part in range(parts)]
    totals = merge_run_files(files[::-1], tmp_path / "h.bed.gz", threads=2, memory=memory)
    for ending in ("", ".tbi"):
        assert (tmp_path / f"h.bed.gz{ending}").read_bytes() == (tmp_path / f"whole.bed.gz{ending}").read_bytes()
    assert totals.numbers() == whole.numbers()


@pytest.mark.parametrize("threads", [1, 4])
def test_a_merge_has_few_files_open(tmp_path: Path, threads: int) -> None:
    hits = draw_hits(3)
    files = []
    for number, piece in enumerate(batches_of(hits, cycle([4]))):
        files.append(tmp_path / f"{number}.runs")
        with open_run_writer(files[-1], BED) as writer:
            writer.put(piece)
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert len(files) == 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, hard))
    try:
        merge_run_files(files, tmp_path / "h.bed", threads=threads)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (tmp_path / "h.bed").read_bytes() == sorted_text(hits, "bed")


def test_long_lines_are_held_by_their_bytes(tmp_path: Path) -> None:
    hits = hits_of([(q, 0, s, s + 20, 0, 0) for s in range(500) for q in range(2)], ["n" * 10_000, "m"])
    with open_sorted(tmp_path / "h.bed", BED, memory=1 << 20) as writer:
        for batch in batches_of(hits, cycle([0])):
            writer.put(batch, writer.make(batch))
        sizes = list(merge_runs(writer.runs(), memory=1 << 20, threads=1, make=lambda lines, _: lines.size()))
    assert sum(sizes) > 4 << 20 and max(sizes) < 1 << 20
    assert (tmp_path / "h.bed").read_bytes() == sorted_text(hits, "bed")


# ----------------------------------------------------------------------------------------------- nothing, and odd names


@pytest.mark.parametrize("batches", [[], [hits_of([], [])], [hits_of([], ["q", "r"])]], ids=len)
def test_no_hits_are_an_empty_file_and_its_index(tmp_path: Path, batches: list[Hits]) -> None:
    write(tmp_path / "h.bed.gz", iter(batches))
    assert gzip.decompress((tmp_path / "h.bed.gz").read_bytes()) == b""
    with pysam.TabixFile(os.fspath(tmp_path / "h.bed.gz")) as table:
        assert table.contigs == []
    write_hits(tmp_path / "h.tsv", batches, sorted=True)
    assert (tmp_path / "h.tsv").read_bytes() == TSV.heading
    with open_run_writer(tmp_path / "r", BED) as writer:
        for batch in batches:
            writer.put(batch)
    assert merge_run_files([tmp_path / "r"], tmp_path / "m.bed.gz") == writer.totals
    assert (tmp_path / "m.bed.gz").read_bytes() == (tmp_path / "h.bed.gz").read_bytes()


def test_a_contig_that_would_be_a_comment_is_refused(tmp_path: Path) -> None:
    hits = hits_of([], ["q"], {"a": 9, "#b": 9})
    with pytest.raises(InputError, match="contig #b: lines that begin with # are comments"):
        write(tmp_path / "h.bed", iter([hits]))
    assert list(tmp_path.iterdir()) == []
    write_hits(tmp_path / "h.tsv", hits, sorted=True)


def test_standard_output_is_sorted_too(hits: Hits, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_hits("-", batches_of(hits, cycle([50])), sorted=True)
    assert capsysbinary.readouterr().out == sorted_text(hits, "bed")


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize("error", [InputError("bad record"), KeyboardInterrupt(), ValueError("a bug")])
def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path, hits: Hits, error: BaseException) -> None:
    def batches() -> Iterator[Hits]:
        yield from batches_of(hits, cycle([10]))
        raise error

    folder = tmp_path / "out"
    with pytest.raises(type(error)):
        write(folder / "h.bed.gz", batches(), memory=5 * KILOBYTES, threads=2)
    with pytest.raises(type(error)), open_run_writer(folder / "h.runs", BED, memory=5 * KILOBYTES) as writer:
        for batch in batches():
            writer.put(batch)
    assert not folder.exists()
    folder.mkdir()
    old = {"h.bed.gz": b"the old one", "h.bed.gz.tbi": b"and its index"}
    for name, content in old.items():
        (folder / name).write_bytes(content)
    with pytest.raises(type(error)):
        write(folder / "h.bed.gz", batches())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == old


def fail_with(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("threads", [1, 2])
def test_a_disk_that_fills_while_lines_wait(
    tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(os, "pwrite", fail_with(errno.ENOSPC))
    full = r"cannot be written \(No space left on device\); free some space"
    with pytest.raises(InputError, match=f"^{tmp_path}: {full}"):
        write(tmp_path / "h.bed.gz", batches_of(hits, cycle([10])), memory=5 * KILOBYTES, threads=threads)
    with (
        pytest.raises(InputError, match=f"^{tmp_path / 'h.runs'}: {full}"),
        open_run_writer(tmp_path / "h.runs", BED, threads=threads) as writer,
    ):
        writer.put(hits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_a_disk_that_fails_while_lines_are_read_again(
    tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    batches = list(batches_of(hits, cycle([10])))
    with open_run_writer(tmp_path / "h.runs", BED) as writer:
        for batch in batches:
            writer.put(batch)
    monkeypatch.setattr(os, "preadv", fail_with(errno.EIO))
    failed = r"the runs cannot be read \(Input/output error\)"
    with pytest.raises(InputError, match=f"^{tmp_path}: {failed}"):
        write(tmp_path / "h.bed.gz", iter(batches), memory=5 * KILOBYTES, threads=threads)
    with pytest.raises(InputError, match=f"^{tmp_path / 'h.runs'}: {failed}"):
        merge_run_files([tmp_path / "h.runs"], tmp_path / "h.bed.gz", threads=threads)
    assert [path.name for path in tmp_path.iterdir()] == ["h.runs"]


@pytest.mark.parametrize("threads", [1, 3])
def test_sorted_lines_into_a_pipe(tmp_path: Path, hits: Hits, threads: int) -> None:
    pipe, read = tmp_path / "h.bed.gz", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, batches_of(hits, cycle([10])), threads=threads)
    reader.join()
    assert os.listdir(tmp_path) == [pipe.name]
    assert gzip.decompress(read[0]) == sorted_text(hits, "bed")


@pytest.mark.parametrize("threads", [1, 2])
def test_lines_that_cannot_be_joined(tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(sorted_lines, "merge_lines", fail_with(errno.ENOMEM))
    batches = list(batches_of(hits, cycle([10])))
    with pytest.raises(OSError, match="Cannot allocate memory"):
        write(tmp_path / "h.bed.gz", iter(batches), memory=50 * KILOBYTES, threads=threads)
    with (
        pytest.raises(OSError, match="Cannot allocate memory"),
        open_run_writer(tmp_path / "h.runs", BED, memory=50 * KILOBYTES, threads=threads) as writer,
    ):
        for batch in batches:
            writer.put(batch)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["h.bed", "h.bed.gz"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_link_leads_to_sorted_lines(tmp_path: Path, hits: Hits, name: str, threads: int) -> None:
    write(tmp_path / "whole.bed", iter([hits]))
    for target in ("data", "data.gz"):
        link = tmp_path / f"to_{target}_{name}"
        link.symlink_to(tmp_path / target)
        if name.endswith(".gz") and not target.endswith(".gz"):
            with pytest.raises(InputError, match="is no BGZF, which has an index"):
                write(link, iter([hits]), threads=threads)
            continue
        write(link, iter([hits]), threads=threads)
        content = (tmp_path / target).read_bytes()
        text = gzip.decompress(content) if target.endswith(".gz") else content
        assert text == (tmp_path / "whole.bed").read_bytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_waiting_lines_that_cannot_be_read_again(
    tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    keys_read = runs.SpooledRun.read

    def read(self: runs.SpooledRun, first: int, room: int) -> SortedLines:
        """The keys, and behind them a file in which nothing is left of the text."""
        lines = keys_read(self, first, room)
        assert self.source.descriptor is not None
        os.ftruncate(self.source.descriptor, self.place.column(4))
        return lines

    monkeypatch.setattr(runs.SpooledRun, "read", read)
    with pytest.raises(InputError, match=f"^{tmp_path}: the runs end too early; make the file again"):
        write(tmp_path / "h.bed.gz", batches_of(hits, cycle([400])), memory=50 * KILOBYTES, threads=threads)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_while_the_index_is_written(
    tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_lines, "block_offsets", fail_with(errno.ENOSPC))
    with pytest.raises(InputError, match=r"h\.bed\.gz\.tbi: cannot be written \(No space left on device\); free"):
        write(tmp_path / "h.bed.gz", iter([hits]))
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_runs_of_one_set(tmp_path: Path, hits: Hits) -> None:
    def run_file(name: str, hits: Hits, format: Any = BED) -> Path:
        with open_run_writer(tmp_path / name, format) as writer:
            writer.put(hits)
        return tmp_path / name

    good = run_file("good", hits)
    whole = good.read_bytes()
    assert whole.startswith(MAGIC) and whole.endswith(MAGIC) and open_run_file(good).about.totals.hits == 3000
    other = run_file("other", hits_of([], ["q"], {"chr2": 3001}))
    unfit = {"empty": b"", "text": b"a\tb\n" * 99, "cut": whole[:-9], "short": MAGIC, "bad": whole[:-60] + whole[-24:]}
    for name, content in unfit.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"^{tmp_path / name}: this is no whole run file; make it again"):
            merge_run_files([good, tmp_path / name], tmp_path / "h.bed")
    for files, sentence in (
        ([good, other], "other: it is of another reference than the run files before it"),
        ([good, run_file("tsv", hits, TSV)], "tsv: its lines are of another format than those before it"),
        ([tmp_path / "nowhere"], "nowhere: cannot be read \\(No such file or directory\\)"),
    ):
        with pytest.raises(InputError, match=sentence):
            merge_run_files(files, tmp_path / "h.bed")
    with pytest.raises(InputError, match=f"the output is the file {good}, which is read"):
        merge_run_files([good], good)
    assert not (tmp_path / "h.bed").exists() and good.read_bytes() == whole


def test_a_writer_of_query_order_has_made_lines_and_unmade_ones(tmp_path: Path, hits: Hits) -> None:
    write_hits(tmp_path / "whole.bed.gz", hits)
    with open_writer(tmp_path / "h.bed.gz", BED, threads=2) as writer:
        for number, batch in enumerate(batches_of(hits, cycle([0, 7]))):
            writer.put(batch, writer.make(batch) if number % 2 else None)
    assert (tmp_path / "h.bed.gz").read_bytes() == (tmp_path / "whole.bed.gz").read_bytes()
    assert writer.totals.hits == 3000
