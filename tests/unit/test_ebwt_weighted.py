"""Weighted sequences: files of every format, whole and broken; what is drawn; and their solid sequences."""

from __future__ import annotations

import gzip
import io
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from warpseed.compute import machine
from warpseed.ebwt import weighted as weighted_module
from warpseed.ebwt.solid import LIMIT, solid_sequences
from warpseed.ebwt.weighted import (
    TOLERANCE,
    Weighted,
    check_weighted,
    generate_weighted,
    read_all_weighted,
    read_weighted,
    write_weighted,
)
from warpseed.ebwt.words import Words
from warpseed.errors import InputError, MemoryLimitError

TSV = "position\tA\tC\tG\tT\n1\t0.5\t0.5\t0\t0\n2\t0\t0\t1\t0\n3\t.1\t.2\t.3\t.4\n"
ROWS = [[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]]
JASPAR = ">MA0001.1\tAGL3\nA  [ 5  0  1 ]\nC  [ 5  0  2 ]\nG  [ 0 10  3 ]\nT  [ 0  0  4 ]\n"
MEME = """MEME version 4

ALPHABET= ACGT

strands: + -

Background letter frequencies
A 0.303 C 0.183 G 0.209 T 0.306

MOTIF crp alternative
letter-probability matrix: alength= 4 w= 3 nsites= 17 E= 4.1e-009
 0.5 0.5 0 0
 0 0 1 0
 0.1 0.2 0.3 0.4
URL http://example.org
"""
STARS = "*" * 80
BARE = "".join(f"{line}\n" for line in (">x", "5 0 1", "5 0 2", "0 10 3", "0 0 4"))


def written(folder: Path, text: str | bytes, name: str = "some.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def strings_of(words: Words) -> list[str]:
    letters = np.frombuffer(words.letters, np.uint8)[words.codes].tobytes().decode()
    return [letters[begin:end] for begin, end in itertools.pairwise(words.offsets.tolist())]


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (TSV, "some"),
        (TSV.split("\n", 1)[1], "some"),
        (TSV.replace("\n", "\r\n"), "some"),
        (TSV.replace("\n", "\r"), "some"),
        (TSV.removesuffix("\n"), "some"),
        ("\ufeff# made by hand\n\n" + TSV.lower().replace("\t", "  ") + "\n\n", "some"),
        (JASPAR, "MA0001.1"),
        (JASPAR.replace("\n", "\r\n"), "MA0001.1"),
        (JASPAR.replace("[", "").replace("]", ""), "MA0001.1"),
        (JASPAR.replace("  [", "["), "MA0001.1"),
        (">\n" + JASPAR.lower().split("\n", 1)[1], "weighted"),
        (BARE, "x"),
        (BARE.replace("5 0", ".5 0.00"), "x"),
        (MEME, "crp"),
        (MEME.replace(" w= 3", ""), "crp"),
        (MEME.replace("\n", "\r\n").replace("0.5", "5e-1"), "crp"),
        (MEME.replace("ALPHABET= ACGT", 'ALPHABET "DNA" DNA-LIKE'), "crp"),
        (MEME.replace("MOTIF crp alternative\n", ""), "weighted"),
        (MEME.replace("MOTIF crp ", "MOTIF\tcrp\t"), "crp"),
        (f"{STARS}\nMEME - Motif discovery tool\n{STARS}\n{MEME}{'-' * 80}\n", "crp"),
        (f"{STARS}\n{MEME.replace(' w= 3', '').replace('URL', '-' * 80 + chr(10) + 'URL')}", "crp"),
    ],
)
def test_every_format_is_read(tmp_path: Path, text: str, name: str) -> None:
    found = read_weighted(written(tmp_path, text))
    assert found.name == name and found.probabilities.dtype == np.float64
    assert np.allclose(found.probabilities, ROWS, atol=1e-15)


def test_compressed_files_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = read_weighted(written(tmp_path, gzip.compress(TSV.encode()), "seq one.tsv.gz"))
    assert packed.name == "seq_one" and packed.probabilities.tolist() == ROWS
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(JASPAR.encode()), closed=False))
    assert read_weighted("-").probabilities.tolist() == ROWS


