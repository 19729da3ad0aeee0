"""Names of files and folders that are being written, and what is left of them where a writer was killed.

A name tells what it is to become and which process writes it: so that process's successor, and nobody else, may remove
it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

__all__ = ["folder_made", "is_temporary", "remove_leftovers", "temporary_name", "unfit"]

_DAY = 24 * 3600.0


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def unfit(name: str) -> str:
    """Why no file can have a name; empty where one can."""
    if "\0" in name:
        return "no name has a null byte"
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return "no name has half of a surrogate pair"
    return ""


@lru_cache(maxsize=1)
def _here() -> str:
    """Where a process's number means that process: this boot of this machine, or this container in it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return _digest(boot + os.readlink("/proc/self/ns/pid"))
    except OSError:
        return _digest(secrets.token_hex(8))  # nowhere else, and at no other time


@contextmanager
def folder_made(place: Path) -> Iterator[None]:
    """Make a folder, and those above it, where they are not there; if the block raises, those that were made, and are
    empty, go again."""
    missing = [folder for folder in (place, *place.parents) if not folder.exists()]
    try:
        place.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):  # (not made yet; or others have put something in, then those above it stay, too)
                folder.rmdir()
        raise


def temporary_name(final: Path, ending: str = "") -> str:
    """A name, beside `final`, for what is to become it; it does not exist yet.

    The dot hides it from glob patterns. It is not built from the final name, which may be as long as the file system
    allows. A random part keeps two writers of one process apart.
    """
    return f".tmp-{_digest(final.name)}-{_here()}-{os.getpid()}-{secrets.token_hex(4)}{ending}"


def remove_leftovers(final: Path, ending: str = "") -> None:
    """Remove, beside `final`, what was to become it and is written by nobody any more.

    That is what a process on this machine has left that is gone, and what was not touched for a day. Nothing is raised
    where a folder may not be looked into or something may not be removed.
    """
    with suppress(OSError):
        for path in _leftovers(final, ending):
            with suppress(OSError):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def is_temporary(name: str, final: Path) -> bool:
    """Whether it is a name of what is to become `final`, by whichever process."""
    return _named(name, final) is not None


def _named(name: str, final: Path, ending: str = "") -> re.Match[str] | None:
    pattern = rf"\.tmp-{_digest(final.name)}-([0-9a-f]{{8}})-(\d+)-[0-9a-f]{{8}}{re.escape(ending)}"
    return re.fullmatch(pattern, name)


def _leftovers(final: Path, ending: str) -> Iterator[Path]:
    with os.scandir(final.parent) as entries:
        for entry in entries:
            named = _named(entry.name, final, ending)
            if named is None:
                continue
            if named[1] == _here():
                left = not _is_running(int(named[2]))
            else:
                left = time.time() - entry.stat(follow_symlinks=False).st_mtime > _DAY
            if left:
                yield Path(entry.path)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
