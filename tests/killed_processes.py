"""Processes that are killed while they write an index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import warpseed

_SCRIPT = """
import os, signal
from warpseed.fm_index import make, store
write = store.write_array
def die(name, *arguments):
    if name == {file!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(name, *arguments)
store.write_array = die
{statement}
"""


def kill_over(file: str, statement: str) -> None:
    """Run a statement, which may call what is in `make` and `store`, in a process that is killed before it writes a
    file."""
    library = str(Path(warpseed.__file__).parents[1])
    script = _SCRIPT.format(file=file, statement=statement)
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": library}, check=False)
    assert done.returncode == -9