@pytest.mark.parametrize("text", [JASPAR + "\n" + BARE, MEME + MEME.split("\n\n", 4)[4].replace("crp", "x")])
def test_one_of_several_motifs_is_named(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    first, second = read_all_weighted(path)
    assert first.probabilities.tolist() == second.probabilities.tolist() == ROWS and second.name == "x"
    assert read_weighted(path, "x").name == "x"
    with pytest.raises(InputError, match=rf"some.txt: it has 2 motifs \('{first.name}', 'x'\), but one was expected;"):
        read_weighted(path)
    with pytest.raises(InputError, match="one called 'y' was expected"):
        read_weighted(path, "y")
    with pytest.raises(InputError, match="2 motifs"):
        read_weighted(written(tmp_path, BARE + BARE), "x")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "some.txt: the file is empty, but a TSV with the columns position, A, C, G and T was expected"),
        ("\n \n# nothing\n", "the file is empty"),
        ("position\tA\tC\tG\tT\n", "there is no position"),
        ("position\tA\tC\tG\tT\tN\n1\t1\t0\t0\t0\t0\n", "line 1: 'position\\tA\\tC\\tG\\tT\\tN' was found, but a TSV"),
        ("position\tA\tC\tG\n1\t1\t0\t0\n", "line 1: 'position\\tA\\tC\\tG' was found"),
        ("position\tA\tG\tC\tT\n1\t1\t0\t0\t0\n", "line 1: 'position\\tA\\tG\\tC\\tT' was found"),
        (">", "the file ends before the counts of A; was it cut"),
        ("@read\nACGT\n+\nIIII\n", "line 1: '@read' was found, but a TSV"),
        ("1\t1\t0\t0\t0\t0\n", "line 1: 5 numbers stand there, but the four probabilities of A, C, G and T were"),
        ("# x\n1\t1\t0\t0\n", "line 2: 3 numbers stand there"),
        ("1\t1\t0\t\t0\n", "line 1: 3 numbers stand there"),
        (TSV + "4\t.5\t.5\t.5\t0\n", "line 5: the probabilities of A, C, G and T add up to 1.5, but 1 was expected"),
        (TSV + "4\t.5\t.498\t0\t0\n", "line 5: the probabilities of A, C, G and T add up to 0.998"),
        (TSV + "4\t0\t0\t0\t0\n", "line 5: the probabilities of A, C, G and T add up to 0,"),
        (TSV + "4\t1.5\t-.5\t0\t0\n", "line 5: a probability is -.5, but a number from 0 on was expected"),
        (TSV + "4\t1\tnan\t0\t0\n", "line 5: a probability is nan, but a number from 0 on was expected"),
        (TSV + "4\tinf\t0\t0\t0\n", "line 5: a probability is inf, but"),
        (TSV + "4\t1\tx\t0\t0\n", "line 5: 'x' was found, but a probability was expected, a number"),
        (TSV + "5\t1\t0\t0\t0\n", "line 5: the position is '5', but 4 was expected"),
        (TSV + "1\t1\t0\t0\t0\n", "line 5: the position is '1', but 4 was expected"),
        (TSV + TSV, "line 5: the position is 'position', but 4 was expected"),
        (JASPAR.split("T  [")[0], "the file ends before the counts of T; was it cut?"),
        (JASPAR.rsplit(" ", 1)[0], "line 5: 'T  [ 0  0  4' was found, but the counts of T were expected"),
        (JASPAR.rsplit(" ", 2)[0] + "]", "line 5: 2 counts of T, but as many as of A were expected, one a position"),
        (JASPAR.replace("G  [ 0 10  3 ]\n", "") + ">y\n", "line 4: the counts of T were found, but those of G were"),
        (JASPAR.replace("T  [ 0  0  4 ]\n", ">y\n"), "line 5: '>y' was found, but the counts of T were expected"),
        (JASPAR.replace("T  [", "U  ["), "line 5: the counts of U were found, but those of T were expected"),
        (JASPAR.replace("A  [ 5  0  1 ]", "A [ ]"), "line 2: 0 counts of A, but one or more were expected"),
        (JASPAR.replace("[ 0 10", "[ 0 -10"), "line 4: a count is -10, but a number from 0 on was expected"),
        (JASPAR.replace("[ 0 10", "[ 0 NaN"), "line 4: a count is NaN, but"),
        (JASPAR.replace("[ 0 10", "[ 0 ten"), "line 4: 'ten' was found, but a count was expected, a number"),
        (JASPAR.replace("[ 0 10", "[ 0 1_0"), "line 4: '1_0' was found, but a count was expected, a number"),
        (JASPAR.replace("[ 0 10", "[ 0 0"), "line 1: position 2 of this motif has no counts"),
        (JASPAR.replace("5  0", "1e308 0"), "line 1: position 1 of this motif has counts beyond all numbers"),
        (JASPAR.replace("5  0", "1e309 0"), "line 2: a count is 1e309, but a number from 0 on was expected"),
        (JASPAR + "N  [ 0 0 0 ]\n", "line 6: 'N  [ 0 0 0 ]' was found, but the next motif was expected"),
        ("MEME version 4\n", "there is no motif"),
        (
            MEME.split("URL")[0].rsplit("\n", 2)[0],
            "the file ends before row 3 of 3 of the matrix of line 11",
        ),
        (MEME.replace("w= 3", "w= 4"), "line 15: 2 numbers stand there"),
        (
            MEME.replace("w= 3", "w= 2"),
            "line 14: '0.1 0.2 0.3 0.4' was found, but the matrix of line 11 has w= 2, no more",
        ),
        (f"{STARS}\nAn essay on motifs\n", "there is no motif"),
        (MEME.replace("w= 3", "w= no"), "line 11: the matrix has w= no, but a number of positions from 1 on"),
        (MEME.replace("alength= 4", "alength= 20"), "line 11: the matrix has alength= 20, but 4 letters were expected"),
        (MEME.replace("= ACGT", "= ACDEFGHIKLMNPQRSTVWY"), "line 3: the alphabet is 'ACDEFGHIKLMNPQRSTVWY', but ACGT"),
        (MEME.replace("0 0 1 0", "0 0 1.1 0"), "line 13: the probabilities of A, C, G and T add up to 1.1"),
        (MEME.replace("0 0 1 0", "0 0 2 -1"), "line 13: a probability is -1"),
        (MEME.replace(" w= 3", "").replace(" 0.5 0.5 0 0", "URL x"), "line 11: the matrix has no rows"),
        (b"\xff\xfe\x00", "some.txt: it is no text, but a TSV"),
        (gzip.compress(TSV.encode(), mtime=0)[:-9], "some.txt: "),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as raised:
        read_weighted(path)
    assert sentence in str(raised.value) and str(path) in str(raised.value)
    assert "\n" not in str(raised.value) and str(raised.value).endswith((".", "?"))


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_weighted(tmp_path / "none.tsv")
    with pytest.raises(InputError, match="this is a folder"):
        read_weighted(tmp_path)
    monkeypatch.setattr(weighted_module, "MOST_BYTES", 100)
    with pytest.raises(InputError, match="it has more than 100 bytes"):
        read_weighted(written(tmp_path, "#" * 101))


