"""What README and docs say of k-mers in a stream on a GPU and its host is what the record says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
RECORDS = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-tree-bitmap" / "tree_bitmap.tsv")
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
DECISIONS = " ".join((ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").split())
TEXT = (ROOT / "docs" / "tree_bitmap.md").read_text(encoding="utf-8")
PAGE, ROWS = " ".join(TEXT.split()), rows_of(TEXT, "| k | CPU, one thread | CPU, 16 threads |")
TIMES = RECORDS[RECORDS["metric"] == "time"]
GENOME, MILLION = "length=100286076; bases=genome", "k=15; length=1000000"
MEDIANS = TIMES.groupby(["item", "tier", "device", "threads", "parameters", "stage"])["value"].median()
LIMITS = RECORDS[RECORDS["item"] == "limits"].groupby(["parameters", "metric"])["value"].median()


def version(name: str, device: str = "gpu") -> dict[str, float]:
    """Milliseconds by stage of a version of the dynamic system."""
    own = TIMES[(TIMES["item"] == "versions") & (TIMES["device"] == device)]
    own = own[own["parameters"].str.contains(f"version={name}")]
    return dict(1e3 * own.groupby("stage")["value"].median())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"k = {row[0]}")
def test_a_growing_dictionary(row: list[str]) -> None:
    parameters = f"k={row[0]}; {GENOME}"
    sides = ("cpu", 1), ("cpu", 16), ("gpu", 16)
    seconds = [f"{MEDIANS['in_memory', 'fast', *side, parameters, 'total']:.3f} s" for side in sides]
    limits = LIMITS[parameters]
    assert row[1:] == [*seconds, f"{limits['throughput'] / 1e9:.1f} G bases/s", f"{limits['share']:.2f}"]


def test_a_billion_bases() -> None:
    own = [MEDIANS["in_memory", "fast", "gpu", 16, f"k={k}; length=1000000000", "total"] for k in (15, 31)]
    told = f"take the GPU {own[0]:.3f} s for k = 15 and {own[1]:.3f} s for 31, copies included."
    assert f"a billion random bases {told}" in PAGE


def test_the_streams_of_the_thesis() -> None:
    dynamic = TIMES[(TIMES["case"] == "dynamic") & (TIMES["item"] == "in_memory") & (TIMES["tier"] == "fast")]
    totals = dynamic[dynamic["stage"] == "total"].groupby(["device", "threads"])["value"].median()
    core, gpu = (f"{1e3 * totals[side]:.1f}" for side in (("cpu", 1), ("gpu", 16)))
    serial, concurrent, ordered = (version(name) for name in ("serial", "concurrent", "sorted"))
    trie = version("one_trie", "cpu")["total"]
    one, two = (f"{own['total'] / 1e3:.2f} s" for own in (serial, concurrent))
    assert f"{core} ms on one thread, {gpu} ms on the GPU." in README
    assert f"takes {one} on that GPU, {two} where" in README
    assert f"two chunks at a time, and {trie / 1e3:.2f} s on one core" in README
    assert f"It takes {ordered['total'] / 1e3:.2f} s where Tree Bitmaps are made by sorting" in README
    assert f"{core} ms on one thread, {gpu} ms on the GPU. The paper tier on one trie takes {trie:.0f} ms" in PAGE
    assert f"take {one}, serial, and {two}, concurrent" in PAGE
    parts = ordered["to_bitmap"], ordered["deltas"]
    sums = f"{parts[0]:.0f} ms are conversions, {parts[1]:.0f} deltas, {ordered['kernel']:.1f} kernels"
    assert f"GPU takes {ordered['total']:.0f} ms**" in PAGE and sums in PAGE
    told = f"{parts[0]:.0f} ms and deltas {parts[1]:.0f}, {ordered['total']:.0f} ms in all"
    slow = f"{serial['to_bitmap']:.0f} and {serial['deltas']:.0f} on its host, {one} in all"
    assert f"ten conversions take {told}, where the pointer trie takes {slow}" in DECISIONS
    kernels, fast = f"{serial['kernel']:.1f} ms of kernels", f"{1e3 * LIMITS[MILLION, 'time']:.2f} ms of kernels"
    assert f"{kernels}, {serial['to_bitmap']:.0f} ms of conversion" in DECISIONS
    assert f"{fast} and {gpu} ms in all" in DECISIONS


def test_kernels_in_decisions() -> None:
    direct = [f"{1e3 * LIMITS[f'k={k}; {GENOME}', 'time']:.1f}" for k in (3, 6, 9, 12, 15, 31)]
    told = f"{direct[0]} ms for k = 3, {direct[1]} for 6, {direct[2]} for 9, {direct[3]} for 12"
    hashed = f"{direct[4]} for 15 and {direct[5]} for 31"
    assert f"(records: `nvidia-h200-tree-bitmap`): {told}, where the hash table takes {hashed}" in DECISIONS
    shuffle = [f"k={k}; length=100000; seed_length=10000; kernel=shuffle" for k in (3, 15)]
    least, most = (1e3 * MEDIANS["exact_kernels", "paper", "gpu", 1, own, "kernel"] for own in shuffle)
    assert f"shuffle kernel takes {least:.2f} ms for k = 3 and {most:.2f} for 15" in DECISIONS
    short = 1e3 * LIMITS["k=15; length=100000", "time"]
    assert f"fast tier's kernels take {short:.2f} ms for as short a stream" in DECISIONS


def test_shuffle_over_naive() -> None:
    own = TIMES[(TIMES["item"] == "exact_kernels") & (TIMES["stage"] == "kernel")]
    medians = own.groupby("parameters")["value"].median()
    times = {
        k: [medians[f"k={k}; length=100000; seed_length=10000; kernel={kernel}"] for kernel in ("naive", "shuffle")]
        for k in (3, 6, 9, 12, 15)
    }
    ratios = {k: naive / shuffle for k, (naive, shuffle) in times.items()}
    assert max(ratios, key=ratios.__getitem__) == 15
    assert f"(Figure 36) is {ratios[15]:.0f} at most, of k = 15" in PAGE
    took = [1e3 * shuffle for _, shuffle in times.values()]
    assert re.search(rf"takes {min(took):.2f} to {max(took):.2f} ms here", PAGE)


def test_the_hybrid_beside_the_trie() -> None:
    """Figure 39a: how many times the hybrid is as fast where k-mers are inserted, of seven streams each."""
    own = TIMES[(TIMES["item"] == "structures") & (TIMES["stage"] == "insert")]
    medians = own.groupby("parameters")["value"].median()
    tree, hybrid = (medians[medians.index.str.endswith(f"={name}")] for name in ("tree", "hybrid"))
    ratios = tree.rename(lambda name: name.replace("=tree", "=hybrid")) / hybrid
    by_k = {k: ratios[ratios.index.str.startswith(f"k={k};")] for k in (6, 9, 12)}
    slow = [*by_k[6], *by_k[12]]
    assert max(slow) < 1 and f"({min(slow):.2f} to {max(slow):.2f} times as fast as the trie)" in PAGE
    assert (len(by_k[9]), int((by_k[9] < 1).sum())) == (7, 4) and "for four of seven streams with k = 9" in PAGE
    assert f"for the others up to {max(by_k[9]):.1f} times as fast" in PAGE
