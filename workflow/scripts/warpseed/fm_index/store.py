"""An index on disk: a folder of .npy files that map into memory, and index.json that says what they must be."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from warpseed.errors import IndexFormatError, InputError
from warpseed.fm_index.layout import HINT_SHIFT, PAD_WORDS, FastIndex, PaperIndex, SeedIndex, Segments
from warpseed.sequences.files import sha256_file
from warpseed.version import __version__

__all__ = ["FORMAT_VERSION", "check_target", "open_index", "save_index", "verify_index"]

FORMAT_VERSION = 1
_MANIFEST = "index.json"
_DTYPES = {"text": np.uint64, "bwt": np.uint64, "contig": np.int32, "contig_start": np.int64}
"""By the last part of an array's name; all others are uint32."""


def check_target(folder: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a name that an index must not be written to.

    An index takes the place of an older one, and that whole folder goes: so nothing else may lie in it.

    Raises
    ------
    IndexFormatError : `folder` exists and is neither an empty folder nor an index with nothing beside it
    """
    target = Path(folder)
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise IndexFormatError(f"{target}: exists and is no folder, but an index is one; name a new folder.")
    present = {path.name for path in target.iterdir()}
    try:
        ours = {_MANIFEST, *_read_manifest(target)["files"]} if present else set()
    except IndexFormatError:
        # An index of another version, or a damaged one, may be replaced as well: its names tell it.
        ours = {name for name in present if name.endswith(".npy") or name == _MANIFEST}
        ours = ours if len(ours) > 1 else set()
    if others := sorted(present - ours):
        raise IndexFormatError(
            f"{target}: exists, and holds {others[0]!r}, which is no part of a warpseed index, so it is not "
            "overwritten; name a new folder, or remove this one."
        )


def save_index(index: SeedIndex, folder: str | os.PathLike[str]) -> None:
    """Write an index; the folder appears whole or not at all, and replaces an older index of that name.

    Raises
    ------
    IndexFormatError : `folder` exists and is something else than an index
    """
    check_target(folder)
    target = Path(folder).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        files = {}
        for name, array in index.arrays().items():
            path = temporary / f"{name}.npy"
            np.save(path, array)
            files[path.name] = {"size": path.stat().st_size, "sha256": sha256_file(path)}
        manifest = {
            "format": FORMAT_VERSION,
            "warpseed": __version__,
            "reference_sha256": index.digest,
            "parameters": {
                "q": 1 << index.forward.q_shift,
                "p": 1 << index.forward.p_shift,
                "table_length": index.table_length,
            },
            "contigs": [{"name": n, "length": int(b)} for n, b in zip(index.names, index.lengths, strict=True)],
            "segments": len(index.fast.segments.contig),
            "bases": index.bases,
            "files": files,
        }
        (temporary / _MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        temporary.chmod(0o755)
        if target.exists() and any(target.iterdir()):
            # The old index steps aside, so that a whole one is there at every moment but one.
            old = temporary.with_name(f"{temporary.name}.old")
            target.replace(old)
            temporary.replace(target)
            shutil.rmtree(old)
        else:
            temporary.replace(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    if not path.is_file():
        raise IndexFormatError(
            f"{folder}: has no {_MANIFEST}, so it is no warpseed index; make one with "
            f"'python -m warpseed index GENOME.fa -o {folder}'."
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        version = manifest["format"]
        if version == FORMAT_VERSION:
            _check_manifest(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexFormatError(f"{path}: damaged ({error!r}); build the index again.") from error
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{folder}: index format {version}, but this version of warpseed reads format {FORMAT_VERSION}; "
            "build the index again."
        )
    return manifest


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Touch everything that opening an index uses; raises whatever is wrong with it."""
    str(manifest["reference_sha256"])
    for name in ("q", "p"):
        int(manifest["parameters"][name]).bit_length()
    for contig in manifest["contigs"]:
        str(contig["name"]), int(contig["length"])
    for name, file in manifest["files"].items():
        if name != Path(name).name:
            raise ValueError(name)
        int(file["size"]), str(file["sha256"])


def _check_files(folder: Path, manifest: dict[str, Any], *, digests: bool) -> None:
    for name, expected in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise IndexFormatError(f"{path}: missing from the index; build the index again.")
        size = path.stat().st_size
        if size != expected["size"]:
            raise IndexFormatError(
                f"{path}: {size:,} bytes, but {expected['size']:,} were expected; build the index again."
            )
        if digests and sha256_file(path) != expected["sha256"]:
            raise IndexFormatError(f"{path}: its SHA-256 is not the recorded one; build the index again.")


def open_index(folder: str | os.PathLike[str], reference: str | os.PathLike[str] | None = None) -> SeedIndex:
    """Map an index into memory.

    Version and file sizes are checked, and the reference's digest where a reference file is named.

    Raises
    ------
    IndexFormatError : no index, damaged, of another version, or of another reference
    """
    path = Path(folder)
    manifest = _read_manifest(path)
    _check_files(path, manifest, digests=False)
    if reference is not None and not Path(reference).is_file():
        raise InputError(f"{reference}: there is no such file; give the path of the index's reference.")
    if reference is not None and sha256_file(Path(reference)) != manifest["reference_sha256"]:
        raise IndexFormatError(
            f"{path}: was built from another reference than {reference} (SHA-256 differs); build the index again."
        )
    try:
        arrays = {name: np.load(path / name, mmap_mode="c") for name in manifest["files"]}
    except ValueError as error:
        raise IndexFormatError(f"{path}: a file cannot be read ({error}); build the index again.") from error

    def group(kind: type, prefix: str, **scalars: int) -> Any:
        names = [field for field in kind._fields if field not in scalars]  # type: ignore[attr-defined]
        try:
            return kind(**{field: arrays[f"{prefix}.{field}.npy"].view(np.ndarray) for field in names}, **scalars)
        except KeyError as error:
            raise IndexFormatError(f"{path}: {error} is missing; build the index again.") from error

    parameters = manifest["parameters"]
    shifts = {f"{name}_shift": int(parameters[name]).bit_length() - 1 for name in ("q", "p")}
    segments = group(Segments, "segments")
    fast = group(FastIndex, "fast", segments=segments)
    index = SeedIndex(
        tuple(contig["name"] for contig in manifest["contigs"]),
        np.array([contig["length"] for contig in manifest["contigs"]], np.int64),
        manifest["reference_sha256"],
        fast,
        group(PaperIndex, "forward", **shifts),
        group(PaperIndex, "reverse", **shifts),
        {},
    )
    _check_arrays(path, index)
    return index


def _check_arrays(folder: Path, index: SeedIndex) -> None:
    """Compiled code checks no bounds: an array of another kind or size would end the process, or worse."""
    for name, array in index.arrays().items():
        if array.ndim != 1 or array.dtype != _DTYPES.get(name.rpartition(".")[2], np.uint32):
            raise IndexFormatError(
                f"{folder / name}.npy: {array.ndim} dimensions of {array.dtype} are wrong; build the index again."
            )
    segments = index.fast.segments
    sizes = [
        (len(segments.text_start), len(segments.contig) + 1),
        (len(segments.contig_start), len(segments.contig)),
        (len(index.fast.text), index.rows // 32 + PAD_WORDS),
        (len(segments.hint), (index.rows >> HINT_SHIFT) + 2),
        (len(index.fast.table), 4**index.table_length + 1),
    ]
    for part in (index.forward, index.reverse):
        blocks = (index.rows >> part.q_shift) + 2
        sizes += [
            (len(part.rocc), 4 * blocks),
            (len(part.separators), blocks),
            (len(part.bwt), blocks << part.q_shift >> 5),
            (len(part.rsa), -(-index.rows >> part.p_shift)),
            (len(part.separator_row), len(segments.contig)),
            (len(part.separator_position), len(segments.contig)),
            (len(part.first_row), 5),
        ]
    if any(found != expected for found, expected in sizes):
        raise IndexFormatError(f"{folder}: its files and parameters do not fit together; build the index again.")


def verify_index(folder: str | os.PathLike[str]) -> int:
    """Check every file of an index against its recorded SHA-256; the number of bytes checked."""
    path = Path(folder)
    manifest = _read_manifest(path)
    _check_files(path, manifest, digests=True)
    return sum(entry["size"] for entry in manifest["files"].values())
