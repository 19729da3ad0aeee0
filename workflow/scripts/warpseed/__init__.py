"""warpseed: seeds between sequences with BWT/FM-indexes and tries, on CPU and GPU.

The public calls, importable from here, are loaded when they are first used, so that ``import warpseed`` costs
nothing. The only work done on import is choosing Numba's cache folder, which has to happen before numba is
imported: a folder for each state of the sources, because Numba does not notice a changed callee in another module.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from warpseed.version import __version__

_PUBLIC = {
    "add_parts": "warpseed.fm_index.store",
    "build_index": "warpseed.fm_index.build",
    "open_index": "warpseed.fm_index.store",
    "verify_index": "warpseed.fm_index.store",
    "find_kmers": "warpseed.kmer_seeds",
    "WarpseedError": "warpseed.errors",
}

__all__ = ["WarpseedError", "__version__", "add_parts", "build_index", "find_kmers", "open_index", "verify_index"]


def _choose_cache_folder() -> None:
    """Give Numba a cache folder named by a digest of the library's sources, unless the user chose one."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    package = Path(__file__).parent
    sources = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        sources.update(path.relative_to(package).as_posix().encode())
        sources.update(path.read_bytes())
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "warpseed" / sources.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK)
    except (OSError, RuntimeError):  # RuntimeError: no home folder at all, as in a container with a made-up user
        usable = False
    if not usable:
        # Numba refuses to work without a folder. Not a fixed name in a shared place: others could plant code there.
        folder = Path(tempfile.mkdtemp(prefix="warpseed-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


_choose_cache_folder()


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'warpseed' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
