"""What other tools print for reads, parsed to our rows, and held to ours."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from warpseed.errors import PeerError
from warpseed.measure.beside import new_beside
from warpseed.measure.peers import process
from warpseed.measure.peers.process import parse_hits
from warpseed.measure.peers.razers3 import parse_razers3
from warpseed.measure.peers.sam import parse_sam
from warpseed.one_error.peers import _outcome, error_percent, hits_near
from warpseed.one_error.timing import TSV_HITS
from warpseed.output.rows import HIT_ROW

CONTIGS = ["chr1", "chr 2"]
LENGTHS = np.array([100, 101, 100])

RAZERS = """0	0	100	R	chr1	856894	856994	99
1	0	101	F	chr 2	7	107	99.01
1	0	101	F	chr1	3	104	100
"""
SAM = """@HD	VN:1.4
@SQ	SN:chr1	LN:1000
2	16	chr1	857	23	100M	*	0	0	ACGT	IIII	XT:A:U	NM:i:0	XA:Z:chr1,-858,1S99M,1;chr 2,+4,50M1D50M,1;
0	0	chr 2	11	60	40M1I59M	*	0	0	ACGT	IIII	NM:i:1	RG:Z:none
1	4	*	0	0	*	*	0	0	ACGT	IIII	RG:Z:none
0	256	chr 2	11	60	40M1I59M	*	0	0	*	*	NM:i:1
"""
TSV = """query	contig	start	end	strand	distance	kind	offset
0	chr1	5	105	+	0	=	0
0	chr 2	7	108	-	1	D	12
2	chr1	9	108	+	1	I	99
2	chr1	9	107	+	2	*	0
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "hits.txt"
    path.write_text(text)
    return path


def test_razers3(tmp_path: Path) -> None:
    rows = parse_razers3(write(tmp_path, RAZERS), CONTIGS, LENGTHS)
    assert rows.dtype == HIT_ROW
    assert rows.tolist() == [(0, 0, 856894, 856994, 1, 1), (1, 0, 3, 104, 0, 0), (1, 1, 7, 107, 0, 1)]
    assert len(parse_razers3(write(tmp_path, ""), CONTIGS, LENGTHS)) == 0


def test_sam_with_its_other_alignments(tmp_path: Path) -> None:
    """Places on the reference by CIGAR, clipped bases left out; what stands twice counts once."""
    rows = parse_sam(write(tmp_path, SAM), CONTIGS, 3, "bwa")
    assert rows.tolist() == [
        (0, 1, 10, 109, 0, 1), (2, 0, 856, 956, 1, 0), (2, 0, 857, 956, 1, 1), (2, 1, 3, 104, 0, 1),
    ]  # fmt: skip
    assert len(parse_sam(write(tmp_path, "@HD\tVN:1.4\n"), CONTIGS, 3, "bwa")) == 0


@pytest.mark.parametrize(
    "line",
    [
        "3\t0\tchr1\t1\t9\t4M\t*\t0\t0\tA\tI\tNM:i:0",
        "0\t0\tchr9\t1\t9\t4M\t*\t0\t0\tA\tI\tNM:i:0",
        "0\t0\tchr1",
        "k\t0\tchr1\t1\t9\t4M\t*\t0\t0\tA\tI\tNM:i:0",
    ],
)
def test_a_line_that_is_no_alignment_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(PeerError, match="hits.txt is not what yara_mapper prints for reads named 0 to 2 on this"):
        parse_sam(write(tmp_path, line + "\n"), CONTIGS, 3, "yara_mapper")


def test_our_tsv_is_read_back(tmp_path: Path) -> None:
    rows = parse_hits(write(tmp_path, TSV), TSV_HITS, CONTIGS, LENGTHS)
    assert rows.dtype.names == ("query", "contig", "start", "end", "strand", "distance", "kind", "offset")
    assert rows.tolist() == [(0, 0, 5, 105, 0, 0, 0, 0), (0, 1, 7, 108, 1, 1, 2, 12), (2, 0, 9, 108, 0, 1, 3, 99),
                             (2, 0, 9, 107, 0, 2, 4, 0)]  # fmt: skip
    assert len(parse_hits(write(tmp_path, TSV.splitlines()[0] + "\n"), TSV_HITS, CONTIGS, LENGTHS)) == 0


def hits(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """(query, contig, start, strand) as rows."""
    return np.array([(q, c, start, start + 100, strand, 1) for q, c, start, strand in rows], HIT_ROW)


def test_hits_are_the_same_within_two_bases() -> None:
    ours = hits((0, 0, 10, 0), (0, 0, 500, 1), (1, 1, 0, 0))
    assert hits_near(hits((0, 0, 12, 0), (0, 0, 8, 0), (1, 1, 2, 0)), ours) == 3
    # Another read, contig or strand, or three bases away.
    assert hits_near(hits((1, 0, 10, 0), (0, 1, 10, 0), (0, 0, 10, 1), (0, 0, 13, 0), (0, 0, 7, 0)), ours) == 0
    assert hits_near(ours, hits((0, 0, 12, 0), (0, 0, 8, 0))) == 1
    assert hits_near(ours, hits()) == hits_near(hits(), ours) == 0
    # The end of one contig is not near the start of the next.
    assert hits_near(hits((0, 0, 999, 0)), hits((0, 1, 0, 0))) == 0


def test_what_is_compared_of_each_question(tmp_path: Path) -> None:
    """Of substitutions every hit as long as its read; of edits which reads have a place."""
    rows = parse_hits(write(tmp_path, TSV), TSV_HITS, CONTIGS, LENGTHS)
    same, exact = _outcome("substitutions", rows, LENGTHS), hits((0, 0, 5, 0))
    exact["distance"] = 0
    assert same == _outcome("substitutions", exact, LENGTHS) and (same.queries, same.results) == (3, 1)
    assert _outcome("edits", rows, LENGTHS)[:2] == (3, 2)
    moved, fewer = rows.copy(), rows[:2]
    moved["start"] += 1
    assert _outcome("edits", moved, LENGTHS) == _outcome("edits", rows, LENGTHS) != _outcome("edits", fewer, LENGTHS)
    assert _outcome("substitutions", moved, LENGTHS) != same


def test_edits_in_per_cent() -> None:
    assert error_percent(np.array([100, 150, 199]), 1) == 1 and error_percent(np.array([100, 149]), 2) == 2
    assert error_percent(np.array([50, 60]), 1) == 2
    for shortest, longest, edits in ((100, 200, 1), (30, 150, 1), (100, 150, 2)):
        with pytest.raises(PeerError, match=f"reads of {shortest} to {longest} bases cannot be compared with razers3"):
            error_percent(np.array([shortest, longest]), edits)


@pytest.mark.parametrize("name", ["a.fa.gz", "a.fa"])
def test_a_reference_is_written_as_every_tool_reads_it(name: str, tmp_path: Path) -> None:
    """Plain, with N for letters that not every tool knows, and names as ours are."""
    text = b">RYK u\r\nACGTNacgtn\r\nRYKMSWBDHVU\nryu\n>b>R\nRA\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with new_beside(tmp_path / name, "index") as beside:
        assert Path(beside.reference).read_bytes() == b">RYK\nACGTNACGTN" + b"N" * 14 + b"\n>b>R\nNA\n"
        assert list(beside.contigs) == ["RYK", "b>R"]


def test_a_users_file_named_as_a_module_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where our command line is timed as a process."""
    for name in ("warpseed", "numpy", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')\n")
    monkeypatch.chdir(tmp_path)
    assert process.run_warpseed(["--version"]).peak_bytes > 0
