"""What every rule script does around its work: a log that says what runs, how far it is and what it took, and one
sentence for a user's mistake."""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from warpseed.errors import explain, say
from warpseed.version import __version__
from warpseed.workflow.cards import claim_cards
from warpseed.workflow.program import (
    Stopped,
    end_of_stop,
    end_of_work,
    leave_nothing_behind,
    log_to_standard_error,
    say_what_it_took,
    stop_behind,
    stop_on_signals,
)

__all__ = ["rule_log", "thread_counts"]


LAST_LINES = 20
"""Lines of a failed job's log that the terminal shows."""
_LAST_BYTES = 1 << 16
_NAMED = 4
"""Files of an input or output that are named, where there are many."""


@contextmanager
def rule_log(job: Any) -> Iterator[None]:
    """Send standard output and standard error of this process, C libraries included, to a rule's log.

    The log begins with the rule, its wildcards, threads and files, and ends with seconds and peak memory. What the
    library logs in between (`logging`, logger "warpseed") goes there with the time.

    Parameters
    ----------
    job : the object `snakemake` of a script
        Its first log file is overwritten.

    Raises
    ------
    SystemExit
        With code 1 when the block raised: after what a user can mend (see `warpseed.errors.explain`) the log ends
        with its sentence, after anything else, which is a bug, with the traceback. With 128 + n after signal n (SIGINT,
        SIGTERM, SIGHUP), which is raised in the block, so that nothing half-written is left. The end of the log is also
        shown on the terminal.
    """
    terminal = os.dup(2)
    log, began = job.log[0], time.perf_counter()
    status, last = 0, ""
    try:
        stop_on_signals()
        _send_output_to(log)
        for line in _headlines(job):
            say(line)
        if cards := claim_cards(int(job.resources.get("gpu", 0))):
            say(f"on GPU {', '.join(cards)}")
        yield
        end_of_work()
    except (Exception, Stopped) as error:
        sentence, stopped = explain(error), stop_behind(error)
        if stopped is not None:
            end_of_stop(error)
            status, last = stopped.status, str(stopped)
        else:
            status, last = 1, traceback.format_exc() if sentence is None else f"Error: {sentence}"
    say_what_it_took({"total": time.perf_counter() - began})
    if last:
        say(last.rstrip())
        _show(log, last, terminal)
    leave_nothing_behind()
    os.close(terminal)
    if status:
        raise SystemExit(status)


def _send_output_to(log: str) -> None:
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as handle:
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            stream.flush()
            os.dup2(handle.fileno(), number)
            # A job that is killed leaves in its log what it has said.
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    log_to_standard_error()


def _headlines(job: Any) -> Iterator[str]:
    """What runs, where, on what."""
    wildcards = ", ".join(f"{name}={value}" for name, value in job.wildcards.items())
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    yield (
        f"warpseed {__version__}: {job.rule}{f' ({wildcards})' if wildcards else ''}, threads: {job.threads}, on "
        f"{platform.node()}, {when}"
    )
    for verb, files in (("reads", job.input), ("writes", job.output)):
        # What is named lib is our own code.
        paths = [path for name, part in files.items() if name != "lib" for path in _paths(part)]
        if paths:
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            yield f"{verb} {', '.join(paths[:_NAMED])}{more}"


def _paths(part: Any) -> list[str]:
    return [part] if isinstance(part, str) else list(part)


def _show(log: str, last: str, terminal: int) -> None:
    """The end of a log on the terminal; where the log took nothing, as on a full disk, what it should end with."""
    try:
        with open(log, "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _LAST_BYTES))
            lines = handle.read(_LAST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    ending = last.rstrip().splitlines()
    if lines[-len(ending) :] != ending:
        lines += ending
    with suppress(OSError):  # the terminal may be gone
        os.write(terminal, "\n".join([f"The end of {log}:", *lines[-LAST_LINES:], ""]).encode())


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
