"""Lines below the headings of their queries: however the hits come, and wherever what waits has to wait."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_hits import draw_hits, hits_of, part_of
from warpseed.errors import InputError
from warpseed.output import grouped_lines
from warpseed.output.hits import Hits
from warpseed.output.lines import Format, Group, Line, Name, Number, Text
from warpseed.output.writers import open_writer

LINE: Line = (Text(b" "), Name("contig", "contig", padded=True), Number("start", first=1, width=10), Text(b"\n"))
GROUPS = tuple(
    Group((Text(b">"), Name("query", "query"), Text(mark + b"\n")), (Text(b" " + mark), *LINE)) for mark in (b"+", b"-")
)


def expected(hits: Hits, strands: int = 2) -> str:
    """The lines by plain Python."""
    names, width = hits.query_names.decoded(), max(map(len, hits.contig_names))
    rows: dict[tuple[int, int], list[str]] = {}
    for query, contig, start, _, strand, _ in hits.rows().tolist():
        line = f" {'+-'[strand]} {hits.contig_names[contig]:{width}}{start + 1:10}\n"
        rows.setdefault((query - hits.first_query, strand), []).append(line)
    return "".join(
        f">{names[query] or '.'}{'+-'[strand]}\n" + "".join(rows.get((query, strand), []))
        for query in range(len(names))
        for strand in range(strands)
    )


def in_parts(hits: Hits, draw: random.Random) -> Iterator[Hits]:
    """The same hits, some queries at a time, or a single one in up to five parts, of which some are empty."""
    ends, begin = np.concatenate([[0], np.cumsum(hits.counts)]).tolist(), 0
    while begin < len(hits.counts):
        end = min(begin + draw.choice([1, 1, 2, 7, 50]), len(hits.counts))
        low, high = ends[begin], ends[end]
        inside = sorted(draw.randint(max(low, ends[end - 1]), high) for _ in range(draw.choice([0, 1, 4])))
        for number, (first, last) in enumerate(zip([low, *inside], [*inside, high], strict=True)):
            start = begin if number == 0 else end - 1
            yield replace(part_of(hits, start, end, first, last), continues=number < len(inside))
        begin = end


@pytest.mark.parametrize(("at_once", "held"), [(1 << 17, 1 << 26), (40, 100), (1, 1)])
@pytest.mark.parametrize("threads", [1, 3])
def test_all_parts_give_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, held: int, threads: int
) -> None:
    monkeypatch.setattr(grouped_lines, "_LINES_AT_ONCE", at_once)
    monkeypatch.setattr(grouped_lines, "_HELD", held)
    hits, draw = draw_hits(4, queries=120), random.Random(at_once)
    for number, parts in enumerate([[hits], list(in_parts(hits, draw)), list(in_parts(hits, draw))]):
        path = tmp_path / f"{number}.txt"
        with open_writer(path, Format((), b"first\n", groups=GROUPS), threads=threads) as writer:
            assert writer.line is None
            for part in parts:
                writer.put(part, writer.make(part) if draw.random() < 0.5 else None)
        assert path.read_text() == "first\n" + expected(hits)
        assert writer.totals.hits == len(hits) and writer.totals.queries == len(hits.counts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.txt", "1.txt", "2.txt"]


def test_queries_without_hits_and_a_single_strand(tmp_path: Path) -> None:
    hits = hits_of([(1, 0, 5, 9, 0, 0)], ["a", "b", ""])
    for name, given in (("none.txt", hits_of([], ["a", "b"])), ("one.txt", hits), ("nobody.txt", hits_of([], []))):
        with open_writer(tmp_path / name, Format((), groups=GROUPS[:1])) as writer:
            writer.put(given)
        assert (tmp_path / name).read_text() == expected(given, strands=1)


def test_what_waits_finds_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of what waits is on a full disk: a sentence, and nothing is left."""
    full = Path("/dev/full").open("wb", 0)  # noqa: SIM115 (the writer closes it)
    monkeypatch.setattr(grouped_lines.tempfile, "SpooledTemporaryFile", lambda *_, **__: full)
    hits = hits_of([(0, 0, 5, 9, 0, 0), (0, 0, 7, 9, 1, 0)], ["a"])
    with (
        pytest.raises(InputError, match="cannot be written .No space left on device.; free some space"),
        open_writer(tmp_path / "x.txt", Format((), groups=GROUPS)) as writer,
    ):
        writer.put(replace(hits, continues=True))
    assert list(tmp_path.iterdir()) == []


def test_such_lines_are_not_sorted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="x.txt: its lines stand below the names of their queries"):
        open_writer(tmp_path / "x.txt", Format((), groups=GROUPS), sorted=True)
