"""A GPU played by the CPU: CuPy is that of pretend_cupy.py, and kernels are plain functions that do what theirs do.

It holds the host's side of the GPU searches to account where no GPU is: batches, room, sorting, what goes where. What a
kernel computes is checked on a GPU alone.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from warpseed.compute.appended import SEGMENTS
from warpseed.compute.letters import SLACK
from warpseed.fm_index.locate import walk_to_sample
from warpseed.kmer_seeds import cpu, paper
from warpseed.kmer_seeds.gpu_inexact import KEPT
from warpseed.kmer_seeds.kmers import QUERY_SHIFT
from warpseed.kmer_seeds.output import expand as expand_hits
from warpseed.mems import cpu as mem_cpu
from warpseed.mems.matches import MAXIMAL, PLACE_BITS
from warpseed.mems.matches import Criteria as MemCriteria
from warpseed.mems.output import MATCH_ROW
from warpseed.mems.output import expand as expand_matches
from warpseed.one_error import cpu as one_error_cpu
from warpseed.one_error.output import PLACEMENT_ROW
from warpseed.one_error.output import expand as expand_placements
from warpseed.one_error.reads import Criteria
from warpseed.output.lines import format_lines
from warpseed.output.rows import HIT_ROW
from warpseed.sequences.alphabet import BASE_CODE, IS_IUPAC
from warpseed.sequences.packed import pack
from warpseed.sequences.queries import Queries

from oracles.pretend_cupy import Array, PretendCupy
from oracles.pretend_mems_paper import PaperKernels

_ROWS = {6: (HIT_ROW, expand_hits), 9: (PLACEMENT_ROW, expand_placements), 12: (MATCH_ROW, expand_matches)}
"""Rows, and what makes them, by their number of fields."""


class PretendGpu(PaperKernels):
    """The kernels, by name, as functions on arrays of the host."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.known: dict[Any, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self.crowded = False
        """whether seeds of long reads have too many rows"""
        self.launched: list[str] = []
        self.shapes: list[tuple[str, int, int]] = []
        """name, threads and threads of a block of each launch"""

    def launch(self, function: Any, threads: int, block: int, *arguments: Any) -> None:
        name = function.py_func.__name__
        self.launched.append(name)
        self.shapes.append((name, threads, block))
        getattr(self, name)(*arguments)

    def fill_device_table(self, text, segments, suffix_array, table_length, table, disorder) -> None:
        assert not table.any() and not disorder.any()

    def fill_tagged_rows(self, text, segments, suffix_array, table_length, rows) -> None:
        rows[...] = suffix_array

    def fill_bases_before(self, text, rows, before) -> None:
        before[...] = 0

    def _found(self, kmers: Any, mismatches: int) -> tuple[np.ndarray, np.ndarray]:
        """Every hit with its k-mer above it, and the hits of each k-mer, whatever their limit."""
        plain = type(kmers)(*(np.array(array) for array in kmers))
        found = cpu.find_fast(self.index, plain, mismatches)
        query = np.repeat(np.arange(len(found.counts), dtype=np.uint64), found.counts)
        return (query << np.uint64(QUERY_SHIFT)) | found.hits, found.counts

    def append_exact(self, tagged, kmers, max_hits, store, cursor, counts, hits) -> None:
        keyed, found = self._found(kmers, 0)
        over = found > max_hits
        kept = keyed[~np.repeat(over, found)][::-1]
        counts[...] = np.where(over, 0, found)
        cursor[...] = len(kept), over.sum()
        if store and len(kept) <= len(hits):
            hits[: len(kept)] = kept

    def append_inexact(self, search, rounds) -> None:
        lists, room = search.lists, len(search.lists.hits) // SEGMENTS
        keyed, found = self._found(search.kmers, int(search.scheme.max_mismatches))
        lists.counts[...] = found
        for segment in range(SEGMENTS):
            part = keyed[segment::SEGMENTS]
            lists.cursors[segment] = len(part)
            lists.hits[segment * room : (segment + 1) * room][: len(part)] = part[:room]
        # As if a bucket for every third k-mer were crowded.
        lists.cursors[SEGMENTS] = len(found) // 3

    def read_crowded(self, search, cursors) -> None:
        assert search.lists.crowded.shape[1] == 4 and np.array_equal(cursors, search.lists.cursors)

    probe_crowded = look_deeper = read_crowded

    def close_ranks(self, lists, max_hits, hits) -> None:
        room, kept = len(lists.hits) // SEGMENTS, []
        for segment in range(SEGMENTS):
            used = lists.hits[segment * room : segment * room + min(int(lists.cursors[segment]), room)]
            query = (used >> np.uint64(QUERY_SHIFT)).astype(np.int64)
            kept.append(used[lists.counts[query] <= max_hits])
        together = np.concatenate(kept)
        hits[: len(together)] = together
        lists.cursors[KEPT] = len(together)

    def settle_counts(self, lists, max_hits) -> None:
        over = lists.counts > max_hits
        lists.cursors[KEPT + 1] = over.sum()
        lists.counts[over] = 0

    def paper_exact(self, index, kmers, low_of, size_of) -> None:
        for query in range(len(kmers.lengths)):
            for strand in range(2):
                low, high = paper.search_exact(_plain(index), _plain(kmers), query, strand)
                low_of[2 * query + strand], size_of[2 * query + strand] = low, max(high - low, 0)

    def _paper_inexact(self, forward, reverse, kmers, max_mismatches, max_hits, lists) -> None:
        forward, reverse, kmers = _plain(forward), _plain(reverse), _plain(kmers)
        for query in range(len(kmers.lengths))[::-1]:
            total = 0
            work = paper.Work(*(np.empty(256, dtype) for dtype in (np.uint8, np.uint32, np.uint32, np.uint8)))
            for strand in range(2):
                depth = paper.start_interval(forward, reverse, kmers, query, strand, max_mismatches, work)
                while depth >= 0 and total <= max_hits:
                    low, high, distance, depth = paper.next_leaf(
                        reverse, kmers, query, strand, max_mismatches, work, depth
                    )
                    if depth >= 0:
                        total += high - low
                        slot = int(lists.cursor[0])
                        lists.cursor[0] += np.uint64(1)
                        if slot < len(lists.low):
                            lists.low[slot], lists.size[slot] = low, high - low
                            lists.kind[slot] = query << 3 | strand << 2 | distance
            lists.totals[query] = total

    paper_inexact_32 = paper_inexact_255 = _paper_inexact

    def paper_locate(self, index, low_of, hit_end, entry_of, steps_of) -> None:
        begin = 0
        for low, end in zip(low_of, hit_end.astype(np.int64), strict=True):
            for t in range(begin, int(end)):
                entry_of[t], steps_of[t] = walk_to_sample(_plain(index), int(low) + t - begin)
            begin = int(end)

    # ---- lines

    def make_hit_rows(self, packed, hit_first, first, lengths, segments, rows) -> None:
        kind, expand = _ROWS[len(rows.dtype)]
        query = int(np.searchsorted(hit_first, first, side="right")) - 1
        columns = (np.asarray(array).view(np.ndarray) for array in (packed, hit_first))
        mine = np.empty(len(rows), kind)
        expand(*columns, query, first, np.asarray(lengths).view(np.ndarray), _plain(segments), 0, mine)
        rows[...] = mine.astype(rows.dtype)

    make_placement_rows = make_hit_rows

    def make_hit_columns(self, packed, hit_first, first_query, lengths, segments, columns) -> None:
        kind, expand = _ROWS[len(columns)]
        rows = np.empty(len(packed), kind)
        read = (np.asarray(array).view(np.ndarray) for array in (packed, hit_first))
        first = int(np.flatnonzero(hit_first)[0]) - 1
        expand(*read, first, 0, np.asarray(lengths).view(np.ndarray), _plain(segments), first_query, rows)
        for name, column in columns._asdict().items():
            column[...] = rows[name]

    make_placement_columns = make_match_columns = make_hit_columns

    def pack_letters(self, letters, offsets, first, words, marks, seen) -> None:
        letters, offsets = (np.asarray(array).view(np.ndarray) for array in (letters, offsets))
        if not IS_IUPAC[letters].all():
            seen[0] = np.argmin(IS_IUPAC[letters])
            return
        packed = pack(Queries(BASE_CODE[letters], offsets, letters[:0], np.zeros_like(offsets), ""))
        assert packed.first.tolist() == first.tolist()
        words[...], marks[...] = packed.words, packed.marks if len(packed.marks) else 0
        seen[1] = len(packed.marks) > 0

    def size_lines(self, rows, width, parts, names, sizes) -> None:
        out, ends = self._lines(rows, width, parts, names, len(sizes))
        sizes[...] = np.diff(ends, prepend=0)

    def put_lines(self, rows, width, parts, names, ends, out) -> None:
        text, expected = self._lines(rows, width, parts, names, len(ends))
        assert ends.tolist() == expected.tolist()
        out[: len(text)] = text

    def _lines(self, rows, width, parts, names, count) -> tuple[np.ndarray, np.ndarray]:
        """The lines of rows, and where each ends."""
        out, ends = np.empty(1000 * count + SLACK, np.uint8), np.empty(count, np.int64)
        used = format_lines(np.array(rows), width, _plain(parts), _plain(names), 0, out, ends)
        assert used >= 0
        return out[:used], ends

    def spread_codes(self, letters, offsets, codes, seen) -> None:
        letters, offsets = (np.asarray(array).view(np.ndarray) for array in (letters, offsets))
        codes[np.arange(len(letters)) + np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))] = BASE_CODE[letters]
        seen[0] = len(letters) if IS_IUPAC[letters].all() else np.argmin(IS_IUPAC[letters])

    # ---- reads

    def orient_reads(self, reads, strands, oriented) -> None:
        assert len(oriented.words) == 2 * len(reads.words) + 1 and len(oriented.marks) in (0, len(oriented.words))

    def append_placements(self, search) -> None:
        found, room = search.found, len(search.found.words) // SEGMENTS
        criteria = Criteria(int(search.max_edits), int(search.strands))
        placements = one_error_cpu.find_fast(self.index, _plain(search.reads), criteria)
        found.counts[...] = placements.counts
        query = np.repeat(np.arange(len(placements.counts)), placements.counts)
        # The last of a read's are appended first, as if its lanes had come so.
        rank = np.concatenate([np.arange(count)[::-1] for count in placements.counts])
        for segment in range(SEGMENTS):
            mine = slice(segment, None, SEGMENTS)
            found.cursors[segment] = len(query[mine])
            part = slice(segment * room, segment * room + min(room, len(query[mine])))
            kept = part.stop - part.start
            found.words[part] = placements.hits[mine][:kept]
            found.queries[part], found.ranks[part] = query[mine][:kept], rank[mine][:kept]
        # As if a half of every third read were crowded.
        found.cursors[SEGMENTS] = len(placements.counts) // 3

    def append_crowded_placements(self, search) -> None:
        assert search.crowded.shape[1] == 4

    append_two, append_crowded_two = append_placements, append_crowded_placements

    def place_words(self, lists, borders, grouped) -> None:
        room = len(lists.words) // SEGMENTS
        for segment in range(SEGMENTS):
            part = slice(segment * room, segment * room + int(lists.cursors[segment]))
            query = lists.queries[part].astype(np.int64)
            kept = borders[query] < borders[query + 1]
            places = borders[query] + lists.ranks[part].astype(np.int64)
            grouped[places[kept]] = lists.words[part][kept]

    def sort_few(self, borders, grouped, cursors, many) -> None:
        for begin, end in itertools.pairwise(borders.tolist()):
            grouped[begin:end].sort()

    def sort_many(self, borders, grouped, cursors, many, most) -> None:
        assert not cursors.any()

    def sort_most(self, borders, grouped, cursors, most) -> None:
        assert not cursors.any()

    def search_reads(self, index, reads, strands, slots, borders, results, found) -> None:
        whole = one_error_cpu.search_paper(self.index, _plain(reads), Criteria(1, int(strands)))
        found[...] = whole.counts
        ends = np.cumsum(whole.counts)
        for query, end in enumerate(ends.tolist()):
            first, room = query * slots, slots
            if slots < 0:
                first, room = int(borders[query]), int(borders[query + 1] - borders[query])
            begin = end - int(whole.counts[query])
            kept = min(end - begin, room)
            for given, true in zip(results, whole.results, strict=True):
                given[first : first + kept] = true[begin : begin + kept]

    # ---- long reads

    def orient_words(self, reads, strands, oriented) -> None:
        assert len(oriented.words) == strands * len(reads.words) + 2
        assert len(oriented.marks) in (0, len(oriented.words))

    def _matches(self, reads, how, kind) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys and spans of the matches of a kind, and their numbers in order: those of the reads before are known
        still, as windows come anew."""
        criteria = MemCriteria(int(how.min_length), kind, int(how.strands))
        asked = criteria, *(np.asarray(part).tobytes() for part in reads)
        if asked in self.known:
            return self.known[asked]
        found = mem_cpu.find_fast(self.index, _plain(reads), criteria)
        query = np.repeat(np.arange(len(found.counts), dtype=np.uint64), found.counts)
        places = found.hits["place"] & np.uint64((1 << PLACE_BITS) - 1)
        keys, spans = (query << np.uint64(PLACE_BITS)) | places, found.hits["span"]
        return self.known.setdefault(asked, (keys, spans, np.sort(_mixed(keys, spans))))

    def sample_seeds(self, search, every, sampled) -> None:
        """One seed, with a row for each position of the text where seeds are to be crowded."""
        assert not sampled.any() and search.first_tile[-1] <= 256 * every
        sampled[:] = 1, self.index.rows * self.crowded, 1

    def note_longest(self, search) -> None:
        assert search.noting and not search.ends.any()

    def append_longest(self, search) -> None:
        """All that are wanted."""
        assert not search.noting
        self._append(search, int(search.how.kind))

    def append_matches(self, search) -> None:
        assert not search.noting or not search.ends.any()
        self._append(search, MAXIMAL)

    def _append(self, search, kind) -> None:
        lists, room = search.lists, len(search.lists.keys) // SEGMENTS
        self.how = search.how
        keys, spans, _ = self._matches(search.reads, search.how, kind)
        place = (keys & np.uint64((1 << PLACE_BITS) - 1)) >> np.uint64(1)
        inside = (place >= search.begin) & (place < search.end)
        keys, spans = keys[inside], spans[inside]
        # As if there were a crowded seed for every ten words, in each part: where they have no room, some matches are
        # not met.
        lists.cursors[SEGMENTS:-1] = len(search.reads.words) // 10
        if lists.cursors[SEGMENTS] > len(search.crowded) // SEGMENTS:
            keys, spans = keys[::3], spans[::3]
        for segment in range(SEGMENTS):
            # The last of a read's are appended first, as if its lanes had come so.
            mine = slice(segment, None, SEGMENTS)
            lists.cursors[segment] = len(keys[mine])
            kept = min(room, len(keys[mine]))
            part = slice(segment * room, segment * room + kept)
            lists.keys[part], lists.spans[part] = keys[mine][::-1][:kept], spans[mine][::-1][:kept]

    def append_crowded_matches(self, search) -> None:
        assert search.crowded.shape[1] == 4

    append_crowded_longest = append_crowded_matches

    def bound_ends(self, reads, kind, ends) -> None:
        """They are marked; in truth all change, and once alone."""
        assert kind != MAXIMAL and len(ends) == 2 * 32 * len(reads.words)
        assert not ends.any()
        ends[0] = 1

    def keep_matches(self, lists, reads, kind, ends, cursor, keys, spans, counts) -> None:
        assert not counts.any() and ends[:1].tolist() == [1] * (kind != MAXIMAL)
        room = len(lists.keys) // SEGMENTS
        parts = [slice(i * room, i * room + min(room, int(lists.cursors[i]))) for i in range(SEGMENTS)]
        there = [np.concatenate([list[part] for part in parts]) for list in (lists.keys, lists.spans)]
        numbers, (_, _, known) = _mixed(*there), self._matches(reads, self.how, int(kind))
        wanted = np.searchsorted(known, numbers) < np.searchsorted(known, numbers, "right")
        kept = int(wanted.sum())
        keys[:kept], spans[:kept] = there[0][wanted], there[1][wanted]
        cursor[0] = kept
        counts[...] = np.bincount((keys[:kept] >> np.uint64(PLACE_BITS)).astype(np.int64), minlength=len(counts))

    def put_matches(self, keys, spans, order, hits, queries) -> None:
        queries[...] = keys[order] >> np.uint64(PLACE_BITS)
        hits[::2], hits[1::2] = keys[order] & np.uint64((1 << PLACE_BITS) - 1), spans[order]

    def order_matches(self, keys, order, spans, hits) -> None:
        order_by = np.lexsort([hits[1::2], keys[order]])
        hits[1::2] = hits[1::2][order_by]

    def count_spans(self, hits, queries, borders, slots, counts) -> None:
        assert not slots.any() and not counts.any() and len(slots) == len(counts) == 2 * len(queries)
        slots[: len(queries)] = hits[1::2]

    def put_counted(self, hits, queries, borders, slots, counts) -> None:
        assert np.array_equal(slots[: len(queries)], hits[1::2])
        assert np.array_equal(np.repeat(np.arange(len(borders) - 1), np.diff(borders)), queries)
        pairs = np.stack([queries.astype(np.uint64), hits[1::2]], axis=1).view(np.ndarray)
        _, which, occurrences = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        hits[::2] |= occurrences[which.reshape(-1)].astype(np.uint64) << np.uint64(PLACE_BITS)


def _mixed(keys: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """A number for each pair, by which pairs can be told apart."""
    return keys * np.uint64(0x9E3779B97F4A7C15) ^ spans


def _plain(arrays: Any) -> Any:
    """A NamedTuple of arrays of the pretended device as one of NumPy's, as compiled functions know them."""
    return type(arrays)(*(np.asarray(part).view(np.ndarray) if isinstance(part, Array) else part for part in arrays))


