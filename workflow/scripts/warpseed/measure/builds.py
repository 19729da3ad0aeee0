"""Building an index beside bwa's, and libdivsufsort: in this process, and as processes with their peak memory."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.build import build_index
from warpseed.fm_index.checksum import digest_of_arrays
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.text import find_segments, pack_text, unpack_text
from warpseed.measure.peers.bwa import time_bwa_index
from warpseed.measure.peers.process import Process, run_warpseed
from warpseed.measure.processes import process_run
from warpseed.measure.timing import Outcome, Run, Side, side_fields, time_sides
from warpseed.sequences.queries import read_queries, write_fasta
from warpseed.sequences.reference import read_reference

__all__ = ["time_builds"]

_NOTHING_FOUND = Outcome(-1, -1, "")


def _outcome_of(index: SeedIndex, threads: int) -> Outcome:
    """A digest of all arrays, which is the same wherever an index was built."""
    return Outcome(-1, -1, digest_of_arrays(index.arrays(), threads))


def _in_process(fasta: str, threads: int) -> Run:
    """Build what the fast tier needs; the index is not saved."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        index = build_index(fasta, threads=threads)
        for stage, seconds in index.seconds.items():
            watch.add(stage, seconds)
        return lambda: _outcome_of(index, threads)

    return run


def _on_device(fasta: str, device: str, threads: int) -> Run:
    """As `_in_process`, by a GPU, which has what its searches read in the end."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        from warpseed.compute.gpu import on_device
        from warpseed.compute.resident import release
        from warpseed.fm_index.device import kmer_rows_on_device

        index, bringing = build_index(fasta, threads=threads, device=device), Stopwatch()
        with on_device(devices_of(device)[0]):
            kmer_rows_on_device(index, bringing)
            release(index)
        for stage, seconds in index.seconds.items():
            watch.add(stage, seconds)
        watch.add("tagged_rows", bringing.seconds["index_to_device"])
        return lambda: _outcome_of(index, threads)

    return run


def _by_libdivsufsort(fasta: str) -> Run:
    """The suffix array alone, of the same text in one piece, by libdivsufsort."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        from pydivsufsort import divsufsort

        reference = read_reference(fasta)
        segments = find_segments(reference.codes, reference.offsets)
        text = unpack_text(pack_text(reference.codes, reference.offsets, segments).words, segments)
        del reference
        with watch.stage("suffix_array"):
            divsufsort(text)
        return lambda: _NOTHING_FOUND

    return run


def has_libdivsufsort() -> bool:
    """Whether libdivsufsort is installed, by its Python package."""
    return importlib.util.find_spec("pydivsufsort") is not None


def _as_process(start: Callable[[], Process]) -> Run:
    return process_run(start, lambda: _NOTHING_FOUND)


def _our_process(fasta: str, folder: str, threads: int) -> Process:
    """`warpseed index` of what the fast tier needs: FASTA read, index built and saved."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        target = ["-o", os.path.join(scratch, "index"), "--parts", "fast"]
        return run_warpseed(["index", fasta, *target, "--threads", str(threads)])


class _Smaller(NamedTuple):
    """The first bases of a genome, as a file."""

    path: str
    first: int
    """how many, N included"""
    bases: int
    """that an index has of them"""


def _smaller_genomes(fasta: str, numbers: Sequence[int], folder: str) -> list[_Smaller]:
    """A genome's first bases: whole contigs, and the beginning of one.

    Raises
    ------
    InputError : there are no more bases than these, or none of these is A, C, G or T
    """
    if not numbers:
        return []
    whole, made = read_queries(fasta), []
    for first in map(int, numbers):
        there = len(whole.codes)
        if first >= there:
            raise InputError(f"first_bases: {first:,}, but {fasta} has {there:,} bases; name fewer of them.")
        bases = int(np.count_nonzero(whole.codes[:first] < 4))
        if not bases:
            raise InputError(
                f"first_bases: {first:,}, but the first base of {fasta} that is A, C, G or T is number "
                f"{int(np.argmax(whole.codes < 4)) + 1:,}; name more of them."
            )
        kept = whole.slice(0, int(np.searchsorted(whole.offsets, first)))
        path = os.path.join(folder, f"first_{first}.fa")
        write_fasta(replace(kept, codes=kept.codes[:first], offsets=np.minimum(kept.offsets, first)), path)
        made.append(_Smaller(path, first, bases))
    return made


def time_builds(
    fasta: str | os.PathLike[str],
    *,
    system: str,
    threads: Sequence[int],
    repeats: int,
    beside: Collection[str] = (),
    devices: Sequence[str] = ("cpu",),
    first_bases: Sequence[int] = (),
) -> list[dict[str, Any]]:
    """Time building the index that the fast tier needs, in turns with what other tools build.

    Parameters
    ----------
    fasta : the genome, plain or gzip
    system : of the records
    threads : of our builds; those of others have one
    repeats : builds of each kind after a warm-up, which is a tiny genome for ours (none for `first_bases`, as that
        process is warm); no index is kept for the next
    beside : tools that are measured too: 'bwa', and 'libdivsufsort' where its Python package is installed
    devices : 'cpu', 'gpu' or both: a GPU's builds have the most of `threads` on the host, and libdivsufsort stands
        beside the CPU's
    first_bases : what smaller genomes have, N included, for the memory of the CPU's processes, by size

    Returns
    -------
    list of records of item "index", case "build": the stages of a build in this process, with a digest of its arrays,
    of a GPU's with `tagged_rows`, which its searches read; `suffix_array` of libdivsufsort; stage `process` of ours and
    of bwa's, with metric `time`, and metric `memory` (peak resident bytes); of the first bases alone case "build of the
    first N bases", with those that are A, C, G or T as `bases`

    Raises
    ------
    InputError : the genome has no more than `first_bases`, or none of these is A, C, G or T
    """
    fasta = os.fspath(fasta)
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "tiny.fa")
        Path(tiny).write_text(">tiny\n" + "ACGTTGCATGCCATGANN" * 20 + "\n")
        sides = []
        for count in threads if "cpu" in devices else ():
            ours = _ours(system, "cpu", count)
            process = _as_process(partial(_our_process, fasta, folder, count))
            warm = _as_process(partial(_our_process, tiny, folder, count))
            sides += [Side(_in_process(fasta, count), _in_process(tiny, count), ours), Side(process, warm, ours)]
        most = max(threads)
        for path, first, bases in _smaller_genomes(fasta, first_bases if "cpu" in devices else (), folder):
            process = _as_process(partial(_our_process, path, folder, most))
            case = {"case": f"build of the first {first} bases", "parameters": f"bases={bases}"}
            sides.append(Side(process, lambda _: None, _ours(system, "cpu", most) | case))
        if "gpu" in devices:
            sides.append(
                Side(_on_device(fasta, "gpu", most), _on_device(tiny, "gpu", most), _ours(system, "gpu", most))
            )
        alone = _ours(system, "cpu", 1) | {"tier": "-"}
        if "cpu" in devices and "libdivsufsort" in beside and has_libdivsufsort():
            sides.append(Side(_by_libdivsufsort(fasta), _by_libdivsufsort(tiny), alone | {"tool": "libdivsufsort"}))
        if "bwa" in beside:
            bwa = _as_process(partial(time_bwa_index, fasta, folder))
            sides.append(Side(bwa, lambda _: None, alone | {"tool": "bwa"}))
        return time_sides(sides, repeats)


def _ours(system: str, device: str, threads: int) -> dict[str, Any]:
    """The columns of our records."""
    return {"item": "index", "case": "build", **side_fields(system, tier="fast", device=device, threads=threads)}
