"""Processes as runs that are timed: our command line or another tool, from start to end, with its peak memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from warpseed.batches import Options
from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.peers.process import Process, run_warpseed
from warpseed.measure.timing import PEAK, Outcome, Run, Side, side_fields

__all__ = ["our_process", "process_run", "tool_run", "tool_side"]


def process_run(start: Callable[[], Process], outcome: Callable[[], Outcome]) -> Run:
    """A process, as stage `process`; `outcome` works out what it found."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        took = start()
        watch.add("process", took.seconds)
        watch.count(PEAK, took.peak_bytes)
        return outcome

    return run


def tool_run(load: Callable[[], Process], start: Callable[[], Process], outcome: Callable[[], Outcome]) -> Run:
    """A tool's process; that which does next to nothing but load what it needs, as stage `load`; as `total` the one
    less the other."""
    whole = process_run(start, outcome)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        loading = load().seconds
        watch.add("load", loading)
        finish = whole(watch)
        # On tiny inputs the process that only loads may take longer: such a difference is noise, and no time.
        if watch.seconds["process"] > loading:
            watch.add("total", watch.seconds["process"] - loading)
        return finish

    return run


def our_process(
    system: str, command: Sequence[str], options: Options, output: Path, outcome: Callable[[], Outcome]
) -> Side:
    """Our command line: index opened, queries read, hits written.

    Parameters
    ----------
    system : of the records
    command : such as ``["kmers", INDEX, FILE, "--max-mismatches", "1"]``; output and options come behind it
    output : the file that is written, which is removed before
    outcome : works out what stands in it
    """
    tier, device, threads, max_hits = options
    arguments = [*command, "-o", str(output), "--tier", tier, "--device", device, "--threads", str(threads)]
    if max_hits is not None:
        arguments += ["--max-hits", str(max_hits)]

    def start() -> Process:
        output.unlink(missing_ok=True)
        return run_warpseed(arguments)

    run = process_run(start, outcome)
    return Side(run, run, side_fields(system, tier=tier, device=device, threads=threads))


def tool_side(system: str, tool: str, threads: int, run: Run) -> Side:
    """Another tool's `run` on the CPU as a side; `system` is that of the records."""
    fields = side_fields(system, tier="-", device="cpu", threads=threads) | {"tool": tool}
    return Side(run, run, fields)
