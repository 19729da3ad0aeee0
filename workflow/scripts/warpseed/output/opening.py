"""Where results go: a file that appears when it is whole, a pipe or device as it stands, or standard output."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

from warpseed.compute.temporary import unfit
from warpseed.errors import InputError, advice_for
from warpseed.sequences.files import atomic_path, open_for_writing, standard_output

__all__ = [
    "check_output",
    "check_still_there",
    "folder_of",
    "open_output",
    "output_format",
    "refusal",
    "remove_old_output",
    "same_output",
]

_PACKED = ("bam",)
"""Formats that are compressed as they are."""


def output_format(path: str | os.PathLike[str], formats: Sequence[str]) -> str:
    """One of `formats`, by the ending of a file's name; the first of them for '-', standard output.

    Raises
    ------
    InputError : another ending, an empty name, or none
    """
    name = _name_of(path)
    if name == "-":
        return formats[0]
    for ending in formats:
        if name.endswith(f".{ending}") or (ending not in _PACKED and name.endswith(f".{ending}.gz")):
            return ending
    plain = " or ".join(f".{ending}" for ending in formats if ending not in _PACKED)
    packed = "".join(f", or in .{ending}" for ending in formats if ending in _PACKED)
    raise InputError(f"{name}: the ending says no output format; end it in {plain}, or .gz behind these{packed}.")


def _name_of(path: Any) -> str:
    """The name of an output; InputError where it is none."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path is {path!r:.60}, but the name of a file was expected, or '-' for standard output.")
    name = str(os.fspath(path))
    if reason := unfit(name):
        raise InputError(f"path is {name!r:.60}, but {reason}; name another file.")
    if not name.strip():
        raise InputError("the name of the output file is empty; name a file, or '-' for standard output.")
    return name


def _status(path: str | os.PathLike[str], standard: int) -> os.stat_result | None:
    """What a file is, links followed; of '-' what descriptor `standard` is; None where there is none."""
    try:
        return os.fstat(standard) if os.fspath(path) == "-" else os.stat(path)
    except OSError:
        return None


