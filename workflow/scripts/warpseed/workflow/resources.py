"""What a job asks of a scheduler: memory and time, from the sizes of what it works on, and from the attempt.

On one machine nothing is limited by them, unless ``--resources mem_mb=N bench=1 gpu=1`` says so (what the command line
says takes the place of all of the profile's resources). Memory is what was measured, with room for Python, compilation
and the Snakemake process inside the job; time is several times what was measured, since a job that is ended a minute
too early has done nothing. Nothing heavy is imported: every job's Snakemake reads this.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warpseed.sequences.bgzf_format import GZIP_MAGIC, is_gzip
from warpseed.workflow.sources import References

__all__ = [
    "IndexSize",
    "Needs",
    "Request",
    "build_index",
    "compare_records",
    "count_kmers",
    "cut_kmers",
    "download",
    "file_bases",
    "find_seeds",
    "light",
    "merge_seeds",
    "read_bases",
    "read_count",
    "reference_bases",
    "simulate_human_like",
    "simulate_reads",
    "simulate_reference",
    "time_builds",
    "time_collections",
    "time_gpu_limits",
    "time_match_peers",
    "time_matches",
    "time_peers",
    "time_searches",
    "time_streams",
    "time_weighted",
    "timed_runs",
]

BASE_MB, BASE_MINUTES = 1_500, 15
"""What every job asks for: Snakemake, Python, Numba's compiler, and the start of the job."""
UNKNOWN_BASES = 3_300_000_000
"""A reference whose size is not known before it was downloaded may be a human genome."""
_BATCHES = 2_000_000_000
"""Bytes that a search takes beside its index, whatever it finds."""
_LARGEST_TAGGED = 1 << 31
"""Rows up to which 'default' has tags (`warpseed.fm_index.make.LARGEST_TAGGED`)."""
_SECONDS_A_MERGED_QUERY = 1e-5
_SAMPLE = 1_000_000
"""Bytes of a read file by which its reads are counted."""


class Needs(NamedTuple):
    """What one job needs at its first attempt."""

    mem_mb: int
    """megabytes of host memory"""
    runtime: int
    """minutes"""


class Request:
    """What a rule asks for, as the functions that Snakemake calls: so many times its needs as the attempt's number.

    Parameters
    ----------
    needs : callable
        From a job's wildcards to its `Needs`.
    """

    def __init__(self, needs: Callable[[Any], Needs]) -> None:
        self._needs = needs

    def mem_mb(self, wildcards: Any, attempt: int) -> int:
        """Megabytes of memory."""
        return attempt * self._needs(wildcards).mem_mb

    def runtime(self, wildcards: Any, attempt: int) -> int:
        """Minutes."""
        return attempt * self._needs(wildcards).runtime


def _needs(memory: float = 0, seconds: float = 0) -> Needs:
    """The base, and bytes and seconds on top of it."""
    return Needs(BASE_MB + math.ceil(memory / 1e6), BASE_MINUTES + math.ceil(seconds / 60))


# ---------------------------------------------------------------------------------------------------- sizes


def file_bases(path: str | Path) -> int:
    """At most about so many bases are in a FASTA or FASTQ file: one a byte, four where it is compressed."""
    return Path(path).stat().st_size * (4 if is_gzip(path) else 1)


def _first_bytes(path: str | Path, count: int) -> bytes:
    with open(path, "rb") as handle:
        return handle.read(count)


def reference_bases(references: References, name: str, simulated: Mapping[str, int]) -> int:
    """Bases of a reference, known before it is downloaded or made where that is possible.

    Parameters
    ----------
    references : References
        Those of the run.
    name : str
        A short name among them.
    simulated : mapping of str to int
        Bases of each of `SIMULATED`.
    """
    source = references.sources[name]
    if source in simulated:
        return simulated[source]
    if source in references.catalogue:
        entry = references.catalogue[source]
        # Unplaced scaffolds and alternative loci are not listed; in no genome of the catalogue are they a twentieth.
        return math.ceil(sum(entry.contigs.values()) * (1.05 if entry.other_contigs else 1))
    path = Path(references.path(name))
    return file_bases(path) if path.is_file() else UNKNOWN_BASES


def read_bases(path: str | Path, read_sets: Mapping[str, Any]) -> int:
    """Bases of a read file, or of the simulated read set that will be made under that name."""
    path = Path(path)
    if path.is_file():
        return file_bases(path)
    return _simulated_bases(read_sets[path.stem])


