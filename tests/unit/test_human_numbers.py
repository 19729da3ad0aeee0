"""What README and docs say of the paper's own size is what the record of that run says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records, write_records

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "write_human_numbers.py"
FOLDER, BUILDS = (ROOT / "resources" / "measurements" / f"nvidia-h200-human{of}" for of in ("", "-index"))
SEEDS, INDEX = read_records(FOLDER / "kmer_seeds.tsv"), read_records(BUILDS / "index.tsv")
PRINTED = (ROOT / "resources" / "published" / "kmer_seeds.tsv").read_text(encoding="utf-8").splitlines()
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "kmer_seeds.md").read_text(encoding="utf-8")
CASES = ("S11", "S15", "S20", "S24", "S30")


def totals(case: str, tier: str, device: str, item: str = "whole") -> Any:
    own = SEEDS[(SEEDS["item"] == item) & (SEEDS["case"] == case) & (SEEDS["stage"] == "total")]
    return own[(own["tier"] == tier) & (own["device"] == device)]


def million(case: str, tier: str, item: str = "whole") -> Any:
    """A million k-mers on the GPU: a data set of its own, or the paper's where one core took a million, too."""
    found = [totals(name, tier, "gpu", item) for name in (f"{case}_1M", case)]
    own = next(own for own in found if len(own))
    assert set(own["queries"]) == {1_000_000}
    return own


def each(own: Any) -> float:
    """Microseconds a k-mer."""
    return 1e6 * own["value"].median() / own["queries"].iloc[0]


def printed(case: str, column: str, item: str = "whole", metric: str = "time") -> str:
    table = {"whole": "Table I", "search": "Table II"}[item]
    start = rf"kmer_seeds\t{table}\t{case}; mismatches=\d\t{column}\t{metric}\t"
    [row] = [line for line in PRINTED if re.match(start, line)]
    return row.split("\t")[5]


def number(cell: str) -> float:
    return float(cell.replace(",", "").split(" ")[0])


def three(value: float) -> float:
    return float(f"{value:.3g}")


@pytest.mark.parametrize("row", range(5))
def test_a_million_kmers_of_a_human_like_genome(row: int) -> None:
    cells = rows_of(README, "| a million k-mers | hits |")[row]
    case = CASES[row]
    assert cells[0].startswith(f"{case}, D=")
    paper, fast = (million(case, tier) for tier in ("paper", "fast"))
    assert set(paper["results"]) == set(fast["results"]) == {int(cells[1].replace(",", ""))}
    assert set(paper["digest"]) == set(fast["digest"])
    assert cells[2:4] == [f"{own['value'].median():.3g} s" for own in (paper, fast)]
    assert cells[4] == f"{printed(case, '1 GPU')} s"
    core, gpu = (totals(case, "paper", device) for device in ("cpu", "gpu"))
    assert set(core["digest"]) == set(gpu["digest"]) and set(core["queries"]) == set(gpu["queries"])
    by_core, on_gpu = float(printed(case, "1 CPU core")), float(printed(case, "1 GPU"))
    assert [number(cell) for cell in cells[5:]] == [
        three(each(core)),
        float(f"{core['value'].median() / gpu['value'].median():.2g}"),
        three(by_core),
        float(f"{by_core / on_gpu:.2g}"),
    ]
    assert [cell.split(" ")[1:] for cell in cells[5:]] == [["µs"], [], ["µs"], []]


