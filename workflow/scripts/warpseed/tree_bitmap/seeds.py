"""What is seen before a stream begins: its own beginning as a seed, and a dictionary; and the dictionary in the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpseed.compute.ranges import steps
from warpseed.tree_bitmap.cpu_fast import kmers_at
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import NEW, SEEN
from warpseed.tree_bitmap.windows import new_windows

__all__ = ["Answer", "find_seeded", "grown_from", "new_kmers"]

Answer = Callable[[np.ndarray, int, np.ndarray, bool], np.ndarray]
"""What says of each place of a stream what it is: of codes, k, the k-mers that are known before, and whether those of
the stream are seen from their first place on."""


def new_kmers(codes: np.ndarray, k: int, answers: np.ndarray) -> np.ndarray:
    """The k-mers of the places that are NEW, in order: uint64[…]; `codes` may have more places than `answers`."""
    count = int(np.count_nonzero(answers == NEW))
    require_room(8 * count, f"To keep {count:,} {k}-mers")
    kmers = np.empty(count, np.uint64)
    windows, used = new_windows(), 0
    for span in steps(0, len(answers)):
        used += kmers_at(codes, span, k, windows, answers, kmers[used:])
    return kmers


def find_seeded(
    answer: Answer, codes: np.ndarray, k: int, seed_length: int, dictionary: np.ndarray | None, grows: bool
) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
    """What each place of a stream is, and the dictionary in the end; parameters are those of the `find_answers`."""
    known = np.empty(0, np.uint64) if dictionary is None else np.asarray(dictionary, np.uint64)
    seed = codes[:seed_length]
    if not grows:
        if len(seed):
            known = np.union1d(known, new_kmers(seed, k, answer(seed, k, known, True)))
        return answer(codes, k, known, False), lambda: known
    answers = answer(codes, k, known, True)
    # Of equal k-mers the first is NEW: if that begins in the seed, all are seen; no other is in the seed then.
    seed_answers = answers[: max(0, len(seed) - k + 1)]
    in_seed = np.flatnonzero(seed_answers == NEW)
    seed_answers[in_seed] = SEEN

    return answers, lambda: grown_from(known, codes, k, answers, in_seed)


def grown_from(known: np.ndarray, codes: np.ndarray, k: int, answers: np.ndarray, in_seed: np.ndarray) -> np.ndarray:
    """The dictionary in the end, uint64[…], sorted, of what was known before, and of what each place of the stream is;
    at those `in_seed` stands first what the seed has."""
    firsts = answers.copy()
    firsts[in_seed] = NEW
    return np.sort(np.concatenate([known, new_kmers(codes, k, firsts)]))
