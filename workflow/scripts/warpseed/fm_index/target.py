"""The folder that an index is written to: what may be replaced, and how it appears whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warpseed.compute.temporary import folder_made, is_temporary, remove_leftovers, temporary_name, unfit
from warpseed.errors import IndexFormatError
from warpseed.fm_index.manifest import MANIFEST
from warpseed.fm_index.parts import PARTS, file_name

__all__ = ["NEW_MANIFEST", "check_target", "written_whole"]

NEW_MANIFEST = "index.json.new"
"""What index.json is called while parts are being added."""

_ASIDE = ".old"
"""How the name of an index ends that has stepped aside."""
_FORMAT_1 = {"fast.text.npy"} | {f"segments.{name}.npy" for name in ("text_start", "contig", "contig_start", "hint")}
_OURS = {MANIFEST, NEW_MANIFEST, *_FORMAT_1} | {file_name(part, name) for part in PARTS for name in PARTS[part]}
"""Every name that a file of an index may have."""


def check_target(folder: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a name that an index must not or cannot be written to.

    An index takes the place of an older one, and that whole folder goes. So nothing else may lie in it, and its
    index.json must say that it is one.

    Raises
    ------
    IndexFormatError : no name, or none that can be one; something that is neither an empty folder nor an index with
        nothing beside it; a place where nothing can be written
    """
    if not isinstance(folder, str | os.PathLike):
        raise IndexFormatError(f"the index's folder is {folder!r:.60}, but the name of a new folder was expected.")
    if not os.fspath(folder).strip():
        raise IndexFormatError("the name of the index's folder is empty; name a new folder.")
    if reason := unfit(str(folder)):
        raise IndexFormatError(f"the index's folder is {str(folder)!r:.60}, but {reason}; rename it.")
    target = Path(folder)
    if os.path.lexists(target):
        if not target.is_dir():
            raise IndexFormatError(f"{target}: exists and is no folder, but an index is one; name a new folder.")
        with _in_words(target):
            _check_content(target.resolve(), target)
    with _in_words(target):
        _try_to_write(target.resolve())


def _try_to_write(target: Path) -> None:
    trial = _nearest(_place(target)) / temporary_name(target)
    try:
        trial.mkdir()
        trial.rmdir()
    except BaseException:
        with suppress(OSError):
            trial.rmdir()
        raise


def _check_content(target: Path, named: Path) -> None:
    """Refuse what an index must not replace. What is to become one in this very folder may lie there: another process
    is at it, or was killed.

    Parameters
    ----------
    target : resolved
    named : the same, as the user names it
    """
    with os.scandir(target) as entries:
        listed = [entry for entry in entries if not is_temporary(entry.name, target)]
        found = {entry.name: entry.is_file(follow_symlinks=False) for entry in listed}
    others = sorted(name for name, plain in found.items() if name not in _OURS or not plain)
    reason = ""
    if others:
        reason = f"holds {others[0]!r}, which is no part of a warpseed index"
    elif found and not _says_what_it_is(target / MANIFEST):
        reason = f"has no {MANIFEST} that tells it to be a warpseed index"
    if reason:
        raise IndexFormatError(
            f"{named}: exists, and {reason}, so it is not overwritten; name a new folder, or remove this one."
        )


def _says_what_it_is(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"format", "warpseed"} <= content.keys()


def _place(target: Path) -> Path:
    """Where the temporary folder goes: beside the target, or into it where the folder itself has to stay.

    That is a mount point, a folder in one that cannot be written, and the working folder, in which a shell stands.
    """
    if not target.is_dir():
        return target.parent
    stays = os.path.ismount(target) or target == Path.cwd() or not os.access(target.parent, os.W_OK | os.X_OK)
    return target if stays else target.parent


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


@contextmanager
def _in_words(target: Path, needed: int = 0) -> Iterator[None]:
    """Name the user's folder, and not the temporary one, in an error of the operating system."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise IndexFormatError(
                f"{target}: another process has put an index there meanwhile; make this one again."
            ) from error
        reason = error.strerror or str(error)
        advice = "name a folder that you may write to"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            advice = f"the index takes {needed:,} bytes: free some space, or name a folder on another disk"
        raise IndexFormatError(f"{target}: cannot be written ({reason}); {advice}.") from error


@contextmanager
def written_whole(folder: str | os.PathLike[str], needed: int) -> Iterator[int]:
    """A new folder that takes the place of `folder` when the block succeeds, and else is removed.

    Parameters
    ----------
    needed : bytes that it will take, for the sentence about a full disk

    Yields
    ------
    int, a descriptor of the new folder
    """
    check_target(folder)
    target = Path(folder).resolve()
    with _in_words(Path(folder), needed), folder_made(place := _place(target)):
        remove_leftovers(place / target.name)
        temporary = place / temporary_name(target)
        try:
            temporary.mkdir(0o700)
            number = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                yield number
                _check_still_there(temporary, number)
            finally:
                os.close(number)
            temporary.chmod(0o755)
            if target.is_dir():  # what somebody has put there meanwhile is not ours to remove
                _check_content(target, Path(folder))
            if place == target:
                _move_into(temporary, target)
                return
            _take_the_place_of(target, temporary, Path(folder))
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _check_still_there(temporary: Path, number: int) -> None:
    """OSError where the new folder, by its descriptor, has its name no more: it was removed, and maybe replaced."""
    here, there = os.stat(temporary), os.fstat(number)
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        raise FileNotFoundError(errno.ENOENT, f"{temporary.name}, in which it was made, was replaced")


def _move_into(temporary: Path, target: Path) -> None:
    """Into a folder that stays: without index.json nobody takes it for an index, so that goes first and comes last."""
    new = sorted(os.listdir(temporary), key=lambda name: (name == MANIFEST, name))
    gone = [MANIFEST, *(name for name in os.listdir(target) if name in _OURS and name not in new)]

    def move() -> None:
        if (temporary / MANIFEST).exists():
            for name in gone:
                (target / name).unlink(missing_ok=True)
        for name in new:
            if (temporary / name).exists():
                (temporary / name).replace(target / name)

    try:
        move()
    except BaseException as error:
        if not isinstance(error, Exception):  # a signal: what was begun is done
            move()
        raise
    temporary.rmdir()


def _take_the_place_of(target: Path, temporary: Path, named: Path) -> None:
    """Rename the new folder to its final name; the index that was there steps aside, so that a whole one is there at
    every moment but one, and goes."""
    if target.exists() and stat.S_ISDIR(target.stat().st_mode) and any(target.iterdir()):
        old = temporary.with_name(f"{temporary.name}{_ASIDE}")
        try:
            with suppress(FileNotFoundError):  # another process has done so meanwhile
                target.replace(old)
            temporary.replace(target)
            _remove_old(named, old)
        except IndexFormatError:
            raise
        except BaseException:  # a signal may also come just behind any step
            if old.exists() and not target.exists():
                old.replace(target)
            else:  # (another process's may have taken its place, too)
                shutil.rmtree(old, ignore_errors=True)
            raise
    else:
        temporary.replace(target)
    remove_leftovers(target, _ASIDE)


def _remove_old(named: Path, old: Path) -> None:
    try:
        shutil.rmtree(old)
    except OSError as error:
        shutil.rmtree(old, ignore_errors=True)  # (a signal may have ended it half-way)
        if not old.exists():
            return
        raise IndexFormatError(
            f"{named}: the new index is written and whole, but the one that it replaced cannot be removed "
            f"({error.strerror}) and lies in {old}; remove that folder."
        ) from error
