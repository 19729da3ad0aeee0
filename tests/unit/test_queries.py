"""Sequences in memory, with and without qualities; writing them, and cutting k-mers from them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sequence_files import plain, records, save
from warpseed.errors import InputError
from warpseed.sequences import queries as sequences
from warpseed.sequences.cutting import cut_kmers
from warpseed.sequences.queries import Queries, iter_queries, read_queries, write_fasta, write_fastq

# ---------------------------------------------------------------------------------------- sequences in memory


def test_from_sequences_takes_str_and_bytes() -> None:
    queries = Queries.from_sequences(["ACGT", b"acn", "R"])
    assert records(queries) == [("0", "ACGT"), ("1", "ACN"), ("2", "N")]
    assert queries.lengths.tolist() == [4, 3, 1]
    assert records(Queries.from_sequences(["A"], names=["x"])) == [("x", "A")]
    assert len(Queries.from_sequences([])) == 0 and list(iter_queries([])) == [] and len(read_queries([])) == 0


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (["AC", ""], "number 1: the sequence is empty"),
        (["AC", "A C"], "number 1: found ' ' at position 1; only IUPAC"),
        (["AC\n"], "number 0: found the byte 0x0a at position 2"),
        (["AC", "Aé"], "number 1: 'Aé' is no sequence of bases"),
        (["AC", 7], "number 1: 7 is no sequence of bases"),
        (["AC", None], "number 1: None is no sequence of bases"),
    ],
)
def test_bad_sequences_are_refused(items: list, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Queries.from_sequences(items)


def test_as_many_names_as_sequences() -> None:
    with pytest.raises(InputError, match="2 sequences but 1 names"):
        Queries.from_sequences(["A", "C"], names=["x"])


def test_slices_are_views_and_concatenate_is_their_inverse() -> None:
    queries = Queries.from_sequences(["ACGT", "A", "CCC", "GGTTN"], names=["w", "", "yy", "z"])
    part = queries.slice(1, 3)
    assert records(part) == [("", "A"), ("yy", "CCC")] and np.shares_memory(part.codes, queries.codes)
    assert part.offsets.tolist() == [0, 1, 4]
    assert len(queries.slice(2, 2)) == 0 and len(queries.slice(3, 99)) == 1
    joined = Queries.concatenate([queries.slice(0, 1), queries.slice(1, 3), queries.slice(3, 4)])
    assert records(joined) == records(queries)
    assert [record for batch in iter_queries(queries, batch_bases=4) for record in records(batch)] == records(queries)
    assert queries.name(-1) == "z"
    with pytest.raises(IndexError):
        queries.sequence(4)


# ------------------------------------------------------------------------------------------------- qualities


def with_qualities(queries: Queries) -> list[tuple[str, str, str]]:
    assert queries.qualities is not None and queries.qualities.dtype == np.uint8
    assert len(queries.qualities) == len(queries.codes)
    letters = queries.qualities.tobytes().decode()
    starts, stops = queries.offsets[:-1], queries.offsets[1:]
    return [(*record, letters[a:b]) for record, a, b in zip(records(queries), starts, stops, strict=True)]


@given(
    data=st.lists(
        st.tuples(st.text("ab>@", max_size=4), st.text("ACGTN", min_size=1, max_size=30), st.randoms()),
        min_size=1,
        max_size=8,
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
    piece_bytes=st.integers(1, 50),
    batch_bases=st.integers(1, 60),
)
def test_qualities_are_those_of_the_file(
    tmp_path: Path, data, end: str, packed: bool, piece_bytes: int, batch_bases: int
) -> None:
    expected = [(n, s, "".join(chr(r.randint(33, 126)) for _ in s)) for n, s, r in data]
    content = "".join(f"@{n} c{end}{s}{end}+{end}{q}{end}" for n, s, q in expected).encode()
    path = save(tmp_path, gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
        batches = list(iter_queries(path, batch_bases=batch_bases, qualities=True))
        assert read_queries(path).qualities is None
    assert [record for batch in batches for record in with_qualities(batch)] == expected
    joined = Queries.concatenate(batches)
    assert with_qualities(joined) == expected
    assert with_qualities(joined.slice(1, 3)) == expected[1:3]
    write_fastq(joined, tmp_path / "out.fq")
    assert (tmp_path / "out.fq").read_text() == "".join(f"@{n}\n{s}\n+\n{q}\n" for n, s, q in expected)


def test_qualities_are_written_packed_and_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, "".join(f"@r{i}\nACG\n+\n{i % 10}!~\n" for i in range(100)))
    reads = read_queries(path, qualities=True)
    monkeypatch.setattr(sequences, "_PART_BASES", 10)
    write_fastq(reads, tmp_path / "out.fq.gz")
    assert gzip.decompress((tmp_path / "out.fq.gz").read_bytes()) == path.read_bytes()
    write_fasta(reads, tmp_path / "out.fa")
    assert records(read_queries(tmp_path / "out.fa")) == records(reads)


def test_fasta_has_no_qualities(tmp_path: Path) -> None:
    reads = read_queries(save(tmp_path, ">a\nACGT\n", "in.fa"), qualities=True)
    assert reads.qualities is None
    with pytest.raises(InputError, match="in.fa: the sequences have no qualities, which FASTQ needs; write them as"):
        write_fastq(reads, tmp_path / "out.fq")
    assert not (tmp_path / "out.fq").exists()


def test_with_and_without_qualities_are_not_joined(tmp_path: Path) -> None:
    path = save(tmp_path, "@a\nACGT\n+\nIIII\n", "in.fq")
    with pytest.raises(InputError, match="in.fq: these sequences have no qualities, but others"):
        Queries.concatenate([read_queries(path, qualities=True), read_queries(path)])


def test_kmers_of_reads_with_qualities_are_those_without(tmp_path: Path) -> None:
    path = save(tmp_path, "@a\nACGTTGCAAC\n+\nIIII!!!!II\n@b\nGATTACA\n+\nIIIIIII\n")
    cut = cut_kmers(read_queries(path, qualities=True), k=5, count=9, seed=1)
    assert records(cut) == records(cut_kmers(read_queries(path), k=5, count=9, seed=1)) and cut.qualities is None


# ---------------------------------------------------------------------------------------- writing and cutting


@pytest.mark.parametrize("name", ["out.fa", "out.fa.gz"])
def test_written_files_read_back(tmp_path: Path, name: str) -> None:
    queries = Queries.from_sequences(["ACGT", "ACR", "T" * 100], names=["a", "", "c"])
    write_fasta(queries, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    text = gzip.decompress(content) if name.endswith(".gz") else content
    assert text == b">a\nACGT\n>\nACN\n>c\n" + b"T" * 100 + b"\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def windows(reads: list[str], k: int) -> list[str]:
    return sorted(plain(read[i : i + k]) for read in reads for i in range(len(read) - k + 1))


READS = ["ACGTACGTNACC", "AC", "GGGGGGGG", "ttgacca", "ACG"]


@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_all_windows_can_be_cut(k: int) -> None:
    expected = windows(READS, k)
    cut = cut_kmers(Queries.from_sequences(READS), k=k, count=len(expected), seed=1)
    assert sorted(cut.sequence(i) for i in range(len(cut))) == expected
    assert [cut.name(i) for i in range(len(cut))] == [f"k{i}" for i in range(len(cut))]
    assert (cut.lengths == k).all()


@pytest.mark.parametrize("k", [1, 3, 5])
def test_deduplicated_kmers_are_different_and_all_there(k: int) -> None:
    expected = sorted(set(windows(READS, k)))
    reads = Queries.from_sequences(READS)
    cut = cut_kmers(reads, k=k, count=len(expected), seed=2, deduplicate=True)
    assert sorted(cut.sequence(i) for i in range(len(cut))) == expected
    with pytest.raises(InputError, match=f"have only {len(expected)} different windows of that length"):
        cut_kmers(reads, k=k, count=len(expected) + 1, seed=2, deduplicate=True)


def test_deduplication_sees_every_base_of_long_kmers() -> None:
    base = "ACGTTGCAAC" * 7
    reads = [base[:i] + "N" + base[i + 1 :] for i in range(70)] * 2
    cut = cut_kmers(Queries.from_sequences(reads), k=70, count=70, seed=1, deduplicate=True)
    assert sorted(cut.sequence(i) for i in range(70)) == sorted(reads[:70])


def test_cutting_is_uniform_and_repeatable() -> None:
    reads = Queries.from_sequences(["A" * 1000, "C" * 3000, "G" * 6000])
    cut = cut_kmers(reads, k=1, count=4000, seed=3)
    shares = np.bincount(cut.codes, minlength=3) / 4000
    assert np.abs(shares - [0.1, 0.3, 0.6]).max() < 0.03
    assert (cut.codes == cut_kmers(reads, k=1, count=4000, seed=3).codes).all()
    assert (cut.codes != cut_kmers(reads, k=1, count=4000, seed=4).codes).any()


def test_too_few_windows() -> None:
    reads = Queries.from_sequences(READS, source="reads.fq")
    with pytest.raises(InputError, match="reads.fq: 99 k-mers of 7 bases were asked for, but .* only 9 windows"):
        cut_kmers(reads, k=7, count=99, seed=1)
    assert len(cut_kmers(reads, k=7, count=9, seed=1)) == 9
    with pytest.raises(InputError, match="only 0 windows"):
        cut_kmers(reads, k=50, count=9, seed=1)
    with pytest.raises(InputError, match="k = 0 and count = 5"):
        cut_kmers(reads, k=0, count=5, seed=1)
