"""bowtie as a second truth: the same hits, one by one, on a real genome; and the parser of what it prints."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.kmers import find_kmers as true_hits
from warpseed.errors import PeerError
from warpseed.measure.numbered import number_queries
from warpseed.measure.peers.bowtie import bowtie_version, build_bowtie_index, parse_bowtie, run_bowtie
from warpseed.sequences.cutting import cut_kmers
from warpseed.sequences.queries import Queries, read_queries, write_fasta
from warpseed.sequences.reference import read_reference

pytestmark = pytest.mark.peer("bowtie")

DATA_SETS = {"S11": (11, 0), "S15": (15, 0), "S20": (20, 1), "S24": (24, 1), "S30": (30, 2)}
TIERS = pytest.mark.parametrize("tier", ["paper", "fast"])


@pytest.fixture(scope="module")
def genome(
    real_genome: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Any, Path]:  # Reference, SeedIndex, bowtie's prefix
    """The real genome, our index of it and bowtie's."""
    from warpseed import build_index

    prefix = tmp_path_factory.mktemp("bowtie") / "genome"
    build_bowtie_index(real_genome, prefix, 2)
    reference = read_reference(real_genome)
    return reference, build_index(reference, parts=("fast", "paper"), threads=2), prefix


def kmers_of(reference: Any, k: int, count: int) -> Queries:
    """K-mers from reads of both strands with 1 % errors, and a tenth as many random ones, some with an N."""
    from warpseed.sequences.simulate import simulate_reads

    reads = simulate_reads(reference, count=count // 10, length=100, error_rate=0.01, seed=k)
    draw = random.Random(k)
    strangers = ["".join(draw.choices("ACGTN", weights=[30, 30, 30, 30, 1], k=k)) for _ in range(count // 10)]
    cut = cut_kmers(reads, k=k, count=count, seed=k)
    return number_queries(Queries.concatenate([cut, Queries.from_sequences(strangers)]))


def bowtie_rows(prefix: Path, contigs: Sequence[str], kmers: Queries, folder: Path, **options: Any) -> np.ndarray:
    """What bowtie finds, as our rows."""
    write_fasta(kmers, folder / "kmers.fa")
    took = run_bowtie(prefix, folder / "kmers.fa", output=folder / "hits.tsv", **options)
    assert took.seconds > 0 and took.peak_bytes > 1e6
    return parse_bowtie(folder / "hits.tsv", contigs, kmers.lengths)


@pytest.mark.parametrize("data_set", DATA_SETS)
def test_real_genome_hit_by_hit(genome: tuple[Any, Any, Path], tmp_path: Path, data_set: str) -> None:
    from warpseed import find_kmers

    reference, index, prefix = genome
    k, mismatches = DATA_SETS[data_set]
    kmers = kmers_of(reference, k, 3000)
    theirs = bowtie_rows(prefix, reference.names, kmers, tmp_path, max_mismatches=mismatches, threads=2)
    assert len(theirs) > 2000
    for tier in ("paper", "fast"):
        ours = find_kmers(index, kmers, max_mismatches=mismatches, tier=tier, threads=2)
        assert np.array_equal(ours.rows(), theirs), tier


@pytest.mark.parametrize("reads", ["simulated", "real"])
def test_reads_with_a_substitution_or_none(
    genome: tuple[Any, Any, Path], real_reads: Path, tmp_path: Path, reads: str
) -> None:
    """Of the placements of reads those as long as the read are what bowtie -v 1 -a finds."""
    from warpseed import find_reads
    from warpseed.sequences.simulate import simulate_reads

    reference, index, prefix = genome
    if reads == "real":
        queries = number_queries(read_queries(real_reads))
    else:
        queries = number_queries(simulate_reads(reference, count=2000, length=100, error_rate=0.01, seed=1))
    theirs = bowtie_rows(prefix, reference.names, queries, tmp_path, max_mismatches=1, threads=2)
    assert len(theirs) > len(queries) / 2
    for tier, count in (("fast", len(queries)), ("paper", 300)):
        rows = find_reads(index, queries.slice(0, count), tier=tier, threads=2).rows()
        as_long = rows["end"] - rows["start"] == queries.lengths[rows["query"]]
        ours = rows[as_long][list(theirs.dtype.names or ())].astype(theirs.dtype)
        assert len(rows) > len(ours) and np.array_equal(ours, theirs[theirs["query"] < count]), tier


@TIERS
def test_max_hits_is_dash_m(genome: tuple[Any, Any, Path], tmp_path: Path, tier: str) -> None:
    from warpseed import find_kmers

    reference, index, prefix = genome
    kmers = kmers_of(reference, 11, 1000)
    options = {"max_mismatches": 0, "max_hits": 3}
    theirs = bowtie_rows(prefix, reference.names, kmers, tmp_path, threads=1, **options)
    ours = find_kmers(index, kmers, tier=tier, **options)
    assert np.array_equal(ours.rows(), theirs)
    assert ours.dropped_queries > 0 and len(ours) > 0


@pytest.mark.parametrize("max_mismatches", [0, 1, 2, 3])
def test_bowtie_is_the_oracle(write_reference: Callable[..., Path], tmp_path: Path, max_mismatches: int) -> None:
    """Small contigs with Ns and repeats, queries of 4 to 30 bases: bowtie's rows are the brute-force list."""
    draw = random.Random(max_mismatches)
    unit = "".join(draw.choices("ACGT", k=40))
    contigs = [
        "N" * 12,  # left out of bowtie's index: later contigs must keep their numbers
        unit + "NNN" + "".join(draw.choices("ACGT", k=200)) + unit + "R" + unit[:20],
        "A" * 50,
        "GAATTC" * 6,
        "ACGTA",
    ]
    queries = []
    for _ in range(150):
        contig = draw.choice(contigs[1:])
        k = draw.randint(4, min(30, len(contig)))
        start = draw.randint(0, len(contig) - k)
        letters = list(contig[start : start + k])
        letters[draw.randrange(k)] = draw.choice("ACGTN")
        queries.append("".join(letters))
    prefix = tmp_path / "small"
    build_bowtie_index(write_reference(contigs), prefix)
    names = [f"c{number}" for number in range(len(contigs))]
    kmers = number_queries(Queries.from_sequences(queries))
    for threads in (1, 2):
        rows = bowtie_rows(prefix, names, kmers, tmp_path, max_mismatches=max_mismatches, threads=threads)
        assert [tuple(row) for row in rows.tolist()] == true_hits(contigs, queries, max_mismatches)


def test_no_hit_at_all(write_reference: Callable[..., Path], tmp_path: Path) -> None:
    prefix = tmp_path / "small"
    build_bowtie_index(write_reference(["ACGTACGTTGCA"]), prefix)
    kmers = number_queries(Queries.from_sequences(["GGGGGGGGG"]))
    assert len(bowtie_rows(prefix, ["c0"], kmers, tmp_path, max_mismatches=0, threads=1)) == 0


def test_numbered_queries() -> None:
    """Names become 0, 1, 2, …; bases stay."""
    queries = Queries.from_sequences(["ACGT"] * 11 + ["TT"], names=["same"] * 12)
    numbered = number_queries(queries)
    assert [numbered.name(i) for i in range(12)] == [str(i) for i in range(12)]
    assert [numbered.sequence(i) for i in range(12)] == ["ACGT"] * 11 + ["TT"]


def test_version() -> None:
    assert str(bowtie_version()).startswith("1.")


def test_failures_are_one_sentence(
    write_reference: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index, no base in the reference, hits of other queries, too many mismatches, no bowtie."""
    hits, kmers = tmp_path / "hits.tsv", tmp_path / "kmers.fa"
    kmers.write_text(">0\nACGT\n")
    with pytest.raises(PeerError, match="Could not locate a Bowtie index"):
        run_bowtie(tmp_path / "nowhere", kmers, max_mismatches=0, output=hits)
    with pytest.raises(PeerError, match="allows 0 to 3 mismatches, not 4"):
        run_bowtie(tmp_path / "nowhere", kmers, max_mismatches=4, output=hits)
    with pytest.raises(PeerError, match="No unambiguous stretches"):
        build_bowtie_index(write_reference(["NNNN"]), tmp_path / "empty")
    assert not hits.exists() and not list(tmp_path.glob("*.ebwt"))
    for line in ("7\t+\tc0\t0\tACGT\tIIII\t0\t\n", "0\t+\tother\t0\tACGT\tIIII\t0\t\n", "0\t+\n", "x\n"):
        hits.write_text(line)
        with pytest.raises(PeerError, match="is not what bowtie prints"):
            parse_bowtie(hits, ["c0"], np.array([4]))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerError, match="is not on PATH: install bowtie"):
        build_bowtie_index(kmers, tmp_path / "index")
    assert bowtie_version() is None
