"""What hits add up to, also where a query's hits come in several batches; and the summary of a sample."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path

import pandas as pd
import pytest
from made_up_hits import batches_of, draw_hits
from warpseed import build_index
from warpseed.kmer_seeds import iter_kmer_hits
from warpseed.output.totals import Totals, write_summary


@pytest.mark.parametrize("sizes", [[1000], [1], [0], [3, 0, 0, 8]])
def test_queries_are_counted_once_however_their_hits_come(sizes: list[int]) -> None:
    hits = draw_hits(4, queries=900, hits=1500)
    counts = Counter(hits.query.tolist())
    totals = Totals()
    for batch in batches_of(hits, cycle(sizes)):
        totals.add(batch)
    unique = sum(count == 1 for count in counts.values())
    assert totals.numbers() == {
        "queries": 900,
        "found": len(counts),
        "unique": unique,
        "multiple": len(counts) - unique,
        "not_found": 900 - len(counts),
        "dropped_queries": 0,
        "hits": 1500,
        "dropped_hits": 0,
    }
    assert 0 < unique < len(counts) < 900


def test_what_is_dropped_is_not_what_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "g.fa").write_text(">c\n" + "A" * 50 + "CGTTGCA\n")
    index = build_index(tmp_path / "g.fa")
    totals = Totals()
    for batch in iter_kmer_hits(index, ["AAAA", "CGTTGCA", "GGGG", "CCCCC"], max_hits=2):
        totals.add(batch)
    assert (totals.queries, totals.found, totals.unique, totals.not_found) == (4, 1, 1, 2)
    assert (totals.dropped_queries, totals.dropped_hits) == (1, 3)
    twice = Totals.sum([totals, totals]).numbers()
    assert twice == {name: 2 * number for name, number in totals.numbers().items()}
    write_summary(tmp_path / "s.tsv", totals, {"sample": "mine"})
    frame = pd.read_csv(tmp_path / "s.tsv", sep="\t")
    assert frame.to_dict("records") == [{"sample": "mine", **totals.numbers()}]
