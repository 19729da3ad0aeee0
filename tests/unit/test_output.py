"""Hits as BED and TSV: exact bytes, whatever the chunks, and nothing half-written."""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import warpseed
from warpseed.errors import InputError
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import iter_kmer_hits
from warpseed.kmer_seeds.output import LINES, TSV_HEADER, write_hits
from warpseed.output import hits as hits_module
from warpseed.output import lines
from warpseed.output.hits import Hits
from warpseed.output.opening import output_format
from warpseed.sequences.queries import Queries


def make_index(folder: Path, contigs: dict[str, str]) -> SeedIndex:
    path = folder / "genome.fa"
    path.write_text("".join(f">{name}\n{bases}\n" for name, bases in contigs.items()))
    return build_index(path)


def find(index: SeedIndex, queries: dict[str, str], **options: int) -> Hits:
    return warpseed.find_kmers(index, Queries.from_sequences(queries.values(), queries.keys()), **options)


def thousands(folder: Path) -> tuple[SeedIndex, Queries]:
    """Thousands of hits: queries with none, one and hundreds, names of many lengths, several contigs."""
    draw = random.Random(1)
    contigs = {f"contig{'_' * i}": "".join(draw.choices("ACGT", k=draw.randint(1, 400))) for i in range(7)}
    contigs["poly"] = "A" * 300
    queries = {
        f"q{'x' * draw.randint(0, 30)}{i}": "".join(draw.choices("ACGT", k=draw.randint(3, 9))) for i in range(200)
    }
    queries["as"] = "AAAA"
    return make_index(folder, contigs), Queries.from_sequences(queries.values(), queries.keys())


@pytest.fixture
def many(tmp_path: Path) -> Hits:
    """The hits of `thousands`."""
    index, queries = thousands(tmp_path)
    return warpseed.find_kmers(index, queries, max_mismatches=1)


def rows(hits: Hits, kind: str) -> bytes:
    frame = hits.to_frame()
    order = ["contig", "start", "end", "query", "distance", "strand"] if kind == "bed" else list(frame.columns)
    text = ["\t".join(map(str, row)) + "\n" for row in frame[order].itertuples(index=False)]
    return (b"" if kind == "bed" else TSV_HEADER) + "".join(text).encode()


def test_the_columns_of_both_formats(tmp_path: Path) -> None:
    hits = find(
        make_index(tmp_path, {"c1": "GGATTACAGG"}), {"fwd": "GATTACA", "rev": "TGTCATC", "": "GGG"}, max_mismatches=1
    )
    bed, tsv = tmp_path / "h.bed", tmp_path / "h.tsv"
    assert write_hits(bed, hits) == write_hits(tsv, hits) == 4
    # An empty name would shift the columns of a reader that splits at blanks: it is a dot.
    assert bed.read_text().splitlines() == [
        "c1\t1\t8\tfwd\t0\t+",
        "c1\t1\t8\trev\t1\t-",
        "c1\t0\t3\t.\t1\t+",
        "c1\t7\t10\t.\t1\t+",
    ]
    assert tsv.read_text().splitlines() == [
        "query\tcontig\tstart\tend\tstrand\tdistance",
        "fwd\tc1\t1\t8\t+\t0",
        "rev\tc1\t1\t8\t-\t1",
        ".\tc1\t0\t3\t+\t1",
        ".\tc1\t7\t10\t+\t1",
    ]


def test_both_formats_hold_the_rows_of_the_frame(tmp_path: Path, many: Hits) -> None:
    assert len(many) > 2000
    for kind in ("bed", "tsv"):
        path = tmp_path / f"h.{kind}"
        assert write_hits(path, many) == len(many)
        assert path.read_bytes() == rows(many, kind)
        assert write_hits(tmp_path / f"h.{kind}.gz", many) == len(many)
        assert gzip.decompress((tmp_path / f"h.{kind}.gz").read_bytes()) == path.read_bytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("at_once", [1, 2, 97, 1 << 16])
def test_chunks_and_threads_do_not_change_a_byte(
    tmp_path: Path, many: Hits, monkeypatch: pytest.MonkeyPatch, threads: int, at_once: int
) -> None:
    monkeypatch.setattr(lines, "_ROWS_AT_ONCE", at_once)
    write_hits(tmp_path / "h.tsv", many, threads=threads)
    assert (tmp_path / "h.tsv").read_bytes() == rows(many, "tsv")
    write_hits(tmp_path / "a.bed.gz", many, threads=threads)
    monkeypatch.undo()
    write_hits(tmp_path / "b.bed.gz", many)
    assert (tmp_path / "a.bed.gz").read_bytes() == (tmp_path / "b.bed.gz").read_bytes()


def test_batches_are_written_as_they_come(tmp_path: Path) -> None:
    index, queries = thousands(tmp_path)
    many = warpseed.find_kmers(index, queries, max_mismatches=1)

    def batches() -> Iterator[Hits]:
        for first in range(0, len(queries), 30):
            yield from iter_kmer_hits(index, queries.slice(first, first + 30), max_mismatches=1)

    assert write_hits(tmp_path / "h.bed", batches()) == len(many)
    assert (tmp_path / "h.bed").read_bytes() == rows(many, "bed")
    assert write_hits(tmp_path / "none.tsv", iter(())) == 0
    assert (tmp_path / "none.tsv").read_bytes() == TSV_HEADER


