"""The exact kernels of paper 003: the exhaustive traversal of a Tree Bitmap, and the states passed on by shuffles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES
from warpseed.tree_bitmap.paper import DEPTH_BITS, advance, piece_of, record_at, transition_node
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["BLOCK", "MatchBuffer", "append_record", "match_by_shuffle", "match_naively", "reset_active"]

BLOCK = 256
"""Threads of a block that shares a piece of the stream."""


class MatchBuffer(NamedTuple):
    """Where records go, in the order in which threads come."""

    records: np.ndarray
    """uint64[room]"""
    cursor: np.ndarray
    """uint64[1], records so far, those that found no room too"""


@scalar
def append_record(buffer, record):
    """Put a record down, if there is one (not 0) and room for it."""
    if record != uint64(0):
        slot = int64(cuda.atomic.add(buffer.cursor, 0, uint64(1)))
        if slot < int64(buffer.records.shape[0]):
            buffer.records[slot] = record


@scalar
def reset_active(active, nodes):
    """Leave the root alone active; all threads of a block take part, and all see it."""
    cuda.syncthreads()
    for node in range(int64(cuda.threadIdx.x), nodes, int64(cuda.blockDim.x)):
        active[node] = uint32(1) if node == 0 else uint32(0)
    cuda.syncthreads()


@kernel
def match_naively(codes, k, bitmap, places, actives, buffer):
    """Figure 15: every trie-node is visited for every base, the deepest level first.

    A block has a piece of the places [0] to [1] where k-mers begin, and an active bitmap of its own among ``actives``
    (uint32[blocks·t]). Its threads share the trie-nodes of a level, and wait for each other between levels.
    """
    nodes, levels = int64(bitmap.inmaps.shape[0]), int64(bitmap.level_offsets.shape[0]) - int64(1)
    block, me, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    pieces = int64(actives.shape[0]) // nodes
    first, last = piece_of(places, block, pieces)
    if block >= pieces or first >= last:
        return
    active = actives[block * nodes : (block + int64(1)) * nodes]
    reset_active(active, nodes)
    for place in range(first, last + int64(k) - int64(1)):
        base = int64(codes[place])
        if base >= int64(NO_BASE):
            reset_active(active, nodes)
            continue
        for depth in range(levels):
            level = levels - int64(1) - int64(depth)
            begin, end = int64(bitmap.level_offsets[level]), int64(bitmap.level_offsets[level + int64(1)])
            for node in range(begin + me, end, threads):
                symbol, search = (int64(place), base), (int64(k), last)
                shallow, deep, outside = transition_node(bitmap, active, (level, int64(node)), symbol, search)
                append_record(buffer, shallow)
                append_record(buffer, deep)
                append_record(buffer, outside)
            cuda.syncthreads()


@scalar
def _append_together(buffer, record):
    """Put the records of a warp's lanes down beside each other (0 for none); all its lanes take part."""
    votes = uint32(cuda.ballot_sync(ALL_LANES, record != uint64(0)))
    if votes == uint32(0):
        return
    lane, begin = int64(cuda.threadIdx.x) & int64(31), int64(0)
    if lane == int64(0):
        begin = int64(cuda.atomic.add(buffer.cursor, 0, uint64(cuda.popc(votes))))
    begin = int64(cuda.shfl_sync(ALL_LANES, begin, 0))
    if record != uint64(0):
        before = votes & ((uint32(1) << uint32(lane)) - uint32(1))
        slot = begin + int64(cuda.popc(uint32(before)))
        if slot < int64(buffer.records.shape[0]):
            buffer.records[slot] = record


@kernel
def match_by_shuffle(codes, k, bitmap, places, shape, buffer):
    """Figure 16: a lane has the state of one depth, transitions it, and passes it on to the next lane.

    ``shape`` is (pieces, lanes), int64: a logical warp of 4, 8, 16 or 32 lanes, at least k + 1, has a piece of the
    places [0] to [1] where k-mers begin. Its lane 0 has the root, lane k finds matches; lanes behind it do nothing.
    """
    pieces, lanes = int64(shape[0]), int64(shape[1])
    thread = int64(cuda.grid(1))
    piece, depth = thread // lanes, thread % lanes
    first, last = piece_of(places, min(piece, pieces - int64(1)), pieces)
    end = last + int64(k) - int64(1) if piece < pieces and first < last else first
    longest = (int64(places[1]) - int64(places[0]) + pieces - int64(1)) // pieces
    search, root = (int64(k), last), uint64(bitmap.inmaps[0])
    state, inmap = uint64(0), root if depth == int64(0) else uint64(0)
    for step in range(longest + int64(k) - int64(1)):
        place = first + int64(step)
        base = int64(codes[place]) if place < end else int64(NO_BASE)
        symbol, record = (place, base), uint64(0)
        passed = uint64(0)
        if base < int64(NO_BASE) and depth < int64(k) and inmap != uint64(0):
            state, inmap = advance(bitmap, state, inmap, base)
            passed = (uint64(state) << uint64(32)) | uint64(inmap)
            if uint64(inmap) == uint64(0):
                node = int64(uint64(state) >> uint64(DEPTH_BITS))
                record = uint64(record_at(False, depth + int64(1), node, symbol, search))
                passed = uint64(0)
        passed = uint64(cuda.shfl_up_sync(ALL_LANES, int64(passed), 1))
        state, inmap = passed >> uint64(32), passed & uint64(0xFFFF_FFFF)
        if depth == int64(0):
            state, inmap = uint64(0), root
        if depth == int64(k) and inmap != uint64(0):
            record = uint64(record_at(True, depth, int64(state >> uint64(DEPTH_BITS)), symbol, search))
        _append_together(buffer, record)
