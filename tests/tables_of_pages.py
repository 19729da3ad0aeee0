"""Tables of README and docs, as their cells."""

from __future__ import annotations

__all__ = ["rows_of"]


def rows_of(text: str, head: str) -> list[list[str]]:
    """The cells of the rows of a table, by how its header begins, which only one table's does."""
    assert text.count(head) == 1
    lines = text.split(head)[1].splitlines()[2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[: lines.index("")]]
