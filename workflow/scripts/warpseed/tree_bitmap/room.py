"""Memory of the host that a stream takes, asked for before it is taken."""

from __future__ import annotations

from warpseed.compute.machine import require_memory

__all__ = ["require_room"]


def require_room(needed: int, what: str, advice: str = "give a shorter stream") -> None:
    """Go on only where so many bytes can be had: the kernel would end the process without a word.

    Parameters
    ----------
    needed : bytes
    what : takes them, up to its verb: "To search 10 places"
    advice : what takes fewer

    Raises
    ------
    MemoryLimitError : there are too few
    """
    require_memory(needed, f"{what} takes", f"{advice}, or use a machine with more memory")
