"""The kernels of paper 004's paper tier, played by the CPU: plain loops over what their threads do."""

from __future__ import annotations

from typing import Any

import numpy as np
from warpseed.ebwt import paper
from warpseed.ebwt.paper import Written

from oracles.played_kernels import PlayedKernels
from oracles.pretend_gpu import install

__all__ = ["play_kernels"]


class _Kernels(PlayedKernels):
    """Those of the paper tier."""

    def write_conjugates(self, codes: np.ndarray, offsets: np.ndarray, written: Written) -> None:
        for word in range(len(offsets) - 1):
            span = int(offsets[word]), int(offsets[word + 1])
            for position in range(*span):
                paper.write_conjugate(codes, span, position, written, word)

    def number_conjugates(self, count: int, pointers: np.ndarray) -> None:
        pointers[:count], pointers[count:] = np.arange(count), paper.EMPTY

    def exchange_pointers(self, written: Written, pointers: np.ndarray, size: int, stride: int) -> None:
        for thread in reversed(range(len(pointers) // 2)):  # in any order
            paper.exchange(written, pointers, thread, size, stride)

    def load_keys(self, prefixes: np.ndarray, order: np.ndarray, first: int, keys: np.ndarray) -> None:
        for rank, pointer in enumerate(order.tolist()):
            letters = prefixes[pointer, first : first + 8].tobytes().ljust(8, b"\0")
            keys[rank] = int.from_bytes(letters, "big")

    def colour_ranks(self, words: np.ndarray, order: np.ndarray, colours: np.ndarray) -> None:
        colours[...] = words[order]

    def measure_pairs(self, colours: np.ndarray, pairs: np.ndarray, measured: np.ndarray) -> None:
        for i, pair in enumerate(pairs):
            own = colours[np.isin(colours, pair)]
            measured[i] = np.count_nonzero(own[1:] == own[:-1])


def play_kernels(monkeypatch: Any) -> _Kernels:
    """Put a pretended CuPy and these kernels where the library looks for them."""
    from warpseed.ebwt import gpu_paper

    install(monkeypatch, None)
    kernels = _Kernels()
    monkeypatch.setattr(gpu_paper, "launch", kernels.launch)
    return kernels
