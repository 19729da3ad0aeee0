"""The command `stream` with `--max-edits`: places at which something ends that is near a k-mer of a dictionary."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pytest
import warpseed
from command_line import fasta, save
from oracles import tree_bitmap as truth
from warpseed import cli
from warpseed.errors import InputError
from warpseed.sequences.queries import Queries
from warpseed.tree_bitmap import cpu, output
from warpseed.tree_bitmap.dictionary import Dictionary, save_dictionary
from warpseed.tree_bitmap.stream import Stream, stream_of

DRAW = random.Random(19)
TEXT = "".join(DRAW.choices("ACGT", k=400))
K = 11


def edited(text: str, edits: int) -> str:
    """A text with substitutions, insertions and deletions anywhere."""
    for _ in range(edits):
        place, letter = DRAW.randrange(len(text)), DRAW.choice("ACGT")
        text = text[:place] + DRAW.choice(["", letter, text[place] + letter]) + text[place + 1 :]
    return text


RECORDS = {
    "edited": edited(TEXT[:300], 40),
    "short": TEXT[3 : 3 + K - 2],
    "cut": TEXT[50 : 50 + K - 1],
    "unknown": TEXT[100:106] + "N" + TEXT[107:130] + "NNN" + TEXT[130:150],
    "runs": "A" * 30 + "TA" * 20,
    "exact": TEXT[20:60],
    "none": "N" * 20,
    "last": edited(TEXT[200:390], 12)[1:],
}
"""Without edits they would be parts of TEXT, but for what has no k-mer, or only poor ones."""


def _stream() -> Stream:
    return stream_of(Queries.from_sequences(RECORDS.values(), RECORDS))


def words(texts: list[str]) -> list[truth.Word]:
    found = {word for text in texts for _, word in truth.words_at(["ACGT".index(letter) for letter in text], K)}
    return sorted(found)


KNOWN = words([TEXT[:120], TEXT[180:], "A" * K, "TTTTTTTTTTA"])


def lines_of(known: list[truth.Word], max_edits: int) -> list[str]:
    """Record, where what ends there ends, and its distance, by dynamic programming."""
    stream, names = _stream(), list(RECORDS)
    found = np.array(truth.least_edits(stream.codes.tolist(), known, max_edits))
    places = np.flatnonzero(found != truth.NO_EDITS)
    records, starts = stream.records_of(places)
    rows = zip(records, starts + 1, found[places], strict=True)
    return [f"{names[record]}\t{end}\t{distance}" for record, end, distance in rows]


@pytest.fixture
def sequences(tmp_path: Path) -> str:
    return save(tmp_path, "records.fa", fasta(RECORDS))


@pytest.fixture
def kept(tmp_path: Path) -> str:
    save_dictionary(Dictionary(K, np.array(truth.codes_of_words(KNOWN), np.uint64)), tmp_path / "kept")
    return str(tmp_path / "kept")


@pytest.fixture(params=[1 << 27, 60], ids=["one block", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "BLOCK_PLACES", request.param)


def run(*arguments: str) -> int:
    return cli.main(["stream", "-q", *arguments])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("max_edits", [1, 2, 3])
def test_tsv_is_the_oracles(tmp_path: Path, sequences: str, kept: str, threads: str, max_edits: int) -> None:
    given = ["--dictionary", kept, "--fixed", "--report", "places", "--threads", threads, "--max-edits", str(max_edits)]
    assert run(sequences, "-o", str(tmp_path / "p.tsv.gz"), *given) == 0
    heading, *lines = gzip.decompress((tmp_path / "p.tsv.gz").read_bytes()).decode().splitlines()
    assert heading == "record\tend\tdistance"
    assert lines == lines_of(KNOWN, max_edits)
    assert {line[-1] for line in lines} == set("0123"[: max_edits + 1])


def places_in(data: bytes, max_edits: int) -> list[str]:
    """What the lines of the binary form would be."""
    assert output.PLACES_HEAD.unpack_from(data) == (b"warpseed nearby\n", 1, K, max_edits)
    at, lines = output.PLACES_HEAD.size, []
    while at < len(data):
        bases, size = output.RECORD_HEAD.unpack_from(data, at)
        at += output.RECORD_HEAD.size
        name, at = data[at : at + size].decode(), at + size
        kinds = [data[at + place // 2] >> 4 * (place % 2) & 15 for place in range(bases)]
        lines += [f"{name}\t{place + 1}\t{kind - 1}" for place, kind in enumerate(kinds) if kind]
        at += -(-bases // 2)
    assert at == len(data)
    return lines


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_binary_form_says_the_same(tmp_path: Path, sequences: str, kept: str, threads: str) -> None:
    given = ["--dictionary", kept, "--fixed", "--report", "places", "--threads", threads, "--max-edits", "3"]
    assert run(sequences, "-o", str(tmp_path / "p.bin"), *given) == 0
    assert places_in((tmp_path / "p.bin").read_bytes(), 3) == lines_of(KNOWN, 3)


@pytest.mark.usefixtures("blocks")
def test_a_seed_is_looked_up_as_a_dictionary(tmp_path: Path, sequences: str) -> None:
    seed = RECORDS["edited"][:90]
    given = ["-k", str(K), "--seed-length", "90", "--fixed", "--report", "places", "--max-edits", "2"]
    assert run(sequences, "-o", str(tmp_path / "p.tsv"), *given) == 0
    assert (tmp_path / "p.tsv").read_text().splitlines()[1:] == lines_of(words([seed]), 2)


def test_the_same_in_python(sequences: str, kept: str) -> None:
    found = warpseed.match_stream(sequences, dictionary=kept, grows=False, max_edits=2)
    assert found.distances.dtype == np.uint8
    assert found.distances.tolist() == truth.least_edits(found.stream.codes.tolist(), KNOWN, 2)
    assert [f"{row.record}\t{row.end}\t{row.distance}" for row in found.to_frame().itertuples()] == lines_of(KNOWN, 2)
    ends = np.flatnonzero(found.distances == 0)
    assert np.flatnonzero(found.answers == 2).tolist() == (ends - K + 1).tolist()
    exact = warpseed.match_stream(sequences, dictionary=kept, grows=False)
    assert exact.distances is None and exact.answers.tolist() == found.answers.tolist()


@pytest.mark.parametrize(
    "texts", [["A"], [TEXT[: K - 3]], ["N"], ["N" * 40, TEXT[1:K] + "N"], [TEXT[:K], TEXT[K : 2 * K]]]
)
def test_streams_shorter_than_a_kmer(texts: list[str]) -> None:
    known = Dictionary(K, np.array(truth.codes_of_words(KNOWN), np.uint64))
    found = warpseed.match_stream(texts, dictionary=known, grows=False, max_edits=3, threads=3)
    assert found.distances.tolist() == truth.least_edits(found.stream.codes.tolist(), KNOWN, 3)


def test_without_a_dictionary_nothing_is_near(tmp_path: Path, sequences: str) -> None:
    given = ["-k", str(K), "--fixed", "--report", "places", "--max-edits", "2"]
    assert run(sequences, "-o", str(tmp_path / "p.tsv"), *given) == 0
    assert (tmp_path / "p.tsv").read_text() == "record\tend\tdistance\n"


def test_what_it_adds_up_to_is_said(
    tmp_path: Path, sequences: str, kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--dictionary", kept, "--fixed", "--report", "places", "--max-edits", "1", "-o", str(tmp_path / "p.tsv")]
    assert cli.main(["stream", sequences, *given]) == 0
    lines = lines_of(KNOWN, 1)
    exact = sum(line.endswith("\t0") for line in lines)
    said = capsys.readouterr().err
    assert f"near {K}-mers end at {len(lines)} places, exact ones at {exact}; places written to" in said
    assert f"{len(RECORDS)} records, {sum(map(len, RECORDS.values())):,} bases" in said


FIXED = ["--fixed", "--report", "places"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--max-edits", "2", "--report", "places"], "max_edits asks for a dictionary that does not grow"),
        (["--max-edits", "2", "--fixed"], "places of the stream are told, not its k-mers; choose the report 'places'"),
        (["--max-edits", "4", *FIXED], "max_edits is 4, but 0 to 3 was expected"),
        (["--max-edits", "-1", *FIXED], "max_edits is -1, but 0 to 3 was expected"),
        (["--max-edits", "2", "-k", "29", *FIXED], "k is 29 and max_edits 2, but together they are 30 at most"),
        (["--max-edits", "2", "-k", "29", *FIXED, "--dictionary", "none"], "k is 29 and max_edits 2"),
        (["--max-edits", "3", "-k", "3", *FIXED], "max_edits is 3, but 3-mers are all edits then"),
        (["--max-edits", "1", *FIXED, "--dictionary", "{long}"], "k is 30 and max_edits 1"),
        (["--max-edits", "1", *FIXED, "--tier", "paper"], "max_edits is given, but the paper tier's automaton"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    """Before the sequences are looked for, which are not there."""
    long = tmp_path / "long"
    save_dictionary(Dictionary(30, np.array([1, 2], np.uint64)), long)
    missing, out = str(tmp_path / "none.fa"), str(tmp_path / "out.tsv")
    assert run(missing, "-o", out, *(each.format(long=long) for each in given)) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: ") and error.count("\n") == 1 and said in error
    assert [path.name for path in tmp_path.iterdir()] == ["long"]


@pytest.mark.parametrize("given", [{"max_edits": 1}, {"max_edits": 1.0, "grows": False}, {"max_edits": True}])
def test_mistakes_in_python(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match="max_edits"):
        warpseed.match_stream(["ACGT"], 3, **given)


def test_a_bad_file_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = save(tmp_path, "bad.fa", ">a\nACGT\n>b\nAC-GT\n")
    assert run(bad, "-o", str(tmp_path / "out.tsv"), "-k", "5", "--max-edits", "1", *FIXED) == 1
    assert "bad.fa" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.fa"]
