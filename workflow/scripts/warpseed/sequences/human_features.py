"""What a human-like genome may have, and what of it was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

from warpseed.errors import InputError
from warpseed.sequences.simulate import MAX_SEED, check_range

__all__ = ["FAMILIES", "LONGEST", "Family", "HumanFeatures", "read_features"]

LONGEST = 4_000_000_000
"""Bases of the largest genome."""
_MOST_COVERED = 0.9


class Family(NamedTuple):
    """A family of interspersed repeats."""

    share: float
    """of the bases in no array and no gap, how many are of its copies, 0 to 1"""
    length: int
    """bases of its sequence"""
    shortest: int
    """bases of the shortest copy: most have lost more or less of their beginning where this is below `length`"""
    subfamilies: int = 8
    """how many; each copy is one of a sub-family's sequence"""
    apart: float = 0.04
    """probability that a base of a sub-family's sequence is not that of the family's, 0 to 1"""
    ages: tuple[float, float] = (0.02, 0.16)
    """share of the bases of a copy that have changed: of the youngest sub-family and of the oldest, 0 to 1"""


FAMILIES = {
    "alu": Family(share=0.1, length=300, shortest=300),
    "l1": Family(share=0.17, length=6000, shortest=100, subfamilies=12, ages=(0.01, 0.25)),
}
"""Those of a genome for which no others are given."""


class HumanFeatures(NamedTuple):
    """What a human-like genome has, beside its size. Shares are from 0 to 1, changes probabilities of a base."""

    contigs: int = 24
    """chromosomes, named ``sim1``, ``sim2``, …; the first is five times as long as the last"""
    gc: tuple[float, float] = (0.36, 0.56)
    """the smallest and the largest share of G and C of a region, of which there are more with a low one"""
    isochore_length: int = 300_000
    """bases of a region"""
    families: Mapping[str, Family | Mapping[str, Any]] = FAMILIES
    """families of interspersed repeats by name"""
    indel_share: float = 0.1
    """of the changes in copies of all kinds, how many are insertions or deletions of 1 to 4 bases"""
    microsatellite_share: float = 0.02
    """of the bases in no array and no gap, how many are of units of 1 to 6 bases again and again"""
    microsatellite_lengths: tuple[int, int] = (20, 100)
    """bases of the shortest and the longest of these"""
    microsatellite_divergence: float = 0.03
    """change of a base of one"""
    satellite_share: float = 0.03
    """of each chromosome, how much are the two arrays around its centromere"""
    satellite_monomer: int = 171
    """bases of a monomer"""
    satellite_monomers: int = 12
    """monomers of a higher-order repeat, whose copies make up an array; each chromosome has one of its own"""
    monomer_divergence: float = 0.2
    """change of a base of a monomer from what all monomers of the genome come from"""
    satellite_divergence: float = 0.01
    """change of a base of a copy of the higher-order repeat"""
    duplication_share: float = 0.02
    """of the genome, how much is a copy of another place"""
    duplication_lengths: tuple[int, int] = (100_000, 300_000)
    """bases of the shortest and the longest of these"""
    duplication_divergence: float = 0.02
    """the largest change of a base of one: they are evenly from 0 to this, and a tenth of them is exact"""
    telomere_length: int = 10_000
    """bases of the runs of N at both ends of a chromosome"""
    centromere_share: float = 0.02
    """of each chromosome, how much is the run of N between its arrays"""
    gap_share: float = 0.005
    """of the genome, how much are runs of N elsewhere"""
    gap_length: int = 50_000
    """bases of each of these"""


_Given = TypeVar("_Given", HumanFeatures, Family)


def read_features(size: int, seed: int, given: Mapping[str, Any]) -> tuple[HumanFeatures, list[Family]]:
    """What a genome has, and its families, of the features that are given by name.

    Raises
    ------
    InputError
        When a parameter is not known, or out of its range.
    """
    wanted = _read(HumanFeatures(), given)
    families = {name: _family(name, family) for name, family in wanted.families.items()}
    _check(size, seed, wanted, families)
    return wanted, list(families.values())


