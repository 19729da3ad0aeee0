"""The command line: ``python -m warpseed index | kmers | verify | check``."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence

from warpseed.compute.machine import usable_cores
from warpseed.errors import InputError, WarpseedError
from warpseed.version import __version__

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warpseed", description="Seeds between sequences with BWT/FM-indexes and tries, on CPU and GPU."
    )
    parser.add_argument("--version", action="version", version=f"warpseed {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    index = command("index", _index, "Index a genome, or add parts to an index.")
    index.add_argument("genome", metavar="GENOME", help="FASTA, plain or gzip; with --add the folder of an index")
    target = index.add_mutually_exclusive_group(required=True)
    target.add_argument("-o", "--output", metavar="FOLDER", help="folder of the new index")
    target.add_argument("--add", metavar="PARTS", help="add parts to the index in the folder, without the genome")
    index.add_argument("--parts", metavar="PARTS", help="what to make: fast (default), paper, or fast,paper")
    index.add_argument("--threads", type=int, default=usable_cores(), metavar="N", help="default: all cores")
    index.add_argument("--occ-interval", type=int, metavar="Q", help="rows between ROcc entries (default 128)")
    index.add_argument("--sa-interval", type=int, metavar="P", help="rows between RSA entries (default 32)")
    index.add_argument("--table-length", type=int, metavar="K", help="bases of the lookup table (default: by size)")

    kmers = command("kmers", _kmers, "Find k-mers in a genome, up to a few mismatches, on both strands.")
    kmers.add_argument("index", metavar="FOLDER", help="an index made by 'warpseed index'")
    kmers.add_argument("kmers", metavar="KMERS", help="FASTA or FASTQ, plain or gzip; '-' is standard input")
    kmers.add_argument("-o", "--output", default="-", metavar="FILE", help=".bed or .tsv; '-' (default) is BED")
    kmers.add_argument("--max-mismatches", type=int, default=0, metavar="D", help="0 to 3 (default 0)")
    kmers.add_argument("--tier", choices=("fast", "paper"), default="fast")
    kmers.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    kmers.add_argument("--threads", type=int, default=usable_cores(), metavar="N", help="default: all cores")
    kmers.add_argument("--max-hits", type=int, metavar="N", help="drop a k-mer with more than N hits (default: none)")

    verify = command("verify", _verify, "Check every file of an index against its recorded SHA-256.")
    verify.add_argument("index", metavar="FOLDER")

    command("check", _check, "Say what this machine has, and what that means for a run.")
    return parser


def _index(options: argparse.Namespace) -> int:
    from warpseed.fm_index.build import build_index
    from warpseed.fm_index.store import add_parts, check_target

    names = ("parts", "occ_interval", "sa_interval", "table_length")
    chosen = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.add is not None:
        if chosen:
            option = "--" + next(iter(chosen)).replace("_", "-")
            raise InputError(f"{option} goes with a new index; with --add, an index keeps what it was built with.")
        index = add_parts(options.genome, options.add, threads=options.threads)
        stages = index.seconds
    else:
        check_target(options.output)
        index = build_index(options.genome, threads=options.threads, **chosen)
        began = time.perf_counter()
        index.save(options.output)
        stages = dict(index.seconds, save=time.perf_counter() - began)
    size = sum(part["bytes"] for part in index.report())
    _say(
        f"{len(index.names)} contigs, {len(index.segments.contig)} segments, {index.bases:,} bases; parts "
        f"{', '.join(index.parts)}; {size / index.bases:.2f} bytes a base"
    )
    _say_stages(stages)
    return 0


def _kmers(options: argparse.Namespace) -> int:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.store import open_index
    from warpseed.kmer_seeds import iter_kmer_hits
    from warpseed.kmer_seeds.output import LINES, write_hits
    from warpseed.output.lines import output_format

    output_format(options.output, tuple(LINES))
    watch = Stopwatch()
    began = time.perf_counter()
    with watch.stage("load"):
        index = open_index(options.index)
    queries = dropped_queries = dropped_hits = 0

    def batches():
        nonlocal queries, dropped_queries, dropped_hits
        for hits in iter_kmer_hits(
            index, options.kmers, max_mismatches=options.max_mismatches, tier=options.tier,
            device=options.device, threads=options.threads, max_hits=options.max_hits, watch=watch,
        ):  # fmt: skip
            queries += len(hits.counts)
            dropped_queries += hits.dropped_queries
            dropped_hits += hits.dropped_hits
            yield hits

    written = write_hits(options.output, batches(), threads=options.threads)
    total = time.perf_counter() - began
    _say(f"{queries:,} k-mers, {written:,} hits written to {options.output}")
    if options.max_hits is not None:
        _say(
            f"{dropped_queries:,} k-mers with more than {options.max_hits:,} hits dropped, at least "
            f"{dropped_hits:,} hits of theirs"
        )
    known = sum(watch.seconds.values())
    _say_stages(dict(watch.seconds, write=total - known, total=total))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from warpseed.fm_index.store import verify_index

    size = verify_index(options.index)
    _say(f"{options.index}: {size:,} bytes are as they were written")
    return 0


def _check(options: argparse.Namespace) -> int:
    from warpseed.workflow.check import describe_machine

    print("\n".join(describe_machine()))
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _say_stages(stages: dict[str, float]) -> None:
    from warpseed.compute.machine import peak_memory

    _say("seconds: " + ", ".join(f"{name} {seconds:.3f}" for name, seconds in stages.items()))
    _say(f"peak memory: {peak_memory() / 2**20:,.0f} MiB")


class _Terminated(BaseException):
    """A scheduler has sent SIGTERM. (Where a KeyboardInterrupt passes exec, Python exits by SIGINT even if handled.)"""


def _terminate(number: int, frame: object) -> None:
    raise _Terminated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (1 after a user's mistake, said in one sentence)."""
    options = _parser().parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments is None:
            signal.signal(signal.SIGTERM, _terminate)
        if options.command in ("index", "kmers"):
            _say(f"warpseed {__version__}: {shlex.join(given)}")
        return int(options.run(options))
    except WarpseedError as error:
        _say(f"Error: {error}")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        where = error.filename or getattr(options, "output", options.command)
        _say(f"Error: {where}: {error.strerror or error}.")
        return 1
    except MemoryError as error:
        _say(f"Error: there is not enough memory ({error or 'an allocation failed'}); use a machine with more.")
        return 1
    except (KeyboardInterrupt, _Terminated):
        _say("Interrupted; no file was written.")
        return 130
