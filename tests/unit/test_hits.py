"""Hits as an object: equal, hashable, picklable without the index, and shown as a frame."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import warpseed
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.output.hits import Hits
from warpseed.sequences.simulate import simulate_reference

KMERS = ["ACGT", "GATTACA", "CCC", "TTTTTTTTTTTTTTTTTTTT"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SeedIndex:
    path = tmp_path_factory.mktemp("hits") / "genome.fa"
    simulate_reference(path, size=50_000, contigs=2, seed=3)
    return build_index(path)


def find(index: SeedIndex, kmers: list[str] = KMERS, **options: int) -> Hits:
    return warpseed.find_kmers(index, kmers, **options)


def test_two_searches_are_equal_or_not(index: SeedIndex) -> None:
    hits = find(index)
    assert (hits == find(index)) is True and (hits != find(index)) is False
    assert hash(hits) == hash(find(index)) and len({hits, find(index)}) == 1
    others = [find(index, KMERS[:3]), find(index, KMERS * 2)]
    for other in (*others, find(index, max_mismatches=1), find(index, max_hits=3)):
        assert (hits == other) is False
    assert hits != "hits" and hits != None  # noqa: E711


def test_a_pickle_holds_rows_and_names_and_no_index(index: SeedIndex, tmp_path: Path) -> None:
    hits = find(index, max_hits=500)
    content = pickle.dumps(hits)
    assert len(content) < hits.rows().nbytes + 4000 < index.bases
    back = pickle.loads(content)
    assert back == hits and len(back) == len(hits) > 100 and back.dropped_hits == hits.dropped_hits
    assert back.to_frame().equals(hits.to_frame())
    from warpseed.kmer_seeds.output import write_hits

    for name, each in (("a.bed", hits), ("b.bed", back)):
        assert write_hits(tmp_path / name, each, threads=2) == len(hits)
    assert (tmp_path / "a.bed").read_bytes() == (tmp_path / "b.bed").read_bytes()


def test_no_hits_at_all(index: SeedIndex) -> None:
    for hits in (find(index, ["ANNA"]), find(index, [])):
        assert len(hits) == 0 and hits == pickle.loads(pickle.dumps(hits))
        assert list(hits.to_frame().columns) == ["query", "contig", "start", "end", "strand", "distance"]
        assert len(hits.to_frame()) == 0


def test_the_frame_has_names_and_signs(index: SeedIndex) -> None:
    hits = find(index)
    assert repr(hits) == f"<{len(hits)} hits of {len(KMERS)} queries>"
    frame = hits.to_frame()
    assert frame["query"].tolist() == [str(number) for number in hits.query]
    assert frame["contig"].tolist() == [index.names[number] for number in hits.contig]
    assert frame["strand"].tolist() == ["+-"[strand] for strand in hits.strand]
    assert np.array_equal(frame["start"], hits.start) and np.array_equal(frame["end"], hits.end)
    assert frame["distance"].sum() == 0
