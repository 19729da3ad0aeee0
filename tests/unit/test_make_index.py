"""An index in a folder: what is made where nothing is said, when tags are made, and what is left where they fail."""

from __future__ import annotations

import os
import random
import shutil
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_processes import kill_over
from warpseed import cli
from warpseed.errors import IndexFormatError, InputError
from warpseed.fm_index import build, cpu_build, make, store
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex, Tags
from warpseed.fm_index.make import LARGEST_TAGGED, has_tags_by_default, make_index
from warpseed.fm_index.npy import FileEntry, write_array
from warpseed.fm_index.parts import DEFAULT_PARTS
from warpseed.fm_index.store import open_index, verify_index
from warpseed.fm_index.table import table_of
from warpseed.fm_index.tags import make_tags
from warpseed.workflow import resources

GENOME = ">one\nGATTACAGATTACANNGGCATTACGACCA\n>two\nACGTACGTTTGACCA\n"
LAYOUT = {"occ_interval": 32, "sa_interval": 3, "table_length": 3}


@pytest.fixture
def genome(tmp_path: Path) -> Path:
    path = tmp_path / "genome.fa"
    path.write_text(GENOME)
    return path


def assert_same(index: SeedIndex, other: SeedIndex) -> None:
    one, two = index.arrays(), other.arrays()
    assert list(one) == list(two) and all(np.array_equal(one[name], two[name]) for name in one)


# ------------------------------------------------------------------------------------------ which parts


