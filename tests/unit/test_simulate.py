"""Simulated genomes and reads have what their parameters say."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from sequence_files import genome, text
from warpseed.errors import InputError
from warpseed.sequences import simulate
from warpseed.sequences.simulate import simulate_reference

GENOME_DIGEST = "4c47dee4b37ba1ce5ac5e1ce042b2b573bb6ce71e9edff9a769c771d9393884c"
NOTHING = {"repeat_families": 0, "tandem_repeats": 0, "n_runs": 0}
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def test_genomes_are_those_of_earlier_versions(tmp_path: Path) -> None:
    simulate_reference(tmp_path / "g.fa", size=20_000, contigs=3, seed=5)
    assert hashlib.sha256((tmp_path / "g.fa").read_bytes()).hexdigest() == GENOME_DIGEST


def test_size_contigs_and_line_length(tmp_path: Path) -> None:
    reference = genome(tmp_path, size=100_001, contigs=7, seed=1, n_length=100)
    assert reference.names == tuple(f"sim{i}" for i in range(1, 8))
    assert reference.lengths.sum() == 100_001 and reference.lengths.min() >= 1
    assert {len(line) for line in (tmp_path / "g.fa").read_text().splitlines()} >= {60}
    assert max(len(line) for line in (tmp_path / "g.fa").read_text().splitlines()) == 60


@pytest.mark.parametrize(("size", "contigs"), [(1, 1), (5, 5), (60, 1), (61, 1), (3000, 2999)])
def test_tiny_genomes(tmp_path: Path, size: int, contigs: int) -> None:
    reference = genome(tmp_path, size=size, contigs=contigs, seed=4, **NOTHING)
    assert len(reference.names) == contigs and reference.lengths.sum() == size


def test_the_seed_and_nothing_else_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"size": 30_000, "contigs": 3}
    simulate_reference(tmp_path / "a.fa", seed=5, **parameters)
    simulate_reference(tmp_path / "c.fa", seed=6, **parameters)
    simulate_reference(tmp_path / "d.fa.gz", seed=5, **parameters)
    monkeypatch.setattr(simulate, "_PIECE_LINES", 3)
    simulate_reference(tmp_path / "b.fa", seed=5, **parameters)
    content = (tmp_path / "a.fa").read_bytes()
    assert content == (tmp_path / "b.fa").read_bytes() != (tmp_path / "c.fa").read_bytes()
    assert gzip.decompress((tmp_path / "d.fa.gz").read_bytes()) == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.fa", "b.fa", "c.fa", "d.fa.gz"]


@pytest.mark.parametrize("gc", [0.0, 0.3, 0.65, 1.0])
def test_gc(tmp_path: Path, gc: float) -> None:
    shares = np.bincount(genome(tmp_path, size=200_000, gc=gc, seed=2, **NOTHING).codes, minlength=4) / 200_000
    expected = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    assert np.abs(shares - expected).max() < 0.01


def test_repeats_come_in_both_orientations(tmp_path: Path) -> None:
    parameters = {**NOTHING, "size": 100_000, "repeat_families": 1, "repeat_length": 300, "repeat_copies": 30}
    letters = text(genome(tmp_path, seed=3, repeat_divergence=0.0, **parameters).codes)
    plain = text(genome(tmp_path, seed=3, **{**parameters, "repeat_families": 0}).codes)
    first = next(i for i in range(len(letters)) if letters[i : i + 40] != plain[i : i + 40]) + 45
    word = letters[first : first + 30]
    forward, reverse = letters.count(word), letters.count(word[::-1].translate(COMPLEMENT))
    assert forward >= 5 and reverse >= 5 and 20 <= forward + reverse <= 30


def test_divergence_is_the_share_of_changed_bases(tmp_path: Path) -> None:
    parameters = {**NOTHING, "size": 100_000, "repeat_families": 2, "repeat_length": 1000, "repeat_copies": 20}
    exact = genome(tmp_path, seed=3, repeat_divergence=0.0, **parameters).codes
    changed = genome(tmp_path, seed=3, repeat_divergence=0.2, **parameters).codes
    background = genome(tmp_path, seed=3, **{**parameters, "repeat_families": 0}).codes
    covered = np.count_nonzero(exact != background) / 0.75
    assert 0.17 < np.count_nonzero(exact != changed) / covered < 0.23
    difference = (changed[exact != changed] - exact[exact != changed]) & 3
    assert np.abs(np.bincount(difference, minlength=4)[1:] / len(difference) - 1 / 3).max() < 0.03


def test_tandem_repeats_have_short_periods(tmp_path: Path) -> None:
    parameters = {**NOTHING, "size": 50_000, "tandem_repeats": 20, "tandem_length": 400}
    codes = genome(tmp_path, seed=8, **parameters).codes
    found = 0
    for period in range(1, 13):
        same = np.concatenate(([0], (codes[period:] == codes[:-period]).astype(np.int8), [0]))
        edges = np.flatnonzero(np.diff(same))
        found += int(np.count_nonzero(edges[1::2] - edges[::2] >= 300))
    assert found >= 15


def test_n_runs(tmp_path: Path) -> None:
    codes = genome(tmp_path, size=50_000, n_runs=4, n_length=123, seed=1, repeat_families=0).codes
    edges = np.flatnonzero(np.diff(np.concatenate(([0], codes == 4, [0]))))
    lengths = edges[1::2] - edges[::2]
    assert 1 <= len(lengths) <= 4 and lengths.min() >= 123 and lengths.sum() <= 4 * 123


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"size": 0}, "size = 0 was asked for the simulation; it must be at least 1"),
        ({"contigs": 11}, "contigs = 11 .* must be from 1 to 10"),
        ({"gc": 1.5}, "gc = 1.5 .* must be from 0 to 1"),
        ({"gc": float("nan")}, "gc = nan"),
        ({"repeat_divergence": -0.1}, "repeat_divergence = -0.1"),
        ({"repeat_families": 1, "repeat_length": 11}, "repeat_length = 11 .* must be from 1 to 10"),
        ({"tandem_repeats": 1, "tandem_length": 0}, "tandem_length = 0"),
        ({"n_runs": 1, "n_length": 12}, "n_length = 12"),
        ({"n_runs": -1}, "n_runs = -1 .* at least 0"),
        ({"seed": -1}, "seed = -1"),
        (
            {"repeat_families": 1, "repeat_length": 1, "repeat_copies": 10**12},
            "repeat_families × repeat_copies × repeat_length = 1000000000000 .* must be from 0 to 10000",
        ),
        ({"tandem_repeats": 10**9, "tandem_length": 5}, "tandem_repeats × tandem_length = 5000000000 "),
        ({"n_runs": 10**9, "n_length": 1}, "n_runs × n_length = 1000000000 "),
    ],
)
def test_parameters_out_of_range(tmp_path: Path, parameters: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        simulate_reference(tmp_path / "g.fa", **{**NOTHING, "size": 10, "seed": 1, **parameters})
    assert not list(tmp_path.iterdir())
