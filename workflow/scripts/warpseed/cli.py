"""The command line: ``python -m warpseed index | kmers | reads | mems | stream | ebwt | verify | check``."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from warpseed.compute.first_compilation import on_first_compilation
from warpseed.compute.machine import return_what_is_freed, usable_cores
from warpseed.errors import InputError, explain, how_many, say
from warpseed.version import __version__
from warpseed.workflow.program import (
    Stopped,
    end_of_stop,
    end_of_work,
    flush_output,
    leave_nothing_behind,
    log_to_standard_error,
    open_descriptors,
    say_what_it_took,
    start_quickly,
    stop_behind,
    stop_on_signals,
    tell,
)

if TYPE_CHECKING:
    from warpseed.batches import Search
    from warpseed.ebwt.collection import Clusters
    from warpseed.output.lines import Format

__all__ = ["main"]


_GENOME = "an index made by 'warpseed index'"
_READS = "FASTA or FASTQ, plain or gzip; '-' is standard input"
_DEVICES = "cpu (default), gpu (the first one), or GPUs by number: gpu:1, gpu:0,1, gpu:all"
_AS_GIVEN = "search reads as they are given, not reversed"
_COMPILING = "compiling for this machine, once; the seconds told below contain it"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warpseed", description="Seeds between sequences with BWT/FM-indexes and tries, on CPU and GPU."
    )
    parser.add_argument("--version", action="version", version=f"warpseed {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    quiet, threads, target, search = _shared_options()

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *parents: argparse.ArgumentParser
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, parents=[*parents, quiet])
        added.set_defaults(run=run)
        return added

    _add_index(command("index", _index, "Index a genome, or add parts to an index.", threads))
    finds = "Find k-mers in a genome, up to a few mismatches, on both strands."
    _add_kmers(command("kmers", _kmers, finds, search))
    _add_reads(command("reads", _reads, "Find all places of reads in a genome that a few edits lead to.", search))
    _add_mems(command("mems", _mems, "Find maximal exact matches between long reads and a genome.", search))
    _add_stream(command("stream", _stream, "Find which k-mers of a stream of bases were there before.", target))
    says = "Transform sequences, and say how far each is from each: matrix, tree, figures."
    _add_ebwt(command("ebwt", _ebwt, says, threads))
    verify = command("verify", _verify, "Check every file of an index against its recorded SHA-256.")
    verify.add_argument("index", metavar="FOLDER")
    command("check", _check, "Say what this machine has, and what that means for a run.")
    return parser


def _shared_options() -> tuple[argparse.ArgumentParser, ...]:
    """Options of every command, of those on threads, of those on a CPU or GPU, and of searches of queries."""
    quiet = argparse.ArgumentParser(add_help=False)
    quiet.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors and notes on the input")
    threads = argparse.ArgumentParser(add_help=False)
    threads.add_argument("--threads", type=int, default=usable_cores(), metavar="N", help="default: all cores")
    target = argparse.ArgumentParser(add_help=False, parents=[threads])
    target.add_argument("--tier", choices=("fast", "paper"), default="fast", help="default: fast")
    target.add_argument("--device", default="cpu", metavar="DEVICE", help=_DEVICES)
    search = argparse.ArgumentParser(add_help=False, parents=[target])
    search.add_argument("--max-hits", type=int, metavar="N", help="drop a query with more than N hits (default: none)")
    ordered = "order hits by coordinates, not by query; a .bed.gz or .paf.gz gets a tabix index"
    search.add_argument("--sorted", action="store_true", help=ordered)
    return quiet, threads, target, search


def _add_index(index: argparse.ArgumentParser) -> None:
    index.add_argument("genome", metavar="GENOME", help="FASTA, plain or gzip; with --add the folder of an index")
    result = index.add_mutually_exclusive_group(required=True)
    result.add_argument("-o", "--output", metavar="FOLDER", help="folder of the new index")
    result.add_argument("--add", metavar="PARTS", help="add parts to the index in the folder, without the genome")
    made = "fast, tags, paper, several of them, or default: fast, and on the CPU, up to 2^31 bases, tags"
    index.add_argument("--parts", metavar="PARTS", help=made)
    index.add_argument("--device", default="cpu", metavar="DEVICE", help="cpu (default), gpu, or one by number: gpu:1")
    index.add_argument("--occ-interval", type=int, metavar="Q", help="rows between ROcc entries (default 128)")
    index.add_argument("--sa-interval", type=int, metavar="P", help="rows between RSA entries (default 32)")
    index.add_argument("--table-length", type=int, metavar="K", help="bases of the lookup table (default: by size)")


def _add_kmers(kmers: argparse.ArgumentParser) -> None:
    kmers.add_argument("index", metavar="FOLDER", help=_GENOME)
    kmers.add_argument("kmers", metavar="READS", help=_READS)
    kmers.add_argument("-k", "--k", type=int, metavar="K", help="cut k-mers of K bases (default: sequences are k-mers)")
    kmers.add_argument("--step", type=int, metavar="S", help="cut one every S bases (default: K; 1 is all)")
    kmers.add_argument("-o", "--output", default="-", metavar="FILE", help=".bed or .tsv; '-' (default) is BED")
    kmers.add_argument("--max-mismatches", type=int, default=0, metavar="D", help="0 to 3 (default 0)")


def _add_reads(reads: argparse.ArgumentParser) -> None:
    reads.add_argument("index", metavar="FOLDER", help=_GENOME)
    reads.add_argument("reads", metavar="READS", help=_READS)
    reads.add_argument("-o", "--output", default="-", metavar="FILE", help=".tsv, .bed or .bam; '-' (default) is TSV")
    edits = "substitutions, insertions and deletions, 0 to 2 (default 1)"
    reads.add_argument("--max-edits", type=int, default=1, metavar="E", help=edits)
    reads.add_argument("--one-strand", action="store_true", help=_AS_GIVEN)
    report = "all placements (default), or the best one of each locus (default for .bam)"
    reads.add_argument("--report", choices=("all", "best"), help=report)
    others = "in .bam, placements beside the primary one: records (default), or listed in its tag XA"
    reads.add_argument("--multiple", choices=("secondary", "xa"), help=others)


def _add_mems(mems: argparse.ArgumentParser) -> None:
    mems.add_argument("index", metavar="FOLDER", help=_GENOME)
    mems.add_argument("reads", metavar="READS", help=_READS)
    forms = ".tsv, .paf, .bed or .mums; '-' (default) is TSV"
    mems.add_argument("-o", "--output", default="-", metavar="FILE", help=forms)
    shortest = "bases of the shortest match (default 20)"
    mems.add_argument("--min-length", type=int, default=20, metavar="L", help=shortest)
    kinds = "those in no longer match of the read (default), of paper 002's definition 2, or all maximal ones"
    mems.add_argument("--kind", choices=("super", "paper", "maximal"), default="super", help=kinds)
    rare = "leave out the matches of a part of a read that has more than N (default: none)"
    mems.add_argument("--max-occurrences", type=int, metavar="N", help=rare)
    mems.add_argument("--one-strand", action="store_true", help=_AS_GIVEN)


def _add_stream(stream: argparse.ArgumentParser) -> None:
    stream.add_argument("sequences", metavar="SEQUENCES", help=_READS)
    stream.add_argument("-o", "--output", default="-", metavar="FILE", help=".tsv or .bin; '-' (default) is TSV")
    stream.add_argument("-k", "--k", type=int, metavar="K", help="1 to 31 (default: the dictionary's, or 15)")
    told = "each distinct k-mer with its first place and its count (default), or each place, new or seen"
    stream.add_argument("--report", choices=("kmers", "places"), default="kmers", help=told)
    seed = "k-mers of the first N bases are seen before the stream begins (default 0)"
    stream.add_argument("--seed-length", type=int, default=0, metavar="N", help=seed)
    stream.add_argument("--dictionary", metavar="FILE", help="k-mers that are seen before it, saved by another run")
    stream.add_argument("--save-dictionary", metavar="FILE", help="save all k-mers that are seen in the end")
    stream.add_argument("--fixed", action="store_true", help="k-mers of the stream do not become seen")
    near = "edits from a k-mer of the dictionary, for --report places with --fixed, 0 to 3 (default 0)"
    stream.add_argument("--max-edits", type=int, default=0, metavar="D", help=near)


def _add_ebwt(ebwt: argparse.ArgumentParser) -> None:
    given = f"{_READS}; with --inverse the PREFIX of an earlier run"
    ebwt.add_argument("sequences", metavar="SEQUENCES", help=given)
    ebwt.add_argument("-o", "--output", required=True, metavar="PREFIX", help="how the names of all files begin")
    shared = f"{_DEVICES}; several share more than 65,536 letters, and distances of more than 1,024 sequences"
    ebwt.add_argument("--device", default="cpu", metavar="DEVICE", help=shared)
    ebwt.add_argument("--tree", choices=("nj", "upgma"), help="neighbour joining (default) or average linkage")
    ebwt.add_argument("--normalise", action="store_true", help="distances over the most that they can be, 0 to 1")
    parts = ebwt.add_mutually_exclusive_group()
    parts.add_argument("--no-transform", action="store_true", help="leave out the transform and its indices")
    parts.add_argument("--no-distances", action="store_true", help="leave out distances, tree and figures")
    parts.add_argument("--inverse", action="store_true", help="the sequences of a transform; -o is a FASTA file then")


def _index(options: argparse.Namespace) -> int:
    from warpseed.fm_index.make import make_index
    from warpseed.fm_index.store import add_parts

    names = ("parts", "occ_interval", "sa_interval", "table_length")
    chosen = {name: value for name in names if (value := getattr(options, name)) is not None}
    began = time.perf_counter()
    if options.add is not None:
        if chosen:
            option = "--" + next(iter(chosen)).replace("_", "-")
            raise InputError(f"{option} goes with a new index; with --add, an index keeps what it was built with.")
        index = add_parts(options.genome, options.add, threads=options.threads, device=options.device)
        if not index.seconds:
            options.say(f"{options.genome}: has {options.add} already; nothing was added")
    else:
        index = make_index(options.genome, options.output, threads=options.threads, device=options.device, **chosen)
    stages = {name: seconds for name, seconds in index.seconds.items() if name != "total"}
    size = sum(part["bytes"] for part in index.report())
    options.say(
        f"{how_many(len(index.names), 'contig')}, {how_many(len(index.segments.contig), 'segment')}, "
        f"{how_many(index.bases, 'base')}; parts "
        f"{', '.join(index.parts)}; {size / index.bases:.2f} bytes a base"
    )
    say_what_it_took(stages | {"total": time.perf_counter() - began}, options.say)
    return 0


def _kmers(options: argparse.Namespace) -> int:
    from warpseed.kmer_seeds import kmer_search
    from warpseed.kmer_seeds.output import LINES

    search = partial(kmer_search, k=options.k, step=options.step, max_mismatches=options.max_mismatches)
    return _search(options, options.kmers, "k-mers", search, LINES, partial(_say_reads, tell=options.say))


def _reads(options: argparse.Namespace) -> int:
    from warpseed.one_error import read_search
    from warpseed.one_error.bam import bam_format
    from warpseed.one_error.output import LINES

    is_bam = options.output.endswith(".bam")
    if options.multiple is not None and not is_bam:
        raise InputError("--multiple says what becomes of records in BAM; name an output that ends in .bam.")
    search = partial(
        read_search,
        max_edits=options.max_edits,
        both_strands=not options.one_strand,
        report=options.report or ("best" if is_bam else "all"),
        keep_reads=is_bam,
    )
    formats = {**LINES, "bam": bam_format(options.multiple or "secondary")}
    return _search(options, options.reads, "reads", search, formats, lambda counts: None)


def _mems(options: argparse.Namespace) -> int:
    from warpseed.mems import mem_search
    from warpseed.mems.output import LINES, mums

    search = partial(
        mem_search,
        min_length=options.min_length,
        kind=options.kind,
        both_strands=not options.one_strand,
        max_occurrences=options.max_occurrences,
    )
    formats = {**LINES, "mums": mums(not options.one_strand)}
    return _search(options, options.reads, "reads", search, formats, lambda counts: None)


def _stream(options: argparse.Namespace) -> int:
    from warpseed.batches import Options
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.tree_bitmap.search import checked_request, write_stream
    from warpseed.workflow.progress import Progress

    watch = Stopwatch()
    began = time.perf_counter()
    checked = Options(options.tier, options.device, options.threads).checked()
    request = checked_request(
        options.k, options.dictionary, options.seed_length, not options.fixed, checked, options.max_edits
    )
    totals = write_stream(
        options.sequences,
        options.output,
        request,
        report=options.report,
        save=options.save_dictionary,
        dictionary=options.dictionary,
        watch=watch,
        tell=(lambda done, parts: parts) if options.quiet else lambda done, parts: Progress(done, watch).told(parts),
    )
    if options.fixed and not len(request.known) and not request.seed_places:
        say("Note: with --fixed, and no k-mer in a dictionary or a seed, there is none to be found.")
    if not totals.kmers and not request.max_edits:
        say(f"Note: no record has {request.k} bases beside each other without an N: there is no {request.k}-mer.")
    told = f"{totals.kmers:,} {request.k}-mers, {totals.new:,} of them new"
    if request.max_edits:
        told = f"near {request.k}-mers end at {totals.kmers:,} places, exact ones at {totals.kmers - totals.new:,}"
    sizes = f"{how_many(totals.records, 'record')}, {how_many(totals.bases, 'base')}"
    options.say(f"{sizes}, {told}; {options.report} written to {options.output}")
    say_what_it_took(dict(watch.seconds, total=time.perf_counter() - began), options.say)
    return 0


def _ebwt(options: argparse.Namespace) -> int:
    from warpseed.batches import Options
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.ebwt.collection import Wanted, write_collection, write_inverse

    for name, given in (("--normalise", options.normalise), ("--tree", options.tree)):
        if given and (options.inverse or options.no_distances):
            raise InputError(f"{name} is about distances, which are left out; leave it out, too.")
    if options.inverse and options.device != "cpu":
        raise InputError("--inverse is made on the CPU; leave --device out.")
    watch = Stopwatch()
    began = time.perf_counter()
    checked = Options(device=options.device, threads=options.threads).checked()
    if options.inverse:
        records, letters = write_inverse(options.sequences, options.output, watch)
    else:
        parts = not options.no_transform, not options.no_distances
        wanted = Wanted(checked, *parts, options.tree or "nj", options.normalise)
        records, letters = write_collection(options.sequences, options.output, wanted, _figures_of, watch)
    files = options.output if options.inverse else f"{options.output}.*"
    options.say(f"{how_many(records, 'record')}, {how_many(letters, 'base')}; written to {files}")
    say_what_it_took(dict(watch.seconds, total=time.perf_counter() - began), options.say)
    return 0


def _figures_of(clusters: Clusters) -> Iterable[tuple[str, bytes]]:
    """What draws distances, loaded where there are some."""
    from warpseed.report.clusters import figures_of

    return figures_of(clusters)


def _search(
    options: argparse.Namespace,
    source: str,
    queries: str,
    search_in: Callable[..., Search],
    formats: Mapping[str, Format],
    say_counts: Callable[[Mapping[str, int]], None],
) -> int:
    """Any system's search: the options of the parser `search`, the index opened, hits written as they are found.

    Parameters
    ----------
    source : the file that is read
    queries : what it holds, such as 'k-mers'
    search_in : function of an index, and of what the parser `search` takes, that gives the search
    formats : formats of the output by the ending of its name, that of standard output first
    say_counts : says what the search counted on the way
    """
    from warpseed.batches import write_results
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.store import open_index
    from warpseed.output.opening import check_output
    from warpseed.output.writers import format_of, open_writer
    from warpseed.workflow.progress import Progress, hits_of

    output, threads = options.output, options.threads
    format = format_of(output, formats)
    check_output(output, [source])
    watch = Stopwatch()
    began = time.perf_counter()
    with watch.stage("load"):
        index = open_index(options.index)
    search = search_in(
        index, tier=options.tier, device=options.device, threads=threads, max_hits=options.max_hits
    )  # fmt: skip
    writer = open_writer(output, format, sorted=options.sorted, threads=threads, inputs=[source])
    tell = None if options.quiet else lambda totals, found: Progress(hits_of(totals, queries), watch).told(found)
    totals = write_results(source, search, writer, watch=watch, tell=tell)
    total = time.perf_counter() - began
    say_counts(watch.counts)
    query = queries.removesuffix("s")
    options.say(f"{how_many(totals.queries, query)}, {how_many(totals.hits, 'hit')} written to {options.output}")
    rare = getattr(options, "max_occurrences", None)
    if options.max_hits is not None:
        others = "" if rare is None else f", or of parts with more than {how_many(rare, 'occurrence')}"
        options.say(
            f"{how_many(totals.dropped_queries, query)} with more than {how_many(options.max_hits, 'hit')} dropped, at "
            f"least {how_many(totals.dropped_hits, 'hit')} of theirs{others}"
        )
    elif rare is not None:
        dropped = how_many(totals.dropped_hits, "hit")
        options.say(f"{dropped} of parts with more than {how_many(rare, 'occurrence')} dropped")
    say_what_it_took(dict(watch.seconds, total=total), options.say)
    return 0


def _say_reads(counts: Mapping[str, int], tell: Callable[[str], None]) -> None:
    """What k-mers were cut from, where they were."""
    reads, short = counts.get("reads", 0), counts.get("short_reads", 0)
    if reads > short:
        given = "it gives" if short == 1 else "they give"
        tell(how_many(reads, "read") + (f", {short:,} of them shorter than a k-mer: {given} none" if short else ""))
    elif reads:
        all_of_them = "the only read is" if reads == 1 else f"all {reads:,} reads are"
        say(f"Note: {all_of_them} shorter than a k-mer: there was nothing to search.")


def _verify(options: argparse.Namespace) -> int:
    from warpseed.fm_index.store import verify_index

    size = verify_index(options.index)
    options.say(f"{options.index}: {size:,} bytes are as they were written")
    return 0


def _check(options: argparse.Namespace) -> int:
    from warpseed.output.opening import open_output
    from warpseed.workflow.check import describe_machine

    with open_output("-") as stream:
        stream.write("".join(f"{line}\n" for line in describe_machine()).encode())
    return 0


def _settings(options: argparse.Namespace) -> str:
    """What the command line need not say, as a comment behind it."""
    names = [name for name in ("tier", "device", "threads") if hasattr(options, name)]
    return "  # " + ", ".join(f"{name} {getattr(options, name)}" for name in names)


def _run(given: Sequence[str], *, is_program: bool) -> int:
    """One command; its exit status. That of the program is what a signal ends, from here on."""
    options = argparse.Namespace()
    try:
        if is_program:
            stop_on_signals()
        _parser().parse_args(given, options)
        if is_program and options.command == "index":
            return_what_is_freed()
            if not options.quiet:
                log_to_standard_error()
        options.say = (lambda text: None) if options.quiet else say
        if options.command not in ("verify", "check"):
            if is_program:
                on_first_compilation(lambda: options.say(_COMPILING))
            options.say(f"warpseed {__version__}: {shlex.join(given)}{_settings(options)}")
        status = int(options.run(options))
        flush_output()
        end_of_work()
        return status
    except BaseException as error:
        if (stopped := stop_behind(error)) is not None:
            end_of_stop(error)
            (tell if is_program else say)(str(stopped))
            return stopped.status
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE
        sentence = explain(error, "fewer --threads" if getattr(options, "threads", 1) > 1 else "")
        if sentence is None:
            raise
        say(f"Error: {sentence}")
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (1 after a user's mistake, said in one sentence).

    Without `arguments` it is the program: it takes those of the process, handles its signals and closed descriptors,
    and leaves nothing to standard output that Python's exit could fail to write.
    """
    if arguments is not None:
        return _run(arguments, is_program=False)
    start_quickly()
    open_descriptors()
    try:
        return _run(sys.argv[1:], is_program=True)
    except Stopped as stopped:  # (while it was said what went wrong)
        return stopped.status
    finally:
        leave_nothing_behind()
