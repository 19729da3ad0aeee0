"""Ways to damage an index, each described by a few plain values that a seed decides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from warpseed.fm_index.checksum import checksum
from warpseed.fm_index.manifest import sign

HEADER = 128
FILLINGS = ("zeros", "ones", "largest", "random", "random rows", "reversed", "shuffled", "constant")
EDITS: dict[str, Any] = {
    "no contigs": lambda m: m.update(contigs=[]),
    "one contig too few": lambda m: m.update(contigs=m["contigs"][:1]),
    "one contig too many": lambda m: m["contigs"].append({"name": "more", "length": 5}),
    "equal names": lambda m: m["contigs"][0].update(name=m["contigs"][1]["name"]),
    "a name with a tab": lambda m: m["contigs"][0].update(name="a\tb"),
    "short contigs": lambda m: [contig.update(length=1) for contig in m["contigs"]],
    "long contigs": lambda m: [contig.update(length=(1 << 40) - 1) for contig in m["contigs"]],
    "a segment more": lambda m: m.update(segments=m["segments"] + 1),
    "a segment for a base": lambda m: m.update(segments=m["segments"] + 1, bases=m["bases"] - 1),
    "half of the bases": lambda m: m.update(bases=m["bases"] // 2),
    "other blocks": lambda m: m["parameters"].update(occ_interval=2 * m["parameters"]["occ_interval"]),
    "another table": lambda m: m["parameters"].update(table_length=m["parameters"]["table_length"] + 1),
    "other samples": lambda m: m["parameters"].update(sa_interval=m["parameters"]["sa_interval"] + 1),
    "no parts": lambda m: m.update(parts=[]),
}


class Case(NamedTuple):
    """One damaged index."""

    kind: str
    """'flip' (a bit), 'fill' (an array's values, checksums made right) or 'edit' (of index.json, signed anew)"""
    file: str
    what: str
    """the filling or the edit"""
    place: int
    """the bit, or the seed of the filling"""
    check: bool | None
    """as `open_index` takes it"""


def flips(folder: Path, seed: int, each: int) -> Iterator[Case]:
    """For every file `each` bits of its header and of its values, and twenty times as many of index.json."""
    rng = np.random.default_rng(seed)
    for path in sorted(folder.iterdir()):
        bits = 8 * path.stat().st_size
        if path.name == "index.json":
            places = rng.integers(0, bits, 20 * each)
        else:
            places = np.concatenate([rng.integers(0, 8 * HEADER, each), rng.integers(8 * HEADER, bits, each)])
        for place in places.tolist():
            yield Case("flip", path.name, "", place, None)


def fillings(folder: Path, seeds: range) -> Iterator[Case]:
    """Every array with every filling, opened with and without the thorough check."""
    for path in sorted(folder.glob("*.npy")):
        for what in FILLINGS:
            for seed in seeds if what in ("random", "random rows", "shuffled", "constant") else seeds[:1]:
                for check in (True, False):
                    yield Case("fill", path.name, what, seed, check)


def edits() -> Iterator[Case]:
    """Every edit of index.json, opened with and without the thorough check."""
    for what in EDITS:
        for check in (True, False):
            yield Case("edit", "index.json", what, 0, check)


def damage(folder: Path, case: Case) -> None:
    """Damage the index in a folder."""
    path = folder / case.file
    if case.kind == "flip":
        content = bytearray(path.read_bytes())
        content[case.place // 8] ^= 1 << case.place % 8
        path.write_bytes(content)
        return
    manifest = json.loads((folder / "index.json").read_text())
    if case.kind == "edit":
        EDITS[case.what](manifest)
    else:
        values = _filled(np.load(path), case.what, np.random.default_rng(case.place), manifest)
        path.write_bytes(path.read_bytes()[:HEADER] + values.tobytes())
        manifest["files"][case.file].update(sha256_of_pieces=_digest_of_pieces(path), checksum=checksum(values))
    (folder / "index.json").write_text("".join(sign(manifest)))


def _digest_of_pieces(path: Path) -> str:
    content, piece = path.read_bytes(), 1 << 24
    digests = [hashlib.sha256(content[place : place + piece]).digest() for place in range(0, len(content), piece)]
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _filled(values: np.ndarray, what: str, rng: np.random.Generator, manifest: dict[str, Any]) -> np.ndarray:
    limits, rows = np.iinfo(values.dtype), manifest["bases"] + manifest["segments"]
    if what in ("zeros", "ones", "largest"):
        return np.full_like(values, {"zeros": 0, "ones": 1, "largest": limits.max}[what])
    if what == "random":
        return rng.integers(limits.min, limits.max, len(values), values.dtype, endpoint=True)
    if what == "random rows":
        return rng.integers(0, rows, len(values)).astype(values.dtype)
    if what == "reversed":
        return values[::-1].copy()
    if what == "shuffled":
        return rng.permutation(values)
    return np.full_like(values, values[rng.integers(len(values))])
