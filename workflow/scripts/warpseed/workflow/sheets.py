"""The sample sheet, which says in lines of a table what `samples` may say as a mapping, and where each key stands."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from warpseed.errors import ConfigError

__all__ = ["Places", "key_name", "plain_value", "read_sheet"]

NAME_COLUMN = "sample"
NEEDED_COLUMNS = (NAME_COLUMN, "reads")


def key_name(parts: Iterable[Any]) -> str:
    """A configuration key as its user would write it, e.g. kmer_seeds.datasets.S20.k."""
    return ".".join(str(part) for part in parts)


class Places(NamedTuple):
    """Where the keys of a configuration stand, in words: in its files, or those of samples in the lines of a sheet."""

    sheet: str | None = None
    """path of the sheet, None where there is none"""
    lines: Mapping[str, int] = {}
    """sample to its line in the sheet, counted from 1"""

    def _line(self, path: Sequence[Any]) -> str | None:
        if self.sheet is None or not path or path[0] != "samples":
            return None
        return f"{self.sheet}, line {self.lines[path[1]]}" if len(path) > 1 else self.sheet

    def subject(self, path: Sequence[Any]) -> str:
        """What a sentence about a key begins with; an empty path is the whole configuration."""
        line = self._line(path)
        if line is None:
            return f"The configuration key '{key_name(path)}'" if path else "The configuration"
        return f"{line}: the column '{path[2]}'" if len(path) > 2 else line

    def aside(self, *path: Any) -> str:
        """The same as a remark in brackets, e.g. ``configuration key 'samples.a.k'``."""
        line = self._line(path)
        return f"configuration key '{key_name(path)}'" if line is None else f"{line}, column '{path[-1]}'"


def plain_value(text: str) -> Any:
    """A number, true, false (or TRUE, True and the like, as programs write them) or null that was written as text, as
    such; any other text as it is."""
    import yaml

    if re.fullmatch(r"[-+]?[0-9]{1,100}", text):
        return int(text)  # of what begins with 0, YAML would make an octal number
    if re.fullmatch(r"[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?|true|True|TRUE|false|False|FALSE|null|~", text):
        return yaml.safe_load(text)
    return text


def read_sheet(path: str, columns: Mapping[str, bool]) -> tuple[dict[str, dict[str, Any]], Places]:
    """Read a sample sheet: UTF-8, a line that names the columns, then a line a sample, cells divided by tabs.

    Blank lines and lines that begin with ``#`` are passed over; an empty cell leaves its key out.

    Parameters
    ----------
    path : str
        As the configuration gives it.
    columns : mapping of str to bool
        The keys that a sample can have, and whether a key holds text alone: what stands in any other column is read
        as in YAML.

    Returns
    -------
    dict of str to dict
        Each sample's keys, as `samples` would hold them.
    Places
        The lines of the samples.

    Raises
    ------
    ConfigError
        What is wrong, with file, line and column.
    """
    rows = _rows(path)
    line, header = next(rows, (0, []))
    if not header:
        raise ConfigError(
            f"{path}: the sample sheet is empty, but its first line should name its columns, divided by tabs: "
            f"{', '.join(NEEDED_COLUMNS)}, and any of {', '.join(key for key in columns if key not in NEEDED_COLUMNS)}."
        )
    _check_header(f"{path}, line {line}", header, [NAME_COLUMN, *columns])
    samples: dict[str, dict[str, Any]] = {}
    lines: dict[str, int] = {}
    for line, cells in rows:
        where = f"{path}, line {line}"
        beyond = [cell for i, cell in enumerate(cells) if cell and (i >= len(header) or not header[i])]
        if beyond:
            raise ConfigError(f"{where}: the cell {beyond[0]!r} stands under no column: name one for it, or empty it.")
        row = {column: cell for column, cell in zip(header, cells, strict=False) if cell}
        name = row.pop(NAME_COLUMN, None)
        if name is None:
            raise ConfigError(f"{where}: the column '{NAME_COLUMN}' is empty: give the sample a name.")
        if name in samples:
            raise ConfigError(
                f"{where}: the sample '{name}' stands here and in line {lines[name]}, and both would have the same "
                "results: rename one."
            )
        samples[name] = {key: cell if columns[key] else plain_value(cell) for key, cell in row.items()}
        lines[name] = line
    if not samples:
        raise ConfigError(
            f"{path}: the sample sheet names its columns, but no sample: add a line for each, or take the key "
            "'samples' out of the configuration."
        )
    return samples, Places(path, lines)


def _rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """The number of each line that says something, and its cells; empty ones at the end are left out."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8-sig") as handle:
            for number, line in enumerate(handle, 1):
                if line.startswith("#"):
                    continue
                cells = [_unquoted(cell.strip()) for cell in line.rstrip("\n").split("\t")]
                while cells and not cells[-1]:
                    cells.pop()
                if cells:
                    yield number, cells
    except UnicodeDecodeError:
        raise ConfigError(
            f"{path}: the sample sheet (configuration key 'samples') is not UTF-8 text: save it as tab-separated UTF-8."
        ) from None
    except (OSError, ValueError) as error:  # (the latter of a path with a zero byte)
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"The sample sheet {path!r} (configuration key 'samples') cannot be read ({why}): give the path "
            "of a tab-separated file, seen from the folder that Snakemake works in, or samples by name."
        ) from None


def _unquoted(cell: str) -> str:
    """A cell without the quotes that spreadsheets put around some."""
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"').strip() if quoted else cell


def _check_header(where: str, header: Sequence[str], known: Sequence[str]) -> None:
    if len(header) == 1 and re.search(r"[ ,;]", header[0]):
        raise ConfigError(f"{where}: one column is named, '{header[0]:.60}': write tabs between the columns.")
    for i, column in enumerate(header):
        if column and column not in known:
            guesses = difflib.get_close_matches(column.lower(), known, n=1)
            hint = f"did you mean '{guesses[0]}'" if guesses else f"known are {', '.join(known)}"
            raise ConfigError(f"{where}: the column '{column:.60}' is not known: {hint}?")
        if column in header[:i] and column:
            raise ConfigError(f"{where}: the column '{column}' stands twice: remove or rename one.")
    for column in NEEDED_COLUMNS:
        if column not in header:
            raise ConfigError(f"{where}: the column '{column}' is missing: add it.")
