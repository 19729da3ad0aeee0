"""The command `stream`: what it writes and refuses."""

from __future__ import annotations

import gzip
import io
import random
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import warpseed
from command_line import fasta, program, save
from oracles.tree_bitmap import answers_to, codes_of_words, words_at
from warpseed import cli
from warpseed.compute import machine
from warpseed.sequences import queries
from warpseed.sequences.queries import Queries
from warpseed.tree_bitmap import cpu, output
from warpseed.tree_bitmap.dictionary import Dictionary, open_dictionary, save_dictionary
from warpseed.tree_bitmap.stream import Stream, stream_of

DRAW = random.Random(9)
TEXT = "".join(DRAW.choices("ACGT", k=900))
RECORDS = {
    "chr1": TEXT[:500] + "NNN" + TEXT[200:320],
    "short": "ACG",
    "chr2": "T" * 60 + TEXT[450:] + "R" + TEXT[:90],
    "again": TEXT[:500],
}
K = 11


def _stream() -> Stream:
    return stream_of(Queries.from_sequences(RECORDS.values(), RECORDS))


def expected_places(seed_length: int = 0, known: tuple[int, ...] = ()) -> list[str]:
    stream = _stream()
    answers, _ = answers_to(stream.codes.tolist(), K, seed_length, known)
    places = [place for place, answer in enumerate(answers) if answer]
    records, starts = stream.records_of(np.array(places))
    names = list(RECORDS)
    rows = zip(places, records, starts, strict=True)
    return [f"{names[record]}\t{start}\t{('', 'new', 'seen')[answers[place]]}" for place, record, start in rows]


def expected_kmers(seed_length: int = 0, known: tuple[int, ...] = ()) -> list[str]:
    stream = _stream()
    words = list(words_at(stream.codes.tolist(), K))
    firsts = {word: place for place, word in reversed(words)}
    seen = {word for place, word in words if place + K <= seed_length}
    lines = []
    for word, place in sorted(firsts.items(), key=lambda each: each[1]):
        (record,), (start,) = stream.records_of(np.array([place]))
        count = sum(other == word for _, other in words)
        status = "seen" if word in seen or codes_of_words([word])[0] in known else "new"
        bases = "".join("ACGT"[code] for code in word)
        lines.append(f"{list(RECORDS)[record]}\t{start}\t{count}\t{bases}\t{status}")
    return lines


