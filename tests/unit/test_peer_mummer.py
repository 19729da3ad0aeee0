"""What is measured where MUMmer 3's mummer is installed, or MUMmer 4's, or both: programs that do as these do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from warpseed import build_index, find_mems
from warpseed.errors import PeerError
from warpseed.measure.peers.matches import PEER_MATCH
from warpseed.measure.peers.mummer import PROGRAMS, mummer_version, parse_mummer, run_mummer

CONTIG = "GGAATCGTCCGCATCGGGGTCTGGGCTGTCACAGCCATTAA"
READS = [
    "ACCATTGGAATCGTCCGCATCGGGGTCTGGGT",
    "GGGATGTCCTGTGCCGCAATCTTGAAGTCATTCCAGATATTGCTTTAACCTACCAGAACTTGTACTCCTTACATTTTGAGACGTTGAGAAAGAAGGGCCTTAATGGCTGTGACAGCCC"
    "AGACCCCGATGCGGACGATTCC",
]
PRINTED = """> 0
  chr1         1         7        25
> 0 Reverse
> 1
> 1 Reverse
  chr1         1         1        41
"""
"""Of matches of 20 bases or more, without -c. The second read is that of MUMmer 4's issue 76."""

PROGRAM = """#!{python}
import os, sys
options, files = sys.argv[1:-2], sys.argv[-2:]
if sys.argv[1:] == ["--version"]:
    print({said!r})
    sys.exit({status})
threads = ["-qthreads", "1"] if {version!r} == "4" else []
assert options == ["-maxmatch", "-b", "-n", "-F", "-l", "20", *threads]
if not os.path.exists(files[0]):
    sys.exit({missing!r})
assert all(open(name).read(1) == ">" for name in files)
print({printed!r}, end="")
"""
SAID = {"3": ('mummer: illegal option "--version"', 1), "4": ("4.0.1", 0)}
MISSING = {"3": 'mummer: cannot open file "g.fa" or file "g.fa" is empty', "4": "unable to open g.fa"}


class Installed(NamedTuple):
    """A mummer on PATH."""

    program: str
    version: str


@pytest.fixture(params=[Installed("mummer", "3"), Installed("mummer", "4"), Installed("mummer4", "4")], ids="-".join)
def made_up(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """A program that does as the mummer of that version is installed by that name."""
    name, version = request.param
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    said, status = SAID[version]
    fields = {"python": sys.executable, "version": version, "printed": PRINTED, "missing": MISSING[version]}
    program.write_text(PROGRAM.format(said=said, status=status, **fields))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return Installed(name, version)


def found_by(program: str, folder: Path) -> np.ndarray:
    """The matches of the reads with the contig, held to ours."""
    genome, reads, output = folder / "g.fa", folder / "r.fa", folder / "out"
    genome.write_text(f">chr1\n{CONTIG}\n")
    reads.write_text("".join(f">{number}\n{read}\n" for number, read in enumerate(READS)))
    run_mummer(genome, reads, min_length=20, output=output, program=program)
    theirs = parse_mummer(output, ["chr1"], np.array([len(read) for read in READS]))
    found = find_mems(build_index(genome), READS, kind="maximal", min_length=20).rows()
    ours = zip(*(found[name].tolist() for name in PEER_MATCH.names or ()), strict=True)
    assert theirs.tolist() == sorted(ours) and len(theirs) == 2
    assert output.read_text() == PRINTED


def test_its_matches_are_ours_on_one_thread(made_up: Installed, tmp_path: Path) -> None:
    """Hit by hit: both versions tell places of the reverse complement, and only version 4 is told of threads."""
    assert mummer_version(made_up.program) == {"3": "3", "4": "4.0.1"}[made_up.version]
    found_by(made_up.program, tmp_path)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_installed_does_as_the_made_up_ones(program: str, tmp_path: Path) -> None:
    version = mummer_version(program)
    if version is None:
        pytest.skip(f"no {program} is installed")
    assert version.startswith("4") or program == "mummer"
    found_by(program, tmp_path)
    with pytest.raises(PeerError, match="ended with status 1 and said: .*(cannot|unable to) open "):
        run_mummer(tmp_path / "none.fa", tmp_path / "r.fa", min_length=20, output=tmp_path / "out", program=program)


def test_what_it_says_of_a_mistake_is_told(made_up: Installed, tmp_path: Path) -> None:
    program, version = made_up
    with pytest.raises(PeerError, match=f"^{program} ended with status 1 and said: {MISSING[version]}"):
        run_mummer(tmp_path / "g.fa", tmp_path / "r.fa", min_length=20, output=tmp_path / "out", program=program)
