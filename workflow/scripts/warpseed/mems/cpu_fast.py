"""The fast tier's loop on the CPU: seeds of a read in passes, each prefetching for the next."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int32, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.fm_index.buckets import begin_narrowing, narrow_together
from warpseed.mems.cpu_block import (
    CANDIDATES,
    CHOOSE,
    ITEMS,
    NOTE,
    STORE,
    bound_ends,
    is_wanted,
    orient,
    take_match,
)
from warpseed.mems.cpu_crowded import candidates_of
from warpseed.mems.cpu_longest import scan_longest
from warpseed.mems.fast import LONGEST_WORK, NO_MATCH, SEED_WORK, by_longest, match_of
from warpseed.mems.matches import (
    MAXIMAL,
    count_occurrences,
    keep_rare,
    place_of,
    span_of,
)
from warpseed.mems.order import sort_by_part, sort_matches

__all__ = ["CROWDED", "choose", "scan_seeds", "scan_step", "search_range"]

_SEEDS = ITEMS // 4
"""Seeds of a pass, of which a crowded one becomes two, and each of these two more."""
CROWDED = 16
"""Rows from which on a seed is taken apart."""


@scalar
def _is_known(block, seed, bases):
    """Whether all of up to 32 bases of the read are known."""
    return block.marks.shape[0] == 0 or fetch_word(block.marks, int64(32) + seed) & prefix_mask(bases) == uint64(0)


@scalar
def _entry(how, block, seed):
    """The first table entry of a seed."""
    bases = int64(how.seed_length)
    word = fetch_word(block.words, int64(32) + seed) & prefix_mask(bases)
    return int64(word >> uint64(int64(64) - int64(2) * int64(how.table_length)))


@scalar
def _list_seeds(fast, how, block, length, seed, end):
    """First pass: seeds from `seed` on and before `end` whose bases are all known; returns (how many, the next one)."""
    bases, step = int64(how.seed_length), int64(how.step)
    count = int64(0)
    while seed < end and seed + bases <= length and count < int64(_SEEDS):
        if _is_known(block, seed, bases):
            block.seed[count] = seed
            block.step[count] = step
            prefetch(fast.table, _entry(how, block, seed))
            count += int64(1)
        seed += step
    return count, seed


@scalar
def _rows_of(fast, how, block, seed):
    """The rows of a seed. (A damaged table must not lead behind the last.)"""
    rows = int64(fast.suffix_array.shape[0])
    entry = _entry(how, block, seed)
    more = int64(1) << (int64(2) * (int64(how.table_length) - int64(how.seed_length)))
    return min(int64(fast.table[entry]), rows), min(int64(fast.table[entry + more]), rows)


@scalar
def _list_crowded(block, begin, end, crowded):
    """Append those items of [begin, end) that are to be taken apart; returns how many are listed."""
    for i in range(begin, end):
        if block.high[i] - block.low[i] > int64(CROWDED) and block.step[i] > int64(1):
            block.crowded[crowded] = i
            crowded += int64(1)
    return crowded


@scalar
def _look_up(fast, how, block, count):
    """Second pass: table entries to rows."""
    for i in range(count):
        low, high = _rows_of(fast, how, block, block.seed[i])
        block.low[i], block.high[i] = low, high
        prefetch(fast.suffix_array, low)


@scalar
def _bases_held(how, step):
    """The bases, at most 32, of every match that begins up to `step` - 1 bases before a seed, from it on."""
    return min(int64(how.min_length) - step + int64(1), int64(32))


@scalar
def _begin_half(fast, how, block, length, half, seed, step, searches):
    """The rows of a seed whose suffixes go on as every match does that begins up to `step` - 1 bases before it, as half
    `half`, at once or by one more search; returns the number of searches."""
    bases = _bases_held(how, step)
    low = high = int64(0)
    if seed >= int64(0) and seed + bases <= length and _is_known(block, seed, bases):
        low, high = _rows_of(fast, how, block, seed)
    block.half_low[half], block.half_high[half] = low, high
    if high - low <= int64(1):
        return searches
    wanted = fetch_word(block.words, int64(32) + seed) & prefix_mask(bases)
    begin_narrowing(fast, block.narrowing, searches, half, low, high, wanted, bases)
    return searches + int64(1)


@scalar
def _begin_halves(fast, how, block, length, crowded):
    """The halves of all crowded items; returns how many are to be searched."""
    for c in range(crowded):
        i = int64(block.crowded[c])
        seed = block.seed[i] - ((block.step[i] + int64(1)) >> int64(1))
        prefetch(fast.table, _entry(how, block, max(seed, int64(0))))
    searches = int64(0)
    for c in range(crowded):
        i, half = int64(block.crowded[c]), int64(2) * int64(c)
        seed, step = block.seed[i], block.step[i]
        near = (step + int64(1)) >> int64(1)
        searches = _begin_half(fast, how, block, length, half, seed, near, searches)
        searches = _begin_half(fast, how, block, length, half + int64(1), seed - near, step - near, searches)
    return searches


@scalar
def _halve(block, crowded, count):
    """Crowded items as their halves, where these have fewer rows; those that still are crowded stay listed.

    Returns
    -------
    (crowded, count) : int64, how many are listed, and the number of items
    """
    items, still = count, int64(0)
    for c in range(crowded):
        i, half = int64(block.crowded[c]), int64(2) * int64(c)
        low, high = block.half_low[half], block.half_high[half]
        other_low, other_high = block.half_low[half + int64(1)], block.half_high[half + int64(1)]
        if int64(2) * (high - low + other_high - other_low) > block.high[i] - block.low[i]:
            continue
        step = block.step[i]
        near = (step + int64(1)) >> int64(1)
        block.low[i], block.high[i], block.step[i] = low, high, near
        still = _list_crowded(block, i, i + int64(1), still)
        if other_low < other_high:
            block.seed[count], block.step[count] = block.seed[i] - near, step - near
            block.low[count], block.high[count] = other_low, other_high
            count += int64(1)
    return _list_crowded(block, items, count, still), count


@scalar
def _take_apart(fast, how, block, length, count):
    """Crowded items as two of half the step each, whose seeds can be longer, where these have fewer rows; twice.

    Of the matches that begin up to step - 1 bases before a seed, those that begin less than half a step before it hold
    more bases behind it, and the others a seed half a step before.
    """
    crowded = _list_crowded(block, int64(0), count, int64(0))
    for _ in range(2):
        if crowded == int64(0):
            break
        searches = _begin_halves(fast, how, block, length, crowded)
        narrow_together(fast, block.narrowing, searches, block.half_low, block.half_high)
        crowded, count = _halve(block, crowded, count)
    return count


@scalar
def _emit(fast, how, block, length, strand, gathered, sink, state):
    """Last pass: candidates to matches; `state` as of `take_match`. Returns the state and the work."""
    where = fast.text, fast.segments, int64(fast.suffix_array.shape[0])
    read = block.words, block.marks, int64(32), length
    work = gathered
    for c in range(gathered):
        item, place = block.place_item[c], block.place[c]
        seed = block.seed[item]
        left, bases = match_of(where, how, read, seed, block.step[item], place)
        if bases == int64(NO_MATCH):
            continue
        work += bases >> int64(5)
        state = take_match(how, block, length, strand, (seed - left, bases, place - left), sink, state)
    return state[0], state[1], state[2], work


@inlined
def _is_full(sink, state):
    """Whether more candidates may have no room."""
    return state[2] & int64(STORE) != int64(0) and state[0] + int64(CANDIDATES) > int64(sink.hits.shape[0])


@scalar
def scan_seeds(fast, how, block, length, strand, place, sink, state):
    """All matches of a part of an oriented read.

    Parameters
    ----------
    place : (seed or base to begin with, where the part ends, item of its pass and row of that to go on with, whether
        this is a step, work that it may take); a step ends where there is no room for more candidates, and where the
        work is done
    state : as of `take_match`

    Returns
    -------
    (used, found, work, seed, item, row) : int64, the last three as `place` takes them; the part's end behind the last.
        What is no step and stops before has been given up.
    """
    seed, end, item, skipped, in_steps, most = place
    rows, work = int64(fast.suffix_array.shape[0]), int64(0)
    while seed < end and seed + int64(how.seed_length) <= length:
        count, behind = _list_seeds(fast, how, block, length, seed, end)
        _look_up(fast, how, block, count)
        count = _take_apart(fast, how, block, length, count)
        gathered = int64(0)
        work += count
        for i in range(item, count):
            low = block.low[i]
            slot, begin, behind_last, looked_at = candidates_of(fast, block, length, int64(i), skipped)
            work += looked_at
            for number in range(begin, behind_last):
                row = low + number if slot < int64(0) else block.firsts.rows[slot, number]
                text_place = int64(fast.suffix_array[row])
                if text_place >= rows:
                    continue
                if gathered == int64(CANDIDATES):
                    used, found, deed, done = _emit(fast, how, block, length, strand, gathered, sink, state)
                    state, gathered = (used, found, deed), int64(0)
                    work += done
                    if (in_steps and _is_full(sink, state)) or work > most:
                        return state[0], state[1], work, seed, int64(i), int64(row) - low
                prefetch(fast.text, max(text_place - int64(32), int64(0)) >> int64(5))
                block.place[gathered] = text_place
                block.place_item[gathered] = i
                gathered += int64(1)
            skipped = int64(0)
        used, found, deed, done = _emit(fast, how, block, length, strand, gathered, sink, state)
        state = used, found, deed
        work += done
        seed, item = behind, int64(0)
        if in_steps and seed < end and (_is_full(sink, state) or work > most):
            return state[0], state[1], work, seed, int64(0), int64(0)
    return state[0], state[1], work, int64(end), int64(0), int64(0)


@scalar
def _scan_part(fast, how, block, length, strand, place, sink, state):
    """Find the matches of a part of an oriented read: all of them, or where they are found by the longest from every
    base on, the longest ones that are noted, or those that are wanted. As `scan_seeds`."""
    if how.longest:
        return scan_longest(fast, how, block, length, strand, place, sink, state)
    return scan_seeds(fast, how, block, length, strand, place, sink, state)


@scalar
def scan_step(fast, how, block, length, strand, place, sink, deed):
    """A step of a part of a read that lies oriented in the block; returns (used, begin, item, row)."""
    used, _, _, begin, item, row = _scan_part(
        fast, how, block, int64(length), int64(strand), place, sink, (int64(0), int64(0), int64(deed))
    )
    return used, begin, item, row


@scalar
def _scan(fast, how, reads, query, block, sink, state, most):
    """Find the matches of a read, as `_scan_part`; returns (used, found, work). What takes more work than `most` is
    given up, and nothing is found."""
    work = int64(0)
    for s in range(how.strands):
        strand = int64(s)
        length = orient(reads, query, strand, block)
        place = int64(0), length, int64(0), int64(0), False, most - work
        used, found, done, stopped, _, _ = _scan_part(fast, how, block, length, strand, place, sink, state)
        work += done
        state = used, found, state[2]
        if stopped < length or work > most:
            return state[0], int64(0), max(work, most + int64(1))
    return state[0], state[1], work


@scalar
def choose(how, ends, length, hits, begin, end):
    """Move the matches of [begin, end) together that are wanted; returns the place behind them."""
    to = begin
    for i in range(begin, end):
        _, strand = place_of(hits[i].place)
        bases, first = span_of(hits[i].span)
        if strand:
            first = length - first - bases
        if is_wanted(how, ends, strand, first, bases):
            hits[to].place, hits[to].span = hits[i].place, hits[i].span
            to += int64(1)
    return to


@scalar
def _note(fast, how, reads, query, block, sink, state):
    """Find the matches of a read, and note their ends; returns (how, used, found, work).

    By seeds; where those take more work than the longest match from every base on, by that, which stores none; and
    where this takes too much in its turn, as in long runs of a short unit, by seeds after all.
    """
    length, most, tried = int64(reads.lengths[query]), int64(sink.work), int64(0)
    used, found, deed = state
    attempt = int64(2) if how.longest else int64(0)
    while True:
        longest = how.longest or attempt == int64(1)
        way, bound = by_longest(how) if longest else how, most
        if attempt < int64(2):
            bound = min(int64(LONGEST_WORK if longest else SEED_WORK) * length, most)
        block.ends[:, : length + int64(1)] = int32(0)
        begun = used, found, int64(NOTE) if longest else deed
        stored, there, work = _scan(fast, way, reads, query, block, sink, begun, bound)
        tried += work
        if work <= bound:
            return way, stored, there, min(tried, most)
        if bound == most:
            return way, stored, there, work
        attempt += int64(1)


@scalar
def _search(fast, how, reads, query, block, sink, used):
    """The matches of one read, stored from `used` on: (place behind them, how many, work). What takes more than
    `sink.work` has no room: it is for steps."""
    length, room, most = int64(reads.lengths[query]), int64(sink.hits.shape[0]), int64(sink.work)
    store = int64(STORE) if sink.store else int64(0)
    if how.kind == MAXIMAL:
        stored, found, work = _scan(fast, how, reads, query, block, sink, (used, int64(0), store), most)
        return room + int64(1) if work > most else stored, found, work
    # Which matches are wanted is known when all are: those of seeds are held until then, or found a second time.
    how, stored, found, work = _note(fast, how, reads, query, block, sink, (used, int64(0), int64(NOTE) | store))
    if work > most:
        return room + int64(1), int64(0), work
    bound_ends(how, block.ends, length)
    if store and not how.longest and stored <= room:
        stored = choose(how, block.ends, length, sink.hits, used, stored)
        return stored, stored - used, work
    state = used, int64(0), int64(CHOOSE) | store
    stored, found, again = _scan(fast, how, reads, query, block, sink, state, most)
    return room + int64(1) if again > most else stored, found, work + again


@scalar
def search_range(fast, reads, how, block, first, last, sink):
    """Matches of the reads [first, last), wherever they begin in the text, read by read.

    Returns
    -------
    (stop, used, needed) : int64; where it stopped, the matches stored, and the room that read `stop` needs (0 at the
        end, and where it stopped for the work)
    """
    used = work = int64(0)
    for number in range(first, last):
        query = int64(number)
        if work > int64(sink.work):
            return query, used, int64(0)
        stored, found, done = _search(fast, how, reads, query, block, sink, used)
        work += done
        at = query - int64(first)
        if found > int64(sink.max_hits):
            sink.counts[at] = 0
            sink.dropped[0] += 1
            sink.dropped[1] += found
            continue
        if sink.store:
            if stored > int64(sink.hits.shape[0]):
                return query, used, stored - used
            sort_by_part(sink.hits, used, stored)
            count_occurrences(sink.hits, used, stored)
            behind = keep_rare(sink.hits, used, stored, int64(how.max_occurrences))
            sort_matches(sink.hits, used, behind)
            sink.dropped[1] += stored - behind
            found, used = behind - used, behind
        sink.counts[at] = found
    return int64(last), used, int64(0)
