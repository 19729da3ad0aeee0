"""Human-like genomes have the features that their parameters say, and are the same however they are made."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sequence_files import text
from warpseed.errors import InputError
from warpseed.sequences import human_like
from warpseed.sequences.human_features import FAMILIES, Family, HumanFeatures, read_features
from warpseed.sequences.human_like import plan_genome, simulate_human_like
from warpseed.sequences.reference import Reference, read_reference
from warpseed.workflow.configuration import load_schema

DIGEST = "a9ecac44d552f0618e16254a7658b7165f0a0b55788202a8595b1f2fa2e07e9a"
SHARES = ("microsatellite_share", "satellite_share", "duplication_share", "gap_share", "centromere_share")
PLAIN: dict[str, Any] = {"families": {}, "telomere_length": 0, **dict.fromkeys(SHARES, 0)}
"""A genome of nothing but its background."""
ALU = FAMILIES["alu"]._asdict()


def genome(folder: Path, **parameters: Any) -> Reference:
    simulate_human_like(folder / "g.fa", **{"size": 500_000, "seed": 1} | parameters)
    return read_reference(folder / "g.fa")


def only(**parameters: Any) -> dict[str, Any]:
    """A background and these features."""
    return PLAIN | parameters


def runs(mask: np.ndarray) -> np.ndarray:
    """First and last place of each run of what is true, int64[n, 2], half open."""
    return np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))).reshape(-1, 2)


def words_of(codes: np.ndarray, length: int) -> np.ndarray:
    """Every k-mer as a number."""
    words = np.zeros(len(codes) - length + 1, np.uint64)
    for i in range(length):
        words = words * np.uint64(4) + codes[i : len(words) + i]
    return words


def copies_of(codes: np.ndarray, plan: human_like.Plan) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each whole copy of a family in its own direction, and what it is a copy of."""
    found = []
    copies = plan.copies
    for start, length, source in zip(copies.starts, copies.lengths, copies.sources, strict=True):
        copy, end = codes[start : start + length], copies.ends[source]
        original = copies.sequences[end - length : end]
        backwards = 3 - copy[::-1]
        forward = np.count_nonzero(copy == original) >= np.count_nonzero(backwards == original)
        found.append((copy if forward else backwards, original))
    return found


# -------------------------------------------------------------------------------------------------------- the whole


def test_genomes_are_those_of_earlier_versions(tmp_path: Path) -> None:
    simulate_human_like(tmp_path / "g.fa", size=300_000, contigs=3, seed=5)
    assert hashlib.sha256((tmp_path / "g.fa").read_bytes()).hexdigest() == DIGEST


