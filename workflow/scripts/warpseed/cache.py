"""Where compiled code is kept: a folder for each state of the library's sources."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache

__all__ = ["choose_cache_folder", "digest_of_sources"]


@cache
def digest_of_sources() -> str:
    """Sixteen hexadecimal digits that depend on every file of the library."""
    package = os.path.dirname(__file__)
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(package):
        folders.sort()
        for name in sorted(name for name in names if name.endswith(".py")):
            path = os.path.join(folder, name)
            digest.update(os.path.relpath(path, package).encode())
            with open(path, "rb", buffering=0) as handle:
                digest.update(handle.read())
    return digest.hexdigest()[:16]


def choose_cache_folder() -> None:
    """Give machine code (`compute/objects.py`) a folder, unless the user chose one.

    It has to happen before numba is imported, which would choose one of its own. There is one for each state of the
    sources.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(base, "warpseed", digest_of_sources())
    try:
        os.makedirs(folder, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        # Numba refuses to work without a folder. Not a fixed name in a shared place: others could plant code there.
        folder = tempfile.mkdtemp(prefix="warpseed-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
