"""What the tests of sequences share: files of given content, and sequences as text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from warpseed.sequences.queries import Queries
from warpseed.sequences.reference import Reference, read_reference
from warpseed.sequences.simulate import simulate_reference


def save(folder: Path, content: bytes | str, name: str = "in.fa") -> Path:
    """A file of that content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def records(queries: Queries) -> list[tuple[str, str]]:
    """Name and bases of every query."""
    return [(queries.name(i), queries.sequence(i)) for i in range(len(queries))]


def plain(sequence: str) -> str:
    """A sequence as it is kept: upper case, N for whatever is no base."""
    return re.sub("[^ACGT]", "N", sequence.upper())


def genome(folder: Path, **parameters) -> Reference:
    """A simulated genome."""
    simulate_reference(folder / "g.fa", **parameters)
    return read_reference(folder / "g.fa")


def text(codes: np.ndarray) -> str:
    """Codes as letters."""
    return np.frombuffer(b"ACGTN", np.uint8)[codes].tobytes().decode()
