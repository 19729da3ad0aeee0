"""BAM (SAM specification, section 4): what a file begins with, and what its names and numbers may be."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpseed.errors import InputError
from warpseed.version import __version__

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = ["LONGEST_CONTIG", "LONGEST_NAME", "bam_heading", "check_contigs", "check_names"]

LONGEST_CONTIG = (1 << 31) - 1
"""Bases: lengths and places are 32-bit numbers with a sign."""
LONGEST_NAME = 254
"""Bytes of a read's name."""
_AT, _LAST_LETTER = ord("@"), ord("~")
_CONTIG = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")


def check_contigs(names: Sequence[str], lengths: np.ndarray, in_xa: bool = False) -> None:
    """Refuse contigs that SAM and BAM have no room or no name for, or with `in_xa` the tag XA.

    Raises
    ------
    InputError
    """
    for name, length in zip(names, lengths.tolist(), strict=True):
        if not _CONTIG.fullmatch(name):
            raise InputError(
                f"contig {name:.60}: in SAM and BAM a contig's name has no commas, quotes, brackets, backslashes or "
                "letters beyond ASCII, and does not begin with * or =; give the contig another name, or write .tsv."
            )
        if in_xa and ";" in name:
            raise InputError(
                f"contig {name:.60}: a semicolon ends an entry of the tag XA, so no contig that stands there has one "
                "in its name; choose records instead (multiple: secondary), or give the contig another name."
            )
        if length > LONGEST_CONTIG:
            raise InputError(
                f"contig {name:.60}: it has {length:,} bases, but in BAM at most {LONGEST_CONTIG:,}; write .tsv."
            )


def check_names(reads: Queries) -> None:
    """Refuse names of reads that SAM and BAM have no room or no letters for.

    Raises
    ------
    InputError : of the first such read
    """
    lengths = np.diff(reads.name_offsets)
    if int(lengths.max(initial=0)) > LONGEST_NAME:
        worst = int(np.argmax(lengths > LONGEST_NAME))
        raise InputError(
            f"{reads.source}: the name of the read '{reads.name(worst)[:60]}…' has {int(lengths[worst])} bytes, "
            f"but in BAM at most {LONGEST_NAME}; shorten it, or write .tsv."
        )
    letters = reads.name_bytes
    others = (letters > _LAST_LETTER) | (letters == _AT)
    if others.any():
        worst = int(np.searchsorted(reads.name_offsets, np.argmax(others), "right")) - 1
        raise InputError(
            f"{reads.source}: the name of the read '{reads.name(worst)[:60]}' holds an @, or what is no visible ASCII "
            "character, but in SAM and BAM no read's name does; rename it, or write .tsv."
        )


def bam_heading(names: Sequence[str], lengths: np.ndarray) -> bytes:
    """What stands before the first record: the header's lines, and the contigs. Nothing in it tells of a machine."""
    sizes = lengths.tolist()
    lines = ["@HD\tVN:1.6\tSO:coordinate\n"]
    lines += map("@SQ\tSN:{}\tLN:{}\n".format, names, sizes)
    lines.append(f"@PG\tID:warpseed\tPN:warpseed\tVN:{__version__}\n")
    text = "".join(lines).encode()
    contigs = [
        struct.pack("<i", len(name) + 1) + name.encode() + b"\0" + struct.pack("<i", size)
        for name, size in zip(names, sizes, strict=True)
    ]
    head = b"BAM\1" + struct.pack("<i", len(text)) + text + struct.pack("<i", len(contigs))
    return head + b"".join(contigs)