def test_the_seed_alone_decides_not_threads_or_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every feature is cut by some piece, and so is every line."""
    parameters = {"size": 200_000, "contigs": 3, "duplication_share": 0.1}
    simulate_human_like(tmp_path / "a.fa", seed=5, **parameters)
    simulate_human_like(tmp_path / "other.fa", seed=6, **parameters)
    monkeypatch.setattr(human_like, "_PIECE", 60 * 7)
    simulate_human_like(tmp_path / "b.fa", seed=5, threads=3, **parameters)
    simulate_human_like(tmp_path / "c.fa.gz", seed=5, threads=2, **parameters)
    content = (tmp_path / "a.fa").read_bytes()
    assert content == (tmp_path / "b.fa").read_bytes() == gzip.decompress((tmp_path / "c.fa.gz").read_bytes())
    assert content != (tmp_path / "other.fa").read_bytes()


def test_chromosomes_are_of_unlike_lengths(tmp_path: Path) -> None:
    reference = genome(tmp_path, contigs=5)
    assert reference.names == ("sim1", "sim2", "sim3", "sim4", "sim5")
    assert reference.lengths.sum() == 500_000 and (np.diff(reference.lengths) < 0).all()
    assert reference.lengths[0] == pytest.approx(5 * reference.lengths[-1], rel=0.01)
    assert {len(line) for line in (tmp_path / "g.fa").read_text().splitlines()[1:1000]} == {60}


@pytest.mark.parametrize(("size", "contigs"), [(1, 1), (5, 5), (60, 1), (61, 1), (1000, 1000), (2999, 24), (30_000, 7)])
def test_tiny_genomes(tmp_path: Path, size: int, contigs: int) -> None:
    reference = genome(tmp_path, size=size, contigs=contigs, seed=4)
    assert len(reference.names) == contigs and reference.lengths.sum() == size and reference.lengths.min() >= 1
    assert np.count_nonzero(reference.codes == 4) <= 0.1 * size


def test_a_genome_of_no_features_is_random(tmp_path: Path) -> None:
    codes = genome(tmp_path, gc=(0.5, 0.5), **PLAIN).codes
    words, counts = np.unique(words_of(codes, 6), return_counts=True)
    expected = len(codes) / 4096
    assert len(words) == 4096
    assert ((counts - expected) ** 2 / expected).sum() < 4096 * 1.3  # of words that overlap the variance is larger
    assert len(np.unique(words_of(codes, 16))) > 0.999 * len(codes)


# ------------------------------------------------------------------------------------------------- what is in a genome


@pytest.mark.parametrize(
    ("features", "share"),
    [
        ({"families": {"alu": ALU}}, 0.1),
        ({"families": {"l1": FAMILIES["l1"]}}, 0.17),
        ({"families": FAMILIES, "microsatellite_share": 0.1}, 0.37),
        ({"satellite_share": 0.2}, 0.2),
        ({"duplication_share": 0.2}, 0.2),
        ({"gap_share": 0.1}, 0.1),
        ({"centromere_share": 0.3}, 0.3),
        ({"telomere_length": 100_000}, 0.02),
    ],
)
def test_features_have_the_share_they_are_given(tmp_path: Path, features: dict[str, Any], share: float) -> None:
    """What they overwrite is the same genome without them; a quarter of the bases happens to be the same."""
    background = genome(tmp_path, contigs=2, **PLAIN).codes
    codes = genome(tmp_path, contigs=2, **only(**features)).codes
    known = codes < 4
    covered = np.count_nonzero(codes[known] != background[known]) / 0.74 + np.count_nonzero(~known)
    assert covered / len(codes) == pytest.approx(share, rel=0.15)


def test_words_of_families_come_often_and_random_ones_do_not(tmp_path: Path) -> None:
    """Counted without an index: 16-mers that stand at ten places or more."""
    frequent = []
    for families in ({}, FAMILIES):
        _, numbers, counts = np.unique(
            words_of(genome(tmp_path, **only(families=families)).codes, 16), return_inverse=True, return_counts=True
        )
        frequent.append(np.count_nonzero(counts[numbers] >= 10) / len(numbers))
    assert frequent[0] == 0 and 0.01 < frequent[1] < 0.27


@pytest.mark.parametrize("age", [0.0, 0.01, 0.1, 0.3])
def test_a_copy_is_as_different_as_it_is_old(tmp_path: Path, age: float) -> None:
    features = only(families={"a": ALU | {"ages": (age, age)}}, indel_share=0)
    plan, _ = plan_genome(500_000, 1, **features)
    pairs = copies_of(genome(tmp_path, **features).codes, plan)
    changes = np.concatenate([(copy - original)[copy != original] & 3 for copy, original in pairs])
    assert len(changes) / sum(len(copy) for copy, _ in pairs) == pytest.approx(age, rel=0.1)
    assert age == 0 or np.abs(np.bincount(changes, minlength=4)[1:] / len(changes) - 1 / 3).max() < 0.07


def test_sub_families_have_ages_and_sequences_of_their_own(tmp_path: Path) -> None:
    features = only(families={"a": ALU | {"share": 0.5, "subfamilies": 3, "ages": (0.0, 0.2)}}, indel_share=0)
    plan, _ = plan_genome(500_000, 1, **features)
    pairs = copies_of(genome(tmp_path, **features).codes, plan)
    ages = np.array([np.count_nonzero(copy != original) / len(copy) for copy, original in pairs])
    for number, age in enumerate((0, 0.1, 0.2)):
        assert ages[plan.copies.sources == number].mean() == pytest.approx(age, abs=0.01)
    sequences = [plan.copies.sequences[end - 300 : end] for end in plan.copies.ends]
    apart = [np.count_nonzero(a != b) / 300 for a, b in zip(sequences, sequences[1:], strict=False)]
    assert all(0.03 < share < 0.15 for share in apart)


def test_copies_lie_on_both_strands_and_lack_their_beginnings(tmp_path: Path) -> None:
    family = Family(share=0.5, length=6000, shortest=100, subfamilies=1, ages=(0, 0))
    plan, _ = plan_genome(500_000, 1, **only(families={"l1": family}))
    codes = genome(tmp_path, **only(families={"l1": family})).codes
    pairs = copies_of(codes, plan)
    assert all((copy == original).all() for copy, original in pairs)
    lengths = plan.copies.lengths
    assert np.sort(lengths)[1] >= 100 and np.sort(lengths)[1] < 120 and 5000 < lengths.max() <= 6000
    assert np.median(lengths) < 0.7 * lengths.mean()
    end = text(plan.copies.sequences[plan.copies.ends[0] - 100 : plan.copies.ends[0]])
    backwards = end[::-1].translate(str.maketrans("ACGT", "TGCA"))
    forward, reverse = text(codes).count(end), text(codes).count(backwards)
    assert forward + reverse >= len(lengths) - 1 and 0.3 < forward / (forward + reverse) < 0.7


def test_insertions_and_deletions_move_what_follows(tmp_path: Path) -> None:
    features = only(families={"a": ALU | {"subfamilies": 1, "ages": (0.02, 0.02)}}, indel_share=1)
    plan, _ = plan_genome(500_000, 1, **features)
    pairs = copies_of(genome(tmp_path, **features).codes, plan)
    in_place = np.mean([np.count_nonzero(copy == original) / len(copy) for copy, original in pairs])
    known = np.unique(words_of(plan.copies.sequences, 12))
    elsewhere = np.mean([np.isin(words_of(copy, 12), known).mean() for copy, original in pairs if len(copy) == 300])
    assert in_place < 0.6 and elsewhere > 0.65


def test_microsatellites_have_units_of_1_to_6(tmp_path: Path) -> None:
    features = only(microsatellite_share=0.2, microsatellite_divergence=0.02)
    plan, _ = plan_genome(500_000, 1, **features)
    codes = genome(tmp_path, **features).codes
    copies = plan.copies
    units = []
    for start, length in zip(copies.starts[:-1], copies.lengths[:-1], strict=True):
        stretch = codes[start : start + length]
        same = [np.count_nonzero(stretch[unit:] == stretch[:-unit]) / (length - unit) for unit in range(1, 7)]
        units.append(1 + int(np.argmax(np.array(same) > 0.8)))
        assert max(same) > 0.6
    assert set(units) == {1, 2, 3, 4, 5, 6}
    assert np.sort(copies.lengths)[1] >= 20 and copies.lengths.max() <= 100


def test_satellites_are_copies_of_copies(tmp_path: Path) -> None:
    """Two arrays around each centromere: near by the same after a higher-order repeat, less so after a monomer."""
    features = only(satellite_share=0.3, centromere_share=0.05, indel_share=0)
    plan, borders = plan_genome(500_000, 1, contigs=2, **features)
    codes = genome(tmp_path, contigs=2, **features).codes
    starts, stops = plan.arrays.starts, plan.arrays.stops
    assert (stops - starts).sum() == pytest.approx(0.3 * 500_000, abs=10)
    assert (starts[1::2] == plan.gap_stops).all() and (stops[::2] == plan.gap_starts).all()
    assert (codes[plan.gap_starts] == 4).all() and ((codes == 4).sum()) == pytest.approx(25_000, abs=10)
    for start, stop in zip(starts, stops, strict=True):
        array = codes[start:stop]
        repeated, monomers = (np.count_nonzero(array[n:] == array[:-n]) / (len(array) - n) for n in (12 * 171, 171))
        assert 0.97 < repeated < 0.99 and 0.55 < monomers < 0.75
    assert borders[0] < starts[0] < stops[1] < borders[1] < starts[2] < stops[3] < borders[2]
    first, second = (plan.arrays.repeats[number] for number in (0, 1))
    assert 0.5 < np.count_nonzero(first == second) / len(first) < 0.8


def standing_twice(codes: np.ndarray) -> np.ndarray:
    """Which bases lie in a 32-mer that stands twice, on any strand; by sorting all of them."""
    known = np.where(codes < 4, codes, np.random.default_rng(1).integers(0, 4, len(codes))).astype(np.uint64)
    words = np.concatenate([words_of(known, 32), words_of(3 - known[::-1], 32)])
    _, numbers, counts = np.unique(words, return_inverse=True, return_counts=True)
    covered = np.zeros(len(codes), np.bool_)
    for place in np.flatnonzero(counts[numbers[: len(codes) - 31]] > 1):
        covered[place : place + 32] = True
    return covered


@pytest.mark.parametrize("divergence", [0.0, 0.02])
def test_duplications_duplicate(tmp_path: Path, divergence: float) -> None:
    features = only(duplication_share=0.1, duplication_divergence=divergence, gap_share=0.02)
    plan, _ = plan_genome(500_000, 3, contigs=2, **features)
    codes = genome(tmp_path, contigs=2, seed=3, **features).codes
    twins = plan.duplications
    assert len(twins.starts) >= 4 and twins.reverse.any() and not twins.reverse.all()
    assert twins.lengths.min() >= 2500 and twins.lengths.max() <= 7500
    planned = np.zeros(len(codes), np.int64)
    for starts in (twins.starts, twins.origins):
        for start, length in zip(starts, twins.lengths, strict=True):
            planned[start : start + length] += 1
    assert planned.max() == 1 and codes[planned > 0].max() < 4, "one lies over another, its origin or a gap"
    covered = standing_twice(codes)
    if divergence == 0:
        assert (covered == planned).mean() > 0.999
    else:
        assert 0.75 < covered[planned > 0].mean() < 0.99 and covered[planned == 0].mean() < 0.001


def test_exact_duplications_are_exact(tmp_path: Path) -> None:
    """A tenth of them, whatever the others' divergence is."""
    features = only(duplication_share=0.3, duplication_lengths=(20_000, 60_000))
    plan, _ = plan_genome(2_000_000, 1, contigs=1, **features)
    codes = genome(tmp_path, size=2_000_000, contigs=1, **features).codes
    same = []
    for start, length, origin, reverse, change in zip(*plan.duplications, strict=True):
        copy = codes[start : start + length]
        exact = (3 - copy[::-1] if reverse else copy) == codes[origin : origin + length]
        same.append(exact.all())
        assert exact.all() == (change == 0) and 0 <= change <= 0.02 * (1 << 15) + 1
    assert 0.02 < np.mean(same) < 0.25


