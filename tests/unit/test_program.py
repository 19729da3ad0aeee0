"""Signals: what they interrupt is ended, wherever they meet it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType

import pytest
import warpseed
from warpseed.compute.temporary import temporary_name
from warpseed.ebwt.output import TRANSFORM, WORDS, open_all
from warpseed.fm_index.manifest import MANIFEST
from warpseed.fm_index.target import written_whole
from warpseed.workflow.program import Stopped, stop_behind

_BEGINNING = """
import os, signal, sys, time
from warpseed.fm_index.manifest import MANIFEST
from warpseed.fm_index.target import written_whole
from warpseed.workflow.program import leave_nothing_behind, stop_behind, stop_on_signals

def interrupt():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):  # (here it is raised)
        pass

class Thing:
    def __del__(self):
        interrupt()

stop_on_signals()
try:
"""
_ENDING = """
except BaseException as error:
    print(type(error).__name__, stop_behind(error).status)
leave_nothing_behind()
"""


def _said_by(block: str) -> tuple[str, str]:
    """Standard output and error of a program with this block, in which `interrupt()` sends a signal."""
    indented = "".join(f"    {line}\n" for line in block.strip().splitlines())
    library = str(Path(warpseed.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"{_BEGINNING}{indented}{_ENDING}"],
        env=os.environ | {"PYTHONPATH": library},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "block",
    [
        "thing = Thing()\ndel thing\nwhile True:\n    pass",
        "thing = Thing()\ndel thing\ntime.sleep(50)",
        "try:\n    interrupt()\nexcept BaseException:\n    pass\ntime.sleep(50)",
    ],
    ids=["in a destructor", "before a wait", "and caught"],
)
def test_a_signal_that_was_swallowed_comes_again(block: str) -> None:
    said, error = _said_by(block)
    assert said == f"Stopped {128 + signal.SIGTERM}\n"
    assert error == "Stopping after SIGTERM.\n"


def test_what_is_being_ended_is_not_interrupted() -> None:
    block = """
try:
    interrupt()
finally:
    time.sleep(1)
    print("ended")
"""
    assert _said_by(block)[0] == f"ended\nStopped {128 + signal.SIGTERM}\n"


def test_other_exceptions_that_nobody_takes_are_said() -> None:
    block = "class Bad:\n    def __del__(self):\n        raise KeyError('this one')\nbad = Bad()\ndel bad\ninterrupt()"
    assert "KeyError: 'this one'" in _said_by(block)[1]


class _Interrupting:
    """A profiler that raises `Stopped` at the n-th place where Python may look for signals."""

    def __init__(self, place: int) -> None:
        self.left = place

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return"):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                raise Stopped(signal.SIGTERM)


def _interrupted(act: Callable[[], None]) -> Iterator[int]:
    """Do something again and again, interrupted at one place after the other; yields the place after each time, and
    ends when there are no more. One time in some, Python swallows it."""
    for place in count(1):
        interrupting = _Interrupting(place)
        try:
            sys.setprofile(interrupting)
            try:
                act()
            finally:
                sys.setprofile(None)
        except BaseException as error:
            if interrupting.left > 0:
                raise
            stop_behind(error)
        if interrupting.left > 0:
            return
        yield place


def _write_two(folder: Path) -> None:
    with open_all(str(folder / "out"), [TRANSFORM, WORDS], str(folder.parent)) as streams:
        streams[WORDS].write(b"words")


def _write_index(folder: Path) -> None:
    with written_whole(folder, 100) as number:
        writing = os.open(MANIFEST, os.O_CREAT | os.O_WRONLY, dir_fd=number)
        os.write(writing, b'{"format": 1, "warpseed": "1"}')
        os.close(writing)


_WRITERS = pytest.mark.parametrize(
    ("write", "written"),
    [(_write_two, {f"out.{TRANSFORM}", f"out.{WORDS}"}), (_write_index, {MANIFEST})],
    ids=["files", "index"],
)


def _lying_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


@_WRITERS
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # (what Python swallows)
def test_wherever_it_is_interrupted_nothing_new_is_left(
    tmp_path: Path, write: Callable[[Path], None], written: set[str]
) -> None:
    """No file, or some that have their names. (An empty folder stays where it comes between a generator and `with`.)"""
    write(tmp_path / "before")  # (what is imported or cached by the first one)
    shutil.rmtree(tmp_path / "before")
    folder, seen = tmp_path / "new" / "deep", set()
    for place in _interrupted(lambda: write(folder)):
        left = _lying_in(tmp_path)
        assert left <= {"new", "deep"} | written, place
        seen.add(len(left))
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
    assert seen >= {0, 2 + len(written)}


@_WRITERS
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_wherever_it_is_interrupted_something_whole_is_there(
    tmp_path: Path, write: Callable[[Path], None], written: set[str]
) -> None:
    """What was there, or what took its place, and nothing beside it."""
    write(tmp_path / "folder")
    places = 0
    for place in _interrupted(lambda: write(tmp_path / "folder")):
        assert _lying_in(tmp_path) == {"folder"} | written, place
        places += 1
    assert places > 500


def test_an_index_that_stepped_aside_for_a_killed_process_goes(tmp_path: Path) -> None:
    _write_index(tmp_path / "index")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    aside = temporary_name(tmp_path / "index").replace(f"-{os.getpid()}-", f"-{gone.pid}-") + ".old"
    shutil.copytree(tmp_path / "index", tmp_path / aside)
    _write_index(tmp_path / "index")
    assert _lying_in(tmp_path) == {"index", MANIFEST}
