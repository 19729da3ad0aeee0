"""Where an index may be written: nothing of a user's is removed, and what happened is said."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warpseed
from warpseed import cli
from warpseed.errors import IndexFormatError
from warpseed.fm_index import build, target
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index, save_index, verify_index


@pytest.fixture
def genome(tmp_path: Path) -> Path:
    path = tmp_path / "genome.fa"
    path.write_text(">chr\nGATTACAGATTACANNGGCATTACGACCA\n")
    return path


@pytest.fixture
def index(genome: Path) -> SeedIndex:
    return build_index(genome)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def arrays(folder: Path) -> None:
    for name in ("embeddings", "labels"):
        np.save(folder / f"{name}.npy", np.arange(3))


def array_beside_a_manifest(folder: Path) -> None:
    np.save(folder / "labels.npy", np.arange(3))
    (folder / "index.json").write_text('{"format": 2, "warpseed": "1"}')


def folders_named_as_arrays(folder: Path) -> None:
    for name in ("fast.table.npy", "core.text.npy"):
        (folder / name).mkdir()
        (folder / name / "thesis.txt").write_text("years of work")


def files_that_a_manifest_claims(folder: Path) -> None:
    (folder / "photo.jpg").write_text("a face")
    manifest = {"format": 3, "warpseed": "1", "files": {"photo.jpg": {"size": 6, "sha256_of_pieces": "0" * 64}}}
    (folder / "index.json").write_text(json.dumps(manifest))


def links_named_as_arrays(folder: Path) -> None:
    (folder.parent / "far.npy").write_bytes(b"far")
    (folder / "fast.table.npy").symlink_to(folder.parent / "far.npy")
    (folder / "index.json").write_text('{"format": 2, "warpseed": "1"}')


def somebody_s_manifest(folder: Path) -> None:
    (folder / "index.json").write_text('{"format": 2}')


def arrays_of_these_names(folder: Path) -> None:
    np.save(folder / "fast.table.npy", np.arange(3))


@pytest.mark.parametrize(
    "fill",
    [
        arrays,
        array_beside_a_manifest,
        folders_named_as_arrays,
        files_that_a_manifest_claims,
        links_named_as_arrays,
        somebody_s_manifest,
        arrays_of_these_names,
    ],
    ids=lambda fill: fill.__name__,
)
def test_a_folder_of_the_user_s_is_not_touched(tmp_path: Path, index: SeedIndex, genome: Path, fill) -> None:
    folder = tmp_path / "mydata"
    folder.mkdir()
    fill(folder)
    before = everything(tmp_path)
    for act in (lambda: target.check_target(folder), lambda: save_index(index, folder)):
        with pytest.raises(IndexFormatError, match="is not overwritten; name a new folder, or remove this one"):
            act()
    assert cli.main(["index", str(genome), "-o", str(folder)]) == 1
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name(
    index: SeedIndex, genome: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(IndexFormatError, match="the name of the index's folder is empty; name a new folder"):
        save_index(index, name)
    assert cli.main(["index", str(genome), "-o", name]) == 1
    assert everything(tmp_path / "here") == {}


def test_a_name_with_a_null_byte(index: SeedIndex, tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match="the index's folder is .*, but no name has a null byte; rename it"):
        save_index(index, tmp_path / "i\0")


@pytest.mark.parametrize("kind", ["working folder", "mount point", "folder in one that cannot be written"])
def test_a_folder_that_has_to_stay(
    tmp_path: Path, index: SeedIndex, genome: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = tmp_path / "stays"
    folder.mkdir()
    before = folder.stat().st_ino
    if kind == "working folder":
        monkeypatch.chdir(folder)
    elif kind == "mount point":
        monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    save_index(build_index(genome, parts="fast,paper"), "." if kind == "working folder" else folder)
    assert open_index(folder).parts == ("fast", "forward", "reverse")
    save_index(index, "." if kind == "working folder" else folder)
    assert folder.stat().st_ino == before
    assert open_index(folder).parts == ("fast",) and verify_index(folder) > 0
    assert {path.name for path in folder.iterdir()} == {"index.json", *(f"{name}.npy" for name in index.arrays())}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["genome.fa", "stays"]


def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(build, "build_index", no_work)
    # /proc takes no new folders, not even from root.
    assert cli.main(["index", str(genome), "-o", "/proc/index"]) == 1
    assert "Error: /proc/index: cannot be written (" in capsys.readouterr().err
    assert cli.main(["index", str(genome), "-o", str(genome / "index")]) == 1
    assert f"Error: {genome / 'index'}: cannot be written (Not a directory)" in capsys.readouterr().err
    assert cli.main(["index", str(genome), "-o", str(tmp_path / ("x" * 300))]) == 1
    assert "cannot be written (File name too long)" in capsys.readouterr().err


def test_an_old_index_that_cannot_be_removed(
    tmp_path: Path, index: SeedIndex, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    save_index(build_index(genome, parts="paper"), folder)

    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(target.shutil, "rmtree", refuse)
    with pytest.raises(IndexFormatError) as raised:
        save_index(index, folder)
    monkeypatch.undo()
    assert open_index(folder).parts == ("fast",)
    left = [path for path in tmp_path.iterdir() if path.name not in ("index", "genome.fa")]
    assert len(left) == 1 and open_index(left[0]).parts == ("forward", "reverse")
    assert str(raised.value) == (
        f"{folder}: the new index is written and whole, but the one that it replaced cannot be removed (Permission "
        f"denied) and lies in {left[0]}; remove that folder."
    )
    shutil.rmtree(left[0])


def test_the_old_index_stays_where_the_new_one_vanishes(
    tmp_path: Path, index: SeedIndex, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what cleans up after others may make it, between the two steps of the exchange."""
    folder, replace = tmp_path / "index", Path.replace
    save_index(build_index(genome, parts="paper"), folder)

    def vanish(path: Path, to: Path) -> Path:
        if to == folder and not to.exists() and not path.name.endswith(".old"):
            shutil.rmtree(path)
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", vanish)
    with pytest.raises(IndexFormatError, match="cannot be written"):
        save_index(index, folder)
    assert open_index(folder).parts == ("forward", "reverse")
    assert {path.name for path in tmp_path.iterdir()} == {"index", "genome.fa"}


