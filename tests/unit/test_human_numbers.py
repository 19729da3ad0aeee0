"""What README and docs say of the paper's own size is what the record of that run says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "resources" / "measurements" / "nvidia-h200-human"
SEEDS, INDEX = (read_records(FOLDER / f"{name}.tsv") for name in ("kmer_seeds", "index"))
PRINTED = (ROOT / "resources" / "published" / "kmer_seeds.tsv").read_text(encoding="utf-8").splitlines()
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = " ".join((ROOT / "docs" / "kmer_seeds.md").read_text(encoding="utf-8").split())


def totals(case: str, tier: str, device: str) -> Any:
    own = SEEDS[(SEEDS["item"] == "whole") & (SEEDS["case"] == case) & (SEEDS["stage"] == "total")]
    return own[(own["tier"] == tier) & (own["device"] == device)]


def printed(case: str, column: str) -> float:
    [row] = [
        line for line in PRINTED if re.match(rf"kmer_seeds\tTable I\t{case}; mismatches=\d\t{column}\ttime\t", line)
    ]
    return float(row.split("\t")[5])


@pytest.mark.parametrize("row", range(5))
def test_a_million_kmers_of_a_human_like_genome(row: int) -> None:
    cells = rows_of(README, "| a million k-mers | hits |")[row]
    case = cells[0].split(",")[0]
    paper, fast = (totals(f"{case}_1M", tier, "gpu") for tier in ("paper", "fast"))
    assert set(paper["results"]) == set(fast["results"]) == {int(cells[1].replace(",", ""))}
    assert set(paper["digest"]) == set(fast["digest"])
    assert cells[2:4] == [f"{own['value'].median():.3g} s" for own in (paper, fast)]
    assert cells[4] == f"{printed(case, '1 GPU')} s"
    by_core, on_gpu = printed(case, "1 CPU core"), printed(case, "1 GPU")
    assert [float(cells[7].removesuffix(" µs").replace(",", "")), float(cells[8])] == [
        float(f"{by_core:.3g}"),
        float(f"{by_core / on_gpu:.2g}"),
    ]
    core = totals(case, "paper", "cpu")
    if not len(core):
        assert cells[5:7] == ["", ""]
        return
    there = totals(case, "paper", "gpu")
    assert set(core["digest"]) == set(there["digest"]) and set(core["queries"]) == set(there["queries"])
    ratio = core["value"].median() / there["value"].median()
    each = float(f"{1e6 * core['value'].median() / core['queries'].iloc[0]:.3g}")
    assert cells[5:7] == [f"{each:,g} µs", f"{float(f'{ratio:.2g}'):g}"]


def test_the_fast_tier_on_one_core() -> None:
    told = re.search(r"On one core the fast tier takes (\S+), (\S+), (\S+), (\S+) and (\S+) µs a k-mer", README)
    assert told
    own = [totals(case, "fast", "cpu") for case in ("S11", "S15", "S20", "S24", "S30")]
    assert list(told.groups()) == [f"{1e6 * each['value'].median() / each['queries'].iloc[0]:.3g}" for each in own]


def test_its_index() -> None:
    own = INDEX[INDEX["metric"] == "time"].groupby("stage")["value"].median()
    told = re.search(
        r"from FASTA to arrays in memory it takes (\S+) s there, of which reading is (\S+), the suffix array (\S+), "
        r"both BWTs (\S+) and copies to the host (\S+); saving (\S+) GB takes (\S+) s more",
        " ".join(README.split()),
    )
    assert told
    stages = ["total", "read", "suffix_array", "bwt", "index_to_host"]
    size = INDEX[INDEX["metric"] == "size"]["value"].sum()
    expected = [*(f"{own[stage]:.3g}" for stage in stages), f"{size / 1e9:.3g}", f"{own['save']:.3g}"]
    assert list(told.groups()) == expected


def test_its_index_for_the_fast_tier_alone() -> None:
    own = SEEDS[(SEEDS["item"] == "index") & (SEEDS["device"] == "gpu")].groupby("stage")["value"].median()
    told = re.search(
        r"is made on the GPU in (\S+) s from the text in the host's memory, "
        r"of which the suffix array with its table is (\S+)\. ",
        " ".join(README.split()),
    )
    assert told
    needed = own["text_to_device"] + own["suffix_array"] + own["tagged_rows"]
    assert list(told.groups()) == [f"{needed:.3g}", f"{own['suffix_array']:.3g}"]


def test_what_the_gpu_reaches_there() -> None:
    limits = (
        SEEDS[(SEEDS["item"] == "limits") & (SEEDS["metric"] == "time")].groupby(["case", "tier"])["value"].median()
    )
    told = re.search(
        r"32 million exact 20-mers take (\S+) ms, from letters to columns (\S+); "
        r"a million 20-mers with one mismatch (\S+) s, a million 30-mers with two (\S+) s, the paper tier (\S+) s",
        PAGE,
    )
    assert told
    exact, one, two = (
        f"k={k}, D={d}, errors={errors}, {count} k-mers"
        for k, d, errors, count in ((20, 0, 0, "32,000,000"), (20, 1, 0.01, "1,000,000"), (30, 2, 0.01, "1,000,000"))
    )
    seconds = [1e3 * limits[exact, "fast"], 1e3 * limits[f"{exact}, letters to columns", "fast"]]
    seconds += [limits[one, "fast"], limits[two, "fast"], limits[two, "paper"]]
    assert list(told.groups()) == [f"{value:.3g}" for value in seconds]
    shares = SEEDS[(SEEDS["item"] == "limits") & (SEEDS["metric"] == "share")].groupby("case")["value"].median()
    told = re.search(r"The share of the floor is (\S+) of exact ones, and (\S+) of both others\.", PAGE)
    assert told and [*told.groups(), told.group(2)] == [f"{shares[case]:.2g}" for case in (exact, one, two)]
    front = " ".join(README.split())
    told = re.search(r"it finds (\S+) G exact 20-mers a second, and a million 30-mers .*? in (\S+) ms", front)
    assert told and list(told.groups()) == [f"{32e6 / limits[exact, 'fast'] / 1e9:.2g}", f"{1e3 * seconds[3]:.2g}"]


def test_how_a_saved_index_comes_there() -> None:
    told = re.search(r"A saved index comes to the GPU in (\S+) to (\S+) s: (\S+) GB from the page cache", PAGE)
    assert told
    millions = SEEDS[(SEEDS["item"] == "whole") & SEEDS["case"].str.endswith("_1M") & (SEEDS["tier"] == "fast")]
    came = millions[millions["stage"] == "index_to_device"].groupby("case")["value"].median()
    sizes = INDEX[INDEX["metric"] == "size"].groupby("case")["value"].first()
    brought = sizes["part=text (fast)"]
    assert len(came) == 5
    assert list(told.groups()) == [*(f"{value:.2g}" for value in (came.min(), came.max())), f"{brought / 1e9:.3g}"]
