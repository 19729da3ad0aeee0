"""The command that `make` puts beside the environment's Python: it works from anywhere, and nothing is built for it.

And whose library the jobs of a workflow take.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from warpseed import __version__
from workflow_runs import snakemake

pytestmark = pytest.mark.workflow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a checkout in a folder with a space, with an empty environment around make."""
    checkout = tmp_path_factory.mktemp("a checkout")
    shutil.copy(ROOT / "Makefile", checkout)
    for pins in ROOT.glob("requirements*.txt"):
        shutil.copy(pins, checkout)
    shutil.copytree(ROOT / "workflow" / "scripts", checkout / "workflow" / "scripts")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout / ".venv"], check=True)
    # The packages of requirements.txt, as they are installed for these tests.
    site = next((checkout / ".venv").glob("lib/python*/site-packages"))
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    bare = {"HOME": str(checkout), "PATH": "/usr/bin:/bin"}
    subprocess.run(["make", ".venv/bin/warpseed"], cwd=checkout, env=bare, check=True)
    return checkout / ".venv" / "bin" / "warpseed"


def test_the_command_runs_this_checkout_from_any_folder(command: Path, tmp_path: Path) -> None:
    """Through a link, too, and where a file of the user's has the name of a module."""
    (tmp_path / "warpseed.py").write_text("raise SystemExit('not this one')")
    (tmp_path / "link").symlink_to(command)
    for program in (command, tmp_path / "link"):
        done = subprocess.run([program, "--version"], cwd=tmp_path, env={}, capture_output=True, text=True)
        assert done.stdout.strip() == f"warpseed {__version__}", done.stderr
    python = command.with_name("python")
    shown = subprocess.run([python, "-P", "-c", "import warpseed; print(warpseed.__file__)"], **_quiet(tmp_path))
    checkout = os.path.realpath(command.parents[2])
    assert os.path.realpath(shown.stdout.strip()).startswith(checkout)


def test_the_command_searches(command: Path, tmp_path: Path) -> None:
    bases = "ACGTTGCAAGCTTACGGATCCATGACCTTGACC"
    (tmp_path / "genome.fa").write_text(f">chr\n{bases}\n")
    (tmp_path / "kmers.fa").write_text(f">k\n{bases[5:20]}\n")
    for words in (["index", "genome.fa", "-o", "index"], ["kmers", "index", "kmers.fa", "-o", "hits.bed"]):
        subprocess.run([command, *words], check=True, **_quiet(tmp_path))
    assert (tmp_path / "hits.bed").read_text().split("\n")[0].split("\t") == ["chr", "5", "20", "k", "0", "+"]


def test_jobs_take_the_library_of_this_checkout(tmp_path: Path) -> None:
    """Not one that is installed, or that Python's path names."""
    other = tmp_path / "other" / "warpseed" / "__init__.py"
    other.parent.mkdir(parents=True)
    other.write_text("raise SystemExit('not this one')\n")
    target = "results/reference/simulated.fa"
    done = snakemake(
        target,
        "--configfile",
        str(ROOT / "config" / "smoke.yaml"),
        directory=tmp_path,
        PYTHONPATH=str(other.parents[1]),
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / target).stat().st_size > 0


def _quiet(folder: Path) -> dict[str, object]:
    return {"cwd": folder, "capture_output": True, "text": True}
