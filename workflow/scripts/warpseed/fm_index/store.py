"""An index on disk: a folder of .npy files that map into memory, and index.json that says what they must be."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from warpseed.errors import IndexFormatError
from warpseed.files import sha256_file
from warpseed.fm_index.layout import FastIndex, PaperIndex, SeedIndex, Segments
from warpseed.version import __version__

__all__ = ["FORMAT_VERSION", "open_index", "save_index", "verify_index"]

FORMAT_VERSION = 1
_MANIFEST = "index.json"


def save_index(index: SeedIndex, folder: str | os.PathLike[str]) -> None:
    """Write an index; the folder appears whole or not at all, and replaces an older index of that name.

    Raises
    ------
    IndexFormatError : `folder` exists and is something else than an index
    """
    target = Path(folder)
    if target.exists() and any(target.iterdir()) and not (target / _MANIFEST).exists():
        raise IndexFormatError(
            f"{target}: exists and is no warpseed index, so it is not overwritten; name a new folder, or remove it."
        )
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
        if target.exists():
            shutil.rmtree(target)
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
        manifest["files"], manifest["parameters"], manifest["contigs"], manifest["reference_sha256"]  # noqa: B018
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise IndexFormatError(f"{path}: damaged ({error!r}); build the index again.") from error
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{folder}: index format {version}, but this version of warpseed reads format {FORMAT_VERSION}; "
            "build the index again."
        )
    return manifest


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
    shifts = {"q_shift": parameters["q"].bit_length() - 1, "p_shift": parameters["p"].bit_length() - 1}
    segments = group(Segments, "segments")
    fast = group(FastIndex, "fast", segments=segments)
    return SeedIndex(
        tuple(contig["name"] for contig in manifest["contigs"]),
        np.array([contig["length"] for contig in manifest["contigs"]], np.int64),
        manifest["reference_sha256"],
        fast,
        group(PaperIndex, "forward", **shifts),
        group(PaperIndex, "reverse", **shifts),
        {},
    )


def verify_index(folder: str | os.PathLike[str]) -> int:
    """Check every file of an index against its recorded SHA-256; the number of bytes checked."""
    path = Path(folder)
    manifest = _read_manifest(path)
    _check_files(path, manifest, digests=True)
    return sum(entry["size"] for entry in manifest["files"].values())
