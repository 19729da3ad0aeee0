"""Write what README and docs/kmer_seeds.md say of the paper's own size: tables and numbers, from their records.

``PYTHONPATH=workflow/scripts python tools/write_human_numbers.py`` after new records of nvidia-h200-human, or, of the
index, nvidia-h200-human-index; ``--check`` only says whether they agree, with exit code 1 if not. A table stands
between two comments, and is written anew; of a sentence only the numbers are. tools/draw_figures.py draws that
machine's figure.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from warpseed.measure.records import read_records, split_parameters
from warpseed.report.measurements import (
    Measurements,
    agreement,
    headline,
    load_measurements,
    published_of,
    rows_of,
    times,
)

ROOT = Path(__file__).resolve().parent.parent
FOLDER, BUILDS = (ROOT / "resources" / "measurements" / f"nvidia-h200-human{of}" for of in ("", "-index"))
README, PAGE = "README.md", "docs/kmer_seeds.md"
MILLION = 1_000_000
_NUMBER = r"(\d(?:[\d.,]*\d)?)"


class Numbers(NamedTuple):
    """What the records of two runs hold, of searches, and of how the index is made.

    Attributes
    ----------
    measured : Measurements
        Of kmer_seeds, with what the paper prints.
    cases : mapping
        The paper's data sets to their parameters.
    totals : mapping
        (item, case, tier, device) to the row of `times`, of one CPU thread or one GPU.
    seeds, index : pandas.DataFrame
        The records of kmer_seeds, and those of how the index that has the paper's parts was made.
    builds : pandas.DataFrame
        Those of making what the fast tier needs.
    """

    measured: Measurements
    cases: Mapping[str, str]
    totals: Mapping[tuple[str, str, str, str], Mapping[str, Any]]
    seeds: Any
    index: Any
    builds: Any

    def million(self, item: str, case: str, tier: str) -> Mapping[str, Any]:
        """The GPU's row of a million k-mers: that of a data set of its own, or of the paper's where it has so many."""
        found = [self.totals.get((item, name, tier, "gpu")) for name in (f"{case}_1M", case)]
        row = next((row for row in found if row is not None and row["queries"] == MILLION), None)
        if row is None:
            raise ValueError(f"{FOLDER.name}: no GPU run of a million k-mers of {case} ({item}, {tier} tier)")
        return row

    def printed(self, item: str, case: str, method: str, metric: str) -> str:
        """The digits that the paper prints."""
        table = published_of(self.measured, item, case, self.cases[case])
        (digits,) = table.loc[(table["method"] == method) & (table["metric"] == metric), "digits"]
        return str(digits)


def read_numbers(folder: Path = FOLDER, builds: Path = BUILDS) -> Numbers:
    """Read the record files of two folders.

    Raises
    ------
    ValueError
        If a measurement stands there for several numbers of threads or GPUs.
    """
    records = [folder / "kmer_seeds.tsv", folder / "index.tsv"]
    resources = ROOT / "resources"
    printed, paper = resources / "published" / "kmer_seeds.tsv", resources / "papers" / "kmer_seeds.yaml"
    measured = load_measurements([], records, [printed], [paper]).of("kmer_seeds")
    totals: dict[tuple[str, str, str, str], Mapping[str, Any]] = {}
    for row in rows_of(headline(times(measured, ["whole", "search"]))):
        key = (row["item"], row["case"], row["tier"], row["device"])
        if key in totals:
            raise ValueError(f"{folder.name}: {key} was measured on several numbers of threads or GPUs")
        totals[key] = row
    cases = {case: measured.paper.case_parameters(case) for case in measured.paper.cases}
    built, index = (read_records(builds / path.name) for path in records)
    made = (own[own["item"] == "index"] for own in (index, built))
    return Numbers(measured, cases, totals, read_records(records[0]), *made)


# Numbers as the pages have them


def rounded(value: float, digits: int = 3) -> str:
    """A number of so many significant digits, with commas between its thousands and no exponent."""
    decimals = digits - 1 - int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def each_us(row: Mapping[str, Any]) -> float:
    """Microseconds a k-mer."""
    return float(1e6 * row["median_s"] / row["queries"])


def over(core: Mapping[str, Any], gpu: Mapping[str, Any]) -> str:
    """How many times as fast the GPU is, on the same k-mers with the same results; or why it is not said."""
    return agreement(core, gpu) or rounded(core["median_s"] / gpu["median_s"], 2)


# Tables


def _named(numbers: Numbers, case: str) -> str:
    return f"{case}, D={split_parameters(numbers.cases[case])['mismatches']}"


def millions_table(numbers: Numbers) -> list[list[str]]:
    """README's: Table I of a million k-mers on the GPU, and one core beside the GPU, both beside print."""
    rows = [
        ["a million k-mers", "hits", "paper tier, GPU", "fast tier, GPU", "published, GPU"]
        + [
            "a k-mer on one core, paper tier",
            "GPU over one core",
            "published, one core",
            "published, GPU over one core",
        ]
    ]
    for case in numbers.cases:
        paper, fast = (numbers.million("whole", case, tier) for tier in ("paper", "fast"))
        differ = agreement(paper, fast)
        core, gpu = (numbers.totals["whole", case, "paper", device] for device in ("cpu", "gpu"))
        theirs = [numbers.printed("whole", case, method, "time") for method in ("1 GPU", "1 CPU core")]
        gpu_s, core_s = map(float, theirs)
        rows.append(
            [_named(numbers, case), differ or f"{int(paper['results']):,}"]
            + [f"{each['median_s']:.3g} s" for each in (paper, fast)]
            + [f"{theirs[0]} s", f"{rounded(each_us(core))} µs", over(core, gpu)]
            + [f"{rounded(core_s)} µs", rounded(core_s / gpu_s, 2)]
        )
    return rows


