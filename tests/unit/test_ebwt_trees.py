"""Distances with names, their files, trees of them, and figures."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence
from itertools import combinations, product
from xml.etree import ElementTree

import numpy as np
import pytest
import warpseed
from oracles.ebwt import distance, transform
from warpseed.ebwt import cpu, cpu_distances, matrix, trees
from warpseed.ebwt.collection import Clusters
from warpseed.ebwt.matrix import DistanceMatrix
from warpseed.ebwt.trees import Tree, neighbour_joining, newick_of, upgma
from warpseed.ebwt.words import words_of
from warpseed.errors import InputError
from warpseed.report import clusters as clusters_module
from warpseed.report.clusters import MOST_NAMED, dendrogram, figures_of, heat_map, svg_of
from warpseed.sequences.queries import Queries

WORDS = {"a b": "bcaa", "<i>": "ccbab", "γ": "abcabc"}


def between_leaves(tree: Tree) -> np.ndarray:
    """Along a tree's branches, from each leaf to each."""
    above = {child: tree.leaves + i for i, below in enumerate(tree.children) for child in below}

    def way(leaf: int) -> list[int]:
        nodes = [leaf]
        while nodes[-1] in above:
            nodes.append(above[nodes[-1]])
        return nodes

    result = np.zeros((tree.leaves, tree.leaves))
    for i, j in combinations(range(tree.leaves), 2):
        result[i, j] = result[j, i] = sum(tree.lengths[node] for node in {*way(i)} ^ {*way(j)})
    return result


# ------------------------------------------------------------------------------------------ distances and their files


@pytest.mark.parametrize(("longest", "expected"), [
    (1, np.int32), (1 << 30, np.int32), ((1 << 30) + 1, np.int64), (1 << 40, np.int64),
])  # fmt: skip
def test_distances_have_as_many_bits_as_they_may_take(longest: int, expected: type) -> None:
    """The most is two words' letters less two."""
    assert matrix.distance_type(longest) is expected
    assert (2 * longest - 2 <= np.iinfo(np.int32).max) == (expected is np.int32)


