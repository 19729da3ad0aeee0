"""Jobs that ask for GPUs get each its own, as long as there are enough."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import warpseed

SCRIPTS = Path(warpseed.__file__).resolve().parents[1]
JOB = """
import os, sys
from warpseed.workflow.cards import claim_cards
taken = claim_cards(int(sys.argv[1]))
print(",".join(taken), os.environ.get("CUDA_VISIBLE_DEVICES", "unset"), flush=True)
sys.stdin.read()
"""
LISTED = "".join(f"GPU {n}: NVIDIA H200 (UUID: GPU-{n}ab-c{n})\\n" for n in range(3))
Start = Callable[..., str]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a job which holds its cards until the test ends; returns what it said."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{LISTED}'\n")
    program.chmod(0o755)
    with ExitStack() as stack:

        def run(count: int, **variables: str) -> str:
            environment = {
                "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(SCRIPTS), "TMPDIR": str(tmp_path),
                **variables,
            }  # fmt: skip
            job = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", JOB, str(count)],
                    env=environment,
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )  # fmt: skip
            )
            assert job.stdout is not None
            return job.stdout.readline().strip("\n")

        yield run


def test_each_job_has_its_own(start: Start) -> None:
    assert start(1) == "GPU-0ab-c0 GPU-0ab-c0"
    assert start(2) == "GPU-1ab-c1,GPU-2ab-c2 GPU-1ab-c1,GPU-2ab-c2"
    assert start(1) == "GPU-0ab-c0 GPU-0ab-c0"  # all are taken: the first is shared


def test_those_that_a_scheduler_made_visible_are_taken(start: Start) -> None:
    assert start(1, CUDA_VISIBLE_DEVICES="5,7") == "5 5"
    assert start(1, CUDA_VISIBLE_DEVICES="5, 7") == "7 7"
    assert start(4, CUDA_VISIBLE_DEVICES="7,8") == "8,7 8,7"


def test_one_card_or_none_is_left_as_it_is(start: Start) -> None:
    assert start(0) == " unset"
    assert start(1, CUDA_VISIBLE_DEVICES="3") == " 3"
    assert start(1, CUDA_VISIBLE_DEVICES="") == " "


def test_without_locks_the_first_are_shared(start: Start, tmp_path: Path) -> None:
    """Such as where the folder is a file, or another user's."""
    (tmp_path / f"warpseed-cards-{os.getuid()}").write_text("")
    assert [start(2), start(1)] == ["GPU-0ab-c0,GPU-1ab-c1 GPU-0ab-c0,GPU-1ab-c1", "GPU-0ab-c0 GPU-0ab-c0"]


def test_a_machine_without_cards(start: Start, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").unlink()
    assert start(1) == " unset"


def test_a_card_is_free_when_its_job_has_ended(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(SCRIPTS), "TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", JOB, "1"], env=environment, text=True, input="", capture_output=True, check=True
        )
        assert done.stdout == "0 0\n"