@pytest.mark.parametrize("item", ["whole", "search"])
@pytest.mark.parametrize("row", range(5))
def test_both_tables_at_the_papers_size(row: int, item: str) -> None:
    name = {"whole": "Table I", "search": "Table II"}[item]
    written = PAGE.split(f"<!-- {name}: written by")[1].split(f"<!-- end of {name} -->")[0]
    cells = rows_of(written, "| data set | k-mers |")[row]
    case = CASES[row]
    core, gpu, fast = (
        totals(case, tier, device, item) for tier, device in (("paper", "cpu"), ("paper", "gpu"), ("fast", "gpu"))
    )
    for other in (gpu, fast):
        assert set(core["digest"]) == set(other["digest"]) and set(core["queries"]) == set(other["queries"])
    mismatches = {"S11": 0, "S15": 0, "S20": 1, "S24": 1, "S30": 2}[case]
    assert cells[:2] == [f"{case}, D={mismatches}", f"{core['queries'].iloc[0]:,}"]
    speedup = core["value"].median() / gpu["value"].median()
    assert [number(cell) for cell in cells[2:5]] == [three(each(core)), three(each(gpu)), float(f"{speedup:.2g}")]
    theirs = [printed(case, column, item) for column in ("1 CPU core", "1 GPU")]
    assert cells[5:8] == [*theirs, printed(case, "GPU vs 1 core", item, "speedup")]
    millions = [each(million(case, tier, item)) for tier in ("paper", "fast")]
    assert [number(cell) for cell in cells[8:]] == [three(value) for value in (each(fast), *millions)]


def test_what_is_said_of_both_tables_and_of_figure_5() -> None:
    for word in ("medians of 3", "Every 11-mer has more than 128 hits", "locating takes most of the time of one core"):
        assert word in " ".join(PAGE.split())
    timed = SEEDS[(SEEDS["metric"] == "time") & SEEDS["item"].isin(["whole", "search", "locate_on_cpu"])]
    assert set(timed["repeat"]) == {0, 1, 2}
    assert {result for case in ("S11", "S11_1M") for result in totals(case, "paper", "gpu")["results"]} == {0}
    core, searched = (totals("S15", "paper", "cpu", item)["value"].median() for item in ("whole", "search"))
    assert searched < core / 2
    assert 0.9 < core / totals("S15", "paper", "gpu", "locate_on_cpu")["value"].median() < 1.5


def test_its_index() -> None:
    """Each number of the sentence, once from the record: a total is no less than the stages that it has."""
    own = INDEX[(INDEX["item"] == "index") & (INDEX["metric"] == "time")].set_index("stage")["value"]
    assert own.index.is_unique
    assert own["total"] >= own[["read", "text", "text_to_device", "suffix_array", "bwt", "index_to_host"]].sum()
    size = INDEX.loc[INDEX["metric"] == "size", "value"].sum() / 1e9
    stages = [own[stage] for stage in ("total", "read", "suffix_array", "bwt", "index_to_host")]
    words = " ".join(README.split())
    told = re.search(
        r"from FASTA to arrays in memory it takes (\S+) s there, of which reading is (\S+), the suffix array (\S+), "
        r"both BWTs (\S+) and copies to the host (\S+); saving (\S+) GB takes (\S+) s more",
        words,
    )
    assert told
    assert [float(text) for text in told.groups()] == [float(f"{value:.3g}") for value in (*stages, size, own["save"])]


@pytest.mark.parametrize(
    ("value", "text"), [(0.59, "0.590"), (1.1, "1.10"), (2e6, "2,000,000"), (9.996, "10.0"), (1697, "1,700")]
)
def test_a_number_has_three_digits_and_no_exponent(tool: Any, value: float, text: str) -> None:
    assert tool.rounded(value) == text


# ------------------------------------------------------------------------- what writes these tables and numbers