def read_count(path: str | Path, read_sets: Mapping[str, Any]) -> int:
    """About how many reads a file has, by its beginning, or a simulated read set."""
    path = Path(path)
    if not path.is_file():
        return int(read_sets[path.stem]["count"])
    text = _first_bytes(path, _SAMPLE)
    if text.startswith(GZIP_MAGIC):
        try:
            text = zlib.decompressobj(wbits=31).decompress(text, _SAMPLE)
        except zlib.error:
            return 0  # The job that reads it ends at once, and says what is wrong with it.
    reads = text.count(b"\n>") + 1 if text.lstrip().startswith(b">") else math.ceil(text.count(b"\n") / 4)
    return math.ceil(file_bases(path) * reads / max(1, len(text)))


def _simulated_bases(read_set: Mapping[str, Any]) -> int:
    length = read_set["length"]
    most = length if isinstance(length, int) else length[1]  # the mean, where there are three
    return int(read_set["count"]) * most


class IndexSize(NamedTuple):
    """An index, as far as its size depends on it (docs/fm_index.md, "Parts and sizes")."""

    bases: int
    parts: Iterable[str]
    """names of parts, "paper" for both BWTs, or "default" for what the CPU makes where nothing is said"""
    settings: Mapping[str, Any]
    """`index` of the configuration"""

    @property
    def directions(self) -> int:
        """BWTs in it."""
        return 2 if "paper" in self.parts else len({"forward", "reverse"} & set(self.parts))

    @property
    def has_rows(self) -> bool:
        """Whether the fast tier's suffix array and table are in it, as they are with tags."""
        return not {"fast", "tags", "default"}.isdisjoint(self.parts)

    @property
    def has_tags(self) -> bool:
        """Whether tags are in it."""
        return "tags" in self.parts or ("default" in self.parts and self.bases <= _LARGEST_TAGGED)

    @property
    def without_tags(self) -> IndexSize:
        """The same, as it is before tags are added."""
        return self._replace(parts={"fast" if part in ("tags", "default") else part for part in self.parts})

    @property
    def bytes(self) -> int:
        """Bytes of its files. Below a million bases the table may be larger than counted here, and is in the base."""
        a_bwt = 0.27 + 20 / self.settings["occ_interval"] + 4 / self.settings["sa_interval"]
        length = self.settings["table_length"]
        table = min(4 * self.bases, 4**15) if length is None else 4 ** (length + 1)
        fast = 4 * self.bases + table if self.has_rows else 0
        tags = 2 * self.bases if self.has_tags else 0
        return math.ceil(fast + tags + (0.27 + a_bwt * self.directions) * self.bases)


# ----------------------------------------------------------------------------------------------------- jobs


def light() -> Needs:
    """Of what reads records or compares checksums: tables, figures, the page, publishing, verifying."""
    return _needs(memory=0.5e9)


def download(bases: int) -> Needs:
    """Of a download, a megabyte a second, and of verifying it."""
    return _needs(seconds=bases / 4e6)


def simulate_reference(bases: int) -> Needs:
    """Of drawing a genome."""
    return _needs(2 * bases, bases / 1e6)


def simulate_human_like(bases: int) -> Needs:
    """Of planning a human-like genome, and of making it piece by piece, at a tenth of the speed that one core has."""
    return _needs(0.2e9 + 0.1 * bases, bases / 5e7)


def simulate_reads(bases: int, read_set: Mapping[str, Any]) -> Needs:
    """Of drawing a read set on a genome."""
    drawn = _simulated_bases(read_set)
    return _needs(2 * bases + 6 * drawn, (bases + drawn) / 1e6)


def cut_kmers(read_bases: int) -> Needs:
    """Of cutting k-mers from reads, all of which are held in memory."""
    return _needs(6 * read_bases, read_bases / 1e6)


def count_kmers(read_bases: int) -> Needs:
    """Of counting k-mers: what is held of each, were all of them new, beside blocks of reads."""
    return _needs(_BATCHES + 40 * read_bases, 600 + read_bases / 1e6)


def compare_records(read_bases: int, records: int) -> Needs:
    """Of comparing records: 24 bytes a base at most while their rotations are sorted, 24 a pair of records for its
    distance; and what a tree of them takes."""
    return _needs(_BATCHES + 24 * (read_bases + records**2), 600 + read_bases / 1e6 + 1e-9 * records**3)