@pytest.fixture(autouse=True)
def threads_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short streams are worth several threads here."""
    monkeypatch.setattr(cpu, "_PLACES_A_THREAD", 1)


@pytest.fixture
def sequences(tmp_path: Path) -> str:
    return save(tmp_path, "records.fa", fasta(RECORDS))


@pytest.fixture(params=[1 << 27, 700], ids=["one block", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "BLOCK_PLACES", request.param)
    monkeypatch.setattr(queries, "_PIECE_BYTES", min(request.param, 1 << 20))
    monkeypatch.setattr(output, "_BYTES_AT_ONCE", min(request.param, output._BYTES_AT_ONCE))


def run(*arguments: str) -> int:
    return cli.main(["stream", "-q", *arguments])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("seed_length", [0, 300, 100_000])
def test_tsv_is_the_oracles(tmp_path: Path, sequences: str, threads: str, seed_length: int) -> None:
    given = ["-k", str(K), "--threads", threads, "--seed-length", str(seed_length)]
    assert run(sequences, "-o", str(tmp_path / "k.tsv"), *given) == 0
    heading, *lines = (tmp_path / "k.tsv").read_text().splitlines()
    assert heading == "record\tstart\tcount\tkmer\tstatus"
    assert lines == expected_kmers(seed_length)
    assert run(sequences, "-o", str(tmp_path / "p.tsv.gz"), "--report", "places", *given) == 0
    heading, *lines = gzip.decompress((tmp_path / "p.tsv.gz").read_bytes()).decode().splitlines()
    assert heading == "record\tstart\tstatus"
    assert lines == expected_places(seed_length)


@pytest.mark.usefixtures("blocks")
def test_a_dictionary_seeds_the_next_run(tmp_path: Path, sequences: str) -> None:
    first = save(tmp_path, "first.fa", fasta({"x": TEXT[300:600]}))
    kept = str(tmp_path / "kept.kmers")
    assert run(first, "-o", str(tmp_path / "1.tsv"), "-k", str(K), "--save-dictionary", kept) == 0
    known = tuple(open_dictionary(kept).kmers.tolist())
    assert known == tuple(sorted({code for _, code in _coded(TEXT[300:600])}))
    grown = []
    for report, expected in (("kmers", expected_kmers), ("places", expected_places)):
        path, more = tmp_path / f"{report}.tsv", str(tmp_path / f"{report}.kmers")
        given = ["--dictionary", kept, "--report", report, "--save-dictionary", more, "--seed-length", "40"]
        assert run(sequences, "-o", str(path), *given) == 0
        assert path.read_text().splitlines()[1:] == expected(40, known)
        grown.append(open_dictionary(more))
    _, everything = answers_to(_stream().codes.tolist(), K, 0, known)
    for dictionary in grown:
        assert dictionary.k == K
        assert dictionary.kmers.tolist() == everything


def _coded(text: str) -> list[tuple[int, int]]:
    words = list(words_at(["ACGT".index(letter) for letter in text], K))
    return list(zip([place for place, _ in words], codes_of_words(word for _, word in words), strict=True))


@pytest.mark.usefixtures("blocks")
def test_a_fixed_dictionary_and_seed_do_not_grow(tmp_path: Path, sequences: str) -> None:
    stream = _stream()
    kept = sorted({code for _, code in _coded(TEXT[600:700])})
    save_dictionary(Dictionary(K, np.array(kept, np.uint64)), tmp_path / "kept")
    words = list(words_at(stream.codes.tolist(), K))
    codes = codes_of_words(word for _, word in words)
    seen = set(kept) | {code for (place, _), code in zip(words, codes, strict=True) if place + K <= 200}
    given = ["--fixed", "--dictionary", str(tmp_path / "kept"), "--seed-length", "200", "--report", "places"]
    assert run(sequences, "-o", str(tmp_path / "p.tsv"), *given) == 0
    status = [line.split("\t")[2] for line in (tmp_path / "p.tsv").read_text().splitlines()[1:]]
    assert status == ["seen" if code in seen else "new" for code in codes]


@pytest.mark.usefixtures("blocks")
def test_binary_places_say_the_same(tmp_path: Path, sequences: str) -> None:
    assert run(sequences, "-o", str(tmp_path / "p.bin"), "-k", str(K), "--report", "places") == 0
    data = (tmp_path / "p.bin").read_bytes()
    assert output.PLACES_HEAD.unpack_from(data) == (b"warpseed places\n", 1, K, 0)
    at, lines = output.PLACES_HEAD.size, []
    while at < len(data):
        bases, size = output.RECORD_HEAD.unpack_from(data, at)
        at += output.RECORD_HEAD.size
        name, at = data[at : at + size].decode(), at + size
        for place in range(bases):
            kind = data[at + place // 4] >> 2 * (place % 4) & 3
            lines += [f"{name}\t{place}\t{('', 'new', 'seen')[kind]}"] if kind else []
        at += -(-bases // 4)
    assert at == len(data)
    assert lines == expected_places()


@pytest.mark.usefixtures("blocks")
def test_binary_kmers_say_the_same(tmp_path: Path, sequences: str) -> None:
    assert run(sequences, "-o", str(tmp_path / "k.bin.gz"), "-k", str(K), "--seed-length", "90") == 0
    data = gzip.decompress((tmp_path / "k.bin.gz").read_bytes())
    magic, form, k, count, records, name_bytes = output.KMER_HEAD.unpack_from(data)
    assert (magic, form, k, records) == (b"warpseed counts\n", 1, K, len(RECORDS))
    rows = np.frombuffer(data, output.KMER_ROW, count, output.KMER_HEAD.size)
    at = output.KMER_HEAD.size + rows.nbytes
    ends = struct.unpack_from(f"<{records + 1}Q", data, at)
    text = data[at + 8 * len(ends) :].decode()
    assert len(text) == name_bytes
    names = [text[begin:end] for begin, end in zip(ends, ends[1:], strict=False)]
    lines = []
    for kmer, start, times, record, seen in rows.tolist():
        bases = "".join("ACGT"[kmer >> 2 * (K - 1 - i) & 3] for i in range(K))
        lines.append(f"{names[record]}\t{start}\t{times}\t{bases}\t{('new', 'seen')[seen]}")
    assert lines == expected_kmers(90)


@pytest.mark.parametrize("report", ["kmers", "places"])
@pytest.mark.parametrize("form", ["tsv", "bin"])
def test_the_paper_tier_says_the_same(tmp_path: Path, sequences: str, report: str, form: str) -> None:
    save_dictionary(Dictionary(K, np.unique([code for _, code in _coded(TEXT[600:700])])), tmp_path / "kept")
    before = ["--dictionary", str(tmp_path / "kept"), "--seed-length", "100"]
    for tier in ("fast", "paper"):
        given = [*before, "--report", report, "--tier", tier, "--save-dictionary", str(tmp_path / f"{tier}.kmers")]
        assert run(sequences, "-o", str(tmp_path / f"{tier}.{form}"), *given) == 0
    assert (tmp_path / f"fast.{form}").read_bytes() == (tmp_path / f"paper.{form}").read_bytes()
    assert (tmp_path / "fast.kmers").read_bytes() == (tmp_path / "paper.kmers").read_bytes()


def test_records_without_kmers_give_no_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = save(tmp_path, "short.fa", ">a\nACGT\n>b\nNNNNNNNNNNNNNNNNNNNN\n")
    for report in ("kmers", "places"):
        assert run(short, "-o", str(tmp_path / "o.tsv"), "--report", report) == 0
        assert len((tmp_path / "o.tsv").read_text().splitlines()) == 1
        assert run(short, "-o", str(tmp_path / "o.bin"), "--report", report) == 0
        note = "Note: no record has 15 bases beside each other without an N: there is no 15-mer.\n"
        assert capsys.readouterr().err == 2 * note


def test_nothing_known_is_a_note(tmp_path: Path, sequences: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "o.tsv")
    assert run(sequences, "-o", output, "--fixed") == 0
    note = "Note: with --fixed, and no k-mer in a dictionary or a seed, there is none to be found.\n"
    assert capsys.readouterr().err == note
    assert run(sequences, "-o", output, "--fixed", "--seed-length", "15") == 0
    assert capsys.readouterr().err == ""


def test_a_nameless_record_is_a_dot(tmp_path: Path) -> None:
    assert run(save(tmp_path, "n.fa", ">\nACGTA\n"), "-o", str(tmp_path / "o.tsv"), "-k", "5") == 0
    assert (tmp_path / "o.tsv").read_text().splitlines()[1:] == [".\t0\t1\tACGTA\tnew"]


def test_long_names_and_standard_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: object) -> None:
    monkeypatch.setattr(output, "_BYTES_AT_ONCE", 4096)
    names = ["n" * 3000, "m"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(fasta({n: TEXT[:60] for n in names}).encode())))
    assert run("-", "-k", "20", "--report", "places") == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()  # type: ignore[attr-defined]
    assert lines[1:] == [
        f"{n}\t{i}\t{status}" for n, status in zip(names, ("new", "seen"), strict=True) for i in range(41)
    ]


def test_the_same_in_python(sequences: str) -> None:
    found = warpseed.match_stream(sequences, K, seed_length=100)
    frame = found.to_frame()
    lines = [f"{row.record}\t{row.start}\t{row.status}" for row in frame.itertuples()]
    assert lines == expected_places(100)
    _, everything = answers_to(_stream().codes.tolist(), K)
    assert found.dictionary.kmers.tolist() == everything
    again = warpseed.match_stream(list(RECORDS.values()), dictionary=found.dictionary, grows=False, threads=2)
    assert set(again.answers.tolist()) == {0, 2}
    assert again.dictionary.kmers.tolist() == everything


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["-k", "0"], "k is 0, but 1 to 31 was expected"),
        (["-k", "32"], "k is 32"),
        (["--seed-length", "-1"], "seed_length is -1"),
        (["--threads", "0"], "threads is 0"),
        (["--device", "tpu"], "device is 'tpu'"),
        (["--dictionary", "none"], "none: there is no such file"),
        (["--dictionary", "{records}"], "records.fa: this is no dictionary of k-mers"),
        (["--dictionary", "{kept}", "-k", "12"], "k is 12, but the dictionary has 5-mers"),
        (["--fixed", "--save-dictionary", "{folder}/new"], "a dictionary that does not grow is not saved"),
        (["--save-dictionary", "-"], "name one, not standard output"),
        (["--save-dictionary", "{records}"], "the output is the file"),
        (["--save-dictionary", "{folder}/out.tsv"], "need names of their own"),
        (["-o", "{folder}/o.tsv.gz", "--save-dictionary", "{folder}/o.tsv.gz.csi"], "need names of their own"),
        (["--save-dictionary", ""], "the name of the dictionary that is to be saved is empty"),
        (["--save-dictionary", "{folder}/new.gz"], "it is not compressed; choose another ending"),
        (["--fixed", "--tier", "paper"], "the paper tier's dictionary grows with the stream"),
        (["-o", "{records}"], "ending says no output format"),
        (["-o", "{folder}/x.bed"], "end it in .tsv or .bin"),
        (["-o", "{folder}"], "ending says no output format"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, sequences: str, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    kept = tmp_path / "kept"
    save_dictionary(Dictionary(5, np.array([1, 2], np.uint64)), kept)
    before = sorted(path.name for path in tmp_path.iterdir())
    places = {"records": sequences, "kept": str(kept), "folder": str(tmp_path)}
    assert run(sequences, "-o", str(tmp_path / "out.tsv"), *(each.format(**places) for each in given)) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: ") and error.count("\n") == 1 and said in error
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_output_does_not_replace_the_dictionary_that_is_read(
    tmp_path: Path, sequences: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.bin"
    save_dictionary(Dictionary(5, np.array([1, 2], np.uint64)), kept)
    assert run(sequences, "-o", str(kept), "--dictionary", str(kept)) == 1
    assert capsys.readouterr().err == (
        f"Error: {kept}: the output is the file {kept}, which is read; name another file.\n"
    )
    # A dictionary may grow in its place.
    more = str(kept)
    assert run(sequences, "-o", str(tmp_path / "o.tsv"), "--dictionary", more, "--save-dictionary", more) == 0
    assert len(open_dictionary(kept).kmers) > 2


@pytest.mark.parametrize("content", ["", ">a\nAC-GT\n", "@a\nACGT\n+\nII\n", "hello\n", ">a\n>b\nAC\n"])
@pytest.mark.parametrize("report", ["kmers", "places"])
def test_a_bad_file_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, report: str
) -> None:
    bad = save(tmp_path, "bad.fa", content)
    given = ["--report", report, "--save-dictionary", str(tmp_path / "d")]
    assert run(bad, "-o", str(tmp_path / "out.tsv"), *given) == 1
    assert "bad.fa" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.fa"]


def test_an_old_output_stays_where_the_dictionary_cannot_be_saved(tmp_path: Path, sequences: str) -> None:
    old = Path(save(tmp_path, "out.tsv", "old"))
    assert run(sequences, "-o", str(old), "--save-dictionary", str(old / "inside")) == 1
    assert old.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tsv", "records.fa"]


def test_a_dictionary_does_not_replace_what_standard_output_goes_to(tmp_path: Path, sequences: str) -> None:
    with open(tmp_path / "o", "wb") as output:
        process = program("stream", sequences, "-q", "--save-dictionary", str(tmp_path / "o"), stdout=output)
        _, error = process.communicate(timeout=300)
    assert process.returncode == 1
    assert b"need names of their own" in error
    assert (tmp_path / "o").read_bytes() == b""


def test_a_run_that_fails_leaves_the_dictionary_as_it_was(tmp_path: Path, sequences: str) -> None:
    kept, full = str(tmp_path / "kept"), tmp_path / "full.tsv"
    save_dictionary(Dictionary(5, np.array([1, 2], np.uint64)), kept)
    full.symlink_to("/dev/full")  # which fails when the last bytes are written
    assert run(sequences, "-o", str(full), "--dictionary", kept, "--save-dictionary", kept) == 1
    assert open_dictionary(kept).kmers.tolist() == [1, 2]


def test_a_place_for_the_dictionary_is_tried_before_any_work(
    tmp_path: Path, sequences: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "HostCounts", None)  # which nobody gets to ask for
    assert run(sequences, "-o", str(tmp_path / "o.tsv"), "--save-dictionary", f"{sequences}/inside") == 1


@pytest.mark.parametrize("report", ["kmers", "places"])
def test_a_full_disk_is_a_sentence(sequences: str, report: str) -> None:
    with open("/dev/full", "wb") as full:
        process = program("stream", sequences, "-q", "--report", report, stdout=full)
        _, error = process.communicate(timeout=300)
    assert process.returncode == 1
    assert b"standard output: cannot be written (No space left on device)" in error and error.count(b"\n") == 1


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("given", "steps"),
    [
        (["--report", "kmers"], ["put", "search", "count", "keep"]),
        (["--report", "kmers", "--dictionary", "{kept}"], ["put", "search", "count", "keep"]),
        (["--report", "places"], ["put", "search", "keep"]),
        (["--report", "places", "--dictionary", "{kept}"], ["put", "deal", "search", "keep"]),
        (["--report", "places", "--dictionary", "{kept}", "--tier", "paper"], ["put", "trie"]),
    ],
)
def test_what_has_no_memory_is_refused_in_a_sentence(
    tmp_path: Path, sequences: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    given: list[str], steps: list[str],
) -> None:  # fmt: skip
    """The first step of all that ask for memory does not get it, then the second, and so on."""
    kept, free, said = str(tmp_path / "kept"), iter([0]), set()
    save_dictionary(Dictionary(17, np.arange(900, dtype=np.uint64)), kept)
    monkeypatch.setattr(machine, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(machine, "available_memory", lambda: next(free, 0))
    before = sorted(path.name for path in tmp_path.iterdir())
    given = [each.format(kept=kept) for each in given]
    given += ["-k", "17", "--save-dictionary", str(tmp_path / "d"), "-o", str(tmp_path / "o.tsv")]
    for refused in range(100):
        free = iter([1 << 40] * refused)
        if run(sequences, *given) == 0:
            break
        error = capsys.readouterr().err
        assert error.startswith("Error: ") and error.count("\n") == 1 and "but 0 GB are free" in error
        said.add(error.removeprefix("Error: To ").removeprefix("Error: A ").split()[0])
        assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert said == set(steps)


@pytest.fixture
def endless() -> Iterator[Callable[[Path], object]]:
    """Records without an end, on standard input."""
    made = []

    def begin(folder: Path) -> object:
        process = program("stream", "-", "-o", str(folder / "o.tsv"), "-k", "31", stdin=-1, stdout=-1)
        made.append(process)
        return process

    yield begin
    for process in made:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path: Path, endless: Callable[[Path], object], number: signal.Signals) -> None:
    process = endless(tmp_path)
    process.stdin.write(b">a\n" + b"ACGTTGCA\n" * 10_000)  # type: ignore[attr-defined]
    process.stdin.flush()  # type: ignore[attr-defined]
    while not list(tmp_path.iterdir()):
        assert process.poll() is None  # type: ignore[attr-defined]
    process.send_signal(number)  # type: ignore[attr-defined]
    assert process.wait(timeout=60) == 128 + number  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
