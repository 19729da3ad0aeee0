"""The mistakes that warpseed reports to its user.

Each of these is raised with one clear sentence: what was found, where, what was expected, and what to do.
The command line and the rule scripts print that sentence and no traceback; `explain` has it for what the operating
system refuses, too. What is no mistake, but to be known, is told by `say`, and numbers in sentences by `how_many`.
"""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

__all__ = [
    "ConfigError",
    "DeviceError",
    "DownloadError",
    "IndexFormatError",
    "InputError",
    "MemoryLimitError",
    "PeerError",
    "WarpseedError",
    "advice_for",
    "check_flag",
    "check_number",
    "check_real",
    "explain",
    "how_many",
    "say",
]


class WarpseedError(Exception):
    """Base of every error that a user can mend; ``str()`` of it is one sentence."""


class InputError(WarpseedError):
    """A sequence file, a query or an argument that cannot be used as it is."""


class IndexFormatError(WarpseedError):
    """An index folder that is incomplete, damaged, of another version or of another reference."""


class MemoryLimitError(WarpseedError):
    """A step that needs more memory, of the host or of the device, than there is."""


class DeviceError(WarpseedError):
    """A device that was asked for and does not answer, or lacks something it needs."""


class DownloadError(WarpseedError):
    """A reference that could not be downloaded, or that is not what it should be."""


class ConfigError(WarpseedError):
    """A configuration value that is missing, misspelt or out of its range."""


class PeerError(WarpseedError):
    """Another tool that is missing, failed, or printed something unexpected."""


def check_number(name: str, value: Any, low: int, high: int | None = None, expected: str = "") -> int:
    """A whole number in its range as an int; InputError, naming it and what was `expected`, for anything else."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but a whole number was expected.")
    number = int(value)
    if number < low or (high is not None and number > high):
        limits = f"{low} or more was" if high is None else f"{low} to {high} was"
        raise InputError(f"{name} is {number}, but {expected or limits + ' expected'}.")
    return number


def check_real(name: str, value: Any) -> float:
    """A number as a float; InputError, naming it, for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r:.60}, but a number was expected.")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """True or False as it is; InputError, naming it, for anything else."""
    if getattr(value, "ndim", 0) or value not in (True, False):  # arrays are neither, and cannot be compared
        raise InputError(f"{name} is {value!r:.60}, but True or False was expected.")
    return bool(value)


_ADVICE = {
    "free some space, or write elsewhere": (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    "get the permission, or name another place": (errno.EACCES, errno.EPERM),
    "that place is read-only, name another one": (errno.EROFS,),
    "choose a shorter name": (errno.ENAMETOOLONG,),
    "name another folder": (errno.EEXIST, errno.ENOTDIR),
    "close other programs, or raise the limit (ulimit -n)": (errno.EMFILE, errno.ENFILE),
}


def advice_for(error: OSError) -> str:
    """What to do about an error of the operating system, by its cause."""
    return next((advice for advice, causes in _ADVICE.items() if error.errno in causes), "see what the system says")


def explain(error: BaseException, less: str = "") -> str | None:
    """The sentence for an error that a user can mend; None for any other, which is a bug.

    That is a WarpseedError, an error of the operating system (a full disk, a missing permission), a failed allocation
    and a thread that finds no room. An OSError is about the file that it names; where it names none, no file is blamed.
    `less` says what needs less memory, such as "fewer --threads".
    """
    if isinstance(error, WarpseedError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}; {advice_for(error)}."
    # A thread whose stack finds no room is refused in these words, and by no kind of its own.
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == "can't start new thread"):
        told = str(error) or "an allocation failed"
        advice = less or "give it less to do at once"
        return f"there is not enough memory ({told}); use a machine with more, or {advice}."
    return None


def how_many(number: int, what: str) -> str:
    """A number of something that has a regular plural, for a sentence: "1 read", "2,000 reads"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def say(text: str, end: str = "\n") -> None:
    """Print on standard error. Where that is closed or full there is nobody to tell, and it must not go elsewhere."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, end=end, flush=True)
