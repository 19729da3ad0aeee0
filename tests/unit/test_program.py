"""Signals: what they interrupt is ended, wherever they meet it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest
import warpseed
from interruptions import interrupted
from warpseed.compute.temporary import temporary_name
from warpseed.ebwt.output import TRANSFORM, WORDS, open_all
from warpseed.fm_index.manifest import MANIFEST
from warpseed.fm_index.target import written_whole
from warpseed.workflow.program import stop_behind

_BEGINNING = """
import os, signal, sys, time
from functools import partial
from warpseed.compute.waits import wait_for_all
from warpseed.workflow.program import end_of_stop, end_of_work, leave_nothing_behind, stop_behind, stop_on_signals

print = partial(print, flush=True)  # (what waits in standard output goes nowhere after a signal)

def interrupt():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):  # (here it is raised)
        pass

class Thing:
    def __del__(self):
        interrupt()

def swallowed():
    thing = Thing()
    del thing

stop_on_signals()
try:
"""
_ENDING = """
    end_of_work()
except BaseException as error:
    stopped = stop_behind(error)
    end_of_stop(error)
    print(type(error).__name__, stopped.status, *signal.getitimer(signal.ITIMER_REAL))
leave_nothing_behind()
"""
STOPPED = f"Stopped {128 + signal.SIGTERM} 0.0 0.0\n"


def _said_by(block: str, stderr: int = subprocess.PIPE) -> tuple[str, str]:
    """Standard output and error of a program with this block, in which `interrupt()` sends a signal."""
    indented = "".join(f"    {line}\n" for line in block.strip().splitlines())
    library = str(Path(warpseed.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"{_BEGINNING}{indented}{_ENDING}"],
        env=os.environ | {"PYTHONPATH": library},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "block",
    [
        "swallowed()\nwhile True:\n    pass",
        "swallowed()\ntime.sleep(50)",
        "try:\n    interrupt()\nexcept BaseException:\n    pass\ntime.sleep(50)",
        "swallowed()",
    ],
    ids=["in a destructor", "before a wait", "and caught", "at the end"],
)
def test_a_signal_that_was_swallowed_comes_again(block: str) -> None:
    assert _said_by(block) == (STOPPED, "Stopping after SIGTERM.\n")


def test_what_is_being_ended_is_notinterrupted() -> None:
    block = """
try:
    interrupt()
finally:
    time.sleep(1)
    print("ended")
"""
    assert _said_by(block)[0] == f"ended\n{STOPPED}"


def test_a_second_signal_changes_nothing() -> None:
    block = (
        "try:\n    interrupt()\nfinally:\n    interrupt()\n    os.kill(os.getpid(), signal.SIGINT)\n    print('ended')"
    )
    assert _said_by(block) == (f"ended\n{STOPPED}", "Stopping after SIGTERM.\n")


def test_nobody_waits_for_who_reads_nothing_of_standard_error() -> None:
    """Neither what is said of the signal does, nor what is said on the way out."""
    block = """
import threading
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
try:
    while True:
        print("how far it is", file=sys.stderr)
finally:
    for _ in range(1000):
        print("what it took", file=sys.stderr)
"""
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing):
        assert _said_by(block, stderr=writing)[0] == STOPPED


def test_what_comes_from_a_signal() -> None:
    stopped = stop_behind(KeyboardInterrupt())
    assert stopped is not None and stopped.status == 128 + signal.SIGINT
    assert stop_behind(ValueError()) is None


def test_what_is_waited_for_is_not_left() -> None:
    """A signal that was swallowed comes again while others are at work, which the program waits for."""
    block = """
def wait():
    for _ in range(5):
        time.sleep(0.1)
    print("done")
swallowed()
wait_for_all([wait] * 3)
"""
    assert _said_by(block)[0] == f"done\ndone\ndone\n{STOPPED}"


def test_what_functions_held_goes_before_the_end() -> None:
    """Also where another exception took the place of `Stopped`."""
    block = """
def writing():
    try:
        yield
    finally:
        print("removed")
def write():
    held = writing()
    next(held)
    interrupt()
try:
    write()
except BaseException:
    raise ValueError
"""
    assert _said_by(block)[0] == f"removed\n{STOPPED.replace('Stopped', 'ValueError')}"


def test_nothing_comes_behind_the_end() -> None:
    block = "swallowed()\nleave_nothing_behind()\ntime.sleep(0.5)\ninterrupt()\nos.write(2, b'whole')\nos._exit(0)"
    assert _said_by(block)[1] == "Stopping after SIGTERM.\nwhole"


def test_other_exceptions_that_nobody_takes_are_said() -> None:
    """By what said them before."""
    block = """