def install(monkeypatch: Any, index: Any, devices: int = 1) -> tuple[PretendCupy, PretendGpu]:
    """Put a pretended CuPy and pretended kernels, for searches of one index, where the library looks for them."""
    from warpseed.compute import appended
    from warpseed.compute import gpu as compute_gpu
    from warpseed.ebwt import gpu_few_words
    from warpseed.fm_index import device
    from warpseed.kmer_seeds import gpu, gpu_paper
    from warpseed.mems import gpu as mems_gpu
    from warpseed.mems import gpu_shared, gpu_stages
    from warpseed.one_error import gpu as reads_gpu
    from warpseed.one_error import gpu_paper as reads_gpu_paper
    from warpseed.output import device_columns, device_lines
    from warpseed.sequences import device_queries

    package, kernels = PretendCupy(), PretendGpu(index)
    package.devices = devices
    monkeypatch.setitem(sys.modules, "cupy", package)
    # What is kept is neither for another test nor for a GPU that answers.
    monkeypatch.setattr(gpu_few_words, "_OWNER", gpu_few_words._Owner())
    monkeypatch.setattr(compute_gpu, "_streams", {})
    for module in (device_columns, device_lines):
        monkeypatch.setattr(module, "Rows", lambda array, row_type: array.view(row_type))
    monkeypatch.setattr(device, "MOST_SEGMENTS", 0)  # no rows of both strands: kernels that are played know none
    for module in (
        appended,
        device,
        device_columns,
        device_lines,
        device_queries,
        gpu,
        gpu_paper,
        gpu_shared,
        gpu_stages,
        mems_gpu,
        reads_gpu,
        reads_gpu_paper,
    ):
        monkeypatch.setattr(module, "launch", kernels.launch)
    return package, kernels
