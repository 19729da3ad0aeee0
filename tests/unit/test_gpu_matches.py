"""What README and docs say of maximal exact matches on a GPU is what the record says."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
RECORDS = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-mems" / "mems.tsv")
ON_GPU = RECORDS[(RECORDS["device"] == "gpu") & (RECORDS["queries"] == 25249)]
ROWS = rows_of((ROOT / "README.md").read_text(encoding="utf-8"), "| kind of match | matches | on the device |")
TEXT = (ROOT / "docs" / "mems.md").read_text(encoding="utf-8")
PAGE = " ".join(TEXT.split())


def of(item: str, kind: str, tier: str = "fast", length: int = 20) -> dict[tuple[str, str], float]:
    """Medians by stage and metric of the reads with 12 % of errors."""
    parameters = f"min_length={length}; kind={kind}; "
    own = ON_GPU[(ON_GPU["item"] == item) & ON_GPU["case"].str.startswith("pacbio") & (ON_GPU["tier"] == tier)]
    own = own[own["parameters"].str.startswith(parameters)]
    assert len(own)
    return dict(own.groupby(["stage", "metric"])["value"].median())


def on_device(values: dict[tuple[str, str], float]) -> str:
    return f"{1e3 * values['kernel', 'time']:.1f} ms, {values['kernel', 'share']:.2f} of the floor"


@pytest.mark.parametrize("row", (0, 1), ids=("super", "maximal"))
def test_matches_of_a_kind(row: int) -> None:
    name, matches, *cells = ROWS[row]
    kind = name.strip("`")
    there, files = (of(item, kind)["total", "time"] for item in ("in_memory", "file_to_file"))
    assert cells == [on_device(of("limits", kind)), f"{1e3 * there:.1f} ms", f"{files:.2f} s"]
    found = ON_GPU[ON_GPU["case"].str.startswith("pacbio") & ON_GPU["parameters"].str.contains(f"=20; kind={kind};")]
    assert {f"{results:,}" for results in found["results"]} == {matches}


def test_long_matches() -> None:
    name, matches, *cells = ROWS[2]
    own = ON_GPU[ON_GPU["case"].str.startswith("accurate") & (ON_GPU["item"] == "limits")]
    assert name.startswith("`super`, 1 % of errors") and {f"{results:,}" for results in own["results"]} == {matches}
    assert cells == [on_device(dict(own.groupby(["stage", "metric"])["value"].median())), "", ""]


def test_matches_of_the_paper() -> None:
    fast, paper = (of("stages", "paper", tier) for tier in ("fast", "paper"))
    own = ON_GPU[(ON_GPU["item"] == "stages") & ON_GPU["parameters"].str.startswith("min_length=20;")]
    [matches] = {f"{results:,}" for results in own["results"]}
    assert len(set(own["digest"])) == 1
    assert ROWS[3] == ["`paper`, fast tier", matches, "", f"{1e3 * fast['total', 'time']:.1f} ms", ""]
    stage = f"{1e3 * paper['intervals', 'time']:.1f} ms for the intervals"
    assert ROWS[4] == ["`paper`, paper tier", matches, stage, f"{1e3 * paper['total', 'time']:.1f} ms", ""]
    assert len(ROWS) == 5


def test_the_page_of_matches() -> None:
    told = re.search(
        r"for `super` (\S+) are kernels, (\S+) bring the reads and (\S+) take the matches; from FASTQ to TSV (\S+) s",
        PAGE,
    )
    there = of("in_memory", "super")
    stages = [f"{1e3 * there[stage, 'time']:.2g}" for stage in ("kernel", "host_to_device", "device_to_host")]
    assert told and list(told.groups()) == [*stages, f"{of('file_to_file', 'super')['total', 'time']:.2f}"]
    told = re.search(r"The paper tier has (\S+) to (\S+) ms of stage 1", PAGE)
    each = [1e3 * of("stages", "paper", "paper", length)["intervals", "time"] for length in (12, 14, 16, 18, 20)]
    assert told and list(told.groups()) == [f"{min(each):.0f}", f"{max(each):.0f}"]
    told = re.search(
        r"take (\S+) s for L = 12 and (\S+) s for 20, the fast tier for the same matches (\S+) and (\S+) s: "
        r"of those (\S+) billion matches (\S+) s are the way to the host",
        PAGE,
    )
    shown = [of("stages", "paper", tier, length)["total", "time"] for tier in ("paper", "fast") for length in (12, 20)]
    longest = ON_GPU[(ON_GPU["item"] == "stages") & ON_GPU["parameters"].str.startswith("min_length=12;")]
    [results] = set(longest["results"])
    back = of("stages", "paper", "fast", 12)["device_to_host", "time"]
    assert told and list(told.groups()) == [f"{value:.2g}" for value in (*shown, results / 1e9, back)]


def test_parameters_of_the_papers_index() -> None:
    told = re.search(
        r"of 5,000 reads at L = 16 the stages take (\S+) to (\S+) s with bins of (\d+) to (\d+) rows, a suffix "
        r"position every (\d+) to (\d+), and intervals of (\d+) to (\d+) bases",
        PAGE,
    )
    own = RECORDS[(RECORDS["item"] == "settings") & (RECORDS["stage"] == "total") & (RECORDS["queries"] == 5000)]
    each = own[own["metric"] == "time"].groupby("parameters")["value"].median()
    parameters = [dict(part.split("=") for part in name.split("; ")) for name in each.index]
    ranges = []
    for name in ("bin_size", "sa_ratio", "pre_calc_length"):
        values = [int(some[name]) for some in parameters]
        ranges += [str(min(values)), str(max(values))]
    assert told and list(told.groups()) == [f"{each.min():.2g}", f"{each.max():.2g}", *ranges]


@pytest.mark.parametrize("row", range(3))
def test_matches_on_sixteen_cores(row: int) -> None:
    kind, *cells = rows_of(TEXT, "| kind | in memory: 1 thread | 16 threads |")[row]
    own = RECORDS[(RECORDS["case"] == "pacbio_cores") & (RECORDS["stage"] == "total") & (RECORDS["metric"] == "time")]
    own = own[own["parameters"].str.contains(f"; kind={kind};") & (own["queries"] == 2000)]
    assert len(set(own["results"])) == 1 and (own.groupby("item")["digest"].nunique() == 1).all()
    medians, expected = own.groupby(["item", "threads"])["value"].median(), []
    for item in ("in_memory", "file_to_file"):
        one, all_of_them = medians[item, 1], medians[item, 16]
        expected += [f"{one:#.3g}", f"{all_of_them:#.3g}", f"{one / all_of_them:.2g}"]
    assert cells == expected


OF_FEW, OF_ALL = (
    read_records(ROOT / "resources" / "measurements" / f"nvidia-h200-{name}" / "mems.tsv")
    for name in ("human-mems", "human-all-mems")
)
"""Of a genome like a human one, of 400 reads and of all."""
SIZES = rows_of(TEXT, "| L | matches of all reads | GPU, paper tier: intervals |")


def at_the_papers_size(item: str, tier: str, device: str, start: str, reads: int = 25249) -> pd.DataFrame:
    """Medians by threads, stage and metric."""
    records = OF_ALL if reads == 25249 else OF_FEW
    own = records[(records["item"] == item) & (records["queries"] == reads) & (records["tier"] == tier)]
    own = own[(own["device"] == device) & own["parameters"].str.startswith(start)]
    return own.groupby(["threads", "stage", "metric"])["value"].median()


def results_at_the_papers_size(start: str, reads: int = 25249) -> str:
    """How many matches there are; all that found them found the same."""
    own = pd.concat([OF_FEW, OF_ALL])
    own = own[(own["item"] == "stages") & own["parameters"].str.startswith(start) & (own["queries"] == reads)]
    assert set(own["tier"]) == {"paper", "fast"} and own["digest"].nunique() == 1
    return f"{own['results'].iloc[0]:,}"


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:#.3g}".rstrip(".") + " ms"


@pytest.mark.parametrize("row", range(5))
def test_matches_at_the_papers_size(row: int) -> None:
    length = (12, 14, 16, 18, 20)[row]
    start = f"min_length={length}; kind=paper;"
    paper, fast = (at_the_papers_size("stages", tier, "gpu", start)[16] for tier in ("paper", "fast"))
    there = at_the_papers_size("stages", "paper", "gpu", start, 400)[16]["total", "time"]
    cores = at_the_papers_size("stages", "paper", "cpu", start, 400)
    one, threads = cores[1, "total", "time"], cores[16, "total", "time"]
    assert len(SIZES) == 5 and SIZES[row] == [
        str(length),
        results_at_the_papers_size(start),
        *map(milliseconds, (paper["intervals", "time"], paper["total", "time"], fast["total", "time"])),
        results_at_the_papers_size(start, 400),
        f"{one:#.3g} s",
        f"{threads:#.3g} s",
        milliseconds(there),
        f"{one / there:.3g}",
        f"{threads / there:.3g}",
    ]


def test_what_is_said_of_the_papers_size() -> None:
    start = "min_length=20; kind=super;"
    memory, kernels, files = (
        at_the_papers_size(item, "fast", "gpu", start)[16] for item in ("in_memory", "limits", "file_to_file")
    )
    told = re.search(
        r"`super` of all reads takes (\S+) ms in memory for L = 20, (\S+) of them kernels, (\S+) of the floor, and "
        r"(\S+) s from",
        PAGE,
    )
    expected = [f"{1e3 * memory['total', 'time']:.0f}", f"{1e3 * memory['kernel', 'time']:.0f}"]
    expected += [f"{kernels['kernel', 'share']:.2f}", f"{files['total', 'time']:.2f}"]
    assert told and list(told.groups()) == expected
    core = [
        at_the_papers_size("in_memory", "fast", "cpu", f"min_length=20; kind={kind};", 400)[1]
        for kind in ("super", "paper")
    ]
    told = re.search(r"L = 20 took it (\S+) s for `super`, (\S+) s for `paper`", PAGE)
    assert told and list(told.groups()) == [f"{times['total', 'time']:.1f}" for times in core]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    last = SIZES[-1]
    assert f"{last[3]} for the {last[1]} matches of its kind, {last[2]} of them for the intervals" in readme
    assert f"and the fast tier {last[4]} (records" in readme
    assert f"one core takes the paper tier {last[6]}, 16 threads {last[7]} and the GPU {last[8]} (records" in readme
