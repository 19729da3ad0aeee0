"""What is timed of k-mer seeds: every item's records, on a small genome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from warpseed import build_index, find_kmers
from warpseed.batches import Settings
from warpseed.kmer_seeds.timing import ITEMS, Case, time_dataset
from warpseed.measure import searches
from warpseed.measure.records import read_records, write_records
from warpseed.sequences.cutting import cut_kmers
from warpseed.sequences.queries import write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

SETTINGS = Settings(["paper", "fast"], ["cpu"], [1, 2])


@pytest.fixture
def made(write_reference: Callable[..., Path], tmp_path: Path) -> tuple[Path, Case]:
    """An index of both tiers' parts, and 300 k-mers with errors, some of them repeats."""
    fasta = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 30 + "GATTACA" * 20, "CCGTAAGCTTGCA" * 25])
    build_index(fasta, parts=("fast", "forward", "reverse")).save(tmp_path / "index")
    reads = simulate_reads(read_reference(fasta), count=60, length=40, error_rate=0.02, seed=1)
    write_fasta(cut_kmers(reads, k=15, count=300, seed=2), tmp_path / "kmers.fa")
    return tmp_path / "index", Case("S15", "k=15; mismatches=1", str(tmp_path / "kmers.fa"), 1, 50)


def timed(made: tuple[Path, Case], items: list[str], tmp_path: Path, **changed: Any) -> Any:
    """The records of some items after a round through a file."""
    index, case = made
    write_records(tmp_path / "a.tsv", time_dataset(index, case._replace(**changed), SETTINGS, items=items, repeats=2))
    return read_records(tmp_path / "a.tsv")


def test_every_item_has_its_records_and_the_same_hits(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, list(ITEMS), tmp_path)
    assert list(dict.fromkeys(frame["item"])) == [item for item in ITEMS if item != "locate_on_cpu"]  # needs a GPU
    cells = frame.groupby(["item", "tier", "threads"]).ngroups
    assert cells == 6 * 2 * 2 and set(frame["repeat"]) == {0, 1}
    hits = find_kmers(made[0], made[1].kmers, max_mismatches=1, max_hits=50)
    located = frame[frame["item"] != "search"]
    assert set(located["digest"]) == {hits.digest()} and set(frame["results"]) == {len(hits)}
    assert set(frame.loc[frame["item"] == "search", "digest"]) == {f"count={len(hits)}"}
    assert set(frame["queries"]) == {300} and set(frame["system"]) == {"kmer_seeds"}
    assert set(frame["parameters"]) == {"k=15; mismatches=1"} and set(frame["case"]) == {"S15"}


def test_each_item_has_the_stages_of_its_way(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["whole", "in_memory", "file_to_file"], tmp_path)
    stages = defaultdict(list)
    for row in frame[(frame["repeat"] == 1) & (frame["metric"] == "time") & (frame["threads"] == 2)].itertuples():
        stages[row.item, row.tier].append(row.stage)
    assert stages["whole", "paper"] == ["load", "read", "pack", "search", "locate", "total"]
    assert stages["whole", "fast"] == ["load", "read", "pack", "search", "total"]
    assert stages["in_memory", "fast"] == ["load", "search", "total"]
    assert stages["file_to_file", "fast"] == ["load", "read", "pack", "search", "format", "write", "total"]
    for _, run in frame[frame["metric"] == "time"].groupby(["item", "tier", "threads", "repeat"]):
        seconds = run.set_index("stage")["value"]
        assert seconds.drop(["load", "total"]).sum() <= seconds["total"]


def test_a_rate_in_memory_is_a_record(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["in_memory"], tmp_path)
    rates = frame[frame["metric"] == "throughput"]
    assert len(rates) == 2 * 2 * 2 and set(rates["unit"]) == {"k-mers/s"}
    totals = frame[(frame["stage"] == "total") & (frame["metric"] == "time")]
    assert rates["value"].tolist() == pytest.approx((300 / totals["value"]).tolist())


def test_the_digest_of_file_to_file_is_of_the_file(
    made: tuple[Path, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is lost on the way to the file is missing in the record."""
    opened = searches.open_writer

    @contextmanager
    def lose_the_last_hit(path: Path, *arguments: Any, **options: Any) -> Iterator[Any]:
        with opened(path, *arguments, **options) as writer:
            yield writer
        lines = Path(path).read_text().splitlines(keepends=True)
        Path(path).write_text("".join(lines[:-1]))

    whole = timed(made, ["whole"], tmp_path)
    monkeypatch.setattr(searches, "open_writer", lose_the_last_hit)
    lost = timed(made, ["file_to_file"], tmp_path)
    assert set(lost["results"]) == {whole["results"].iloc[0] - 1}
    assert not set(lost["digest"]) & set(whole["digest"])


def test_the_paper_tier_is_left_out_where_it_cannot_search(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["whole"], tmp_path, max_mismatches=3)
    assert set(frame["tier"]) == {"fast"}