def test_long_names_do_not_need_a_line_of_memory_for_every_hit_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = {"n" * 30_000: "AAAA", "short": "AAA"}
    hits = find(make_index(tmp_path, {"c": "A" * 500}), queries)
    monkeypatch.setattr(lines, "_BYTES_AT_ONCE", 1 << 20)
    pieces: list[int] = []
    take = lines.format_rows

    def watch(*arguments: object, **options: object) -> Iterator[memoryview]:
        for piece in take(*arguments, **options):  # type: ignore[arg-type]
            pieces.append(len(piece.obj))
            yield piece

    monkeypatch.setattr(hits_module, "format_rows", watch)
    write_hits(tmp_path / "h.bed", hits)
    assert (tmp_path / "h.bed").read_bytes() == rows(hits, "bed")
    assert max(pieces) <= (1 << 20) + 8 < sum(pieces)
    monkeypatch.setattr(lines, "_BYTES_AT_ONCE", 1)  # a single line may be longer than what is allowed
    write_hits(tmp_path / "h.bed", hits)
    assert (tmp_path / "h.bed").read_bytes() == rows(hits, "bed")


def test_names_that_are_no_utf8_are_written_as_they_were_read(tmp_path: Path) -> None:
    index = make_index(tmp_path, {"c": "GATTACA"})
    (tmp_path / "k.fa").write_bytes(b">na\xefve\nGATT\n")
    write_hits(tmp_path / "h.bed", warpseed.find_kmers(index, tmp_path / "k.fa"))
    assert (tmp_path / "h.bed").read_bytes() == b"c\t0\t4\tna\xefve\t0\t+\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("-", "bed"), ("a.bed", "bed"), ("a.tsv", "tsv"), ("a.bed.gz", "bed"), ("d.bed/a.tsv.gz", "tsv"), (".bed", "bed")],
)
def test_the_ending_says_the_format(name: str, kind: str) -> None:
    assert output_format(name, tuple(LINES)) == kind
    if name != "-":
        assert output_format(Path(name), tuple(LINES)) == kind


@pytest.mark.parametrize("name", ["a.txt", "a.bed.txt", "a.gz", "bed", "a.TSV", "a.bam"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="end it in .bed or .tsv, or .gz behind these"):
        output_format(name, tuple(LINES))


def test_a_format_by_name(tmp_path: Path, many: Hits) -> None:
    write_hits(tmp_path / "hits", many, format="tsv")
    assert (tmp_path / "hits").read_bytes() == rows(many, "tsv")
    with pytest.raises(InputError, match="format is 'bam', but 'bed' or 'tsv' was expected"):
        write_hits(tmp_path / "hits", many, format="bam")


@pytest.mark.parametrize("write", [warpseed.write_hits, warpseed.write_placements])
def test_what_nothing_can_be_written_with_is_a_sentence(tmp_path: Path, write: Callable[..., int]) -> None:
    for threads, said in ((0, "1 or more"), (-1, "1 or more"), (None, "a whole number"), (1.5, "a whole number")):
        for name in ("h.tsv", "h.bed.gz"):
            for sorted in (False, True):
                with pytest.raises(InputError, match=f"^threads is {threads}, but {said} was expected"):
                    write(tmp_path / name, [], threads=threads, sorted=sorted)
    for path in (None, 5, b"h.tsv", ["h.tsv"]):
        with pytest.raises(InputError, match="^path is .*, but the name of a file was expected, or '-' for standard"):
            write(path, [])
    with pytest.raises(InputError, match=r"^path is 'h\\x00\.tsv', but no name has a null byte"):
        write("h\0.tsv", [])
    with pytest.raises(InputError, match="^path is None, but the name of a file was expected"):
        warpseed.write_hits(None, [], format="tsv")  # type: ignore[arg-type]
    for given in (None, 5, "hits", [None], [b"x"]):
        with pytest.raises(InputError, match="^what is to be written is .*, but Hits were expected, or batches of"):
            write(tmp_path / "h.tsv", given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["h.bed", "h.tsv", "h.bed.gz", "h.tsv.gz"])
@pytest.mark.parametrize("error", [InputError("bad record"), KeyboardInterrupt(), ValueError("a bug")])
def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path, many: Hits, name: str, error: BaseException) -> None:
    def batches() -> Iterator[Hits]:
        yield many
        raise error

    folder = tmp_path / "out"
    with pytest.raises(type(error)):
        write_hits(folder / name, batches())
    assert not folder.exists()
    folder.mkdir()
    (folder / name).write_bytes(b"the old one")
    with pytest.raises(type(error)):
        write_hits(folder / name, batches())
    assert [path.read_bytes() for path in folder.iterdir()] == [b"the old one"]


def test_pandas_like_readers_open_the_tsv(tmp_path: Path, many: Hits) -> None:
    write_hits(tmp_path / "h.tsv", many)
    with open(tmp_path / "h.tsv", newline="") as handle:
        read = list(csv.DictReader(handle, delimiter="\t"))
    frame = many.to_frame()
    assert [row["query"] for row in read] == frame["query"].tolist()
    assert [int(row["start"]) for row in read] == frame["start"].tolist()