import warpseed.workflow.program as program
sys.unraisablehook = lambda ignored: print(repr(ignored.exc_value))
stop_on_signals()
class Bad:
    def __del__(self):
        raise KeyError("this one")
bad = Bad()
del bad
swallowed()
"""
    assert _said_by(block) == (f"KeyError('this one')\n{STOPPED}", "Stopping after SIGTERM.\n")


def _write_two(folder: Path, content: str = "1") -> None:
    with open_all(str(folder / "out"), [TRANSFORM, WORDS], str(folder.parent)) as streams:
        for stream in streams.values():
            stream.write(content.encode())


def _write_index(folder: Path, content: str = "1") -> None:
    with written_whole(folder, 100) as number:
        writing = os.open(MANIFEST, os.O_CREAT | os.O_WRONLY, dir_fd=number)
        os.write(writing, json.dumps({"format": content, "warpseed": content}).encode())
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
    """No file, or some that have their names; and no folder that is empty."""
    write(tmp_path / "before")  # (what is imported or cached by the first one)
    shutil.rmtree(tmp_path / "before")
    folder, seen = tmp_path / "new" / "deep", set()
    for place in interrupted(lambda: write(folder)):
        left = _lying_in(tmp_path)
        assert left <= {"new", "deep"} | written and (not left or left & written), place
        seen.add(len(left))
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
    assert seen >= {0, 2 + len(written)}


@_WRITERS
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_wherever_it_is_interrupted_something_whole_is_there(
    tmp_path: Path, write: Callable[[Path, str], None], written: set[str]
) -> None:
    """What was there, or what took its place, and nothing beside it."""
    folder = tmp_path / "folder"
    wholes = []
    for content in ("1", "22"):
        write(folder, content)
        wholes.append({name: (folder / name).read_text() for name in written})
    turns, seen = cycle(["1", "22"]), set()
    for place in interrupted(lambda: write(folder, next(turns))):
        assert _lying_in(tmp_path) == {"folder"} | written, place
        now = {name: (folder / name).read_text() for name in written}
        assert all(now[name] in [whole[name] for whole in wholes] for name in written), place
        seen.update(now.values())
    assert len(seen) == 2


_LINES = """
import sys
sys.path[:0] = sys.argv[1:]
from interruptions import interrupted
from warpseed.compute.pipeline import Ahead, behind, fed, mapped
from warpseed.sequences.pieces import _ahead

def items():
    yield from range(6)

def handed_over():
    with behind(lambda item: None, 2) as put:
        for item in range(5):
            put(item)

def submitted():
    with Ahead(2) as ahead:
        for item in range(6):
            ahead.submit(abs, item)
            list(ahead.taken())
        list(ahead.taken(everything=True))

def read_ahead():
    with _ahead(items(), lambda: None) as read:
        list(read)

acts = [handed_over, submitted, read_ahead]
acts += [lambda: list(mapped(items(), abs, 2)), lambda: list(fed(items(), abs, 2))]
for act in acts:
    for _ in range(3):  # (threads are there before and behind: not all runs are alike)
        print(len(list(interrupted(act))), flush=True)
"""


def test_wherever_it_is_interrupted_threads_that_work_for_it_end() -> None:
    library, here = str(Path(warpseed.__file__).parents[1]), Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", _LINES, str(here)],
        env=os.environ | {"PYTHONPATH": library},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    places = [int(line) for line in done.stdout.split()]
    assert len(places) == 15 and min(places) > 50


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_wherever_it_is_interrupted_a_folder_that_stays_has_a_whole_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the working folder does, into which files go one by one."""
    monkeypatch.chdir(tmp_path)
    _write_index(tmp_path)
    turns, seen = cycle(["1", "22"]), set()
    for place in interrupted(lambda: _write_index(Path(), next(turns))):
        assert _lying_in(tmp_path) == {MANIFEST}, place
        seen.add((tmp_path / MANIFEST).read_text())
    assert len(seen) == 2


@pytest.mark.parametrize("is_there", [True, False], ids=["beside another", "in the moment that none is there"])
def test_an_index_that_stepped_aside_for_a_killed_process_goes(tmp_path: Path, is_there: bool) -> None:
    _write_index(tmp_path / "index")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    aside = temporary_name(tmp_path / "index").replace(f"-{os.getpid()}-", f"-{gone.pid}-") + ".old"
    (tmp_path / "index").rename(tmp_path / aside)
    if is_there:
        shutil.copytree(tmp_path / aside, tmp_path / "index")
    _write_index(tmp_path / "index")
    assert _lying_in(tmp_path) == {"index", MANIFEST}
