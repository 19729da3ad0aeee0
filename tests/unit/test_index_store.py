"""An index on disk: whole or not there, opened as it was saved, and told when it is not what it should be."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed
from warpseed.errors import IndexFormatError, InputError
from warpseed.fm_index import store
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.manifest import FORMAT_VERSION, sign
from warpseed.fm_index.npy import write_array
from warpseed.fm_index.store import open_index, save_index, verify_index

GENOME = ">chr 1\nGATTACAGATTACANNGGCATTACGACCA\n>número2\nACGTACGTTTGACCA\n"
KMERS = ["GATTACA", "TGGTC", "ACGT", "CC"]


@pytest.fixture
def genome(tmp_path: Path) -> Path:
    path = tmp_path / "genome.fa"
    path.write_text(GENOME)
    return path


@pytest.fixture
def index(genome: Path) -> SeedIndex:
    return build_index(genome, parts=("fast", "paper"), occ_interval=64, sa_interval=4)


@pytest.fixture
def folder(tmp_path: Path, index: SeedIndex) -> Path:
    save_index(index, tmp_path / "index")
    return tmp_path / "index"


def test_an_index_says_what_it_is(index: SeedIndex) -> None:
    bases = sum(base in "ACGT" for line in GENOME.splitlines() if not line.startswith(">") for base in line.upper())
    assert repr(index) == f"<index of {bases} bases in {len(index.names)} contigs, with fast, forward, reverse>"


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def fail_later(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let every fifth array fail when it has been written."""
    count = 0

    def write_some(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        entry = write_array(*arguments)
        if count % 5 == 0:
            raise error
        return entry

    monkeypatch.setattr(store, "write_array", write_some)


def change(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "index.json"
    manifest = json.loads(path.read_text())
    changed = edit(manifest)
    text = "".join(sign(manifest)) if changed is None else json.dumps(changed)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


# ------------------------------------------------------------------------------------------ what is kept


def test_what_is_opened_is_what_was_saved(index: SeedIndex, folder: Path) -> None:
    opened = open_index(folder)
    assert (opened.names, opened.digest, opened.bases) == (("chr", "número2"), index.digest, index.bases)
    assert opened.lengths.tolist() == index.lengths.tolist() == [29, 15]
    assert opened.parameters == index.parameters == (64, 4, 4)
    assert opened.parts == index.parts == ("fast", "forward", "reverse")
    saved, read = index.arrays(), opened.arrays()
    assert list(saved) == list(read)
    for name, array in saved.items():
        assert array.dtype == read[name].dtype and np.array_equal(array, read[name]), name
    for tier in ("fast", "paper"):
        found = [warpseed.find_kmers(each, KMERS, tier=tier, max_mismatches=1) for each in (index, opened, str(folder))]
        assert len({hits.digest() for hits in found}) == 1 and len(found[0]) > 0


def test_the_manifest_says_what_it_is(index: SeedIndex, folder: Path) -> None:
    manifest = json.loads((folder / "index.json").read_text())
    assert manifest["format"] == FORMAT_VERSION and manifest["warpseed"] == warpseed.__version__
    assert manifest["parameters"] == {"occ_interval": 64, "sa_interval": 4, "table_length": 4}
    assert manifest["parts"] == ["fast", "forward", "reverse"]
    assert manifest["contigs"] == [{"name": "chr", "length": 29}, {"name": "número2", "length": 15}]
    assert (manifest["segments"], manifest["bases"]) == (3, 42)
    assert manifest["reference_sha256"] == index.digest
    assert {path.name for path in folder.iterdir()} == {"index.json", *manifest["files"]}
    assert verify_index(folder) == sum((folder / name).stat().st_size for name in manifest["files"])


def test_what_is_opened_cannot_change_the_files(folder: Path) -> None:
    opened = open_index(folder)
    opened.fast.suffix_array[:] = 0
    assert verify_index(folder) > 0
    assert open_index(folder).fast.suffix_array.any()


def test_the_folder_is_for_everybody_and_its_parents_are_made(tmp_path: Path, index: SeedIndex) -> None:
    save_index(index, tmp_path / "a" / "b c" / "index")
    assert (tmp_path / "a" / "b c" / "index").stat().st_mode & 0o777 == 0o755
    assert open_index(tmp_path / "a" / "b c" / "index").names == index.names


# ------------------------------------------------------------------------------------------ where it is written


def test_an_older_index_is_replaced(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "other.fa").write_text(">other\nACGTTT\n")
    save_index(build_index(tmp_path / "other.fa"), folder)
    assert open_index(folder).names == ("other",)
    assert verify_index(folder) > 0
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("spoil", ["another version", "damaged", "another version's files"])
def test_an_index_that_cannot_be_read_may_be_replaced(index: SeedIndex, folder: Path, spoil: str) -> None:
    if spoil == "damaged":
        (folder / "core.text.npy").write_bytes(b"cut")
    else:
        change(folder, lambda manifest: manifest.update(format=FORMAT_VERSION - 1))
    if spoil == "another version's files":
        (folder / "core.text.npy").rename(folder / "fast.text.npy")
    save_index(index, folder)
    assert verify_index(folder) > 0


def test_an_empty_folder_may_be_named(tmp_path: Path, index: SeedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("empty", "here"):
        (tmp_path / name).mkdir()
    save_index(index, tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "here")
    save_index(index, ".")
    for name in ("empty", "here"):
        assert open_index(tmp_path / name).names == index.names
    monkeypatch.chdir(tmp_path / "here")
    save_index(index, ".")
    assert verify_index(tmp_path / "here") > 0
    assert hidden(tmp_path) == []


def test_a_link_to_an_index_stays_a_link(tmp_path: Path, index: SeedIndex, folder: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    save_index(index, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and verify_index(folder) > 0


@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.parametrize("manifest", [None, "{}", "[1, 2]", '{"format": 1}'])
def test_a_folder_with_other_files_is_never_touched(
    tmp_path: Path, index: SeedIndex, with_index: bool, manifest: str | None
) -> None:
    folder = tmp_path / "results"
    if with_index:
        save_index(index, folder)
    folder.mkdir(exist_ok=True)
    if manifest is not None:
        (folder / "index.json").write_text(manifest)
    (folder / "reads.fq").write_text("years of work")
    before = sorted(folder.iterdir())
    with pytest.raises(IndexFormatError, match="is not overwritten; name a new folder"):
        save_index(index, folder)
    assert sorted(folder.iterdir()) == before and (folder / "reads.fq").read_text() == "years of work"
    assert hidden(tmp_path) == []


def test_a_file_of_that_name_is_never_touched(index: SeedIndex, genome: Path) -> None:
    with pytest.raises(IndexFormatError, match="exists and is no folder"):
        save_index(index, genome)
    assert genome.read_text() == GENOME


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_old_index(
    tmp_path: Path, index: SeedIndex, folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fail_later(monkeypatch, error)
    needed = sum(array.nbytes for array in index.arrays().values())
    for target in (folder, tmp_path / "new"):
        with pytest.raises(IndexFormatError if isinstance(error, OSError) else KeyboardInterrupt) as raised:
            save_index(index, target)
        if isinstance(error, OSError):
            assert str(raised.value) == (
                f"{target}: cannot be written (No space left on device); the index takes {needed:,} bytes: free some "
                "space, or name a folder on another disk."
            )
    monkeypatch.undo()
    assert verify_index(folder) > 0
    assert hidden(tmp_path) == [] and not (tmp_path / "new").exists()


# ------------------------------------------------------------------------------------------ what is wrong with it


def test_no_index(tmp_path: Path, genome: Path) -> None:
    (tmp_path / "empty").mkdir()
    sentences = {
        tmp_path / "missing": "there is no such folder, so there is no index; make one with 'python -m warpseed index",
        tmp_path / "empty": "has no index.json, so it is no warpseed index; make one with 'python -m warpseed index",
        genome: "is a file, but an index is a folder; name the folder that 'warpseed index' wrote.",
    }
    for path, sentence in sentences.items():
        for act in (open_index, verify_index):
            with pytest.raises(IndexFormatError) as raised:
                act(path)
            assert str(raised.value).startswith(f"{path}: {sentence}")
    with pytest.raises(IndexFormatError, match="the name of the index's folder is empty"):
        open_index("")
    with pytest.raises(InputError, match="the index is of type NoneType, but a SeedIndex or a folder was expected"):
        open_index(None)  # type: ignore[arg-type]


def test_another_version(folder: Path) -> None:
    change(folder, lambda manifest: manifest.update(format=FORMAT_VERSION + 1, files="of another shape"))
    with pytest.raises(IndexFormatError, match=f"index format {FORMAT_VERSION + 1}, but this version .* reads format"):
        open_index(folder)


def test_another_reference(tmp_path: Path, folder: Path, genome: Path) -> None:
    assert open_index(folder, reference=genome).names == ("chr", "número2")
    other = tmp_path / "other.fa"
    # The digest is of the file's bytes: the same genome, compressed, is another file.
    for content in (GENOME.replace("GATT", "GAAT").encode(), gzip.compress(GENOME.encode())):
        other.write_bytes(content)
        with pytest.raises(IndexFormatError, match="was built from another reference than .*other.fa"):
            open_index(folder, reference=other)
    with pytest.raises(InputError, match="missing.fa: there is no such file"):
        open_index(folder, reference=tmp_path / "missing.fa")


def test_missing_cut_and_changed_files(folder: Path) -> None:
    for name in json.loads((folder / "index.json").read_text())["files"]:
        path = folder / name
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(IndexFormatError, match=f"{name}: .* bytes, but .* were expected; build the index again"):
            open_index(folder)
        path.unlink()
        with pytest.raises(IndexFormatError, match=f"{name}: missing from the index; build the index again"):
            open_index(folder)
        for place in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            for act in (verify_index, open_index):
                with pytest.raises(IndexFormatError, match=f"{name}: its (header|values|SHA-256|checksum) .* again"):
                    act(folder)
        path.write_bytes(content)
    assert verify_index(folder) > 0


def test_numpy_reads_the_files(index: SeedIndex, folder: Path) -> None:
    for name, array in index.arrays().items():
        assert np.array_equal(np.load(folder / f"{name}.npy"), array)


@pytest.mark.parametrize("place", range(0, 128, 9))
def test_no_byte_of_a_header_may_differ(folder: Path, place: int) -> None:
    path = folder / "fast.table.npy"
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    with pytest.raises(IndexFormatError, match="fast.table.npy: its header is not that of 257 values of type uint32"):
        open_index(folder)


def test_arrays_that_do_not_fit_the_parameters(folder: Path) -> None:
    # Compiled code checks no bounds, so this must be seen before a search.
    right = {"occ_interval": 64, "sa_interval": 4, "table_length": 4}
    for name, value in (("occ_interval", 32), ("occ_interval", 128), ("sa_interval", 1), ("sa_interval", 5)):
        change(folder, lambda m, name=name, value=value: m["parameters"].update(right | {name: value}))
        with pytest.raises(
            IndexFormatError, match=r"damaged \(.* does not fit the parameters\); build the index again"
        ):
            open_index(folder)
    for name, value in (("occ_interval", 1 << 40), ("occ_interval", 96), ("sa_interval", 0), ("table_length", 16)):
        change(folder, lambda m, name=name, value=value: m["parameters"].update(right | {name: value}))
        with pytest.raises(IndexFormatError, match="index.json: damaged .*; build the index again"):
            open_index(folder)


def test_arrays_of_another_kind(folder: Path) -> None:
    path = folder / "fast.suffix_array.npy"
    content = path.read_bytes()
    for old, new in ((b"'<u4'", b"'<i4'"), (b"'<u4'", b"'<f4'"), (b"(45,)", b"(44,)"), (b"(45,)", b"(9,5)")):
        assert content.count(old) == 1
        path.write_bytes(content.replace(old, new))
        with pytest.raises(IndexFormatError, match="build the index again"):
            open_index(folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: [m],
        lambda m: m.pop("format") and None,
        lambda m: m.pop("files") and None,
        lambda m: m.update(files=[]),
        lambda m: m["files"].update({"core.text.npy": {}}),
        lambda m: m["files"]["core.text.npy"].update(size="37704"),
        lambda m: m["files"]["core.text.npy"].update(sha256_of_pieces=""),
        lambda m: m["files"]["core.text.npy"].update(checksum=7),
        lambda m: m["files"].update({"../genome.fa": {"size": 1, "sha256_of_pieces": ""}}),
        lambda m: m["files"].pop("core.text.npy") and None,
        lambda m: m["files"].update({"fast.text.npy": m["files"]["core.text.npy"]}),
        lambda m: m.update(parts=["fast"]),
        lambda m: m.update(parts=["fast", "reverse", "forward"]),
        lambda m: m.update(parts=["fast", "forward", "reverse", "more"]),
        lambda m: m.update(parts="fast"),
        lambda m: m.update(format=str(FORMAT_VERSION)),
        lambda m: m.update(format=True),
        lambda m: m.update(parameters={}),
        lambda m: m["parameters"].update(occ_interval="wide"),
        lambda m: m["parameters"].update(sa_interval=None),
        lambda m: m["parameters"].update(sa_interval=4.0),
        lambda m: m.update(contigs="abc"),
        lambda m: m.update(contigs=[]),
        lambda m: m.update(contigs=m["contigs"][:1]),
        lambda m: m["contigs"][0].pop("length") and None,
        lambda m: m["contigs"][0].update(length=-1),
        lambda m: m["contigs"][0].update(length=1 << 63),
        lambda m: m["contigs"][0].update(length=float("inf")),
        lambda m: m["contigs"][0].update(length=28),
        *(
            lambda m, name=name: m["contigs"][0].update(name=name)
            for name in (None, 5, [], "", "a\tb", "a\n", "\ud800", "número2")
        ),
        lambda m: m.update(segments=-1),
        lambda m: m.update(segments=2, bases=43),
        lambda m: m.update(bases=1 << 40),
        lambda m: m.update(reference_sha256="0" * 63),
    ],
)
def test_a_manifest_with_something_missing_or_of_another_kind(folder: Path, edit: Callable[[dict], Any]) -> None:
    change(folder, edit)
    with pytest.raises(IndexFormatError, match="build the index again"):
        open_index(folder)


@pytest.mark.parametrize("content", [b"", b'{"format": 1,', b"\xff\xfe\x00", b"[" * 100_000, b"null"])
def test_a_manifest_that_is_no_json(folder: Path, content: bytes) -> None:
    (folder / "index.json").write_bytes(content)
    with pytest.raises(IndexFormatError, match="index.json: damaged .*; build the index again"):
        open_index(folder)


def test_an_index_may_be_moved_and_copied(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    os.rename(folder, tmp_path / "moved")
    for name in ("copy", "moved"):
        assert verify_index(tmp_path / name) > 0
        assert len(warpseed.find_kmers(str(tmp_path / name), ["GATTACA"])) == 2
