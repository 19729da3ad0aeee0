"""Where hits begin, counted while their lines are merged, beside counting every hit in every bin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_up_hits import draw_hits
from warpseed.kmer_seeds.output import LINES
from warpseed.output.density import Density
from warpseed.output.sorted_lines import merge_run_files, open_run_writer


@pytest.mark.parametrize("bins", [1, 7, 500, 10**6])
@pytest.mark.parametrize("number", [0, 1, 2000])
def test_bins_hold_the_hits_that_begin_in_them(number: int, bins: int, tmp_path: Path) -> None:
    hits = draw_hits(3, queries=400, hits=number)
    files = [tmp_path / f"{part}.runs" for part in range(2)]
    for file, mine in zip(files, ([hits], []), strict=True):
        with open_run_writer(file, LINES["bed"]) as writer:
            for batch in mine:
                writer.put(batch)
    density = Density(hits.contig_names, hits.contig_lengths, bins)
    merge_run_files(files, tmp_path / "h.bed", memory=20_000, threads=3, density=density)

    lengths = hits.contig_lengths
    for contig, length in enumerate(lengths.tolist()):
        mine = density.contig == contig
        edges = np.append(density.start[mine], length)
        assert edges[0] == 0
        assert np.array_equal(edges[1:], density.end[mine])
    assert len(density.start) <= bins + len(lengths)
    assert len(set((density.end - density.start)[density.end < lengths[density.contig]].tolist())) <= 1
    for i in range(0, len(density.start), max(1, len(density.start) // 50)):
        begin = (hits.contig == density.contig[i]) & (density.start[i] <= hits.start) & (hits.start < density.end[i])
        assert (density.plus[i], density.minus[i]) == tuple(
            np.sum(begin & (hits.strand == strand)) for strand in (0, 1)
        )
    assert density.plus.sum() + density.minus.sum() == number

    density.write(tmp_path / "d.tsv")
    lines = (tmp_path / "d.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["contig", "start", "end", "plus", "minus"]
    assert len(lines) == 1 + len(density.start)
    assert lines[-1].split("\t")[:3] == [hits.contig_names[-1], str(density.start[-1]), str(lengths[-1])]