def test_tables_and_numbers_are_the_records() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow" / "scripts")}
    command = [sys.executable, str(TOOL), "--check"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("write_human_numbers", TOOL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its named tuples look for their types
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def other_records(tmp_path: Path) -> list[Path]:
    """Records of later runs, in which one core takes other k-mers; everything takes twice as long."""
    seeds = SEEDS[SEEDS["case"] != "S11_1M"].copy()
    for case, count in (("S11", 1_000_000), ("S15", 400_000), ("S20", 300_000), ("S24", 100_000), ("S30", 30_000)):
        seeds.loc[seeds["case"] == case, "queries"] = count
    tables = {name: read_records(name) for folder in (FOLDER, BUILDS) for name in folder.glob("*.tsv")}
    for name, table in (tables | {FOLDER / "kmer_seeds.tsv": seeds}).items():
        table.loc[table["metric"] == "time", "value"] *= 2
        write_records(tmp_path / name.parent.name / name.name, table.to_dict("records"))
    return [tmp_path / folder.name for folder in (FOLDER, BUILDS)]


def test_new_records_renew_tables_and_numbers_and_nothing_else(tool: Any, other_records: list[Path]) -> None:
    pages = {tool.README: README, tool.PAGE: PAGE}
    texts = tool.renewed(pages, tool.read_numbers(*other_records))
    front, page = (" ".join(texts[name].split()) for name in (tool.README, tool.PAGE))
    assert "On one core 1,000,000, 400,000, 300,000, 100,000 and 30,000 k-mers were searched" in front
    s11 = totals("S11", "paper", "gpu")["value"].median()
    assert rows_of(texts[tool.README], "| a million k-mers | hits |")[0][2] == f"{2 * s11:.3g} s"
    assert page.count("| S30, D=2 | 30,000 |") == 2 and PAGE.count("| S30, D=2 | 30,000 |") == 0
    as_before = [re.sub(r"[\d,.]+", "0", text) for text in (README, PAGE)]
    assert [re.sub(r"[\d,.]+", "0", texts[name]) for name in (tool.README, tool.PAGE)] == as_before
    assert tool.renewed(texts, tool.read_numbers()) == pages


def test_every_number_of_a_sentence_is_renewed(tool: Any, other_records: list[Path]) -> None:
    numbers, later = tool.read_numbers(), tool.read_numbers(*other_records)
    same = [values.__name__ for _, _, values in tool.SENTENCES if values(numbers) == values(later)]
    assert same == ["_billions", "_billions", "_shares"]  # nothing that was timed
    told = "it takes {} s, or\n{} s more."
    assert tool.with_numbers(told.format("1,234.5", 6), "takes {} s, or {} s", ["0.7", "8"]) == told.format(0.7, 8)


@pytest.mark.parametrize("text", ["it takes long", "takes 1 s, takes 2 s"])
def test_a_sentence_that_reads_otherwise_is_told(tool: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"sentences read 'takes \{\} s'"):
        tool.with_numbers(text, "takes {} s", ["1"])


def test_a_table_without_its_comments_is_told(tool: Any) -> None:
    with pytest.raises(ValueError, match="<!-- end of Table I --> must each stand once"):
        tool.with_table(PAGE.replace("<!-- end of Table I -->", ""), "Table I", [["a"]])


def test_records_without_a_million_kmers_are_told(tool: Any, other_records: list[Path]) -> None:
    seeds = read_records(other_records[0] / "kmer_seeds.tsv")
    rows = seeds[seeds["case"] != "S20_1M"].to_dict("records")
    write_records(other_records[0] / "kmer_seeds.tsv", rows)
    with pytest.raises(ValueError, match=r"no GPU run of a million k-mers of S20 \(whole, paper tier\)"):
        tool.millions_table(tool.read_numbers(*other_records))


def test_unlike_results_have_no_ratio(tool: Any, other_records: list[Path]) -> None:
    rows = read_records(other_records[0] / "kmer_seeds.tsv").to_dict("records")
    for row in rows:
        if (row["item"], row["case"], row["tier"], row["device"]) == ("search", "S24", "paper", "cpu"):
            row["digest"] = "count=another"
    write_records(other_records[0] / "kmer_seeds.tsv", rows)
    table = tool.printed_table(tool.read_numbers(*other_records), "search")
    assert [row[4] == "results differ" for row in table[1:]] == [False, False, False, True, False]
