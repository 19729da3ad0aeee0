"""What a killed process leaves, and who removes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CONTIGS, fasta, save
from warpseed import cli
from warpseed.compute import temporary
from warpseed.compute.temporary import folder_made, remove_leftovers, temporary_name
from warpseed.sequences.files import atomic_path

LIBRARY = str(Path(cli.__file__).parents[1])


def writing(final: Path) -> subprocess.Popen[bytes]:
    """A process that has begun to write a file, and does not end."""
    script = (
        "import sys, time; from warpseed.sequences.files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as path: path.write_text('half'); print('.', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(final)], env=os.environ | {"PYTHONPATH": LIBRARY}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b".\n"
    return process


def write(final: Path) -> None:
    with atomic_path(final) as path:
        path.write_text("whole")


def test_what_a_killed_process_left_goes_when_the_same_file_is_written(tmp_path: Path) -> None:
    final = tmp_path / "hits.bed"
    with writing(final) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(list(tmp_path.iterdir())) == 1
        write(tmp_path / "other.bed")
        write(tmp_path / "hits.tsv")
        assert len(list(tmp_path.iterdir())) == 3
        write(final)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hits.bed", "hits.tsv", "other.bed"]


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    final = tmp_path / "hits.bed"
    with writing(final) as process:
        with atomic_path(final) as mine:
            mine.write_text("one")
            write(final)
            assert mine.read_text() == "one"
        theirs = [path for path in tmp_path.iterdir() if path != final]
        assert [path.read_text() for path in theirs] == ["half"] and final.read_text() == "one"
        process.kill()


def test_what_comes_from_elsewhere_stays_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    final = tmp_path / "hits.bed"
    monkeypatch.setattr(temporary, "_here", lambda: "0123abcd")
    left = tmp_path / temporary_name(final, ".bed")
    monkeypatch.undo()
    for hours, stays in ((0, True), (23, True), (25, False)):
        left.write_text("half")
        os.utime(left, (time.time() - 3600 * hours,) * 2)
        write(final)
        assert left.exists() == stays


def test_a_folder_of_an_index_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "i"
    monkeypatch.setattr(os, "getpid", lambda: 1 << 30)  # no process has such a number
    left = tmp_path / temporary_name(folder)
    monkeypatch.undo()
    left.mkdir()
    (left / "core.text.npy").write_bytes(bytes(99))
    aside = left.with_name(f"{left.name}.old")  # an index that stood there, in whose place the new one is
    aside.mkdir()
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(folder)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.fa", "i"]


def test_a_folder_that_cannot_be_looked_into_is_no_mistake(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "none" / "hits.bed")
    remove_leftovers(Path("/proc/1/fd/hits.bed"))


def test_a_folder_that_was_made_for_a_file_goes_with_it(tmp_path: Path) -> None:
    """But for those that were there before, or in which others have put something by then."""
    (tmp_path / "there").mkdir()
    for name, left in (("a/b/hits.bed", []), ("there/hits.bed", ["there"]), ("c/d/hits.bed", ["c", "c/e", "there"])):
        with pytest.raises(RuntimeError), atomic_path(tmp_path / name) as path:
            path.write_text("half")
            if name.startswith("c"):
                (tmp_path / "c" / "e").mkdir()
            raise RuntimeError
        assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")) == sorted({*left, "there"})


@pytest.mark.parametrize("made", [1, 2, 3])
def test_folders_go_whichever_of_them_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: int) -> None:
    make, left = os.mkdir, [made]

    def interrupted(*arguments: object) -> None:
        make(*arguments)  # type: ignore[arg-type]
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), folder_made(tmp_path / "a" / "b" / "c"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    wrong = save(tmp_path, "g.fa", ">a\nAC>GT\n")
    for arguments in (
        ["ebwt", wrong, "-o", str(tmp_path / "made" / "x")],
        ["stream", wrong, "-k", "5", "-o", str(tmp_path / "made" / "x.tsv")],
        ["index", wrong, "-o", str(tmp_path / "made" / "deeper" / "index")],
    ):
        assert cli.main(arguments) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["g.fa"]