def test_few_digits_add_up_nearly(tmp_path: Path) -> None:
    found = read_weighted(written(tmp_path, "1 0.333 0.333 0.333 0\n2 0.3335 0.3335 0.333 0\n"))
    assert found.probabilities[0].tolist() == [0.333] * 3 + [0.0]  # as written
    assert abs(found.probabilities.sum(axis=1) - 1).max() <= TOLERANCE


def test_what_is_written_reads_back_and_is_checked(tmp_path: Path) -> None:
    drawn = generate_weighted(30, 0.5, 3, name="ours")
    path = tmp_path / "ours.tsv"
    write_weighted(drawn, path)
    again = read_weighted(path)
    assert again.name == "ours" and np.array_equal(again.probabilities, drawn.probabilities)
    write_weighted(Weighted("x", np.array([[1 / 3, 1 / 3, 1 / 3, 0]])), path)
    assert read_weighted(path).probabilities[0, 0] == 1 / 3
    before = path.read_bytes()
    for rows in (np.zeros((0, 4)), np.ones((2, 3)), np.ones(4), [[1, 0, 0, 0], [0.5, 0, 0, 0]], [[2, -1, 0, 0]]):
        with pytest.raises(InputError, match="'x'"):
            write_weighted(Weighted("x", np.array(rows)), path)
    with pytest.raises(InputError, match="position 2 of 'x' has the probabilities \\[nan, "):
        check_weighted(Weighted("x", np.array([[1, 0, 0, 0], [np.nan, 1, 0, 0]])))
    assert path.read_bytes() == before


