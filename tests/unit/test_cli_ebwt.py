"""The command `ebwt`: the files that it writes, and what it refuses."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import fasta, program, save
from oracles.ebwt import distance, inverse, transform
from warpseed import cli
from warpseed.compute import machine
from warpseed.ebwt import search
from warpseed.ebwt.fast import Found

RECORDS = {"one": "GATTACA", "<b>&two": "GATTACAGATTACA", "it's": "CCNTGA", "four": "A"}
FILES = [
    "dendrogram.svg", "distances.tsv", "ebwt.txt", "heatmap.svg", "newick", "phylip", "words.tsv",
]  # fmt: skip
Refused = Callable[..., str]


@pytest.fixture
def sequences(tmp_path: Path) -> str:
    return save(tmp_path, "records.fa", fasta(RECORDS))


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    def call(*arguments: str) -> str:
        assert cli.main(["ebwt", *arguments, "-q"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line.removeprefix("Error: ")

    return call


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())} if folder.exists() else {}


def expected_distances(records: dict[str, str] = RECORDS) -> list[list[int]]:
    return [[distance(u, v) if a != b else 0 for b, v in records.items()] for a, u in records.items()]


def test_all_files_are_what_the_definitions_say(
    tmp_path: Path, sequences: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ebwt", sequences, "-o", f"{tmp_path}/new/out"]) == 0
    files = written(tmp_path / "new")
    assert sorted(files) == [f"out.{ending}" for ending in FILES]
    last, indices = transform(list(RECORDS.values()))
    assert files["out.ebwt.txt"] == last + "\n"
    rows = [f"{name}\t{len(RECORDS[name])}\t{index}" for name, index in zip(RECORDS, indices, strict=True)]
    assert files["out.words.tsv"].splitlines() == ["record\tlength\tindex", *rows]
    values = expected_distances()
    lines = [line.split("\t") for line in files["out.distances.tsv"].splitlines()]
    assert lines[0] == ["record", *RECORDS]
    assert [[line[0], *map(int, line[1:])] for line in lines[1:]] == [
        [name, *row] for name, row in zip(RECORDS, values, strict=True)
    ]
    rows = [" ".join(map(str, row)) for row in values]
    names = ["one", "<b>&two", "it_s", "four"]
    assert files["out.phylip"].splitlines() == ["4", *(f"{a}  {b}" for a, b in zip(names, rows, strict=True))]
    assert all(f"'{name}':" in files["out.newick"] for name in ["one", "<b>&two", "it''s", "four"])
    assert "<b>" not in files["out.heatmap.svg"] and "&lt;b&gt;&amp;two" in files["out.heatmap.svg"]
    said = capsys.readouterr().err
    for part in ("warpseed", "ebwt", "# device cpu", "4 records, 28 bases", "seconds: read", "peak memory"):
        assert part in said


def test_any_number_of_threads_writes_the_same(tmp_path: Path, sequences: str) -> None:
    for threads in "123":
        assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/{threads}/out", "--threads", threads]) == 0
    assert written(tmp_path / "1") == written(tmp_path / "2") == written(tmp_path / "3")


def test_what_is_left_out_is_not_there(tmp_path: Path, sequences: str) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/a/out", "--no-transform"]) == 0
    assert sorted(written(tmp_path / "a")) == [f"out.{name}" for name in FILES if name not in ("ebwt.txt", "words.tsv")]
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/b/out", "--no-distances"]) == 0
    assert sorted(written(tmp_path / "b")) == ["out.ebwt.txt", "out.words.tsv"]


@pytest.mark.parametrize("option", ["--no-transform", "--no-distances"])
def test_nothing_of_an_earlier_run_is_left(tmp_path: Path, sequences: str, option: str) -> None:
    """Nor a link to it; what no run writes stays, a folder, and what is read, whatever it is called."""
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/x/out"]) == 0
    dropped = "newick" if option == "--no-distances" else "words.tsv"
    (tmp_path / f"x/out.{dropped}").rename(tmp_path / "linked")
    (tmp_path / f"x/out.{dropped}").symlink_to(tmp_path / "linked")
    others = {"out.summary.tsv", "other.newick", "out"}
    for name in others:
        (tmp_path / "x" / name).write_text("mine\n")
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/x/out", option]) == 0
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/y/out", option]) == 0
    assert set(written(tmp_path / "x")) == others | set(written(tmp_path / "y"))
    assert (tmp_path / "linked").exists()
    source, folder = tmp_path / f"y/out.{dropped}", tmp_path / "y/out.ebwt.txt" / "in"
    source.write_text(fasta(RECORDS))
    if option == "--no-transform":
        folder.mkdir(parents=True)
    assert cli.main(["ebwt", str(source), "-q", "-o", f"{tmp_path}/y/out", option]) == 0
    assert source.read_text() == fasta(RECORDS) and folder.exists() == (option == "--no-transform")


def test_a_run_that_fails_leaves_an_earlier_one(tmp_path: Path, sequences: str, refused: Refused) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/x/out"]) == 0
    before = written(tmp_path / "x")
    refused(save(tmp_path, "bad.fa", ">a\n"), "-o", f"{tmp_path}/x/out", "--no-transform")
    assert written(tmp_path / "x") == before


def test_distances_over_the_most_and_average_linkage(tmp_path: Path, sequences: str) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/a/out", "--normalise", "--tree", "upgma"]) == 0
    files = written(tmp_path / "a")
    lengths = np.array([len(word) for word in RECORDS.values()])
    expected = np.array(expected_distances()) / np.maximum(lengths[:, None] + lengths - 2, 1)
    rows = [line.split("\t")[1:] for line in files["out.distances.tsv"].splitlines()[1:]]
    assert np.abs(np.array(rows, float) - expected).max() < 1e-8
    assert "average linkage" in files["out.dendrogram.svg"]


def test_words_come_back(tmp_path: Path, sequences: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/out"]) == 0
    last, indices = transform(list(RECORDS.values()))
    assert inverse(last, indices) == list(RECORDS.values())
    assert cli.main(["ebwt", f"{tmp_path}/out", "--inverse", "-q", "-o", f"{tmp_path}/back.fa.gz"]) == 0
    with gzip.open(tmp_path / "back.fa.gz", "rt") as back:
        assert back.read() == fasta(RECORDS)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(fasta(RECORDS).encode()), closed=False))
    assert cli.main(["ebwt", "-", "-q", "-o", f"{tmp_path}/out"]) == 0
    assert len(written(tmp_path)) == len(FILES)


def test_names_that_files_cannot_hold_are_made_new_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "names.fa").write_bytes(b">a\nACGT\n>a\nGGT\n>b\nCC\n>caf\xe9\nGAT\n")
    assert cli.main(["ebwt", f"{tmp_path}/names.fa", "-q", "-o", f"{tmp_path}/out"]) == 0
    note = "Note: 2 records whose name was missing, another's, or not UTF-8, got a new one."
    assert capsys.readouterr().err.splitlines()[0] == note
    names = [line.partition("\t")[0] for line in (tmp_path / "out.words.tsv").read_text(encoding="utf-8").splitlines()]
    assert names[1:] == ["a", "a_2", "b", "caf\ufffd"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (">a\nACGT\n", "there is one record, but a distance takes two"),
        ("", "the file is empty"),
        (">a\nACGT\n>b\n", "record 2"),
        (">a\nACGT\n>b\nAC!T\n", "record 2"),
        ("@a\nACGT\n+\nII", "record 1"),
        (gzip.compress(fasta(RECORDS).encode() * 99)[:-20], "was cut"),
    ],
    ids=["one record", "empty", "no bases", "letter", "cut", "cut gzip"],
)
def test_of_a_bad_file_nothing_is_written(tmp_path: Path, refused: Refused, content: str | bytes, told: str) -> None:
    path = save(tmp_path, "bad.fa", content)
    old = save(tmp_path, "out.newick", "(old);\n")
    said = refused(path, "-o", f"{tmp_path}/out")
    assert said.startswith(path) and told in said
    assert sorted(written(tmp_path)) == ["bad.fa", "out.newick"] if isinstance(content, str) else True
    assert Path(old).read_text() == "(old);\n"


def test_one_record_has_a_transform(tmp_path: Path) -> None:
    path = save(tmp_path, "one.fa", ">a\nGATTACA\n")
    assert cli.main(["ebwt", path, "-q", "-o", f"{tmp_path}/out", "--no-distances"]) == 0
    assert (tmp_path / "out.ebwt.txt").read_text() == transform(["GATTACA"])[0] + "\n"


@pytest.mark.parametrize("prefix", ["", "-", "{}/", "{}/.."])
def test_a_prefix_that_names_no_files(tmp_path: Path, sequences: str, refused: Refused, prefix: str) -> None:
    assert "the beginning of the names of several files was expected" in refused(
        sequences, "-o", prefix.format(tmp_path)
    )


def test_an_output_that_is_the_input_or_a_folder(tmp_path: Path, sequences: str, refused: Refused) -> None:
    path = save(tmp_path, "out.ebwt.txt", fasta(RECORDS))
    assert "which is read" in refused(path, "-o", f"{tmp_path}/out")
    (tmp_path / "b.phylip").mkdir()
    assert "this is a folder" in refused(sequences, "-o", f"{tmp_path}/b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.phylip", "out.ebwt.txt", "records.fa"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, sequences: str, refused: Refused) -> None:
    (tmp_path / "out.newick").symlink_to("/dev/full")
    assert "newick: cannot be written (No space left on device)" in refused(sequences, "-o", f"{tmp_path}/out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.newick", "records.fa"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(tmp_path: Path, sequences: str, refused: Refused) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be written (Permission denied)" in refused(sequences, "-o", f"{tmp_path}/out")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--no-distances", "--normalise"], "--normalise is about distances"),
        (["--no-distances", "--tree", "nj"], "--tree is about distances"),
        (["--inverse", "--tree", "upgma"], "--tree is about distances"),
        (["--inverse", "--device", "gpu"], "--inverse is made on the CPU; leave --device out"),
        (["--device", "gpu:0,0"], "'gpu:0,1', 'gpu:all'"),
        (["--device", "tpu"], "'cpu' or 'gpu' was expected"),
        (["--threads", "0"], "1 or more was expected"),
    ],
)
def test_options_that_do_not_go(
    tmp_path: Path, sequences: str, refused: Refused, arguments: list[str], told: str
) -> None:
    assert told in refused(sequences, "-o", f"{tmp_path}/out", *arguments)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("ebwt.txt", "\n", "", "line 1: one line of letters was expected"),
        ("ebwt.txt", "N", "x", "but A, C, G, T or N was expected"),
        ("ebwt.txt", "N", "", "add up to 28, but"),
        ("words.tsv", "one\t7\t", "one\t8\t", "add up to 29, but"),
        ("words.tsv", "index", "", "the header line"),
        ("words.tsv", "one\t7\t", "\t7\t", "line 2: '\\t7\\t"),
        ("words.tsv", "\tindex", "\tindex\nA", "line 2"),
        ("words.tsv", "one\t7\t", "one\t7\t-", "line 2"),
        ("words.tsv", "one\t7\t", "one\t7\t99", "an index among them"),
        ("words.tsv", "one\t7\t", f"one\t{'0' * 19}7{'0' * 30}\t", "line 2: 'one\\t000"),
        ("words.tsv", "one\t7\t", f"one\t7\t{'0' * 19}{'7' * 5000}", "line 2: 'one\\t7\\t000"),
        ("words.tsv", None, None, "cannot be read (No such file or directory)"),
    ],
)
def test_a_transform_that_is_damaged(
    tmp_path: Path, sequences: str, refused: Refused, name: str, old: str | None, new: str, told: str
) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/out", "--no-distances"]) == 0
    path = tmp_path / f"out.{name}"
    if old is None:
        path.unlink()
    else:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    assert told in refused(f"{tmp_path}/out", "--inverse", "-o", f"{tmp_path}/back.fa")
    assert not (tmp_path / "back.fa").exists()


def test_lengths_that_are_swapped_are_told(tmp_path: Path, sequences: str, refused: Refused) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/out", "--no-distances"]) == 0
    path = tmp_path / "out.words.tsv"
    path.write_text(path.read_text().replace("one\t7", "one\t6").replace("it's\t6", "it's\t7"))
    said = refused(f"{tmp_path}/out", "--inverse", "-o", f"{tmp_path}/back.fa")
    assert said.startswith("record one has 7 letters by the transform, but 6 by the file words.tsv")
    assert not (tmp_path / "back.fa").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process = program("ebwt", "-", "-o", str(tmp_path / "out"), stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b">a\nACGT\n")
    process.stdin.flush()
    while len(list(tmp_path.iterdir())) < len(FILES):
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(timeout=60) == 128 + number
    assert list(tmp_path.iterdir()) == []
    process.communicate()


def test_an_empty_name_is_refused(tmp_path: Path, sequences: str, refused: Refused) -> None:
    assert cli.main(["ebwt", sequences, "-o", f"{tmp_path}/out", "-q"]) == 0
    assert refused(f"{tmp_path}/out", "-o", "", "--inverse").startswith("the name of the output file is empty; name a")
    assert "sub/: this is the name of a folder" in refused(f"{tmp_path}/out", "-o", f"{tmp_path}/sub/", "--inverse")
    assert not (tmp_path / "sub").exists()


def test_words_as_fasta_to_a_pipe_that_closes(tmp_path: Path, sequences: str) -> None:
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/out", "--no-distances"]) == 0
    reading, writing = os.pipe()
    os.close(reading)
    process = program("ebwt", f"{tmp_path}/out", "--inverse", "-q", "-o", "-", stdout=writing)
    os.close(writing)
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE
    assert process.communicate()[1] == b""


def test_a_gpu_is_asked_once_for_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sequences: str) -> None:
    """The order stays on the device between the transform and the distances; the files are the CPU's."""
    from warpseed.ebwt import gpu

    calls = []

    def find(words: object, **asked: object) -> Found:
        calls.append({name: value for name, value in asked.items() if name != "watch"})
        options = search.Options(threads=1)
        return search.search(words, options, transform=True, distances=True, watch=asked["watch"])  # type: ignore[arg-type]

    monkeypatch.setattr(gpu, "find", find)
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/a/out", "--device", "gpu:1", "--threads", "2"]) == 0
    assert calls == [{"transform": True, "distances": True, "devices": (1,), "threads": 2}]
    assert cli.main(["ebwt", sequences, "-q", "-o", f"{tmp_path}/b/out"]) == 0
    assert written(tmp_path / "a") == written(tmp_path / "b")


def test_too_many_pairs_are_refused_before_anything_is_sorted(
    tmp_path: Path, sequences: str, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(machine, "available_memory", lambda: 300)
    monkeypatch.setattr(search.cpu, "order_conjugates", lambda *_, **__: pytest.fail("words are sorted"))
    assert refused(sequences, "-o", f"{tmp_path}/new/out") == (
        "The distances of all pairs of 4 words, and what is made of them, take 3.84e-07 GB, but 3e-07 GB are free; "
        "take fewer words, or a machine with more memory."
    )
    assert not written(tmp_path / "new")
