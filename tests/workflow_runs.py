"""Snakemake runs of this checkout, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = str(ROOT / "config" / "smoke.yaml")


def command(*arguments: str, directory: Path, snakefile: Path = ROOT / "Snakefile") -> list[str]:
    """The command line of a Snakemake run whose results go to `directory`."""
    program = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile)]
    return [*program, "--directory", str(directory), "--nocolor", *arguments]


def snakemake(
    *arguments: str, directory: Path, snakefile: Path = ROOT / "Snakefile", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake; standard error is in `stdout` too."""
    return subprocess.run(
        command(*arguments, directory=directory, snakefile=snakefile),
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
