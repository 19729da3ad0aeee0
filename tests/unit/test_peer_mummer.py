"""What is measured where the mummer that is installed is MUMmer 3's, or MUMmer 4's: programs that do as these do."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from warpseed import build_index, find_mems
from warpseed.errors import PeerError
from warpseed.measure.peers.matches import PEER_MATCH
from warpseed.measure.peers.mummer import mummer_version, parse_mummer, run_mummer

CONTIG = "GGAATCGTCCGCATCGGGGTCTGGGCTGTCACAGCCATTAA"
READS = [
    "ACCATTGGAATCGTCCGCATCGGGGTCTGGGT",
    "GGGATGTCCTGTGCCGCAATCTTGAAGTCATTCCAGATATTGCTTTAACCTACCAGAACTTGTACTCCTTACATTTTGAGACGTTGAGAAAGAAGGGCCTTAATGGCTGTGACAGCCC"
    "AGACCCCGATGCGGACGATTCC",
]
PRINTED = """> 0
  chr1        1         7        25
> 0 Reverse
> 1
> 1 Reverse
  chr1        1         1        41
"""
"""Of matches of 20 bases or more, without -c. The second read is that of MUMmer 4's issue 76."""

PROGRAM = """#!{python}
import sys
options, files = sys.argv[1:-2], sys.argv[-2:]
if sys.argv[1:] == ["--version"]:
    print({said!r})
    sys.exit({status})
threads = ["-qthreads", "1"] if {version!r} == "4" else []
if options != ["-maxmatch", "-b", "-n", "-F", "-l", "20", *threads]:
    sys.exit("mummer: illegal option in " + str(options))
assert all(open(name).read(1) == ">" for name in files)
print({printed!r}, end="")
"""
SAID = {"3": ('mummer: illegal option "--version"', 1), "4": ("4.0.1", 0)}


@pytest.fixture(params=["3", "4"])
def version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A mummer of that version is the one that is installed."""
    program = tmp_path / "bin" / "mummer"
    program.parent.mkdir()
    said, status = SAID[request.param]
    fields = {"python": sys.executable, "version": request.param, "printed": PRINTED}
    program.write_text(PROGRAM.format(said=said, status=status, **fields))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return str(request.param)


def test_its_matches_are_ours_on_one_thread(version: str, tmp_path: Path) -> None:
    """Hit by hit: both versions tell places of the reverse complement, and only version 4 is told of threads."""
    assert mummer_version() == {"3": "3", "4": "4.0.1"}[version]
    genome, reads, output = tmp_path / "g.fa", tmp_path / "r.fa", tmp_path / "out"
    genome.write_text(f">chr1\n{CONTIG}\n")
    reads.write_text("".join(f">{number}\n{read}\n" for number, read in enumerate(READS)))
    run_mummer(genome, reads, min_length=20, output=output)
    theirs = parse_mummer(output, ["chr1"], np.array([len(read) for read in READS]))
    found = find_mems(build_index(genome), READS, kind="maximal", min_length=20).rows()
    ours = zip(*(found[name].tolist() for name in PEER_MATCH.names or ()), strict=True)
    assert theirs.tolist() == sorted(ours) and len(theirs) == 2


def test_what_it_says_of_a_mistake_is_told(version: str, tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="mummer ended with status 1 and said: mummer: illegal option in"):
        run_mummer(tmp_path / "g.fa", tmp_path / "r.fa", min_length=19, output=tmp_path / "out")