def check_output(path: str | os.PathLike[str], inputs: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Refuse, before any work, an output that is a folder, a link to itself, one of the files that are being read, or a
    file that may not be written; and one beside which a folder, or a file that is read, stands where its index goes, or
    one of an older file goes away.

    Links are followed, and '-' is what standard input or output was sent to.

    Raises
    ------
    InputError
    """
    _name_of(path)
    if os.fspath(path).endswith(os.sep):
        raise InputError(f"{path}: this is the name of a folder, but results go to a file; name a file.")
    target = _status(path, 1)
    if target is None and os.path.islink(os.path.realpath(path)):
        raise InputError(f"{path}: this link leads to itself, but results go to a file; name a file.")
    if target is not None:
        if stat.S_ISDIR(target.st_mode):
            raise InputError(f"{path}: this is a folder, but results go to a file; name a file.")
        if source := _input_that_is(target, inputs):
            raise InputError(f"{path}: the output is {source}, which is read; name another file.")
        if not stat.S_ISREG(target.st_mode):
            return
        if os.fspath(path) != "-":
            _check_writable(path)
    for index in _indexes_of(path):
        _check_index(index, path, inputs)


def _check_index(index: str, path: str | os.PathLike[str], inputs: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse what stands where an index of an output goes, or goes away, but is none."""
    there = _status(index, 1)
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise InputError(f"{index}: this is a folder, but the index of {path} is a file; remove it, or rename it.")
    if there is not None and (source := _input_that_is(there, inputs)):
        raise InputError(
            f"{index}: an index of {path} has this name, but it is {source}, which is read; name another output."
        )


def _input_that_is(target: os.stat_result, inputs: Sequence[str | os.PathLike[str]]) -> str:
    """Which of the inputs a file is, of which this is the status, in words; empty where it is none."""
    for source in inputs:
        status = _status(source, 0)
        if status is not None and stat.S_ISREG(target.st_mode) and os.path.samestat(status, target):
            return "standard input" if os.fspath(source) == "-" else f"the file {source}"
    return ""


def _check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a file that may not be written, though its folder would let it be replaced: `sort -o` refuses it, too."""
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        raise refusal(path, error) from error


def same_output(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two outputs, or one and an index of the other, would be one file; links are followed, and '-' is what
    standard output was sent to."""
    ones, others = ([os.fspath(path), *_indexes_of(path)] for path in (one, other))
    return any(_is_one_file(*pair) for pair in product(ones, others))


def _is_one_file(one: str, other: str) -> bool:
    first, second = _status(one, 1), _status(other, 1)
    if first is None or second is None:
        return os.path.realpath(one) == os.path.realpath(other)
    return stat.S_ISREG(first.st_mode) and os.path.samestat(first, second)


def _indexes_of(path: str | os.PathLike[str]) -> list[str]:
    """Every name that an index of a .gz or .bam file may have, beside a link and beside what it leads to."""
    name = os.fspath(path)
    kinds = (".csi", ".bai") if name.endswith(".bam") else (".csi", ".tbi") if name.endswith(".gz") else ()
    return sorted({f"{each}{ending}" for each in (name, os.path.realpath(name)) for ending in kinds})


def check_still_there(path: str | os.PathLike[str], written: int) -> None:
    """Refuse, before an index gets its name, a file that is not the one that was written, by an open descriptor of it.

    Raises
    ------
    InputError
    """
    there = _status(path, 1)
    if there is None or not os.path.samestat(there, os.fstat(written)):
        raise InputError(f"{path}: another process has replaced it, or removed it, meanwhile; write it again.")


def folder_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder of an output; None where it is no plain file, and nothing else should lie beside it."""
    real = Path(os.path.realpath(path))
    plain = os.fspath(path) != "-" and (not real.exists() or real.is_file())
    return real.parent if plain else None


def refusal(where: str | os.PathLike[str], error: OSError) -> InputError:
    """The sentence for a file, or a folder, into which nothing could be written."""
    no_folder = isinstance(error, FileExistsError | NotADirectoryError)
    reason = "a file stands where its folder should be" if no_folder else error.strerror or str(error)
    return InputError(f"{where}: cannot be written ({reason}); {advice_for(error)}.")


def _is_about(error: OSError, path: str | os.PathLike[str]) -> bool:
    """Whether an error names an output or a folder that it is in."""
    named, final = str(error.filename), os.path.realpath(path)
    return named in (os.fspath(path), final) or final.startswith(named.rstrip(os.sep) + os.sep)


class _Refusing:
    """A stream whose errors of writing are sentences; an OSError from anywhere else is not about the output."""

    def __init__(self, handle: BinaryIO, where: str | os.PathLike[str]) -> None:
        self._handle = handle
        self._where = where

    def write(self, data: bytes | memoryview) -> int:
        try:
            return self._handle.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise refusal(self._where, error) from error

    def flush(self) -> None:
        try:
            self._handle.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise refusal(self._where, error) from error


@contextmanager
def open_output(
    path: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]] = (),
    *,
    threads: int = 1,
    finish: Callable[[Path], None] | None = None,
) -> Iterator[BinaryIO]:
    """A stream of bytes to a file, to a pipe or device, or for '-' to standard output.

    A file, or the one that a symbolic link leads to, is replaced when the block succeeds, its indexes are removed, and
    else it stays as it was. What is no plain file (a named pipe, /dev/null) is written as it stands. A name that ends
    in .gz or .bam is compressed.

    Parameters
    ----------
    inputs : files that are being read, which the output must not be
    threads : threads that compress
    finish : called with the path of a plain file when it is complete, before it has its name

    Raises
    ------
    InputError : it is a folder or an input, or it cannot be written
    """
    check_output(path, inputs)
    if os.fspath(path) == "-":
        stream = _Refusing(standard_output(), "standard output")
        yield stream  # type: ignore[misc]
        stream.flush()
        return
    status = _status(path, 1)
    in_place = status is not None and not stat.S_ISREG(status.st_mode)
    try:
        if in_place:
            with open_for_writing(path, threads=threads) as handle:
                yield _Refusing(handle, path)  # type: ignore[misc]
        else:
            # The temporary name ends as the final one does, so .gz is compressed.
            with atomic_path(os.path.realpath(path)) as temporary:
                with open_for_writing(temporary, threads=threads) as handle:
                    yield _Refusing(handle, path)  # type: ignore[misc]
                if finish is not None:
                    finish(temporary)
                _remove_old_indexes(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        if not _is_about(error, path):
            raise
        raise refusal(path, error) from error


def _remove_old_indexes(path: str | os.PathLike[str]) -> None:
    """Remove the indexes of a .gz or .bam file that is replaced next: htslib would take one for the new file's, a .csi
    before a .tbi or .bai.

    Raises
    ------
    InputError : one of them cannot be removed
    """
    for index in _indexes_of(path):
        _remove(index, "index of an older file")


def remove_old_output(path: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
    """Remove what an earlier run wrote, and this one does not: a file, or a link to one, but not what was read.

    Raises
    ------
    InputError : it cannot be removed
    """
    status = _status(path, 1)
    if status is not None and stat.S_ISREG(status.st_mode) and not _input_that_is(status, [source]):
        _remove(path, "file of an earlier run")


def _remove(path: str | os.PathLike[str], what: str) -> None:
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: this {what} cannot be removed ({error.strerror}); remove it.") from error
