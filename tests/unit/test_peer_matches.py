"""What mummer and bwa fastmap print for reads, parsed to rows, and held to ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from warpseed.errors import PeerError
from warpseed.measure.peers.bwa import parse_fastmap
from warpseed.measure.peers.matches import PEER_MATCH
from warpseed.measure.peers.mummer import parse_mummer
from warpseed.measure.peers.process import run_process
from warpseed.mems.peers import matches_in_common

CONTIGS = ["chr1", "chr:2"]
LENGTHS = np.array([100, 100, 100])

MUMMER = """> 0
  chr:2      11         1        20
  chr1      101        31        25
> 0 Reverse
  chr1        5         1        30
> 1
> 1 Reverse
> 2
"""
FASTMAP = """SQ\t0\t100
EM\t30\t55\t2\tchr1:+101\tchr:2:-7
//
SQ\t1\t100
//
SQ\t2\t100
EM\t0\t20\t1\tchr1:-1
//
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "matches.txt"
    path.write_text(text)
    return path


def test_mummer(tmp_path: Path) -> None:
    """Places are counted from 1, on the other strand in the reverse complement of the read."""
    rows = parse_mummer(write(tmp_path, MUMMER), CONTIGS, LENGTHS)
    assert rows.dtype == PEER_MATCH
    assert rows.tolist() == [(0, 0, 4, 34, 1, 70), (0, 0, 100, 125, 0, 30), (0, 1, 10, 30, 0, 0)]
    assert len(parse_mummer(write(tmp_path, "> 0\n> 0 Reverse\n"), CONTIGS, LENGTHS)) == 0


def test_fastmap(tmp_path: Path) -> None:
    rows = parse_fastmap(write(tmp_path, FASTMAP), CONTIGS, LENGTHS)
    assert rows.tolist() == [(0, 0, 100, 125, 0, 30), (0, 1, 6, 31, 1, 30), (2, 0, 0, 20, 1, 0)]
    assert len(parse_fastmap(write(tmp_path, ""), CONTIGS, LENGTHS)) == 0


@pytest.mark.parametrize(
    "text", ["> 3\n chr1 1 1 20\n", "> 0\n chr9 1 1 20\n", "> 0\n chr1 1 20\n", "> r\n chr1 1 1 20\n"]
)
def test_a_line_that_is_none_of_mummers_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PeerError, match="matches.txt is not what mummer prints for reads named 0 to 2 on this"):
        parse_mummer(write(tmp_path, text), CONTIGS, LENGTHS)


@pytest.mark.parametrize(
    "line", ["EM\t0\t20\t9\t*", "EM\t0\t20\t1\tchr9:+1", "EM\t0\t20\t1\tchr1:1", "EM\t0", "EM\tx\t20\t1\tchr1:+1"]
)
def test_a_line_that_is_none_of_bwas_is_refused(tmp_path: Path, line: str) -> None:
    """Nor one that tells no places: those of all matches are compared."""
    with pytest.raises(PeerError, match="matches.txt is not what bwa fastmap prints for reads named 0 to 2 on this"):
        parse_fastmap(write(tmp_path, f"SQ\t0\t100\n{line}\n"), CONTIGS, LENGTHS)


def test_matches_are_the_same_where_every_number_is() -> None:
    ours = np.array([(0, 0, 4, 34, 1, 70), (0, 0, 100, 125, 0, 30), (1, 1, 10, 30, 0, 0)], PEER_MATCH)
    assert matches_in_common(ours, ours) == 3
    for field in PEER_MATCH.names or ():
        theirs = ours.copy()
        theirs[field][1] += 1
        assert matches_in_common(theirs, ours) == 2, field
    assert matches_in_common(ours[:0], ours) == matches_in_common(ours, ours[:0]) == 0


def test_what_a_process_prints_goes_to_a_file(tmp_path: Path) -> None:
    output = tmp_path / "said.txt"
    output.write_text("older and longer than what comes")
    run_process(["/bin/echo", "once"], output=output)
    assert output.read_text() == "once\n"
