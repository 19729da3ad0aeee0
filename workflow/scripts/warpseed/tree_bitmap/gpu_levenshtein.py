"""The Levenshtein kernels of paper 003: naive, transition-efficient, and that with queues (Figures 30, 32, 34 and 35).

In all of them a block reads a piece of the stream with active bitmaps of its own, one a dist-level. Its threads share
the trie-nodes of a level, and wait for each other between levels, deepest first. What they find at a base is gathered
in two words of shared memory by atomic or, and reported as two records at most.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.appended import with_room
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import cuda, cupy, kernel, launch, on_device, to_device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import ALL_LANES, last_lane
from warpseed.tree_bitmap.bitmap import TreeBitmap, child_of
from warpseed.tree_bitmap.cpu_levenshtein import Edits, check_edits, edits_of
from warpseed.tree_bitmap.gpu_paper import BLOCK, MatchBuffer, append_record, reset_active
from warpseed.tree_bitmap.levenshtein import (
    activate_children,
    combined_moves,
    edit_record,
    transition_is,
    transition_k,
    warm_up,
)
from warpseed.tree_bitmap.paper import MISMATCH, piece_of
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["KERNELS", "QUEUE", "match_edits", "match_edits_efficiently", "match_edits_in_queues", "match_edits_naively"]

QUEUE = 128
"""Trie-nodes that a warp's queue holds (Figure 38)."""
_QUEUES = QUEUE * (BLOCK // 32)
_ON_LEVEL_0 = np.uint32(1 << 31)
"""Said of a trie-node in a queue whose root becomes active on dist-level 0; of others it is one level on."""
_BLOCKS = 264
"""Blocks, and so pieces of the stream, at most."""


@scalar
def _note(found, accepted, missed):
    """Gather what a trie-node has found."""
    if accepted != uint64(0):
        cuda.atomic.or_(found, 0, uint32(accepted))
    if missed != uint64(0):
        cuda.atomic.or_(found, 1, uint32(missed))


@scalar
def _begin(active, found, nodes):
    """The states before the first base, and nothing found."""
    if cuda.threadIdx.x < 2:
        found[cuda.threadIdx.x] = uint32(0)
    reset_active(active, nodes)


@scalar
def _next_base(codes, place, active, nodes):
    """The base at a place; one that is none leaves the root of dist-level 0 alone active. int64."""
    base = int64(codes[place])
    if base >= int64(NO_BASE):
        reset_active(active, nodes)
    return base


@scalar
def _report(found, place, first, buffer):
    """Put down what the block has found at a base, if that is one to report, and forget it."""
    if cuda.threadIdx.x < 2:
        me = int64(cuda.threadIdx.x)
        if int64(place) >= first:
            append_record(buffer, edit_record(MISMATCH if me else uint64(0), place, found[me]))
        found[me] = uint32(0)
    cuda.syncthreads()


@scalar
def _sweep_is(bitmap, active, dist, base, search, found):
    """I- and S-transitions from a dist-level to the next."""
    me, threads, levels = int64(cuda.threadIdx.x), int64(cuda.blockDim.x), int64(bitmap.level_offsets.shape[0])
    for back in range(int64(2), levels + int64(1)):
        level = levels - int64(back)
        for node in range(int64(bitmap.level_offsets[level]) + me, int64(bitmap.level_offsets[level + 1]), threads):
            accepted = transition_is(bitmap, active, dist, (level, int64(node)), base, search)
            _note(found, uint64(accepted), uint64(0))
        cuda.syncthreads()


@scalar
def _sweep_k(bitmap, active, dist, base, search, found):
    """K-transitions on a dist-level."""
    me, threads, levels = int64(cuda.threadIdx.x), int64(cuda.blockDim.x), int64(bitmap.level_offsets.shape[0])
    for back in range(int64(2), levels + int64(1)):
        level = levels - int64(back)
        for node in range(int64(bitmap.level_offsets[level]) + me, int64(bitmap.level_offsets[level + 1]), threads):
            accepted, missed = transition_k(bitmap, active, dist, (level, int64(node)), base, search)
            _note(found, uint64(accepted), uint64(missed))
        cuda.syncthreads()


@scalar
def _sweep_all(bitmap, active, dist, base, search, found):
    """All transitions that lead to dist-level `dist` + 1, and from level 0 those to level 0."""
    me, threads, levels = int64(cuda.threadIdx.x), int64(cuda.blockDim.x), int64(bitmap.level_offsets.shape[0])
    for back in range(int64(2), levels + int64(1)):
        level = levels - int64(back)
        for number in range(int64(bitmap.level_offsets[level]) + me, int64(bitmap.level_offsets[level + 1]), threads):
            node = int64(number)
            accepted, missed, above, own = combined_moves(bitmap, active, dist, (level, node), base, search)
            activate_children(bitmap, active, dist + int64(1), node, uint64(above))
            activate_children(bitmap, active, dist, node, uint64(own))
            _note(found, uint64(accepted), uint64(missed))
        cuda.syncthreads()


@scalar
def _read_naively(bitmap, active, base, search, found):
    """Figure 30: from the last dist-level to the first, I- and S-transitions to the next one, then K-transitions."""
    edits = int64(search[1])
    for back in range(edits + int64(1)):
        dist = edits - int64(back)
        if dist < edits:
            _sweep_is(bitmap, active, dist, base, search, found)
        _sweep_k(bitmap, active, dist, base, search, found)


@scalar
def _read_efficiently(bitmap, active, base, search, found):
    """Figure 32: all transitions to a dist-level together, and with those to level 1 those from level 0 to itself."""
    edits = int64(search[1])
    if edits == int64(0):
        _sweep_k(bitmap, active, int64(0), base, search, found)
    for back in range(edits):
        _sweep_all(bitmap, active, edits - int64(1) - int64(back), base, search, found)


@scalar
def _match(of_kernel, found, read, room):
    """A block reads its piece, base by base.

    Parameters
    ----------
    of_kernel : what a kernel is called with
    found : uint32[2], shared
    read : ``read(bitmap, active, base, search, room)`` makes the transitions of a base
    room : what it works in
    """
    codes, search, bitmap, places, actives, buffer = of_kernel
    nodes, block = (int64(search[1]) + int64(1)) * int64(bitmap.inmaps.shape[0]), int64(cuda.blockIdx.x)
    active = actives[block * nodes : (block + int64(1)) * nodes]
    first, last = piece_of(places, block, int64(actives.shape[0]) // nodes)
    _begin(active, found, nodes)
    for place in range(warm_up(first, search), last):
        base = _next_base(codes, place, active, nodes)
        if base < int64(NO_BASE):
            read(bitmap, active, base, search, room)
            _report(found, place, first, buffer)


@kernel
def match_edits_naively(codes, search, bitmap, places, actives, buffer):
    """The exhaustive traversal. A block has a piece of the places [0] to [1], and its part of ``actives``
    (uint32[blocks·(D + 1)·t]); all blocks have one."""
    found = cuda.shared.array(2, uint32)
    _match((codes, search, bitmap, places, actives, buffer), found, _read_naively, found)


@kernel
def match_edits_efficiently(codes, search, bitmap, places, actives, buffer):
    """The traversal that visits trie-nodes less often; pieces and parts are as in `match_edits_naively`."""
    found = cuda.shared.array(2, uint32)
    _match((codes, search, bitmap, places, actives, buffer), found, _read_efficiently, found)


# ---- queues


@scalar
def _empty_queue(queue, held, active, offset):
    """Set the roots of all trie-nodes of a warp's queue; lane by lane, so that neighbours there are set together.

    Parameters
    ----------
    queue : uint32[_QUEUES] in shared memory
    held : how many trie-nodes the queue of this warp has, int64
    offset : where the active inmaps of the next dist-level begin, int64
    """
    cuda.syncwarp()
    me = int64(cuda.threadIdx.x)
    for number in range(me & int64(31), held, int64(32)):
        entry = queue[(me >> int64(5)) * int64(QUEUE) + int64(number)]
        own = uint32(entry & _ON_LEVEL_0) != uint32(0)
        to = int64(entry & ~_ON_LEVEL_0)
        active[to if own else offset + to] |= uint32(1)
    cuda.syncwarp()


@scalar
def _queue_children(bitmap, queue, held, visit, active, offset):
    """Figure 35: put the children of the lanes' trie-nodes into the warp's queue, lane after lane.

    Parameters
    ----------
    visit : (this lane's trie-node, the bits of its exmap, their mark), int64, uint64, uint32

    Returns
    -------
    int64 : how many the queue has now
    """
    node, children, mark = visit
    me = int64(cuda.threadIdx.x)
    lane, mine = me & int64(31), (me >> int64(5)) * int64(QUEUE)
    waiting = uint32(cuda.ballot_sync(ALL_LANES, children != uint64(0)))
    while waiting != uint32(0):
        source = last_lane(waiting)
        waiting = uint32(waiting & ~(uint32(1) << uint32(source)))
        its_node = int64(cuda.shfl_sync(ALL_LANES, node, source))
        its_children = uint64(cuda.shfl_sync(ALL_LANES, int64(children), source))
        for half in range(2):
            child = int64(32) * int64(half) + lane
            writes = (its_children >> uint64(child)) & uint64(1) != uint64(0)
            votes = uint32(cuda.ballot_sync(ALL_LANES, writes))
            count = int64(cuda.popc(votes))
            if held + count > int64(QUEUE):
                _empty_queue(queue, held, active, offset)
                held = int64(0)
            if writes:
                before = int64(cuda.popc(uint32(votes & ((uint32(1) << uint32(lane)) - uint32(1)))))
                queue[mine + held + before] = uint32(child_of(bitmap, its_node, child)) | mark
            held += count
    return held


@scalar
def _sweep_in_queues(bitmap, active, dist, base, search, room):
    """`_sweep_all`, whose external transitions go through queues; `room` is (found, queue)."""
    found, queue = room
    me, threads, levels = int64(cuda.threadIdx.x), int64(cuda.blockDim.x), int64(bitmap.level_offsets.shape[0])
    offset = (dist + int64(1)) * int64(bitmap.inmaps.shape[0])
    for back in range(int64(2), levels + int64(1)):
        level, held = levels - int64(back), int64(0)
        end = int64(bitmap.level_offsets[level + 1])
        # The lanes of a warp go round together.
        for first in range(int64(bitmap.level_offsets[level]) + (me & ~int64(31)), end, threads):
            node, above, own = int64(first) + (me & int64(31)), uint64(0), uint64(0)
            if node < end:
                accepted, missed, above, own = combined_moves(bitmap, active, dist, (level, node), base, search)
                _note(found, uint64(accepted), uint64(missed))
            held = _queue_children(bitmap, queue, held, (node, uint64(above), uint32(0)), active, offset)
            if dist == int64(0):
                held = _queue_children(bitmap, queue, held, (node, uint64(own), _ON_LEVEL_0), active, offset)
        _empty_queue(queue, held, active, offset)
        cuda.syncthreads()


@scalar
def _read_in_queues(bitmap, active, base, search, room):
    """`_read_efficiently`, whose external transitions go through queues; `room` is (found, queue)."""
    edits = int64(search[1])
    if edits == int64(0):
        _sweep_k(bitmap, active, int64(0), base, search, room[0])
    for back in range(edits):
        _sweep_in_queues(bitmap, active, edits - int64(1) - int64(back), base, search, room)


@kernel
def match_edits_in_queues(codes, search, bitmap, places, actives, buffer):
    """`match_edits_efficiently`, where the roots that a warp sets go through a queue of its own in shared memory."""
    found, queue = cuda.shared.array(2, uint32), cuda.shared.array(_QUEUES, uint32)
    _match((codes, search, bitmap, places, actives, buffer), found, _read_in_queues, (found, queue))


# ---- the host's side

KERNELS = {"naive": match_edits_naively, "efficient": match_edits_efficiently, "queue": match_edits_in_queues}
"""The kernels by name."""


def match_edits(
    codes: np.ndarray,
    k: int,
    max_edits: int,
    bitmap: TreeBitmap,
    kernel: str = "efficient",
    pieces: int | None = None,
    records: int | None = None,
    watch: Stopwatch | None = None,
) -> Edits:
    """Let the automaton read a stream on the first GPU; accesses are not counted.

    Parameters
    ----------
    codes, k, max_edits, bitmap : as `warpseed.tree_bitmap.cpu_levenshtein.match_edits` takes them
    kernel : one of KERNELS
    pieces : blocks that the stream is dealt out to; None: what suits the device
    records : what the match buffer has room for at first; None: two records for each place
    watch : takes the seconds of the kernel, all its runs, as ``kernel``

    Raises
    ------
    InputError : k, max_edits or the stream's length are out of range
    DeviceError, MemoryLimitError : no GPU answers, or its memory is short
    """
    check_edits(codes, k, max_edits, kernel)
    watch = watch or Stopwatch()
    blocks = min(pieces or _BLOCKS, max(len(codes), 1))
    with on_device(0):
        stream, on_gpu = to_device(codes), to_device(bitmap)
        actives = cupy().empty(blocks * (max_edits + 1) * len(bitmap.inmaps), np.uint32)

        def attempt(room: int) -> tuple[tuple[int], np.ndarray]:
            words, cursor = cupy().empty(room, np.uint64), cupy().zeros(1, np.uint64)
            buffer = MatchBuffer(words, cursor)
            threads = blocks * BLOCK if len(codes) else 0
            arguments = (stream, (k, max_edits), on_gpu, (0, len(codes)), actives, buffer)
            with time_on_device(watch, "kernel"):
                launch(KERNELS[kernel], threads, BLOCK, *arguments)
            used = int(cursor.get()[0])
            return (used,), words[: min(used, room)].get()

        return edits_of(with_room((2 * len(codes) if records is None else records,), attempt), len(codes))
