"""BAM (SAM specification, section 4): what a file begins with, and what its names and numbers may be."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

import numpy as np

from warpseed.errors import InputError
from warpseed.version import __version__

__all__ = ["LONGEST_CONTIG", "LONGEST_NAME", "bam_heading", "check_contigs"]

LONGEST_CONTIG = (1 << 31) - 1
"""Bases: lengths and places are 32-bit numbers with a sign."""
LONGEST_NAME = 254
"""Bytes of a read's name."""
_CONTIG = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")


def check_contigs(names: Sequence[str], lengths: np.ndarray) -> None:
    """Refuse contigs that SAM and BAM have no room or no name for.

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
        if length > LONGEST_CONTIG:
            raise InputError(
                f"contig {name:.60}: it has {length:,} bases, but in BAM at most {LONGEST_CONTIG:,}; write .tsv."
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