def test_runs_of_n_are_those_of_an_assembly(tmp_path: Path) -> None:
    """Both telomeres and the centromere of each chromosome, and gaps, all shorter in smaller chromosomes."""
    features = only(telomere_length=100_000, centromere_share=0.02, gap_share=0.02, gap_length=60_000)
    reference = genome(tmp_path, size=1_000_000, contigs=4, **features)
    gaps = 0
    for first, end in zip(reference.offsets, reference.offsets[1:], strict=False):
        found = runs(reference.codes[first:end] == 4)
        lengths = (found[:, 1] - found[:, 0]).tolist()
        assert lengths[0] == lengths[-1] == 2500 and found[0, 0] == 0 and found[-1, 1] == end - first
        centromere = int(0.02 * (end - first - 5000))
        assert sum(length == centromere for length in lengths) == 1
        gaps += lengths.count(1500)
        assert set(lengths) <= {2500, 1500, centromere}
    assert 8 <= gaps <= 13


def test_regions_differ_in_gc(tmp_path: Path) -> None:
    codes = genome(tmp_path, contigs=1, gc=(0.3, 0.7), **PLAIN).codes
    region = 300_000 * 500_000 // 10_000_000
    windows = codes[: len(codes) // region * region].reshape(-1, region)
    shares = ((windows == 1) | (windows == 2)).mean(1)
    assert 0.28 < shares.min() < 0.36 and 0.58 < shares.max() < 0.72 and np.median(shares) < 0.48


@pytest.mark.parametrize("gc", [0.0, 0.4, 1.0])
def test_gc(tmp_path: Path, gc: float) -> None:
    shares = np.bincount(genome(tmp_path, gc=(gc, gc), **PLAIN).codes, minlength=4) / 500_000
    assert np.abs(shares - [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]).max() < 0.005


# ---------------------------------------------------------------------------------------------------------- parameters


def test_the_configuration_has_the_same_features_and_defaults() -> None:
    schema = load_schema(Path(__file__).resolve().parents[2] / "workflow" / "schemas")
    node = schema["properties"]["human_like_reference"]["properties"]
    defaults = {name: each.get("default") for name, each in node.items()}
    families = defaults.pop("families")
    assert {"size", "seed"} == set(defaults) - set(HumanFeatures._fields)
    for name in set(HumanFeatures._fields) - {"families"}:
        value = getattr(HumanFeatures(), name)
        shared = defaults[name]
        assert (tuple(shared) if isinstance(value, tuple) else shared) == value, name
    read = read_features(1000, 1, {"families": families, "contigs": 1})[1]
    assert [family._replace(ages=tuple(family.ages)) for family in read] == list(FAMILIES.values())
    of_family = schema["$defs"]["repeat_family"]["properties"]
    assert list(of_family) == list(Family._fields)
    for name, value in Family._field_defaults.items():
        shared = of_family[name]["default"]
        assert (tuple(shared) if isinstance(value, tuple) else shared) == value == getattr(FAMILIES["alu"], name), name


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"size": 10.5}, "size = 10.5 .* a whole number"),
        ({"families": {str(i): ALU | {"share": 0} for i in range(101)}}, "the number of families = 101 .* 0 to 100"),
        ({"size": 0}, "size = 0 was asked for the simulation; it must be from 1 to 4000000000"),
        ({"seed": -1}, "seed = -1"),
        ({"threads": 0}, "threads = 0 .* at least 1"),
        ({"contigs": 0}, "contigs = 0 .* from 1 to 1000"),
        ({"size": 5, "contigs": 6}, "contigs = 6 .* from 1 to 5"),
        ({"gc": (0.6, 0.4)}, r"gc = \[0.6, 0.4\] .* two numbers, the smaller one first"),
        ({"gc": (0.4, 1.4)}, "gc = 1.4 .* from 0 to 1"),
        ({"gc": (0.4,)}, "two numbers"),
        ({"isochore_length": 0}, "isochore_length = 0"),
        ({"indel_share": 2}, "indel_share = 2 .* from 0 to 1"),
        ({"microsatellite_share": float("nan")}, "microsatellite_share = nan"),
        ({"microsatellite_lengths": (0, 9)}, "microsatellite_lengths = 0"),
        ({"microsatellite_divergence": -1}, "microsatellite_divergence = -1"),
        ({"satellite_share": 1.5}, "satellite_share = 1.5"),
        ({"satellite_share": 0.5, "centromere_share": 0.5}, r"satellite_share \+ centromere_share = 1.0 .* 0 to 0.9"),
        ({"satellite_monomer": 0}, "satellite_monomer = 0"),
        ({"satellite_monomers": 101}, "satellite_monomers = 101 .* from 1 to 100"),
        ({"monomer_divergence": 1.1}, "monomer_divergence = 1.1"),
        ({"duplication_share": 0.5}, "2 × duplication_share"),
        ({"duplication_lengths": (9, 8)}, "duplication_lengths"),
        ({"duplication_share": 0.3, "satellite_share": 0.6}, "the chromosomes' arms have .* smaller shares"),
        ({"telomere_length": 10**7}, "telomere_length = 10000000"),
        ({"gap_length": 0}, "gap_length = 0"),
        ({"families": {"a": {"share": 0.1}}}, "family 'a' of the simulation lacks 'length'"),
        ({"families": {"a": ALU | {"lenght": 5}}}, "'families.a.lenght' is not known"),
        ({"families": [1]}, r"families = \[1\] .* families by name"),
        ({"families": {"a": 5}}, "families.a = 5 .* its fields by name"),
        ({"families": {"a": ALU | {"share": None}}}, "families.a.share = None .* a number"),
        ({"contigs": 2.5}, "contigs = 2.5 .* a whole number"),
        ({"gap_share": "0.1"}, "gap_share = '0.1' .* a number"),
        ({"duplication_lengths": 5}, "duplication_lengths = 5 .* two numbers"),
        ({"duplication_lengths": (1, 2.5)}, "duplication_lengths = 2.5 .* a whole number"),
        ({"families": {"a": ALU | {"share": 0.9}}}, "families and microsatellites together = 0.92 .* 0 to 0.9"),
        ({"families": {"a": ALU | {"shortest": 301}}}, "families.a.shortest = 301 .* from 1 to 300"),
        ({"families": {"a": ALU | {"subfamilies": 0}}}, "families.a.subfamilies = 0"),
        ({"families": {"a": ALU | {"apart": 1.2}}}, "families.a.apart = 1.2"),
        ({"families": {"a": ALU | {"ages": (0.2, 0.1)}}}, "families.a.ages = .* the smaller one first"),
        ({"families": {"a": ALU | {"ages": (0.2, 1.1)}}}, "families.a.ages = 1.1"),
        ({"families": {"a": ALU | {"length": 10**6}}}, "families.a.length = 1000000"),
        ({"telomeres": 3}, "'telomeres' is not known"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(tmp_path: Path, parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        simulate_human_like(tmp_path / "g.fa", **{"size": 100_000, "seed": 1} | parameters)
    assert not list(tmp_path.iterdir())