def test_tags_are_made_by_the_cpu_for_what_is_not_too_large() -> None:
    assert has_tags_by_default(1, "cpu") and has_tags_by_default(2**31, "cpu")
    assert not has_tags_by_default(2**31 + 1, "cpu")
    assert not any(has_tags_by_default(100, device) for device in ("gpu", "gpu:1"))


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, "tags"),
        ({"parts": "default"}, "tags"),
        ({"parts": ["default", "paper"]}, "tags,paper"),
        ({"parts": "fast"}, "fast"),
        ({"parts": ("tags", "forward")}, "tags,forward"),
        ({"parts": "reverse"}, "reverse"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_folder_holds_what_would_be_built_at_once(
    tmp_path: Path, genome: Path, given: dict[str, Any], parts: str, threads: int
) -> None:
    made = make_index(genome, tmp_path / "index", threads=threads, **given, **LAYOUT)
    expected = build_index(genome, parts=parts, **LAYOUT)
    assert_same(made, expected)
    assert_same(open_index(tmp_path / "index", genome, check=True), expected)
    assert verify_index(tmp_path / "index") > 0


@pytest.mark.parametrize("parts", ["default", "tags"])
def test_a_large_index_has_tags_where_they_are_named(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    monkeypatch.setattr(make, "LARGEST_TAGGED", 20)
    assert make_index(genome, tmp_path / "index", parts=parts).parts == (
        ("fast", "tags") if parts == "tags" else ("fast",)
    )


@pytest.mark.parametrize("given", ["fats", "default,fats", "", [], 3])
def test_names_that_are_no_parts_leave_no_folder(tmp_path: Path, genome: Path, given: Any) -> None:
    with pytest.raises(InputError, match="part"):
        make_index(genome, tmp_path / "index", parts=given)
    assert not (tmp_path / "index").exists()


def test_a_folder_that_must_stay_is_told_before_the_genome_is_read(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "notes.txt").write_text("mine")
    with pytest.raises(IndexFormatError, match="not overwritten"):
        make_index(tmp_path / "missing.fa", tmp_path / "index")


def test_every_stage_has_its_seconds(tmp_path: Path, genome: Path) -> None:
    built = ["read", "text", "suffix_array", "save"]
    assert list(make_index(genome, tmp_path / "a", parts="fast").seconds) == [*built, "total"]
    seconds = make_index(genome, tmp_path / "b").seconds
    assert list(seconds) == [*built, "tags", "total"] and all(value > 0 for value in seconds.values())
    assert sum(seconds[stage] for stage in built[:3]) <= seconds["total"]


def test_the_workflow_counts_tags_where_they_are_made() -> None:
    settings = {"occ_interval": 128, "sa_interval": 32, "table_length": None}
    sizes = [resources.IndexSize(rows, [make.DEFAULT], settings) for rows in (LARGEST_TAGGED, LARGEST_TAGGED + 1)]
    assert [size.has_tags for size in sizes] == [True, False] and all(size.has_rows for size in sizes)
    assert [size.bytes - size.without_tags.bytes for size in sizes] == [2 * LARGEST_TAGGED, 0]
    assert sizes[0].without_tags.parts == set(DEFAULT_PARTS)


# ------------------------------------------------------------------------------------------ memory


def test_what_is_written_is_gone_before_more_is_made(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows before the table is made of them, and all parts before tags are."""
    written: dict[str, weakref.ref[np.ndarray]] = {}
    made: list[str] = []

    def write(name: str, folder: int, array: np.ndarray, threads: int) -> FileEntry:
        written[name] = weakref.ref(array)
        return write_array(name, folder, array, threads)

    def after(work: Callable[..., Any], *files: str) -> Callable[..., Any]:
        def make(*arguments: Any) -> Any:
            assert set(files) <= written.keys() and not [name for name, array in written.items() if array() is not None]
            made.append(work.__name__)
            return work(*arguments)

        return make

    monkeypatch.setattr(store, "write_array", write)
    monkeypatch.setattr(cpu_build, "table_of", after(table_of, "fast.suffix_array.npy"))
    monkeypatch.setattr(build, "make_tags", after(make_tags, "fast.table.npy", "forward.rsa.npy", "reverse.bwt.npy"))
    assert "tags" in make_index(genome, tmp_path / "index", parts="default,paper").parts
    assert made == ["table_of", "make_tags"] and len(written) == 2 + 2 + 2 * 8 + 5


def test_neither_tags_nor_the_table_take_more_memory_than_sorting_does(tmp_path: Path) -> None:
    """In memory they take 10.25 bytes a base, with a table of 4, and without tags 8.25."""
    rows = 1 << 20
    (tmp_path / "g.fa").write_text(">a\n" + "".join(random.Random(1).choices("ACGT", k=rows)) + "\n")

    def peak(run: Callable[[], SeedIndex]) -> int:
        run()
        tracemalloc.start()
        run()
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return taken

    def written(parts: str) -> int:
        return peak(lambda: make_index(tmp_path / "g.fa", tmp_path / "index", parts=parts, table_length=10))

    def built(parts: str) -> int:
        return peak(lambda: build_index(tmp_path / "g.fa", parts=parts, table_length=10))

    assert abs(written("default") - written("fast")) < 0.2 * rows
    assert written("fast") < min(7.5 * rows, built("fast") - rows) and built("tags") > built("fast") + 1.5 * rows


# ------------------------------------------------------------------------------------------ where tags fail


def fails_over_tags(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(name: str, *arguments: Any) -> Any:
        entry = write_array(name, *arguments)
        if name == "tags.bases_behind.npy":
            raise error
        return entry

    monkeypatch.setattr(store, "write_array", fail)


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
def test_tags_that_fail_leave_what_was_there(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, older: bool
) -> None:
    """And a full disk is told of with all bytes that the index takes, those of its tags included."""
    folder = tmp_path / "index"
    if older:
        (tmp_path / "older.fa").write_text(">older\nACGATTACGGATTAC\n")
        make_index(tmp_path / "older.fa", folder)
    with monkeypatch.context() as patch:
        fails_over_tags(patch, error)
        with pytest.raises(IndexFormatError if isinstance(error, OSError) else type(error)) as raised:
            make_index(genome, folder, **LAYOUT)
    if isinstance(error, OSError):
        size = sum(array.nbytes for array in build_index(genome, parts="tags", **LAYOUT).arrays().values())
        assert f"No space left on device); the index takes {size:,} bytes" in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == ["genome.fa", *["index", "older.fa"] * older]
    if older:
        assert open_index(folder, check=True).names == ("older",) and open_index(folder).parts == ("fast", "tags")


def test_a_process_that_is_killed_over_tags_leaves_what_was_there(tmp_path: Path, genome: Path) -> None:
    folder = tmp_path / "index"
    kill_over("tags.bases_behind.npy", f"make.make_index({str(genome)!r}, {str(folder)!r})")
    assert not folder.exists() and len(os.listdir(tmp_path)) == 2
    assert make_index(genome, folder).parts == ("fast", "tags")
    assert sorted(os.listdir(tmp_path)) == ["genome.fa", "index"]


def test_the_index_of_another_genome_that_takes_its_place_is_not_taken_for_it(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another process makes one of the same name meanwhile: the last one stays, and each has its own."""
    (tmp_path / "other.fa").write_text(">other\nACGATTACGGATTAC\n")
    folder, other = tmp_path / "index", []

    def make_other(*arguments: Any) -> Tags:
        if not other:
            other.append(None)
            other[0] = make_index(tmp_path / "other.fa", folder)
        return make_tags(*arguments)

    monkeypatch.setattr(build, "make_tags", make_other)
    made = make_index(genome, folder)
    assert made.names == ("one", "two") and other[0].names == ("other",)
    assert open_index(folder, check=True).names == ("one", "two")
    make_index(tmp_path / "other.fa", folder)
    assert_same(made, build_index(genome, parts="tags"))


# ------------------------------------------------------------------------------------------ what happens meanwhile


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "an older index"])
@pytest.mark.parametrize("inside", [False, True])
def test_what_a_user_puts_there_meanwhile_stays(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, there: str, inside: bool
) -> None:
    folder = tmp_path / "index"
    if there != "nothing" or inside:
        folder.mkdir()
    if there == "an older index":
        make_index(genome, folder)
    if inside:  # as in a mount point, which stays
        monkeypatch.chdir(folder)

    def put(*arguments: Any) -> Tags:
        folder.mkdir(exist_ok=True)
        (folder / "thesis.txt").write_text("mine")
        return make_tags(*arguments)

    monkeypatch.setattr(build, "make_tags", put)
    with pytest.raises(IndexFormatError, match=r"index: exists, and holds 'thesis\.txt', which is no part"):
        make_index(genome, folder)
    left = sorted(os.listdir(folder))
    assert (folder / "thesis.txt").read_text() == "mine" and not [name for name in left if name.startswith(".tmp")]
    assert ("index.json" in left) == (there == "an older index")
    assert sorted(os.listdir(tmp_path)) == ["genome.fa", "index"]


@pytest.mark.parametrize("older", [False, True])
def test_what_a_killed_process_left_in_a_folder_that_stays_is_in_nobody_s_way(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if older:
        make_index(genome, ".")
    kill_over("tags.bases_behind.npy", f"make.make_index({str(genome)!r}, '.')")
    assert [name for name in os.listdir(folder) if name.startswith(".tmp-")]
    assert make_index(genome, ".").parts == ("fast", "tags") and open_index(folder, check=True).names == ("one", "two")
    assert not [name for name in os.listdir(folder) if name.startswith(".tmp-")]


@pytest.mark.parametrize("what", ["a file", "the folder", "another folder"])
@pytest.mark.parametrize("step", ["suffix_array", "tags"])
def test_what_is_taken_away_meanwhile_is_told(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, what: str, step: str
) -> None:
    """As by a cleaner of old files: the older index stays."""
    folder = tmp_path / "index"
    (tmp_path / "older.fa").write_text(">older\nACGATTACGGATTAC\n")
    make_index(tmp_path / "older.fa", folder)

    def take(name: str, *arguments: Any) -> Any:
        entry = write_array(name, *arguments)
        if name == {"suffix_array": "fast.suffix_array.npy", "tags": "tags.bases_behind.npy"}[step]:
            [temporary] = tmp_path.glob(".tmp-*")
            if what == "a file":
                (temporary / "fast.suffix_array.npy").unlink()
            else:
                shutil.rmtree(temporary)
            if what == "another folder":
                temporary.mkdir()
        return entry

    monkeypatch.setattr(store, "write_array", take)
    with pytest.raises(IndexFormatError, match=r"index: cannot be written \(.*(was|in which)") as raised:
        make_index(genome, folder)
    assert "build the index again" not in str(raised.value)
    assert open_index(folder, check=True).names == ("older",)


@pytest.mark.parametrize("folder", ["missing/../index", "./index", "new/index"])
def test_folders_that_are_named_in_other_ways(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """And the working folder may change meanwhile."""
    monkeypatch.chdir(tmp_path)

    def leave(*arguments: Any) -> Tags:
        os.chdir("/")
        return make_tags(*arguments)

    monkeypatch.setattr(build, "make_tags", leave)
    assert make_index(genome, folder).parts == ("fast", "tags")
    os.chdir(tmp_path)
    assert open_index(os.path.normpath(folder), check=True).parts == ("fast", "tags")


# ------------------------------------------------------------------------------------------ the command line


@pytest.mark.parametrize(("options", "parts"), [([], "fast, tags"), (["--parts", "fast"], "fast")])
def test_the_command_makes_tags_unless_parts_are_named(
    tmp_path: Path, genome: Path, capsys: pytest.CaptureFixture[str], options: list[str], parts: str
) -> None:
    assert cli.main(["index", str(genome), "-o", str(tmp_path / "index"), *options]) == 0
    assert ", ".join(open_index(tmp_path / "index").parts) == parts
    said = capsys.readouterr().err
    assert f"; parts {parts}; " in said
    stages = [part.split()[0] for part in said.split("seconds: ")[1].splitlines()[0].split(", ")]
    added = ["tags"] if "tags" in parts else []
    assert stages == ["read", "text", "suffix_array", "save", *added, "total"]


@pytest.mark.parametrize("parts", ["fast", "tags", "tags,fast"])
def test_what_is_there_already_is_told(
    tmp_path: Path, genome: Path, capsys: pytest.CaptureFixture[str], parts: str
) -> None:
    folder = str(tmp_path / "index")
    make_index(genome, folder)
    assert cli.main(["index", "--add", parts, folder]) == 0
    assert f"{folder}: has {parts} already; nothing was added\n" in capsys.readouterr().err
    assert cli.main(["index", "--add", "paper", folder]) == 0
    assert "nothing was added" not in capsys.readouterr().err
