"""index.json: what an index is, and what its files must be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from warpseed.errors import IndexFormatError
from warpseed.fm_index.layout import LIMITS, Parameters, SeedIndex
from warpseed.fm_index.npy import HEADER_BYTES, FileEntry
from warpseed.fm_index.parts import ALL_PARTS, CORE, PARTS, Sizes, file_name
from warpseed.version import __version__

__all__ = ["FORMAT_VERSION", "MANIFEST", "Manifest", "describe", "sign", "understand"]

FORMAT_VERSION = 3
MANIFEST = "index.json"
_MOST_BASES = 1 << 40
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHECKSUM = re.compile(r"[0-9a-f]{16}")
_CONTROL = re.compile(r"[\x00-\x1f\ud800-\udfff]")
"""What no name of a contig holds; the parser lets none of it through."""


class Manifest(NamedTuple):
    """What index.json says, every value checked."""

    names: tuple[str, ...]
    lengths: np.ndarray
    """int64[c]"""
    reference: str
    """SHA-256 of the reference file"""
    sizes: Sizes
    parts: tuple[str, ...]
    files: dict[str, FileEntry]

    @property
    def size(self) -> int:
        """Bytes of all files that it lists."""
        return sum(entry.size for entry in self.files.values())


def describe(index: SeedIndex, files: dict[str, FileEntry]) -> dict[str, Any]:
    """The content of index.json, without its digest; files in the order of parts, whatever order they were made in."""
    return {
        "format": FORMAT_VERSION,
        "warpseed": __version__,
        "reference_sha256": index.digest,
        "parameters": index.parameters._asdict(),
        "contigs": [{"name": n, "length": int(b)} for n, b in zip(index.names, index.lengths, strict=True)],
        "segments": len(index.segments.contig),
        "bases": index.bases,
        "parts": list(index.parts),
        "files": {f"{name}.npy": files[f"{name}.npy"]._asdict() for name in index.arrays()},
    }


def sign(content: dict[str, Any]) -> Iterator[str]:
    """The text of index.json, in pieces, with a digest over everything else in it."""
    bare = {key: value for key, value in content.items() if key != "digest"}
    digest = hashlib.sha256()
    for piece in _canonical(bare):
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return _canonical(bare | {"digest": digest.hexdigest()})


def _canonical(content: dict[str, Any]) -> Iterator[str]:
    yield from json.JSONEncoder(indent=1, ensure_ascii=False).iterencode(content)
    yield "\n"


def understand(folder: str, data: bytes) -> Manifest:
    """Read index.json strictly.

    Raises
    ------
    IndexFormatError : no JSON, of another format, changed since it was written, or something in it is missing, of
        another type or out of its range
    """
    try:
        text = data.decode()
        content = json.loads(text)
        version = _whole(content["format"], 1, 1 << 30)
        if version == FORMAT_VERSION:
            if "".join(sign(content)) != text:
                raise ValueError("it is not as it was written")
            return _check(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)[:200]
        raise IndexFormatError(f"{folder}/{MANIFEST}: damaged ({said}); build the index again.") from error
    raise IndexFormatError(
        f"{folder}: index format {version}, but this version of warpseed reads format {FORMAT_VERSION}; "
        "build the index again."
    )


def _check(content: dict[str, Any]) -> Manifest:
    given = content["parameters"]
    parameters = Parameters(**{name: _whole(given[name], *limits) for name, limits in LIMITS.items()})
    if parameters.occ_interval & (parameters.occ_interval - 1):
        raise ValueError(f"occ_interval is {parameters.occ_interval}")
    contigs = content["contigs"]
    if type(contigs) is not list or not contigs:
        raise ValueError("there are no contigs")
    names = tuple(_name(contig["name"]) for contig in contigs)
    if len(set(names)) < len(names):
        raise ValueError("two contigs have one name")
    lengths = np.array([_whole(contig["length"], 1, _MOST_BASES - 1) for contig in contigs], np.int64)
    segments, bases = _whole(content["segments"], 1, 1 << 32), _whole(content["bases"], 1, 1 << 32)
    sizes = Sizes(_whole(segments + bases, 2, (1 << 32) - 1), segments, parameters)
    parts = content["parts"]
    if type(parts) is not list or parts != [part for part in ALL_PARTS if part in parts]:
        raise ValueError("its parts are none that are known")
    files = {name: _entry(entry) for name, entry in content["files"].items()}
    expected = {
        file_name(part, name): HEADER_BYTES + spec.length(sizes) * np.dtype(spec.dtype).itemsize
        for part in (CORE, *parts)
        for name, spec in PARTS[part].items()
    }
    for name, size in expected.items():
        if files[name].size != size:
            raise ValueError(f"{name} does not fit the parameters")
    if files.keys() != expected.keys():
        raise ValueError("it lists files that belong to no part")
    return Manifest(names, lengths, _hex(content["reference_sha256"], _SHA256), sizes, tuple(parts), files)


def _whole(value: object, smallest: int, largest: int) -> int:
    if type(value) is not int or not smallest <= value <= largest:
        raise ValueError(f"{str(value)[:40]!r} where a whole number from {smallest} to {largest} was expected")
    return value


def _name(value: object) -> str:
    if type(value) is not str or not value or _CONTROL.search(value):
        raise ValueError(f"{str(value)[:40]!r} is no name of a contig")
    return value


def _hex(value: object, pattern: re.Pattern[str]) -> str:
    if type(value) is not str or not pattern.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} is no digest")
    return value


def _entry(entry: dict[str, object]) -> FileEntry:
    size = _whole(entry["size"], 1, 1 << 48)
    return FileEntry(size, _hex(entry["sha256_of_pieces"], _SHA256), _hex(entry["checksum"], _CHECKSUM))