# ------------------------------------------------------------------------------------------------ drawing


@pytest.mark.parametrize(("positions", "share", "most"), [(1, 0, None), (1, 1, None), (50, 0.07, None), (260, 0.07, 7)])
def test_what_is_drawn_has_so_many_weighted_positions(positions: int, share: float, most: int | None) -> None:
    drawn = check_weighted(generate_weighted(positions, share, 5, most=most))
    weighted = drawn.probabilities[drawn.probabilities.max(axis=1) < 1]
    assert drawn.probabilities.shape == (positions, 4)
    assert len(weighted) == min(math.floor(positions * share + 0.5), positions if most is None else most)
    assert ((weighted >= 0.25).sum(axis=1) == 2).all() and ((weighted == 0).sum(axis=1) == 2).all()
    assert len(solid_sequences(drawn).offsets) == 2 ** len(weighted) + 1
    again = generate_weighted(positions, share, 5, most=most)
    assert np.array_equal(again.probabilities, drawn.probabilities)
    if positions > 1:
        assert not np.array_equal(generate_weighted(positions, share, 6).probabilities, drawn.probabilities)


def test_what_cannot_be_drawn_is_one_sentence() -> None:
    for arguments, sentence in (
        ((0, 0.5, 1), "positions is 0"),
        ((5, 1.5, 1), "share is 1.5"),
        ((5, float("nan"), 1), "share is nan"),
        ((5, "half", 1), "share is 'half', but a number was expected"),
        ((5, 0.5, -1), "seed is -1"),
    ):
        with pytest.raises(InputError, match=sentence):
            generate_weighted(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="most is -1"):
        generate_weighted(5, 0.5, 1, most=-1)


# ------------------------------------------------------------------------------------------------ solid sequences


def by_definition(rows: list[list[float]], threshold: str, rule: str) -> set[str]:
    """All strings, each judged by itself, with numbers as they are written."""
    exact = [[Fraction(str(value)) for value in row] for row in rows]
    least, found = Fraction(threshold), set()
    for chosen in itertools.product(range(4), repeat=len(rows)):
        own = [row[letter] for row, letter in zip(exact, chosen, strict=True)]
        if (math.prod(own) if rule == "product" else min(own)) >= least:
            found.add("".join("ACGT"[letter] for letter in chosen))
    return found


def ranks_of(word: str, rows: list[list[float]]) -> list[int]:
    """Of each letter, which one it is of its position in descending order."""
    orders = [sorted(range(4), key=lambda code, row=row: (-row[code], code)) for row in rows]  # type: ignore[misc]
    return [order.index("ACGT".index(letter)) for order, letter in zip(orders, word, strict=True)]


def test_the_papers_threshold_is_reached_by_what_is_written_so() -> None:
    rows = [[0.2, 0.8, 0, 0], [0.1, 0.1, 0.6, 0.2], [1, 0, 0, 0]]
    assert strings_of(solid_sequences(Weighted("w", np.array(rows)))) == ["CGA", "CTA", "AGA", "ATA"]
    assert strings_of(solid_sequences(Weighted("w", np.array(rows)), rule="product")) == ["CGA"]
    words = solid_sequences(Weighted("w", np.array(rows)))
    assert (words.letters, words.codes.dtype, words.offsets.tolist()) == (b"ACGT", np.uint8, [0, 3, 6, 9, 12])
    assert words.names.decoded().tolist() == ["w.1", "w.2", "w.3", "w.4"]
    # 0.3 / 1.5 is 0.2, and with floating-point numbers less.
    counted = Weighted("w", np.array([[0.3, 1.2, 0, 0]]) / 1.5)
    assert strings_of(solid_sequences(counted)) == ["C", "A"]
    # 0.5 · 0.4 is 0.2, and 0.7 · 0.1 with floating-point numbers less than 0.07.
    halves = Weighted("w", np.array([[0.5, 0.5, 0, 0], [0.4, 0.4, 0.2, 0]]))
    assert strings_of(solid_sequences(halves, rule="product")) == ["AA", "AC", "CA", "CC"]
    tenths = Weighted("w", np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.9, 0, 0]]))
    assert strings_of(solid_sequences(tenths, 0.07, "product")) == ["AC", "AA", "CC", "GC", "TC"]


