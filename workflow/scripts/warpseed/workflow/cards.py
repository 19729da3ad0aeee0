"""Which of a machine's GPUs a job works on: one that no other job of this user has, told to CUDA before it begins."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import tempfile
from pathlib import Path

from warpseed.compute.machine import VISIBLE_VARIABLE, visible_cards

__all__ = ["claim_cards"]

_LOGGER = logging.getLogger(__name__)
_claimed: list[int] = []
"""Descriptors of locked files: the cards are this process's until it ends."""


def claim_cards(count: int) -> list[str]:
    """Take GPUs that are free, and make them the only ones that this process and its children see.

    Those that are visible already, as Slurm says for a job, or else all of the machine are taken in their order. Jobs
    of a workflow agree by locks on files of the user, in the folder of temporary files; where all cards are taken, by
    other workflows, or this machine has less than `count`, the first ones are shared, and so they are, with a warning,
    where those files cannot be made.

    Parameters
    ----------
    count : int, cards that the job asks for

    Returns
    -------
    list of str, what they are called, in `CUDA_VISIBLE_DEVICES`; none where there is no more than one to choose from
    """
    cards = visible_cards()
    if count < 1 or len(cards) < 2:
        return []
    folder = Path(tempfile.gettempdir()) / f"warpseed-cards-{os.getuid()}"
    taken: list[str] = []
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for card in cards:
            if len(taken) < count and _lock(folder / re.sub(r"[^\w-]", "_", card)):
                taken.append(card)
    except OSError as error:
        _LOGGER.warning("No locks on GPUs in %s, so jobs may share the first ones: %s", folder, error.strerror)
    taken += [card for card in cards if card not in taken][: count - len(taken)]
    os.environ[VISIBLE_VARIABLE] = ",".join(taken)
    return taken


def _lock(path: Path) -> bool:
    """Whether the file of a card is this process's now."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return False
    _claimed.append(number)
    return True
