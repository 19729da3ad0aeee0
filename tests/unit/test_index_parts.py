"""The parts of an index: what is made, what is missing, and what is added later."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed
from killed_processes import kill_over
from oracles.suffix_array import joined, reversed_text, segments_of
from warpseed import cli
from warpseed.errors import IndexFormatError, InputError, MemoryLimitError
from warpseed.fm_index import build, store
from warpseed.fm_index.build import build_index
from warpseed.fm_index.bwt import longest_walk
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.locate import sample_of, walk_to_sample
from warpseed.fm_index.npy import write_array
from warpseed.fm_index.parts import ALL_PARTS, PARTS, Sizes, choose_parts
from warpseed.fm_index.store import add_parts, open_index, save_index, verify_index
from warpseed.fm_index.text import PackedText, reverse_text, unpack_text
from warpseed.sequences.reference import read_reference

GENOME = ">one\nGATTACAGATTACANNGGCATTACGACCA\n>two\nACGTACGTTTGACCA\n"
KMERS = ["GATTACA", "TGGTC", "ACGT", "CC"]
LAYOUT = {"occ_interval": 32, "sa_interval": 3, "table_length": 3}


@pytest.fixture
def genome(tmp_path: Path) -> Path:
    path = tmp_path / "genome.fa"
    path.write_text(GENOME)
    return path


@pytest.fixture
def whole(genome: Path) -> SeedIndex:
    return build_index(genome, parts=ALL_PARTS, **LAYOUT)


def equal(one: SeedIndex, other: SeedIndex) -> bool:
    a, b = one.arrays(), other.arrays()
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


# ------------------------------------------------------------------------------------------ what is made


def test_the_fast_tier_s_part_is_made_unless_more_is_asked_for(genome: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sort_backwards(text: np.ndarray) -> np.ndarray:
        raise AssertionError("the reversed text is sorted")

    monkeypatch.setattr("warpseed.fm_index.cpu_build.reverse_text", sort_backwards)
    assert build_index(genome).parts == ("fast",)
    assert build_index(genome, parts="forward").parts == ("forward",)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("fast", ("fast",)),
        ("paper,fast", ("fast", "forward", "reverse")),
        ("paper,tags", ALL_PARTS),
        (["tags"], ("fast", "tags")),
        (" paper , forward", ("forward", "reverse")),
        (["reverse", "reverse"], ("reverse",)),
        (("fast", "forward"), ("fast", "forward")),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_parts_are_the_same_in_whatever_company(
    genome: Path, whole: SeedIndex, given: Any, parts: tuple[str, ...], threads: int
) -> None:
    built = build_index(genome, parts=given, threads=threads, **LAYOUT)
    assert built.parts == choose_parts(given) == parts
    for part in parts:
        assert built.arrays_of[part].keys() == PARTS[part].keys() == whole.arrays_of[part].keys()
        for name, array in built.arrays_of[part].items():
            assert np.array_equal(array, whole.arrays_of[part][name]), (part, name)


@pytest.mark.parametrize("given", ["", "fats", "fast,", [], [3], 3, None, "core"])
def test_names_that_are_no_parts(genome: Path, given: Any) -> None:
    with pytest.raises(InputError, match="part"):
        build_index(genome, parts=given)


def test_every_array_is_as_it_is_declared(whole: SeedIndex) -> None:
    sizes = Sizes(whole.rows, len(whole.segments.contig), whole.parameters)
    declared = {f"{part}.{name}": spec for part, specs in PARTS.items() for name, spec in specs.items()}
    assert list(declared) == list(whole.arrays())
    for name, array in whole.arrays().items():
        assert (array.dtype, array.shape) == (declared[name].dtype, (declared[name].length(sizes),)), name


def test_stages_are_named_by_what_is_done(genome: Path) -> None:
    assert set(build_index(genome).seconds) == {"read", "text", "suffix_array", "total"}
    for threads in (1, 2):
        seconds = build_index(genome, parts=ALL_PARTS, threads=threads).seconds
        assert set(seconds) == {"read", "text", "suffix_array", "tags", "bwt", "total"}
        assert all(value > 0 for value in seconds.values())


def test_numpy_s_integers_are_whole_numbers(genome: Path) -> None:
    built = build_index(genome, threads=np.int64(1), sa_interval=np.int32(7), occ_interval=np.uint16(64))
    assert built.parameters == (64, 7, 4) and all(type(value) is int for value in built.parameters)


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 1.5},
        {"threads": None},
        {"threads": True},
        {"occ_interval": "128"},
        {"occ_interval": 96},
        {"sa_interval": 0},
        {"sa_interval": 2.0},
        {"table_length": [4]},
    ],
)
def test_other_values_are_refused(genome: Path, options: dict[str, Any]) -> None:
    name, value = next(iter(options.items()))
    with pytest.raises(InputError, match=f"^{name} is {re.escape(repr(value))}, but .* was expected.$"):
        build_index(genome, **options)


@pytest.mark.parametrize("threads", [0, None, 1.5, "2"])
def test_threads_of_an_addition_are_checked_before_any_work(tmp_path: Path, genome: Path, threads: Any) -> None:
    save_index(build_index(genome), tmp_path / "index")
    for parts in ("fast", "paper"):
        with pytest.raises(InputError, match=f"^threads is {threads!r}, but .* was expected.$"):
            add_parts(tmp_path / "index", parts, threads=threads)


def test_more_threads_than_cores_are_no_error(genome: Path, whole: SeedIndex) -> None:
    # Beyond what the sorter's C interface takes, and of which it would start as many as it is told to.
    assert equal(build_index(genome, parts=ALL_PARTS, threads=10**20, **LAYOUT), whole)


@pytest.mark.parametrize("reference", [None, ["ACGT"], np.zeros(3), 5])
def test_something_that_is_no_reference(reference: Any) -> None:
    with pytest.raises(InputError, match=f"the reference is of type {type(reference).__name__}, but the path"):
        build_index(reference)


def test_every_name_that_can_be_read_can_be_opened(tmp_path: Path) -> None:
    """Bytes and code points that a parser, JSON or Python may treat as special."""
    kept = 0
    for number in [*range(256), 0x2028, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFF, 0x10FFFF]:
        (tmp_path / "g.fa").write_bytes(f">a{chr(number)}b\nACGT\n".encode())
        try:
            index = build_index(tmp_path / "g.fa")
        except InputError:
            continue
        index.save(tmp_path / "index")
        kept += open_index(tmp_path / "index").names == index.names
    assert kept > 200


# ------------------------------------------------------------------------------------------ RSA of any interval


@pytest.mark.parametrize("interval", [1, 2, 3, 4, 6, 7, 12, 31, 32, 96, 1000, 65_535, 65_536])
def test_rows_of_the_samples(genome: Path, interval: int) -> None:
    bwt = build_index(genome, parts="forward", sa_interval=interval).forward
    rows = np.random.default_rng(interval).integers(0, 1 << 32, 2000).tolist()
    for row in [*range(200), *rows, *(row // interval * interval for row in rows), (1 << 32) - 1]:
        entry = sample_of(bwt, row)
        assert entry == row // interval if row % interval == 0 else entry > ((1 << 32) - 1) // interval


@pytest.mark.parametrize("interval", [1, 2, 5, 7, 32, 1000])
def test_no_walk_is_longer_than_the_longest(genome: Path, interval: int) -> None:
    index = build_index(genome, parts="paper", sa_interval=interval)
    for bwt in (index.forward, index.reverse):
        walks = [walk_to_sample(bwt, row)[1] for row in range(index.rows)]
        assert max(walks) == bwt.longest_walk == longest_walk(bwt.rsa, bwt.separator_position, index.rows)


# ------------------------------------------------------------------------------------------ what is missing, and added


def test_a_search_that_misses_a_part_says_how_to_add_it(tmp_path: Path, genome: Path, whole: SeedIndex) -> None:
    built = build_index(genome)
    with pytest.raises(IndexFormatError, match=r"parts=\('fast', 'paper'\)"):
        warpseed.find_kmers(built, KMERS, tier="paper")
    folder = tmp_path / "index"
    save_index(built, folder)
    with pytest.raises(IndexFormatError) as raised:
        warpseed.find_kmers(folder, KMERS, tier="paper")
    command = re.search("'python -m warpseed (.*)'", str(raised.value))
    assert command is not None
    assert cli.main(command.group(1).split()) == 0
    found = [warpseed.find_kmers(each, KMERS, tier="paper", max_mismatches=1).digest() for each in (folder, whole)]
    assert found[0] == found[1]


@pytest.mark.parametrize("first", ["fast", "tags", "forward", "reverse", "paper", "fast,reverse"])
def test_added_parts_are_what_would_have_been_built(tmp_path: Path, genome: Path, whole: SeedIndex, first: str) -> None:
    folder = tmp_path / "index"
    save_index(build_index(genome, parts=first, **LAYOUT), folder)
    genome.unlink()
    added = add_parts(folder, ["tags", "paper"], threads=2)
    assert equal(added, whole) and equal(open_index(folder), whole)
    assert {path.name for path in folder.iterdir()} == {"index.json", *(f"{name}.npy" for name in whole.arrays())}
    assert verify_index(folder) > 0
    again = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert add_parts(folder, "paper").parts == ALL_PARTS
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == again


def test_a_known_suffix_array_is_not_sorted_again(tmp_path: Path, genome: Path) -> None:
    save_index(build_index(genome), tmp_path / "index")
    assert "suffix_array" not in add_parts(tmp_path / "index", "forward").seconds
    assert "suffix_array" in add_parts(tmp_path / "index", "reverse").seconds


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
def test_a_failed_addition_leaves_the_index(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    folder = tmp_path / "index"
    save_index(build_index(genome), folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(name: str, *arguments: Any) -> Any:
        entry = write_array(name, *arguments)
        if name == "reverse.rsa.npy":
            raise error
        return entry

    monkeypatch.setattr(store, "write_array", fail)
    with pytest.raises(IndexFormatError if isinstance(error, OSError) else type(error)) as raised:
        add_parts(folder, "paper")
    if isinstance(error, OSError):
        assert re.search(r"cannot be added \(No space left on device\), which take [\d,]+ bytes", str(raised.value))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    assert add_parts(folder, "paper").parts == ("fast", "forward", "reverse")


def test_too_little_memory_for_an_addition_is_said_before_it_sorts(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the suffix array that is there is enough for sorts nothing."""
    folder = tmp_path / "index"
    save_index(build_index(genome), folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(build, "available_memory", lambda: 50_000_000)
    with pytest.raises(MemoryLimitError, match=r"needs about 0.2 GB of memory, but 0.1 GB are available"):
        add_parts(folder, "paper")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert add_parts(folder, "forward").parts == ("fast", "forward")


def test_an_addition_that_is_interrupted_when_it_is_done_stays(
    tmp_path: Path, genome: Path, whole: SeedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, replace = tmp_path / "index", os.replace
    save_index(build_index(genome, **LAYOUT), folder)

    def replace_and_stop(*names: str, **folders: int) -> None:
        replace(*names, **folders)
        raise KeyboardInterrupt

    monkeypatch.setattr(store.os, "replace", replace_and_stop)
    with pytest.raises(KeyboardInterrupt):
        add_parts(folder, "tags,paper")
    assert equal(open_index(folder), whole)


def test_an_index_that_is_made_while_parts_are_added_stays(
    tmp_path: Path, genome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the very folder, as on a mount point, where files are moved one by one: of the two the new one is whole."""
    folder, other = tmp_path / "index", tmp_path / "other"
    save_index(build_index(genome, **LAYOUT), folder)
    save_index(build_index(genome, sa_interval=16), other)
    finish = store.IndexFiles.finish

    def finish_late(files: Any, *arguments: Any) -> None:
        finish(files, *arguments)
        for path in other.iterdir():
            os.replace(path, folder / path.name)

    with monkeypatch.context() as patch:
        patch.setattr(store.IndexFiles, "finish", finish_late)
        with pytest.raises(IndexFormatError, match="another process made an index there while parts were added"):
            add_parts(folder, "tags,paper")
    assert open_index(folder).parameters.sa_interval == 16 and verify_index(folder) > 0
    assert not (folder / "index.json.new").exists()


def test_an_addition_that_is_killed_leaves_the_index(tmp_path: Path, genome: Path, whole: SeedIndex) -> None:
    folder = tmp_path / "index"
    save_index(build_index(genome, **LAYOUT), folder)
    kill_over("reverse.rsa.npy", f"store.add_parts({str(folder)!r}, 'tags,paper')")
    assert (folder / "reverse.bwt.npy").exists()
    assert open_index(folder).parts == ("fast",) and verify_index(folder) > 0
    assert equal(add_parts(folder, "tags,paper"), whole) and equal(open_index(folder), whole)
    save_index(whole, folder)


def test_two_additions_at_once(tmp_path: Path, genome: Path) -> None:
    folder = tmp_path / "index"
    save_index(build_index(genome), folder)
    busy = pytest.raises(IndexFormatError, match="another process adds parts to it; wait until that has ended")
    with store._folder(folder) as (path, number), store._sole_writer(path, number), busy:
        add_parts(folder, "paper")
    assert add_parts(folder, "paper").parts == ("fast", "forward", "reverse")


@pytest.mark.parametrize("option", ["--parts", "--occ-interval", "--sa-interval", "--table-length"])
def test_an_addition_keeps_the_parameters(
    tmp_path: Path, genome: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    save_index(build_index(genome), tmp_path / "index")
    assert cli.main(["index", "--add", "paper", str(tmp_path / "index"), option, "32"]) == 1
    assert f"Error: {option} goes with a new index; with --add, an index keeps" in capsys.readouterr().err
    assert open_index(tmp_path / "index").parts == ("fast",)


def test_text_comes_back_from_its_packed_words(genome: Path, whole: SeedIndex) -> None:
    reference = read_reference(genome)
    contigs = ("".join("ACGTN"[code] for code in reference.codes[i:j]) for i, j in pairwise(reference.offsets))
    text = joined([bases for _, _, bases in segments_of(list(contigs))])
    assert "".join("$ACGT"[symbol] for symbol in unpack_text(whole.text, whole.segments)) == text
    backwards = reverse_text(PackedText(whole.text, whole.segments))
    assert "".join("$ACGT"[symbol] for symbol in unpack_text(*backwards)) == reversed_text(text)
