"""What the tests do where the tools that they compare with are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ["tests/peers/test_bwa.py", "tests/peers/test_bowtie.py::test_version"]


def run_tests(empty: Path, *options: str, **environment: str) -> tuple[int, list[str]]:
    """Exit status and lines of the tests of both peers, on a PATH that has neither."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *TESTS]
    inherited = {name: value for name, value in os.environ.items() if name != "WARPSEED_REQUIRE_PEERS"}
    done = subprocess.run(
        command, cwd=ROOT, env=inherited | {"PATH": str(empty)} | environment, capture_output=True, text=True
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("processes", ["0", "2"])
def test_missing_peers_are_skipped_and_one_line_says_how_to_get_them(tmp_path: Path, processes: str) -> None:
    status, lines = run_tests(tmp_path, "-n", processes)
    assert status == 0
    assert [line for line in lines if "apt-get" in line] == [
        "2 tests that compare with other tools were skipped; to run them: apt-get install bowtie bwa, or the "
        "conda packages of these names (bioconda)."
    ]


def test_missing_peers_fail_where_they_are_required(tmp_path: Path) -> None:
    status, lines = run_tests(tmp_path, WARPSEED_REQUIRE_PEERS="1")
    assert status == 1
    for peer in ("bowtie", "bwa"):
        assert f"{peer} is not installed, and WARPSEED_REQUIRE_PEERS=1" in lines
