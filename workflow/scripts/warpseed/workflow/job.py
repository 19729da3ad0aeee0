"""What every rule script does around its work: its output goes to the rule's log, a user's mistake is one sentence."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from warpseed.errors import explain

__all__ = ["rule_log", "thread_counts"]


LAST_LINES = 20
"""Lines of a failed job's log that the terminal shows."""


@contextmanager
def rule_log(log: str | os.PathLike[str]) -> Iterator[None]:
    """Send standard output and standard error of this process, C libraries included, to a rule's log.

    Parameters
    ----------
    log : path
        The log file; it is overwritten.

    Raises
    ------
    SystemExit
        With code 1 when the block raised: after what a user can mend (see `warpseed.errors.explain`) the log ends
        with its sentence, after anything else, which is a bug, with the traceback. The end of the log is also shown
        on the terminal.
    """
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    terminal = os.dup(2)
    with open(log, "w", encoding="utf-8") as handle:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(handle.fileno(), 1)
        os.dup2(handle.fileno(), 2)
    try:
        yield
    except Exception as error:
        sentence = explain(error)
        if sentence is not None:
            print(f"Error: {sentence}", file=sys.stderr)
        else:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        os.write(terminal, "\n".join([f"The end of {log}:", *lines, ""]).encode())
        raise SystemExit(1) from None
    finally:
        os.close(terminal)


def thread_counts(wanted: Iterable[int | str], cores: int) -> list[int]:
    """Resolve the threads of the configuration on the machine that runs the job.

    Parameters
    ----------
    wanted : iterable of int or "all"
        Numbers of threads; "all" is `cores`. What exceeds `cores` is left out.
    cores : int
        Cores that this process may use.

    Returns
    -------
    list of int
        Ascending, each once. At least [`cores`] when everything wanted exceeds it.
    """
    counts = {cores if count == "all" else int(count) for count in wanted}
    return sorted(count for count in counts if count <= cores) or [cores]