_SIDES = "one core", "GPU", "times as fast"


def printed_table(numbers: Numbers, item: str) -> list[list[str]]:
    """A table of the paper, microseconds a k-mer: the k-mers that one core took, print beside them, then a million."""
    rows = [
        ["data set", "k-mers", *(f"{of}: {what}" for of in ("paper tier", "printed") for what in _SIDES)]
        + ["fast tier: GPU", "a million, paper tier: GPU", "a million, fast tier: GPU"]
    ]
    for case in numbers.cases:
        core, gpu, fast = (
            numbers.totals[item, case, tier, device]
            for tier, device in (("paper", "cpu"), ("paper", "gpu"), ("fast", "gpu"))
        )
        millions = [numbers.million(item, case, tier) for tier in ("paper", "fast")]
        rows.append(
            [_named(numbers, case), f"{int(core['queries']):,}"]
            + [rounded(each_us(core)), rounded(each_us(gpu)), over(core, gpu)]
            + [numbers.printed(item, case, method, "time") for method in ("1 CPU core", "1 GPU")]
            + [numbers.printed(item, case, "GPU vs 1 core", "speedup"), rounded(each_us(fast))]
            + [rounded(each_us(row)) for row in millions]
        )
    return rows


TABLES: list[tuple[str, str, Callable[[Numbers], list[list[str]]]]] = [
    (README, "Table I, a million k-mers", millions_table),
    (PAGE, "Table I", lambda numbers: printed_table(numbers, "whole")),
    (PAGE, "Table II", lambda numbers: printed_table(numbers, "search")),
]
"""Page, what the comment before a table calls it, and its rows, the header's first."""


# Sentences


def _kmers_of_one_core(numbers: Numbers) -> list[str]:
    return [f"{int(numbers.totals['whole', case, 'paper', 'cpu']['queries']):,}" for case in numbers.cases]


def _fast_core(numbers: Numbers) -> list[str]:
    return [rounded(each_us(numbers.totals["whole", case, "fast", "cpu"])) for case in numbers.cases]


def _billions(numbers: Numbers) -> list[str]:
    (bases,) = numbers.index.loc[numbers.index["unit"] == "bases", "value"]
    return [rounded(bases / 1e9)]


def _limits(numbers: Numbers, metric: str) -> Mapping[tuple[str, str], float]:
    """Medians of a metric of the searches on the device, by case and tier."""
    own = numbers.seeds[(numbers.seeds["item"] == "limits") & (numbers.seeds["metric"] == metric)]
    return dict(own.groupby(["case", "tier"])["value"].median())


EXACT = "k=20, D=0, errors=0, 32,000,000 k-mers"
ONE, TWO = (f"k={k}, D={d}, errors=0.01, 1,000,000 k-mers" for k, d in ((20, 1), (30, 2)))


def _found_on_device(numbers: Numbers) -> list[str]:
    seconds = _limits(numbers, "time")
    return [rounded(32e6 / seconds[EXACT, "fast"] / 1e9, 2), rounded(1e3 * seconds[TWO, "fast"], 2)]


def _on_device(numbers: Numbers) -> list[str]:
    seconds = _limits(numbers, "time")
    fast = [1e3 * seconds[case, "fast"] for case in (EXACT, f"{EXACT}, letters to columns", ONE, TWO)]
    return [rounded(value) for value in (*fast, seconds[TWO, "paper"])]


def _rates(numbers: Numbers) -> list[str]:
    own = numbers.seeds[numbers.seeds["metric"] == "rate"].set_index("case")
    arrays = [own.loc[f"random sectors of the {array}"] for array in ("table", "rows")]
    sizes = [rounded(int(split_parameters(row["parameters"])["bytes"]) / 1e9, 2) for row in arrays]
    return [_found_on_device(numbers)[0], *sizes, *(rounded(row["value"] / 1e9) for row in arrays)]


def _shares(numbers: Numbers) -> list[str]:
    shares = _limits(numbers, "share")
    return [rounded(shares[case, "fast"], 2) for case in (EXACT, ONE, TWO)]


