"""Trees of a matrix of distances: neighbour joining, and UPGMA; written as Newick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64

__all__ = ["TREES", "Tree", "neighbour_joining", "newick_of", "upgma"]


class Tree(NamedTuple):
    """A tree of m leaves, which are the nodes 0 to m - 1; the last node is the root."""

    children: tuple[tuple[int, ...], ...]
    """of each inner node, from node m on, the nodes below it, which have smaller numbers"""
    lengths: np.ndarray
    """float64[nodes], of the branch above each node; 0 of the root"""
    rooted: bool
    """whether the root is a claim of the tree, or only where it is held"""

    @property
    def leaves(self) -> int:
        """How many there are."""
        return len(self.lengths) - len(self.children)

    def order(self) -> list[int]:
        """The leaves from top to bottom."""
        order, waiting = [], [len(self.lengths) - 1]
        while waiting:
            node = waiting.pop()
            if node < self.leaves:
                order.append(node)
            else:
                waiting.extend(reversed(self.children[node - self.leaves]))
        return order

    def depths(self) -> np.ndarray:
        """float64[nodes]: how far each node is from the root."""
        depths = np.zeros(len(self.lengths))
        for node in range(len(self.lengths) - 1, self.leaves - 1, -1):
            for child in self.children[node - self.leaves]:
                depths[child] = depths[node] + self.lengths[child]
        return depths


def neighbour_joining(distances: np.ndarray) -> Tree:
    """The tree of Saitou and Nei's neighbour joining, unrooted: its root is the last node that is made.

    Of several pairs that are joined equally well, that in the first row, then column, of the matrix as it stands is:
    the new node takes the place of the first of the pair, and the last node that of the second. Sums and halves of
    whole numbers are exact, as far as 53 bits hold them. Branches may be negative where distances are no tree's.

    Parameters
    ----------
    distances : [m, m], symmetric, m at least 1

    Returns
    -------
    Tree, the distances of whose leaves are those of the matrix if any tree's are
    """
    between = np.array(distances, np.float64)
    size = leaves = len(between)
    np.fill_diagonal(between, np.inf)
    nearest = between.min(axis=0)
    np.fill_diagonal(between, 0)
    sums = between.sum(axis=0)
    nodes = list(range(size))
    children: list[tuple[int, ...]] = []
    lengths = np.zeros(2 * size)
    while size > 3:
        i, j = _closest_pair(between, sums, nearest, size)
        lengths[nodes[i]] = between[i, j] / 2 + (sums[i] - sums[j]) / (2 * (size - 2))
        lengths[nodes[j]] = between[i, j] - lengths[nodes[i]]
        children.append((nodes[i], nodes[j]))
        size -= 1
        _join(between, sums, nearest, i, j, size)
        nodes[i], nodes[j] = leaves + len(children) - 1, nodes[size]
    if size == 3:
        for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            lengths[nodes[i]] = (between[i, j] + between[i, k] - between[j, k]) / 2
    elif size == 2:
        lengths[nodes[:2]] = between[0, 1] / 2
    if size > 1:
        children.append(tuple(nodes[:size]))
    return Tree(tuple(children), lengths[: leaves + len(children)], False)


@scalar
def _closest_pair(between, sums, nearest, size):
    """The pair of the first `size` rows that is joined best, (i, j), i < j.

    Parameters
    ----------
    sums : float64[m], of the rows
    nearest : float64[m], no row has less
    """
    least, first, second = np.inf, int64(0), int64(1)
    most = sums[0]
    for k in range(size):
        most = max(most, sums[k])
    for i in range(size - int64(1)):
        if (size - int64(2)) * nearest[i] - sums[i] - most >= least:
            continue
        sum_of_row = sums[uint64(i)]
        for j in range(i + int64(1), size):
            worth = (size - int64(2)) * between[uint64(i), uint64(j)] - sum_of_row - sums[uint64(j)]
            if worth < least:
                least, first, second = worth, i, j
    return first, second


@scalar
def _join(between, sums, nearest, i, j, last):
    """Put the node that joins rows i and j in the place of i, and row `last`, behind which there is none, in that of
    j."""
    apart = between[i, j]
    sums[i], nearest[i] = 0.0, np.inf
    for k in range(last + int64(1)):
        if k not in (i, j):
            joined = (between[i, k] + between[j, k] - apart) / 2.0
            sums[k] += joined - between[i, k] - between[j, k]
            nearest[k] = min(nearest[k], joined)
            between[i, k] = between[k, i] = joined
            sums[i] += joined
            nearest[i] = min(nearest[i], joined)
    for k in range(last):
        between[j, k] = between[k, j] = between[last, k]
    between[j, j] = 0.0
    sums[j], nearest[j] = sums[last], nearest[last]


def upgma(distances: np.ndarray) -> Tree:
    """The tree of average linkage (UPGMA): rooted, all leaves as far from the root as each other.

    Parameters
    ----------
    distances : [m, m], symmetric, m at least 1
    """
    leaves = len(distances)
    if leaves == 1:
        return Tree((), np.zeros(1), True)
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    joins = linkage(squareform(np.asarray(distances, np.float64), checks=False), "average")
    children = tuple((int(first), int(second)) for first, second in joins[:, :2])
    heights = np.concatenate([np.zeros(leaves), joins[:, 2] / 2])
    lengths = np.zeros(len(heights))
    for number, pair in enumerate(children):
        lengths[list(pair)] = heights[leaves + number] - heights[list(pair)]
    return Tree(children, lengths, True)


TREES: dict[str, Callable[[np.ndarray], Tree]] = {"nj": neighbour_joining, "upgma": upgma}
"""By the names that users give them."""


def newick_of(tree: Tree, names: Sequence[str]) -> str:
    """A tree in Newick's form, a line: each name in single quotes, a quote in it twice; branches with ten digits."""
    texts = ["'" + name.replace("'", "''") + "'" for name in names]
    for below in tree.children:
        texts.append("(" + ",".join(f"{texts[node]}:{tree.lengths[node]:.10g}" for node in below) + ")")
        for node in below:
            texts[node] = ""
    return texts[-1] + ";\n"
