"""warpseed: seeds between sequences with BWT/FM-indexes and tries, on CPU and GPU.

The public calls, importable from here, are loaded when they are first used, so that ``import warpseed`` costs next to
nothing. The only work done on import is choosing the folder of compiled code.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from warpseed.cache import choose_cache_folder
from warpseed.version import __version__

_PUBLIC = {
    "add_parts": "warpseed.fm_index.store",
    "build_index": "warpseed.fm_index.build",
    "make_index": "warpseed.fm_index.make",
    "open_index": "warpseed.fm_index.store",
    "verify_index": "warpseed.fm_index.store",
    "ebwt_distances": "warpseed.ebwt",
    "ebwt_transform": "warpseed.ebwt",
    "find_kmers": "warpseed.kmer_seeds",
    "find_mems": "warpseed.mems",
    "find_reads": "warpseed.one_error",
    "iter_kmer_hits": "warpseed.kmer_seeds",
    "iter_mem_hits": "warpseed.mems",
    "iter_read_hits": "warpseed.one_error",
    "match_stream": "warpseed.tree_bitmap",
    "write_hits": "warpseed.kmer_seeds.output",
    "write_placements": "warpseed.one_error.output",
    "WarpseedError": "warpseed.errors",
}

__all__ = [
    "WarpseedError",
    "__version__",
    "add_parts",
    "build_index",
    "ebwt_distances",
    "ebwt_transform",
    "find_kmers",
    "find_mems",
    "find_reads",
    "iter_kmer_hits",
    "iter_mem_hits",
    "iter_read_hits",
    "make_index",
    "match_stream",
    "open_index",
    "verify_index",
    "write_hits",
    "write_placements",
]


choose_cache_folder()


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'warpseed' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