@pytest.mark.parametrize("few", [0, 1_000])
def test_distances_are_the_same_in_more_bits(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """By gaps, and by changes."""
    draw = random.Random(few)
    words = words_of(["".join(draw.choices("acgt", k=draw.randint(1, 60))) for _ in range(40)])
    order = cpu.order_conjugates(words)
    monkeypatch.setattr(cpu_distances, "_FEW_WORDS", few)
    found = cpu.distances(words, order)
    monkeypatch.setattr(cpu_distances, "distance_type", lambda longest: np.int64)
    wide = cpu.distances(words, order)
    assert (found.dtype, wide.dtype) == (np.int32, np.int64)
    assert found.tolist() == wide.tolist()


def test_the_interface_gives_the_transform_and_distances_of_paper_004() -> None:
    last, indices = transform(list(WORDS.values()))
    found = warpseed.ebwt_transform(list(WORDS.values()))
    assert bytes(found.letters[code] for code in found.last).decode() == last
    assert (found.indices + 1).tolist() == indices
    result = warpseed.ebwt_distances(WORDS)
    assert result.names == ("a b", "<i>", "γ")
    assert result.values[0, 1] == 3  # Example 26
    assert result.values.tolist() == [
        [distance(u, v) if u is not v else 0 for v in WORDS.values()] for u in WORDS.values()
    ]
    assert result.lengths.tolist() == [4, 5, 6]
    records = Queries.from_sequences(["ACGTN", "GGCA"])
    assert warpseed.ebwt_distances(records).values[0, 1] == distance("ACGTN", "GGCA")
    found = warpseed.ebwt_transform(records)
    assert (found.indices + 1).tolist() == transform(["ACGTN", "GGCA"])[1]


@pytest.mark.parametrize(
    ("sequences", "options", "told"),
    [
        ({1: "ACGT"}, {}, "The name of a word is 1"),
        (b"ACGT", {}, "put it in a list"),
        ([], {}, "There are no words"),
        (["ACGT"], {"tier": "paper"}, "tier is 'paper', but that tier runs only inside `snakemake ebwt`, which times"),
        (["ACGT"], {"max_hits": 3}, "words have no hits"),
        (["ACGT"], {"device": "cpu", "devices": [0, 1]}, "devices goes with device='gpu'"),
        (["ACGT"], {"thread": 2}, "did you mean 'threads'"),
    ],
)
def test_mistakes_of_callers_are_sentences(sequences: object, options: dict[str, object], told: str) -> None:
    for call in (warpseed.ebwt_transform, warpseed.ebwt_distances):
        with pytest.raises(InputError, match=re.escape(told)):
            call(sequences, **options)  # type: ignore[arg-type]


def test_normalised_distances_are_shares_of_the_most_that_there_can_be() -> None:
    """Of all words of some lengths over three letters the largest distance is the bound, and the smallest is what the
    docstring says."""
    words = {n: ["".join(letters) for letters in product("abc", repeat=n)] for n in range(1, 4)}
    for m, n in product(words, repeat=2):
        found = [distance(u, v) for u in words[m] for v in words[n]]
        assert max(found) == m + n - 2
        assert min(found) == max(0, abs(m - n) - 1)
    given = DistanceMatrix(("u", "v", "w"), np.array([[0, 0, 5], [0, 0, 4], [5, 4, 0]]), np.array([1, 1, 6]))
    assert given.normalised().tolist() == [[0, 0, 1], [0, 0, 0.8], [1, 0.8, 0]]


def test_names_are_made_unique_and_fit_their_files() -> None:
    assert matrix.labels_of(["a", "", "a", "a_2", "a", "b\t\nc ", "\ud800"]) == (
        "a", "record", "a_3", "a_2", "a_4", "b c", "?",
    )  # fmt: skip
    assert matrix.phylip_names(["(a b):1", "'a b' 1", "a_b_1", "gi|9|x"]) == ("_a_b_1", "_a_b_1_2", "a_b_1", "gi|9|x")


def test_tables_read_back() -> None:
    names, values = ("a b", "c;d"), np.array([[0, 1 << 40], [1 << 40, 0]])
    assert list(matrix.tsv_of(names, values)) == [
        "record\ta b\tc;d\n",
        "a b\t0\t1099511627776\n",
        "c;d\t1099511627776\t0\n",
    ]
    assert list(matrix.phylip_of(names, values)) == ["2\n", "a_b  0 1099511627776\n", "c_d  1099511627776 0\n"]
    assert list(matrix.tsv_of(names, values / (1 << 41)))[1] == "a b\t0.00000000\t0.50000000\n"


# ------------------------------------------------------------------------------------------ trees


def test_neighbour_joining_of_the_textbook() -> None:
    """Five taxa, whose joins and branches textbooks have: (a:2, b:3), then with c:4 over 3, then d:2, e:1 over 2."""
    given = np.array([[0, 5, 9, 9, 8], [5, 0, 10, 10, 9], [9, 10, 0, 8, 7], [9, 10, 8, 0, 3], [8, 9, 7, 3, 0]])
    tree = neighbour_joining(given)
    assert newick_of(tree, "abcde") == "((('a':2,'b':3):3,'c':4):2,'e':1,'d':2);\n"
    assert (between_leaves(tree) == given).all()


def test_neighbour_joining_finds_trees_from_their_distances() -> None:
    draw = random.Random(4)
    for size in [1, 2, 3, 4, 5, 8, 13, 40]:
        nodes, children, lengths = list(range(size)), [], [0.0] * size
        while len(nodes) > 1:
            first, second = (nodes.pop(draw.randrange(len(nodes))) for _ in range(2))
            lengths[first], lengths[second] = draw.randint(1, 50), draw.randint(1, 50)
            nodes.append(size + len(children))
            children.append((first, second))
            lengths.append(0.0)
        given = between_leaves(Tree(tuple(children), np.array(lengths), True))
        found = neighbour_joining(given)
        assert between_leaves(found) == pytest.approx(given, abs=1e-9)
        assert sorted(found.order()) == list(range(size))
        assert found.lengths.min() >= -1e-9


def test_neighbour_joining_keeps_what_is_given_and_joins_the_first_of_equal_pairs() -> None:
    given = np.full((5, 5), 4) - 4 * np.eye(5, dtype=int)
    kept = given.copy()
    assert newick_of(neighbour_joining(given), "abcde") == "((('a':2,'b':2):0,'e':2):0,'d':2,'c':2);\n"
    assert (given == kept).all()


def joined_plainly(distances: np.ndarray) -> str:
    """Neighbour joining with all pairs looked at in each step, as Newick."""
    between = np.array(distances, float)
    texts = [f"'{i}'" for i in range(len(between))]
    while (size := len(between)) > 3:
        sums = between.sum(axis=0)
        worth = (size - 2) * between - sums[:, None] - sums
        i, j = divmod(int(np.where(np.eye(size, dtype=bool), np.inf, worth).argmin()), size)
        above = between[i, j] / 2 + (sums[i] - sums[j]) / (2 * (size - 2))
        texts[i] = f"({texts[i]}:{above:.10g},{texts[j]}:{between[i, j] - above:.10g})"
        between[i] = between[:, i] = (between[i] + between[j] - between[i, j]) / 2
        between[i, i] = 0
        keep = [size - 1 if row == j else row for row in range(size - 1)]
        between, texts = between[np.ix_(keep, keep)], [texts[row] for row in keep]
    ends = [(between[i].sum() - between[(i + 1) % 3, (i + 2) % 3]) / 2 for i in range(3)]
    return "(" + ",".join(f"{text}:{end:.10g}" for text, end in zip(texts, ends, strict=True)) + ");\n"


@pytest.mark.parametrize("most", [1, 3, 10_000])
def test_neighbour_joining_leaves_out_no_pair_that_is_joined_best(most: int) -> None:
    draw = np.random.default_rng(most)
    for size in [3, 4, 5, 6, 7, 12, 30]:
        given = np.triu(draw.integers(0, most + 1, (size, size)), 1)
        given += given.T
        assert newick_of(neighbour_joining(given), [str(i) for i in range(size)]) == joined_plainly(given)


def test_upgma_finds_ultrametric_trees() -> None:
    given = np.array([[0, 2, 8, 8], [2, 0, 8, 8], [8, 8, 0, 4], [8, 8, 4, 0]])
    tree = upgma(given)
    assert newick_of(tree, "abcd") == "(('a':1,'b':1):3,('c':2,'d':2):2);\n"
    assert (between_leaves(tree) == given).all()
    assert (tree.depths()[:4] == 4).all()
    # Averages weigh a cluster by its leaves: 8 of a, b and c, where that of two halves would be 7.
    given = np.array([[0, 2, 6, 9], [2, 0, 6, 9], [6, 6, 0, 6], [9, 9, 6, 0]])
    assert newick_of(upgma(given), "abcd") == "('d':4,('c':3,('a':1,'b':1):2):1);\n"


@pytest.mark.parametrize("make", trees.TREES.values(), ids=list(trees.TREES))
def test_few_leaves_are_trees(make: object) -> None:
    assert callable(make)
    assert newick_of(make(np.zeros((1, 1), int)), ["it's"]) == "'it''s';\n"
    assert newick_of(make(np.array([[0, 6], [6, 0]])), ["a_b", "c d"]) == "('a_b':3,'c d':3);\n"


# ------------------------------------------------------------------------------------------ figures


def clusters(names: Sequence[str], normalise: bool = False) -> Clusters:
    places = np.random.default_rng(len(names)).integers(0, 1_000_000, len(names))
    values = np.abs(places[:, None] - places[None, :])
    return Clusters(tuple(names), values / 1e6 if normalise else values, neighbour_joining(values), 12_345)


def texts_of(svg: bytes) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("normalise", [False, True])
def test_figures_name_every_sequence_as_it_is_named(normalise: bool) -> None:
    names = ["a <b>&amp; $x$ c", "中文 name", "y" * 100]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = dict(figures_of(clusters(names, normalise)))
    assert list(drawn) == ["heatmap.svg", "dendrogram.svg"]
    for ending, count in (("heatmap.svg", 2), ("dendrogram.svg", 1)):
        texts = texts_of(drawn[ending])
        for name in [*names[:2], "y" * 39 + "…"]:
            assert texts.count(name) == count


def test_figures_have_the_same_bytes_again() -> None:
    assert dict(figures_of(clusters("abcdef"))) == dict(figures_of(clusters("abcdef")))


@pytest.mark.parametrize("count", [3, 200])
def test_names_do_not_overlap(count: int) -> None:
    found = clusters([f"record {i} of {count}" for i in range(count)])
    order = found.tree.order()
    figures = [heat_map(found.values, found.names, order, "t", "s"), dendrogram(found.tree, found.names, "t", "s")]
    for figure in figures:
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        axes = figure.axes[0]
        across = [text.get_window_extent(renderer) for text in axes.texts if text.get_text().startswith("record")]
        rows = sorted((box for box in across if box.width > box.height), key=lambda box: box.y0)
        assert len(rows) == count
        assert all(below.y1 <= above.y0 for below, above in zip(rows, rows[1:], strict=False))
        assert min(box.x0 for box in across) >= 0 and max(box.x1 for box in across) <= figure.bbox.x1
        assert min(box.y0 for box in across) >= 0 and max(box.y1 for box in across) <= figure.bbox.y1
        svg_of(figure)


def test_of_very_many_sequences_figures_have_no_names() -> None:
    for svg in dict(figures_of(clusters([f"record{i}" for i in range(MOST_NAMED + 1)]))).values():
        assert not [text for text in texts_of(svg) if text.startswith("record")]


def test_a_heat_map_of_very_many_sequences_is_no_larger_and_has_no_more_points() -> None:
    count = 2 * clusters_module._MOST_DRAWN + 1
    values = np.add.outer(np.arange(count), np.arange(count))
    figure = heat_map(values, [""] * count, range(count), "t", "s")
    (picture,) = figure.axes[0].images
    assert max(figure.get_size_inches()) < 10
    assert len(picture.get_array()) <= clusters_module._MOST_DRAWN
    assert picture.get_clim() == (0, 2 * count - 2)  # of all, not only of those that are drawn
    svg_of(figure)
