"""Fixtures of the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import warpseed
from command_line import CONTIGS, QUERIES, fasta, save
from warpseed import cli


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an index of CONTIGS."""
    folder = tmp_path_factory.mktemp("index")
    genome = save(folder, "genome.fa", fasta(CONTIGS))
    assert cli.main(["index", genome, "-o", str(folder / "index"), "--parts", "fast,paper"]) == 0
    return str(folder / "index")


@pytest.fixture
def kmers(tmp_path: Path) -> str:
    """The path of a FASTA file of QUERIES."""
    return save(tmp_path, "kmers.fa", fasta(QUERIES))


@pytest.fixture
def refused(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., str]:
    """A function that runs a command which must fail, leaving nothing behind; returns its sentence."""

    def run(*arguments: str) -> str:
        capsysbinary.readouterr()
        before = sorted(tmp_path.rglob("*"))
        status = cli.main(arguments)
        out, err = capsysbinary.readouterr()
        assert status == 1
        assert out == b""
        assert sorted(tmp_path.rglob("*")) == before
        lines = err.decode().splitlines()
        assert [line.split(":")[0] for line in lines] == [f"warpseed {warpseed.__version__}", "Error"]
        return lines[-1].removeprefix("Error: ")

    return run
