"""The fast tier with two edits: one third of a read is exact; it is looked up, and the places about it are decided.

Of three pieces of a read two edits leave one as it is. An *anchor* is a piece and a place of the read at which the
piece is in the text. Two edits move the first base by two positions at most, so that every placement begins within two
positions of an anchor. From each of these starts on, the furthest base of the read that is reached with no edit, with
one and with two, on each of five diagonals, gives the distances of all placements that begin there (Landau, Vishkin).

No placement is found twice: a start belongs to the first of the anchors within two positions of it, by their places and
then by their pieces. So an anchor looks for those before it, and leaves them their starts.

The functions here are the steps of one read that both targets share; the order of the work is cpu_fast.py's.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar
from warpseed.fm_index.text import inside_segment
from warpseed.one_error.agreement import agree_until
from warpseed.one_error.reads import MAX_EDITS

__all__ = ["FAR", "distance_of", "end_distances", "first_own_start", "is_anchor", "piece_begin", "third"]

FAR = 0x3FF
"""`end_distances` where there is no placement: each of the five is 3."""


@scalar
def third(length, piece):
    """The first base of a piece, 0 to 2, of a read; of 3 its length: int64."""
    return int64((length * piece) // int64(3))


@scalar
def piece_begin(length, piece, max_edits):
    """The first base of a piece of a read, a third with two edits, else a half; of the piece behind the last one, its
    length: int64."""
    return third(length, piece) if max_edits == MAX_EDITS else (length * piece) >> int64(1)


@scalar
def is_anchor(text, segments, read, piece, place):
    """Whether a piece of a read at a place is in the text, in one segment."""
    begin = third(read[3], piece)
    end = third(read[3], piece + int64(1))
    if place + begin < int64(0) or agree_until(text, place, read, begin) < end:
        return False
    return inside_segment(segments, place + begin, end - begin)


@scalar
def first_own_start(text, segments, read, piece, place):
    """The first start that belongs to an anchor; all from there to ``place + MAX_EDITS`` do. Behind these where none
    does.

    Parameters
    ----------
    read : as in `warpseed.one_error.agreement`
    piece : int64
    place : int64, -2 or more; a read at it ends two positions behind the text at most
    """
    for before in range(piece):
        if is_anchor(text, segments, read, int64(before), place):
            return place + int64(MAX_EDITS + 1)
    for back in range(1, 2 * MAX_EDITS + 1):
        for other in range(MAX_EDITS + 1):
            if is_anchor(text, segments, read, int64(other), place - int64(back)):
                return place - int64(back) + int64(MAX_EDITS + 1)
    return place - int64(MAX_EDITS)


@scalar
def end_distances(text, start, read):
    """Edit distances of a read to the bases from a start on.

    Returns
    -------
    (until, distances) : int64; the first base that is not as in the text when the read begins at `start`, and two bits
        for each number of bases that a placement has more than the read, -2 to 2 from the lowest on: its distance, or 3
        where that is more than 2
    """
    length = read[3]
    until = agree_until(text, start, read, int64(0))
    if until == length:
        return until, int64(0x246)
    # Bases of the read reached with one edit, on the diagonals of one base less, as many, and one more …
    less = agree_until(text, start - int64(1), read, until + int64(1))
    same = agree_until(text, start, read, until + int64(1))
    more = agree_until(text, start + int64(1), read, until)
    # … and with two.
    two_less = agree_until(text, start - int64(2), read, less + int64(1))
    less_again = agree_until(text, start - int64(1), read, max(less, same) + int64(1))
    same_again = agree_until(text, start, read, max(max(same, more) + int64(1), less))
    more_again = agree_until(text, start + int64(1), read, max(more + int64(1), same))
    two_more = agree_until(text, start + int64(2), read, more)
    distances = int64(3) - int64(two_less == length)
    distances |= (int64(3) - int64(less_again == length) - int64(less == length)) << int64(2)
    distances |= (int64(3) - int64(same_again == length) - int64(same == length)) << int64(4)
    distances |= (int64(3) - int64(more_again == length) - int64(more == length)) << int64(6)
    distances |= (int64(3) - int64(two_more == length)) << int64(8)
    return until, distances


@scalar
def distance_of(distances, extra):
    """One of `end_distances`, int64: that of the placement with so many bases more than the read."""
    return (distances >> (int64(2) * (extra + int64(MAX_EDITS)))) & int64(3)