@pytest.mark.parametrize("before", [False, True])
def test_another_process_puts_an_index_there_meanwhile(
    tmp_path: Path, index: SeedIndex, genome: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    folder, replace = tmp_path / "index", Path.replace
    other = build_index(genome, parts="paper")
    if before:
        save_index(index, folder)

    def come_late(path: Path, to: Path) -> Path:
        if to == folder:
            monkeypatch.undo()
            save_index(other, folder)
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", come_late)
    with pytest.raises(IndexFormatError) as raised:
        save_index(index, folder)
    assert str(raised.value) == f"{folder}: another process has put an index there meanwhile; make this one again."
    assert open_index(folder).parts == ("forward", "reverse")
    assert {path.name for path in tmp_path.iterdir()} == {"index", "genome.fa"}


def test_another_process_moves_the_old_index_aside(
    tmp_path: Path, index: SeedIndex, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, replace = tmp_path / "index", Path.replace
    save_index(build_index(genome, parts="paper"), folder)

    def come_late(path: Path, to: Path) -> Path:
        if path == folder:
            shutil.rmtree(folder)
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", come_late)
    save_index(index, folder)
    assert open_index(folder).parts == ("fast",)
    assert {path.name for path in tmp_path.iterdir()} == {"index", "genome.fa"}


def test_a_long_name_is_a_name(tmp_path: Path, index: SeedIndex) -> None:
    folder = tmp_path / ("x" * 250)
    save_index(index, folder)
    assert open_index(folder).parts == ("fast",)


@pytest.mark.parametrize("step", [1, 2])
def test_a_signal_just_behind_a_step_leaves_a_whole_index(
    tmp_path: Path, index: SeedIndex, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    index.save(tmp_path / "index")
    replace, calls = Path.replace, []

    def replace_and_stop(self: Path, other: Path) -> None:
        replace(self, other)
        calls.append(self)
        if len(calls) == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", replace_and_stop)
    with pytest.raises(KeyboardInterrupt):
        index.save(tmp_path / "index")
    assert verify_index(tmp_path / "index") > 0
    assert {path.name for path in tmp_path.iterdir()} == {"genome.fa", "index"}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_an_index_that_is_interrupted_while_it_is_saved_leaves_nothing(
    tmp_path: Path, genome: Path, number: int
) -> None:
    """SIGHUP is what a terminal that is closed, or a lost connection, sends."""
    script = (
        "import sys, time\nfrom warpseed import cli\nfrom warpseed.fm_index import store\nwrite = store.write_array\n"
        "def write_slowly(*arguments):\n    write(*arguments)\n    print('.', flush=True)\n    time.sleep(60)\n"
        "store.write_array = write_slowly\nsys.exit(cli.main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, "index", str(genome), "-o", str(tmp_path / "i")],
        env=os.environ | {"PYTHONPATH": str(Path(warpseed.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b".\n"
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said.decode().splitlines()[-2:] == [
        f"Stopping after {signal.Signals(number).name}.",
        f"Interrupted by {signal.Signals(number).name}; no half-written file is left.",
    ]
    assert list(tmp_path.iterdir()) == [genome]
