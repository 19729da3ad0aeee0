"""What is seen before a stream begins: its own beginning as a seed, and a dictionary; and the dictionary in the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpseed.tree_bitmap.cpu_listing import new_kmers
from warpseed.tree_bitmap.stream import NEW, SEEN

__all__ = ["Answer", "find_seeded", "grown_from"]

Answer = Callable[[np.ndarray, int, np.ndarray, bool], np.ndarray]
"""What says of each place of a stream what it is: of codes, k, the k-mers that are known before, and whether those of
the stream are seen from their first place on."""


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
