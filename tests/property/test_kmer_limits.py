"""K-mers with max_hits - 1, max_hits and max_hits + 1 hits, whose rows fill the list of candidates or cross its end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from warpseed import build_index
from warpseed.kmer_seeds import cpu
from warpseed.kmer_seeds.kmers import pack_kmers
from warpseed.sequences.queries import Queries


def changed(draw: random.Random, bases: str, rate: float) -> str:
    return "".join(draw.choice("ACGT") if draw.random() < rate else base for base in bases)


@pytest.mark.parametrize("mismatches", [0, 1, 2, 3])
@pytest.mark.parametrize("copies, lengths", [(127, [12, 20]), (1030, [8, 17]), (2100, [20, 33]), (513, [40])])
def test_what_is_kept_is_what_a_search_without_limit_finds_of_few(
    write_reference: Callable[..., Path], mismatches: int, copies: int, lengths: list[int]
) -> None:
    draw = random.Random(f"{mismatches} {copies}")
    unit = "".join(draw.choices("ACGT", k=45))
    text = "".join(changed(draw, unit, 0.01) + "".join(draw.choices("ACGT", k=3)) for _ in range(copies))
    # Contigs end inside copies.
    borders = [0, *sorted(draw.sample(range(1, len(text)), 30)), len(text)]
    contigs = [text[first:last] for first, last in zip(borders, borders[1:], strict=False)]
    index = build_index(write_reference(contigs), table_length=draw.choice([5, 8]))
    kmers = []
    for i in range(30):
        k = lengths[i % len(lengths)]
        first = draw.randrange(len(text) - k)
        kmers.append(changed(draw, text[first : first + k], 0.02))
    kmers += [unit[: lengths[0]], "N" + unit[1 : lengths[0]], *kmers[:6]]
    packed = pack_kmers(Queries.from_sequences(kmers), 0)
    whole = cpu.find_fast(index, packed, mismatches)
    owners = np.repeat(np.arange(len(kmers)), whole.counts)
    most = int(whole.counts.max())
    assert most > 0.3 * copies
    limits = {most - 1, most, most + 1, *(int(draw.choice(whole.counts)) + step for step in (-1, 0, 1))}
    for limit in {1, 127, 128, 1023, 1024, 1025, 1 << 62, np.iinfo(np.int64).max, *limits} - {-1, 0}:
        kept = whole.counts <= limit
        expected = whole.hits[kept[owners]]
        for threads, count_only in ((1, False), (2, False), (1, True)):
            options = {"threads": threads, "count_only": count_only}
            found = cpu.find_fast(index, packed, mismatches, max_hits=limit, **options)
            assert found.counts.tolist() == np.where(kept, whole.counts, 0).tolist()
            assert count_only or np.array_equal(found.hits, expected)
            dropped = int((~kept).sum())
            assert (found.dropped_queries, found.dropped_hits) == (dropped, dropped * (limit + 1))