def build_index(index: IndexSize) -> Needs:
    """Of building an index, generously: its parts, which are written when they are made, what sorting takes, and a byte
    a base of what was read. Tags are made when all of that is saved and gone."""
    texts = 2 if index.directions else 1
    # At most 8.625 bytes, rounded up, while suffixes are sorted, of which four stay where the suffix array is kept.
    beside = 5 if index.has_rows else 9
    return _needs((texts + beside) * index.bases + index.without_tags.bytes, texts * index.bases / 5e5)


def find_seeds(index: IndexSize, queries: int, seconds: float) -> Needs:
    """Of searching in the fast tier and writing what is found; a query takes so many seconds on one core."""
    return _needs(index.bytes + _BATCHES, 3_600 + queries * seconds)


def merge_seeds(queries: int) -> Needs:
    """Of joining sorted files, a bounded part of each in memory."""
    return _needs(_BATCHES, 3_600 + queries * _SECONDS_A_MERGED_QUERY)


def timed_runs(dataset: Mapping[str, Any], repeats: int) -> int:
    """How often a timed data set is searched: a warm-up and the repeats of each item, number of threads and of GPUs."""
    on_gpus = sum(device != "cpu" for device in dataset["devices"])
    return (1 + repeats) * len(dataset["items"]) * (len(dataset["threads"]) + on_gpus)


def time_searches(index: IndexSize, queries: int, runs: int) -> Needs:
    """Of timing searches `runs` times, with k-mers and hits in memory; the paper tier takes most of the time."""
    seconds = 2e-3 if index.directions else 1e-4
    return _needs(index.bytes + _BATCHES + 1_000 * queries, 1_800 + queries * runs * seconds)


def time_gpu_limits(index: IndexSize, queries: int, runs: int) -> Needs:
    """Of timing kernels on k-mers that are drawn on the host, `queries` of the largest case."""
    return _needs(index.bytes + _BATCHES + 200 * queries, 3_600 + queries * runs * 1e-5)


def time_peers(index: IndexSize, queries: int, runs: int) -> Needs:
    """Of building the indexes of other tools and timing all sides, `queries` of all data sets together."""
    return _needs(index.bytes + _BATCHES + 4 * index.bases, 1_800 + index.bases / 1.5e5 + queries * runs * 1e-3)


def time_matches(index: IndexSize, bases: int, runs: int) -> Needs:
    """Of timing searches of long reads `runs` times; short matches are many, and held in memory with what made them."""
    return _needs(index.bytes + _BATCHES + 2 * index.bases + 100 * bases, 1_800 + bases * runs * 2e-6)


def time_match_peers(index: IndexSize, bases: int, runs: int) -> Needs:
    """Of the indexes of other tools for long reads, which mummer makes anew in each run, and of timing all sides."""
    seconds = runs * (2 * index.bases / 1e6 + bases / 1e5)
    return _needs(index.bytes + _BATCHES + 40 * index.bases + 20 * bases, 1_800 + index.bases / 1.5e5 + seconds)


def time_streams(dataset: Mapping[str, Any], reference: int, runs: int) -> Needs:
    """Of timing a data set of streams, each `runs` times; the paper tier's pools are grown by doubling."""
    bases = sum(dataset["lengths"]) * len(dataset["k"])
    return _needs(
        _BATCHES + 3 * reference + 200 * max(dataset["lengths"]), 1_800 + reference / 1e6 + bases * runs * 5e-6
    )


def time_weighted(sizes: Collection[tuple[int, int]], runs: int) -> Needs:
    """Of timing weighted sequences, each `runs` times, by their conjugates and the letters of one; the bitonic sort
    takes most of the time."""
    largest = max(count * (letters + 100) for count, letters in sizes)
    seconds = sum(count * count.bit_length() ** 2 * letters * 1e-9 for count, letters in sizes)
    return _needs(_BATCHES + 2 * largest, 1_800 + runs * seconds)


def time_collections(words: Collection[Sequence[int]], runs: int) -> Needs:
    """Of timing collections of so many words of so many letters, each `runs` times: 24 bytes a letter in this process,
    and as many in the command's."""
    letters = [count * length for count, length in words]
    return _needs(_BATCHES + 48 * max(letters), 600 + runs * 1e-6 * sum(letters))


def time_builds(index: IndexSize, runs: int) -> Needs:
    """Of building an index `runs` times, ours and bwa's."""
    once = build_index(index)
    return Needs(once.mem_mb, BASE_MINUTES + runs * (once.runtime - BASE_MINUTES))
