"""Simulated reads: where they lie, how long they are, their errors, and what their qualities say."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import simulate_reads as script
from hypothesis import given
from hypothesis import strategies as st
from sequence_files import genome, text
from warpseed.errors import InputError
from warpseed.sequences.cutting import cut_kmers
from warpseed.sequences.queries import read_queries
from warpseed.sequences.reference import Reference
from warpseed.sequences.simulate import SimulatedReads, simulate_reads

BASES_DIGEST = "bcb0e51871ab89b409e2fb6093611d70d6c7f77270904348801b45d5bdd7db1b"
NOTHING = {"repeat_families": 0, "tandem_repeats": 0, "n_runs": 0}
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def made_reference(*contigs: str) -> Reference:
    codes = np.array(["ACGTN".index(base) for base in "".join(contigs)], np.uint8)
    names = tuple(f"c{i}" for i in range(len(contigs)))
    return Reference(names, np.array([len(contig) for contig in contigs]), codes, str, "made.fa")


def places(reference: Reference, read: str) -> list[tuple[int, int, str]]:
    """Every exact place of a read: contig, start, strand."""
    found = []
    for strand, word in (("+", read), ("-", read[::-1].translate(COMPLEMENT))):
        for contig in range(len(reference.names)):
            letters = text(reference.codes[reference.offsets[contig] : reference.offsets[contig + 1]])
            found += [(contig, i, strand) for i in range(len(letters)) if letters.startswith(word, i)]
    return found


def test_reads_without_errors_lie_in_one_contig_on_either_strand(tmp_path: Path) -> None:
    reference = genome(tmp_path, size=3000, contigs=3, seed=2, **{**NOTHING, "n_runs": 2, "n_length": 40})
    reads = simulate_reads(reference, count=200, length=25, error_rate=0, seed=1)
    assert [reads.name(i) for i in range(3)] == ["r0", "r1", "r2"] and (reads.lengths == 25).all()
    assert reads.codes.max() == 3
    strands = [{strand for _, _, strand in places(reference, reads.sequence(i))} for i in range(200)]
    assert all(strands) and 60 < sum(strand == {"+"} for strand in strands) < 140


def test_every_clean_window_is_drawn_about_as_often() -> None:
    reference = made_reference("ACGTTNACGGATTACA", "AC", "GGGCCATN")
    reads = simulate_reads(reference, count=20_000, length=5, error_rate=0, seed=7)
    counts: dict[str, int] = {}
    for i in range(len(reads)):
        counts[reads.sequence(i)] = counts.get(reads.sequence(i), 0) + 1
    segments = ["ACGTT", "ACGGATTACA", "GGGCCAT"]
    words = [segment[i : i + 5] for segment in segments for i in range(len(segment) - 4)]
    expected = set(words) | {word[::-1].translate(COMPLEMENT) for word in words}
    assert set(counts) == expected and len(expected) == 20
    assert min(counts.values()) > 800 and max(counts.values()) < 1200


def test_errors_are_substitutions_at_the_rate() -> None:
    reference = made_reference("ACGTTGCAAC" * 3)
    clean = simulate_reads(reference, count=5000, length=30, error_rate=0, seed=1).codes
    changed = simulate_reads(reference, count=5000, length=30, error_rate=0.1, seed=1).codes
    assert 0.09 < np.mean(clean != changed) < 0.11 and changed.max() == 3


def test_reads_touch_n_only_where_there_is_no_other_place() -> None:
    reads = simulate_reads(made_reference("ACNGT", "TT"), count=50, length=3, error_rate=0.5, seed=1)
    middle = {reads.sequence(i).count("N") for i in range(50)}
    assert middle == {1}


def test_no_contig_is_long_enough() -> None:
    with pytest.raises(InputError, match="made.fa: reads of 9 bases were asked for, but the longest contig has 5"):
        simulate_reads(made_reference("ACNGT", "TT"), count=1, length=9, seed=1)
    with pytest.raises(InputError, match="error_rate = 2"):
        simulate_reads(made_reference("ACGT"), count=1, length=2, error_rate=2, seed=1)


# ------------------------------------------------------------------------------------ lengths, indels, qualities


def piece(reference: Reference, reads: SimulatedReads, i: int) -> str:
    """What read `i` would be without errors, by where it says it was drawn."""
    start = int(reference.offsets[reads.contigs[i]])
    letters = text(reference.codes[start + reads.starts[i] : start + reads.stops[i]])
    return letters[::-1].translate(COMPLEMENT) if reads.reverse[i] else letters


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            previous, row[j] = row[j], min(previous + (letter != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def test_reads_of_one_length_without_indels_are_those_of_earlier_versions(tmp_path: Path) -> None:
    reads = simulate_reads(
        genome(tmp_path, size=20_000, contigs=3, seed=5), count=500, length=37, error_rate=0.05, seed=9
    )
    assert hashlib.sha256(reads.codes.tobytes()).hexdigest() == BASES_DIGEST
    assert (reads.lengths == 37).all() and reads.name(499) == "r499" and reads.qualities is None


@given(
    lengths=st.tuples(st.integers(1, 60), st.integers(0, 40)),
    rates=st.tuples(*[st.sampled_from([0.0, 0.02, 0.3, 1.0])] * 3),
    qualities=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_reads_are_where_they_say(tmp_path: Path, lengths, rates, qualities: bool, seed: int) -> None:
    letters = text(np.random.default_rng(seed).integers(0, 4, 400))
    reference = made_reference(letters[:250] + "NN", letters[250:])
    shortest, longest = lengths[0], sum(lengths)
    substitution, insertion, deletion = rates
    reads = simulate_reads(
        reference, count=30, length=(shortest, longest), error_rate=substitution, insertion_rate=insertion,
        deletion_rate=deletion, qualities=qualities, seed=seed,
    )  # fmt: skip
    pieces = reads.stops - reads.starts
    assert pieces.min() >= shortest and pieces.max() <= longest
    assert reads.starts.min() >= 0 and (reads.stops <= reference.lengths[reads.contigs]).all()
    assert reads.lengths.min() >= 1 and reads.offsets[-1] == len(reads.codes) and reads.codes.max() < 4
    for i in range(len(reads)):
        expected, read = piece(reference, reads, i), reads.sequence(i)
        assert edit_distance(expected, read) <= reads.edits[i]
        if not insertion and not deletion:
            assert sum(a != b for a, b in zip(expected, read, strict=True)) == reads.edits[i]
    if qualities:
        assert len(reads.qualities) == len(reads.codes) and reads.qualities.min() >= 33


def test_lengths_are_uniform_and_places_uniform_for_each_length() -> None:
    reference = made_reference("ACGTTNACGGATTACA", "AC", "GGGCCATN")
    reads = simulate_reads(reference, count=60_000, length=[4, 9], error_rate=0, seed=7)
    for length in range(4, 10):
        chosen = reads.lengths == length
        assert 0.95 < chosen.sum() / 10_000 < 1.05
        runs = [(0, 0, 5), (0, 6, 16), (2, 0, 7)]
        windows = {(c, i) for c, start, stop in runs for i in range(start, stop - length + 1)}
        seen, counts = np.unique(np.stack([reads.contigs[chosen], reads.starts[chosen]]), axis=1, return_counts=True)
        assert {tuple(place) for place in seen.T.tolist()} == windows
        assert counts.max() / counts.min() < 1.35
    assert 0.48 < reads.reverse.mean() < 0.52


def test_long_reads_have_a_mean_and_a_longest(tmp_path: Path) -> None:
    """Of a gamma distribution of shape 2 a fifth part is longer than 1.5 means, and little longer than five."""
    reference = genome(tmp_path, size=100_000, seed=3, **NOTHING)
    reads = simulate_reads(reference, count=20_000, length=[10, 1000, 5000], error_rate=0, seed=6)
    assert 0.99 < reads.lengths.mean() / 1000 < 1.01 and 10 <= reads.lengths.min() < 30
    assert 4500 < reads.lengths.max() <= 5000
    shares = [(reads.lengths > 1000 * times).mean() for times in (0.5, 1, 1.5, 3)]
    assert shares == pytest.approx([0.736, 0.406, 0.199, 0.017], abs=0.01)
    cut = simulate_reads(reference, count=500, length=[900, 1000, 1001], error_rate=0, seed=6)
    assert cut.lengths.min() >= 900 and cut.lengths.max() <= 1001 and len(set(cut.lengths.tolist())) > 50


def test_the_longest_reads_decide_whether_reads_may_touch_n() -> None:
    reference = made_reference("ACGTNACGTAAC", "ACGTACG")
    clean = simulate_reads(reference, count=300, length=[2, 7], error_rate=0, seed=1)
    assert clean.codes.max() == 3
    touching = simulate_reads(reference, count=300, length=[2, 8], error_rate=0, qualities=True, seed=1)
    assert touching.codes.max() == 4 and (touching.qualities[touching.codes == 4] == ord("!")).all()
    with pytest.raises(InputError, match="reads of 13 bases were asked for, but the longest contig has 12"):
        simulate_reads(reference, count=1, length=[2, 13], seed=1)


def test_rates_are_those_asked_for(tmp_path: Path) -> None:
    reference = genome(tmp_path, size=50_000, seed=2, **NOTHING)
    bases = 2000 * 500
    wanted = {"count": 2000, "length": 500, "seed": 4}
    longer = simulate_reads(reference, **wanted, error_rate=0, insertion_rate=0.03)
    shorter = simulate_reads(reference, **wanted, error_rate=0, deletion_rate=0.05)
    both = simulate_reads(reference, **wanted, error_rate=0.1, insertion_rate=0.03, deletion_rate=0.05)
    assert 0.028 < longer.edits.sum() / bases < 0.032 and longer.lengths.sum() == bases + longer.edits.sum()
    assert 0.048 < shorter.edits.sum() / bases < 0.052 and shorter.lengths.sum() == bases - shorter.edits.sum()
    assert 0.17 < both.edits.sum() / bases < 0.18  # of the bases that are left out none is substituted
    assert (both.starts == longer.starts).all() and (both.reverse == shorter.reverse).all()


@pytest.mark.parametrize("rates", [(0.01, 0.0, 0.0), (0.1, 0.0, 0.05), (0.0, 0.2, 0.0), (0.6, 0.0, 0.0)])
def test_qualities_say_the_truth(tmp_path: Path, rates: tuple[float, float, float]) -> None:
    substitution, insertion, deletion = rates
    reference = made_reference("A" * 10_000)
    reads = simulate_reads(
        reference, count=1000, length=1000, error_rate=substitution, insertion_rate=insertion, deletion_rate=deletion,
        qualities=True, seed=3,
    )  # fmt: skip
    starts = np.repeat(np.where(reads.reverse, 3, 0), reads.lengths)
    wrong = reads.codes != starts  # of the inserted bases every fourth is not seen, as it is equal
    levels = np.unique(reads.qualities)
    assert len(levels) == 2 and levels.min() >= 33
    for level in levels:
        share = wrong[reads.qualities == level].mean() * (4 / 3 if insertion else 1)
        assert abs(-10 * np.log10(share) - (int(level) - 33)) < 0.8
    low = reads.qualities == levels[0]
    assert 0.48 < low[wrong].mean() < 0.52


def test_reads_without_errors_have_the_best_quality() -> None:
    reads = simulate_reads(made_reference("ACGTTGCA"), count=9, length=5, error_rate=0, qualities=True, seed=1)
    assert set(reads.qualities.tolist()) == {33 + 41}


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"length": [3]}, r"length = \[3\] was asked for the simulation; it must be a number, the smallest and"),
        ({"length": [5, 3]}, r"length = \[5, 3\] "),
        ({"length": [1, 4, 3]}, r"length = \[1, 4, 3\] "),
        ({"length": [1, 2, 3, 4]}, r"length = \[1, 2, 3, 4\] "),
        ({"length": []}, r"length = \[\] "),
        ({"length": 0}, "length = 0"),
        ({"length": [0, 3]}, "length = 0"),
        ({"insertion_rate": 1.5}, "insertion_rate = 1.5 .* must be from 0 to 1"),
        ({"deletion_rate": -1}, "deletion_rate = -1"),
        ({"count": 0}, "count = 0"),
    ],
)
def test_read_parameters_out_of_range(parameters: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        simulate_reads(made_reference("ACGTACGT"), **{"count": 1, "length": 3, "seed": 1, **parameters})


def test_a_long_read_takes_the_memory_of_its_own_bases(tmp_path: Path) -> None:
    reference = genome(tmp_path, size=450_000, seed=1, **NOTHING)
    simulate_reads(reference, count=2, length=[1, 9], insertion_rate=0.1, seed=1)  # compiled before it is measured
    tracemalloc.start()
    reads = simulate_reads(reference, count=400, length=[100, 400_000], insertion_rate=0.1, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reads.lengths.max() > 390_000 and peak < 1.1 * len(reads.codes)


def test_kmers_are_cut_from_reads_with_indels_and_qualities(tmp_path: Path) -> None:
    genome(tmp_path, size=20_000, seed=1)
    params = {
        "number": 300, "length": [30, 90], "error_rate": 0.02, "insertion_rate": 0.05, "deletion_rate": 0.05,
        "qualities": True, "seed": 5,
    }  # fmt: skip
    job = SimpleNamespace(
        input=SimpleNamespace(fasta=tmp_path / "g.fa"), params=params, output=SimpleNamespace(reads=tmp_path / "r.fq")
    )
    script.main(job)
    reads = read_queries(tmp_path / "r.fq", qualities=True)
    assert len(reads) == 300 and len(set(reads.lengths.tolist())) > 30 and len(set(reads.qualities.tolist())) >= 2
    windows = {reads.sequence(i)[j : j + 20] for i in range(300) for j in range(int(reads.lengths[i]) - 19)}
    cut = cut_kmers(read_queries(tmp_path / "r.fq"), k=20, count=2000, seed=1)
    assert (cut.lengths == 20).all() and {cut.sequence(i) for i in range(2000)} <= windows
    params["qualities"] = False
    script.main(job)
    assert (read_queries(tmp_path / "r.fq").codes == reads.codes).all()
    assert (tmp_path / "r.fq").read_bytes().startswith(b">r0\n")
