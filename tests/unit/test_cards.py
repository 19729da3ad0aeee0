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
from fake_cards import UUIDS, install_nvidia_smi
from warpseed.compute.machine import card_uuids

SCRIPTS = Path(warpseed.__file__).resolve().parents[1]
JOB = """
import os, sys
from warpseed.workflow.cards import claim_cards
taken = claim_cards(int(sys.argv[1]))
print(",".join(taken), os.environ.get("CUDA_VISIBLE_DEVICES", "unset"), flush=True)
sys.stdin.read()
"""
Start = Callable[..., str]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a job which holds its cards until the test ends; returns what it said."""
    install_nvidia_smi(tmp_path)
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


@pytest.mark.parametrize(
    ("visible", "count", "uuids"),
    [
        (None, 0, []),
        (None, 2, UUIDS[:2]),
        (None, 5, [*UUIDS, "unknown", "unknown"]),
        ("2,0", 1, [UUIDS[2]]),
        ("2, 0", 2, [UUIDS[2], UUIDS[0]]),
        ("7", 1, ["unknown"]),
        ("GPU-1", 1, [UUIDS[1]]),
        ("GPU-9ab-c9", 1, ["unknown"]),
        ("", 1, ["unknown"]),
    ],
)
def test_cards_of_a_job_by_their_uuids(
    visible: str | None, count: int, uuids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of those that CUDA shows, also where there is one alone, which nobody claims."""
    install_nvidia_smi(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert card_uuids(count) == uuids


def test_a_part_of_a_card_has_a_uuid_and_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = r"GPU 0: A (UUID: GPU-a)\n  MIG 1g.10gb Device 0: (UUID: MIG-b)\nGPU 1: A (UUID: GPU-c)\n"
    install_nvidia_smi(tmp_path).write_text(f"#!/bin/sh\nprintf '{listed}'\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for visible, uuid in (("1", "GPU-c"), ("MIG-b", "MIG-b")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert card_uuids(1) == [uuid]


def test_cards_of_a_job_on_the_cpu_are_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(tmp_path).write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert card_uuids(0) == [] and not (tmp_path / "asked").exists()
    assert card_uuids(1) == ["unknown"] and (tmp_path / "asked").exists()


def test_a_job_that_claimed_a_card_tells_its_uuid(tmp_path: Path) -> None:
    install_nvidia_smi(tmp_path)
    job = "from warpseed.workflow.cards import claim_cards; from warpseed.compute.machine import card_uuids; "
    job += "print(claim_cards(2), card_uuids(1), card_uuids(2))"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(SCRIPTS), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", job], env=environment, text=True, capture_output=True, check=True)
    assert done.stdout == f"{UUIDS[:2]} {UUIDS[:1]} {UUIDS[:2]}\n"