def _brought_to_the_gpu(numbers: Numbers) -> list[str]:
    own = numbers.seeds[(numbers.seeds["tier"] == "fast") & (numbers.seeds["stage"] == "index_to_device")]
    millions = own[(own["item"] == "whole") & (own["queries"] == MILLION)].groupby("case")["value"].median()
    (text,) = numbers.index.loc[numbers.index["case"] == "part=text (fast)", "value"]
    return [rounded(millions.min(), 2), rounded(millions.max(), 2), rounded(text / 1e9)]


def _index_with_the_papers_parts(numbers: Numbers) -> list[str]:
    index = numbers.index
    seconds = index[index["metric"] == "time"].groupby("stage")["value"].median()
    stages = ["total", "read", "suffix_array", "bwt", "index_to_host"]
    size = index.loc[index["metric"] == "size", "value"].sum()
    return [*(rounded(seconds[stage]) for stage in stages), rounded(size / 1e9), rounded(seconds["save"])]


def _index_of_the_fast_tier(numbers: Numbers) -> list[str]:
    own = numbers.builds[numbers.builds["device"] == "gpu"]
    seconds = own.groupby("stage")["value"].median()
    needed = seconds["text_to_device"] + seconds["suffix_array"] + seconds["tagged_rows"]
    return [rounded(needed), rounded(seconds["suffix_array"])]


SENTENCES: list[tuple[str, str, Callable[[Numbers], list[str]]]] = [
    (README, "the paper's own size: a **simulated** genome of 3.1 Gbp, of which {} are A", _billions),
    (README, "On one core {}, {}, {}, {} and {} k-mers were searched", _kmers_of_one_core),
    (README, "On one core the fast tier takes {}, {}, {}, {} and {} µs a k-mer", _fast_core),
    (
        README,
        "it finds {} G exact 20-mers a second, and a million 30-mers with two mismatches in {} ms",
        _found_on_device,
    ),
    (
        README,
        "is made on the GPU in {} s from the text in the host's memory, of which the suffix array with its table is {}",
        _index_of_the_fast_tier,
    ),
    (
        README,
        "from FASTA to arrays in memory it takes {} s there, of which reading is {}, the suffix array {}, both BWTs {} "
        "and copies to the host {}; saving {} GB takes {} s more",
        _index_with_the_papers_parts,
    ),
    (PAGE, "A genome of {} billion bases", _billions),
    (
        PAGE,
        "32 million exact 20-mers take {} ms, from letters to columns {}; a million 20-mers with one mismatch {} ms, "
        "a million 30-mers with two {} ms, the paper tier {} s",
        _on_device,
    ),
    (
        PAGE,
        "exact ones are found at {} G/s, where a table of {} GB and rows of {} GB are read at random at {} and {} G "
        "sectors/s",
        _rates,
    ),
    (PAGE, "The share of the floor is {} of exact ones, {} with one mismatch and {} with two", _shares),
    (PAGE, "A saved index comes to the GPU in {} to {} s: {} GB from the page cache", _brought_to_the_gpu),
]
"""Page, a part of a sentence with {} for each number, and these numbers."""


# Pages


def with_table(text: str, name: str, rows: list[list[str]]) -> str:
    """The page with the rows between the comments of a table: the first column to the left, the others to the right."""
    begin, end = f"<!-- {name}: written by tools/{Path(__file__).name} -->\n", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the comments {begin.strip()} and {end} must each stand once")
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    rule = "|---|" + "--:|" * (len(rows[0]) - 1)
    before, _, rest = text.partition(begin)
    return before + begin + "\n".join(["", lines[0], rule, *lines[1:], "", end]) + rest.partition(end)[2]


def with_numbers(text: str, sentence: str, numbers: list[str]) -> str:
    """The page with the numbers in the only sentence that reads so, whatever numbers and line ends it has."""
    literals = [r"\s+".join(map(re.escape, part.split(" "))) for part in sentence.split("{}")]
    found = list(re.finditer(_NUMBER.join(literals), text))
    if len(found) != 1 or len(numbers) != len(literals) - 1:
        raise ValueError(f"{len(found)} sentences read {sentence!r}, for which there are {len(numbers)} numbers")
    for group, number in reversed(list(enumerate(numbers, 1))):
        text = text[: found[0].start(group)] + number + text[found[0].end(group) :]
    return text


def renewed(pages: Mapping[str, str], numbers: Numbers) -> dict[str, str]:
    """The pages, by their paths, as the records have it."""
    texts = dict(pages)
    for page, name, rows in TABLES:
        texts[page] = with_table(texts[page], name, rows(numbers))
    for page, sentence, values in SENTENCES:
        texts[page] = with_numbers(texts[page], sentence, values(numbers))
    return texts


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in (README, PAGE)}
    texts = renewed(pages, read_numbers())
    stale = [page for page in pages if texts[page] != pages[page]]
    if check and stale:
        print(f"{', '.join(stale)} differ from {FOLDER.name}: run tools/{Path(__file__).name}.", file=sys.stderr)
        return 1
    for page in stale:
        (ROOT / page).write_text(texts[page], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