def _read(like: _Given, given: Mapping[str, Any], place: str = "") -> _Given:
    """`like` with what is given in the place of its values, each of which has the type of what it replaces."""
    for name, value in given.items():
        if name not in like._fields:
            raise InputError(
                f"'{place}{name}' is not known to the simulation: known are {', '.join(like._fields)}; correct it."
            )
        usual = getattr(like, name)
        if isinstance(usual, Mapping):
            _check_type(place + name, value, Mapping, "families by name")
            continue
        numbers = [value]
        if isinstance(usual, tuple):
            _check_type(place + name, value, Sequence, "two numbers, the smaller one first")
            usual, numbers = usual[0], value
        for number in numbers:
            _check_number(place + name, number, whole=isinstance(usual, int))
    return like._replace(**given)


def _check_number(name: str, value: Any, *, whole: bool) -> None:
    if whole:
        _check_type(name, value, Integral, "a whole number")
    else:
        _check_type(name, value, Real, "a number")


def _check_type(name: str, value: Any, kind: type, words: str) -> None:
    if isinstance(value, bool | str) or not isinstance(value, kind):
        raise InputError(f"{name} = {value!r} was asked for the simulation; it must be {words}.")


def _family(name: str, given: Family | Mapping[str, Any]) -> Family:
    if isinstance(given, Family):
        given = given._asdict()
    _check_type(f"families.{name}", given, Mapping, "a Family, or its fields by name")
    missing = [field for field in Family._fields if field not in given and field not in Family._field_defaults]
    if missing:
        raise InputError(f"The family '{name}' of the simulation lacks '{missing[0]}': add it.")
    # Of what may be left out, those of the first family are the defaults.
    return _read(FAMILIES["alu"], given, f"families.{name}.")


def _check(size: int, seed: int, wanted: HumanFeatures, families: Mapping[str, Family]) -> None:
    for name, value, least, most in (("size", size, 1, LONGEST), ("seed", seed, 0, MAX_SEED)):
        _check_number(name, value, whole=True)
        check_range(name, value, least, most)
    check_range("contigs", wanted.contigs, 1, min(size, 1000))
    for name, value in wanted._asdict().items():
        if name.endswith(("_share", "_divergence")):
            check_range(name, value, 0, 1)
    _check_pair("gc", wanted.gc, 0, 1)
    _check_pair("microsatellite_lengths", wanted.microsatellite_lengths, 1, 1_000_000)
    _check_pair("duplication_lengths", wanted.duplication_lengths, 1, 10_000_000)
    for name, low, high in (
        ("isochore_length", 1, None),
        ("satellite_monomer", 1, 1000),
        ("satellite_monomers", 1, 100),
        ("telomere_length", 0, 1_000_000),
        ("gap_length", 1, 10_000_000),
    ):
        check_range(name, getattr(wanted, name), low, high)
    check_range("the number of families", len(families), 0, 100)
    for name, family in families.items():
        _check_family(f"families.{name}.", family)
    for words, share in {
        "the shares of families and microsatellites together": wanted.microsatellite_share
        + sum(family.share for family in families.values()),
        "satellite_share + centromere_share": wanted.satellite_share + wanted.centromere_share,
        "2 × duplication_share + gap_share": 2 * wanted.duplication_share + wanted.gap_share,
    }.items():
        check_range(words, round(share, 9), 0, _MOST_COVERED)


def _check_family(name: str, family: Family) -> None:
    check_range(name + "share", family.share, 0, 1)
    check_range(name + "length", family.length, 1, 100_000)
    check_range(name + "shortest", family.shortest, 1, family.length)
    check_range(name + "subfamilies", family.subfamilies, 1, 100)
    check_range(name + "apart", family.apart, 0, 1)
    _check_pair(name + "ages", family.ages, 0, 1)


def _check_pair(name: str, pair: Sequence[float], low: float, high: float) -> None:
    if len(pair) != 2 or not pair[0] <= pair[1]:
        raise InputError(
            f"{name} = {list(pair)} was asked for the simulation; it must be two numbers, the smaller one first."
        )
    for value in pair:
        check_range(name, value, low, high)