@pytest.mark.parametrize("rule", ["letters", "product"])
@pytest.mark.parametrize("threshold", ["0.01", "0.03", "0.1", "0.2", "0.25", "0.5", "1"])
def test_solid_sequences_are_those_of_the_definition(rule: str, threshold: str) -> None:
    draw = np.random.default_rng(8)
    for positions in range(1, 6):
        cuts = np.sort(draw.integers(0, 21, (positions, 3)), axis=1)
        rows = (np.diff(cuts, prepend=0, append=20, axis=1) / 20).tolist()
        expected = by_definition(rows, threshold, rule)
        given = Weighted("w", np.array(rows))
        if expected:
            found = strings_of(solid_sequences(given, float(threshold), rule))
            assert set(found) == expected and len(found) == len(expected)
            assert found == sorted(found, key=lambda word: ranks_of(word, rows))
            solid_sequences(given, float(threshold), rule, limit=len(expected))
            if len(expected) > 1:
                with pytest.raises(InputError, match=f"the limit is {len(expected) - 1:,};"):
                    solid_sequences(given, float(threshold), rule, limit=len(expected) - 1)
        else:
            with pytest.raises(InputError, match="there is no solid sequence"):
                solid_sequences(given, float(threshold), rule)


def test_more_than_the_limit_are_counted_and_not_made() -> None:
    """A thousand positions with two letters: nobody could hold them, or count them one by one."""
    many = Weighted("many", np.tile([0.5, 0.5, 0, 0], (1000, 1)))
    with pytest.raises(InputError, match=rf"'many' has about 10\^301 solid sequences .* limit is {LIMIT:,};"):
        solid_sequences(many)
    with pytest.raises(InputError, match="'many' has at least 1,024 solid sequences by the rule 'product'"):
        solid_sequences(Weighted("many", many.probabilities[:40]), 1e-13, "product", limit=1000)
    with pytest.raises(InputError, match="is 9.33264e-302, below the threshold of 1e-300"):
        solid_sequences(many, 1e-300, "product")
    eight = Weighted("eight", many.probabilities[:3])
    assert len(strings_of(solid_sequences(eight, limit=8))) == 8
    with pytest.raises(InputError, match="'eight' has 8 solid sequences by the rule 'letters', but the limit is 7"):
        solid_sequences(eight, limit=7)


def test_memory_for_all_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Weighted("long", np.tile([0.5, 0.5, 0, 0], (10, 1)))
    monkeypatch.setattr(machine, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(machine, "available_memory", lambda: 100_000)
    with pytest.raises(
        MemoryLimitError, match="The 1,024 solid sequences of 'long' take 0.00023[0-9]* GB, but 0.0001 GB"
    ):
        solid_sequences(given)
    with pytest.raises(MemoryLimitError, match="The 512 solid sequences of 'long' take"):
        solid_sequences(given, 1e-9, "product")  # told when half of them are found
    with pytest.raises(MemoryLimitError, match="A weighted sequence of 10,000 positions takes 0.0008 GB"):
        generate_weighted(10_000, 0.5, 1)
    assert len(strings_of(solid_sequences(Weighted("short", given.probabilities[:5])))) == 32


def test_arguments_out_of_their_range_are_one_sentence() -> None:
    given = generate_weighted(4, 0.5, 1)
    for threshold in (0, -1, 1.1, float("nan"), "0.2", None, True):
        with pytest.raises(InputError, match="threshold is "):
            solid_sequences(given, threshold)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="A weighted sequence is ndarray, but a Weighted was expected"):
        solid_sequences(given.probabilities)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the probabilities of 'w' are no numbers"):
        solid_sequences(Weighted("w", np.array([["a", "c", "g", "t"]])))
    with pytest.raises(InputError, match="rule is 'both', but 'letters' or 'product' was expected"):
        solid_sequences(given, rule="both")
    with pytest.raises(InputError, match="limit is 0"):
        solid_sequences(given, limit=0)
    with pytest.raises(InputError, match="position 1 of 'w' has no letter with a probability of 0.3 or more"):
        solid_sequences(Weighted("w", np.full((1, 4), 0.25)), 0.3)
