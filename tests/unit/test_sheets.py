"""A sample sheet says what the mapping says, and each mistake in it is one sentence with file, line and column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.errors import ConfigError
from warpseed.workflow.configuration import check_configuration, load_schema
from warpseed.workflow.ebwt_samples import compared_samples
from warpseed.workflow.kmer_seeds_cases import sample_searches
from warpseed.workflow.mems_samples import sample_mem_searches
from warpseed.workflow.one_error_samples import sample_read_searches
from warpseed.workflow.sheets import Places
from warpseed.workflow.sources import References, samples_of
from warpseed.workflow.tree_bitmap_samples import counted_samples

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
HEADER = "sample\treads\tk\tstep\tcount\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with reads and a genome."""
    for name in ("a.fq", "b.fq", "genome.fa"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(data: str | bytes) -> tuple[dict[str, Any], Places]:
    """The samples of a configuration that names a sheet with these bytes, completed."""
    Path("s.tsv").write_bytes(data.encode() if isinstance(data, str) else data)
    config: dict[str, Any] = {"samples": "s.tsv"}
    places = check_configuration(config, load_schema(SCHEMAS))
    return config["samples"], places


def from_yaml(text: str) -> dict[str, Any]:
    config = yaml.safe_load(text)
    check_configuration(config, load_schema(SCHEMAS))
    return config["samples"]


def refusal(data: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        samples, places = read(data)
        config = {"samples": samples, "reads": {}}
        sample_searches(samples_of(config, References({}), "simulated", places), places)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_sheet_says_what_the_mapping_says(folder: Path) -> None:
    samples, places = read(
        "# my samples\n\nreads\tsample\tk\tmismatches\treference\tmax_hits\n"
        "a.fq\tA\t20\t1\tgenome.fa\t\n# the other one\nb.fq\t5\t\t\t\t128\n"
    )
    mapping = from_yaml(
        "samples:\n  A: {reads: a.fq, reference: genome.fa, k: 20, mismatches: 1}\n  '5': {reads: b.fq, max_hits: 128}"
    )
    assert samples == mapping
    assert list(samples) == ["A", "5"]
    assert samples["A"] == {
        "reads": "a.fq", "reference": "genome.fa", "system": "kmers", "k": 20, "step": None, "count": "all",
        "mismatches": 1, "max_hits": None, "chunks": 1,
    }  # fmt: skip
    assert dict(places.lines) == {"A": 4, "5": 6}


@pytest.mark.parametrize(
    "data",
    [
        "sample\treads\tk\nA\ta.fq\t20\n",
        "\ufeffsample\treads\tk\r\nA\ta.fq\t20\r\n\r\n",
        "sample\treads\tk\t\t\nA\ta.fq\t20\t\t\t\t\n\t\t\n",
        "sample\treads\tk\tstep\nA\ta.fq\t20",
        " sample\treads \tk\n A \ta.fq\t 20\n",
        '"sample"\t"reads"\t"k"\n"A"\t"a.fq"\t"20"\n',
        "sample\treads\tk\rA\ta.fq\t20\r",
    ],
    ids=["plain", "BOM and CRLF", "trailing tabs", "short lines", "spaces", "quotes", "CR"],
)
def test_sheets_as_programs_write_them(data: str, folder: Path) -> None:
    assert read(data)[0] == from_yaml("samples: {A: {reads: a.fq, k: 20}}")


def test_text_that_looks_like_a_number_stays_a_path(folder: Path) -> None:
    (folder / "17").write_text("")
    assert read("sample\treads\n1e3\t17\n")[0]["1e3"]["reads"] == "17"


def test_numbers_with_zeros_before_them_are_decimal(folder: Path) -> None:
    samples, _ = read(HEADER + "A\ta.fq\t020\t08\nB\ta.fq\t0031\t\t0100\n")
    assert [samples[name][key] for name, key in (("A", "k"), ("A", "step"), ("B", "k"), ("B", "count"))] == [
        20, 8, 31, 100,
    ]  # fmt: skip


@pytest.mark.parametrize(("cell", "value"), [("true", True), ("TRUE", True), ("True", True), ("FALSE", False)])
def test_true_and_false_as_spreadsheets_write_them(cell: str, value: bool, folder: Path) -> None:
    samples, _ = read(f"sample\treads\tsystem\tnormalise\nA\ta.fq\tebwt\t{cell}\n")
    assert samples["A"]["normalise"] is value


MISTAKES = {
    "an unknown column": ("sample\treads\tsteps\n", "s.tsv, line 1: the column 'steps' is not known: did you mean"),
    "a column in capitals": ("Sample\treads\n", "the column 'Sample' is not known: did you mean 'sample'?"),
    "nothing alike": ("sample\treads\tzzz\n", "known are sample, reads, reference, system, max_hits, chunks, tree, "),
    "a column twice": ("sample\treads\treads\n", "s.tsv, line 1: the column 'reads' stands twice"),
    "no reads": ("# x\nsample\tk\n", "s.tsv, line 2: the column 'reads' is missing: add it."),
    "no names": ("reads\tk\n", "s.tsv, line 1: the column 'sample' is missing"),
    "spaces for tabs": ("sample reads k\n", "'sample reads k': write tabs between the columns."),
    "commas for tabs": ("sample,reads,k\n", "'sample,reads,k': write tabs between the columns."),
    "nothing": ("# nothing\n\n", "s.tsv: the sample sheet is empty, but its first line should name its columns"),
    "a heading alone": (HEADER + "\n", "s.tsv: the sample sheet names its columns, but no sample: add a line for each"),
    "a cell too many": (HEADER + "A\ta.fq\t20\t\t\t9\n", "s.tsv, line 2: the cell '9' stands under no column"),
    "no name": (HEADER + "\ta.fq\n", "s.tsv, line 2: the column 'sample' is empty"),
    "a name twice": (
        HEADER + "A\ta.fq\n\nA\tb.fq\n",
        "s.tsv, line 4: the sample 'A' stands here and in line 2, and both would have the same results: rename one.",
    ),
    "a name with a space": (HEADER + "A B\ta.fq\n", "s.tsv, line 2 holds the name 'A B', but a name should be: a"),
    "a name of 201 letters": (
        HEADER + 200 * "a" + "\ta.fq\n" + 201 * "b" + "\ta.fq\n",
        f"s.tsv, line 3 holds the name '{201 * 'b'}', but a name should be: at most 200 letters, digits, '_', '-' and",
    ),
    "no file": (HEADER + "A\t\t20\n", "s.tsv, line 2 lacks 'reads': add it"),
    "a number out of its range": (
        HEADER + "A\ta.fq\t20\nB\ta.fq\t400\n",
        "s.tsv, line 3: the column 'k' is 400, but it should be: length of the k-mers cut from the reads, from 1",
    ),
    "a number with an exponent": (
        HEADER + "A\ta.fq\t20\t\t1e6\n",
        "line 2: the column 'count' is '1e6', but it should be: all (every k-mer at each step), or a number of k-mers, "
        "at least 1, to cut at random places; '1e6' is read as text: write 1000000.",
    ),
    "a number with commas": (HEADER + "A\ta.fq\t20\t\t100,000\n", "'100,000' is read as text: write 100000."),
    "a number with a point": (HEADER + "A\ta.fq\t20.0\n", "the column 'k' is 20.0, but it should be: length of"),
    "a word for a number": (HEADER + "A\ta.fq\ttwenty\n", "a k-mer as it is; what stands there is text."),
    "a system that is none": ("sample\treads\tsystem\nA\ta.fq\tkmer\n", "line 2: the column 'system' is 'kmer', but"),
    "a key of another system": (
        "sample\treads\tsystem\tk\nA\ta.fq\treads\t20\n",
        "s.tsv, line 2: the column 'k' is a setting of samples with 'system: kmers', which this one has not: remove it",
    ),
    "a key of another system than the usual one": (
        "sample\treads\tmax_edits\nA\ta.fq\t1\n",
        "line 2: the column 'max_edits' is a setting of samples with 'system: reads', which this one has not",
    ),
    "three edits": (
        "sample\treads\tsystem\tmax_edits\nA\ta.fq\treads\t3\n",
        "line 2: the column 'max_edits' is 3, but it should be: substitutions, insertions and deletions allowed, 0, 1",
    ),
    "another report": (
        "sample\treads\tsystem\treport\nA\ta.fq\treads\tfirst\n",
        "line 2: the column 'report' is 'first', but it should be: 'best' (one placement a locus) or 'all'",
    ),
    "reads that are not there": (
        HEADER + "A\tnowhere.fq\n",
        "The read file 'nowhere.fq' (s.tsv, line 2, column 'reads') does not exist: give a FASTA or FASTQ file",
    ),
    "a reference that is not there": (
        "sample\treads\treference\nA\ta.fq\tnowhere.fa\n",
        "The reference 'nowhere.fa' (s.tsv, line 2, column 'reference') is not a file, a URL",
    ),
    "a step without k": (
        HEADER + "A\ta.fq\t\t5\n",
        "The sample 'A' has the step 5 but no k, and without k every record is a k-mer as it is: add the length of its "
        "k-mers (s.tsv, line 2, column 'k'), or leave out step.",
    ),
    "no text": (b"sample\treads\n\xff\xfe\n", "s.tsv: the sample sheet (configuration key 'samples') is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_with_its_place(mistake: str, folder: Path) -> None:
    data, sentence = MISTAKES[mistake]
    assert sentence in refusal(data)


def test_a_sheet_that_is_not_there(folder: Path) -> None:
    for path, reason in (("nowhere.tsv", "No such file"), (".", "Is a directory"), ("a\0b", "embedded null byte")):
        with pytest.raises(
            ConfigError, match=rf"sample sheet {re.escape(repr(path))} \(.*'samples'\) cannot be read \({reason}"
        ):
            check_configuration({"samples": path}, load_schema(SCHEMAS))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("count: 10", "has the count 10 but no k, and .* (configuration key 'samples.A.k'), or leave out count."),
        ("k: 20, step: 3, count: 10", "has the step 3 and the count 10, but .* (configuration key 'samples.A.step')."),
    ],
)
def test_keys_that_do_not_go_together(keys: str, sentence: str, folder: Path) -> None:
    samples = from_yaml(f"samples: {{A: {{reads: a.fq, {keys}}}}}")
    stood = samples_of({"samples": samples, "reads": {}}, References({}), "simulated", Places())
    pattern = re.escape(sentence).replace(r"\.\*", ".*")
    with pytest.raises(ConfigError, match=pattern):
        sample_searches(stood, Places())


def test_how_the_seeds_of_a_sample_are_found(folder: Path) -> None:
    samples, places = read(HEADER + "every\ta.fq\t20\t5\ndrawn\ta.fq\t20\t\t100\nas_it_is\tb.fq\n")
    searches = sample_searches(samples_of({"samples": samples, "reads": {}}, References({}), "x", places), places)
    assert {name: search["queries"] for name, search in searches.items()} == {
        "every": "a.fq", "drawn": "results/seeds/drawn.kmers.fa", "as_it_is": "b.fq",
    }  # fmt: skip
    assert {search["seconds"] for search in searches.values()} == {1e-6}
    assert {search["seeds"] for search in searches.values()} == {("bed.gz", "bed.gz.tbi")}
    cut = {name: (search["parameters"]["k"], search["parameters"]["step"]) for name, search in searches.items()}
    assert cut == {"every": (20, 5), "drawn": (None, None), "as_it_is": (None, None)}


def test_how_the_reads_of_a_sample_are_placed(folder: Path) -> None:
    samples, places = read(
        "sample\treads\tsystem\tmax_edits\tmultiple\tk\tmax_hits\n"
        "A\ta.fq\treads\nB\tb.fq\treads\t2\txa\t\t9\nC\tb.fq\tkmers\t\t\t20\n"
    )
    stood = samples_of({"samples": samples, "reads": {}}, References({}), "x", places)
    searches = sample_read_searches(stood)
    assert list(searches) == ["A", "B"] and list(sample_searches(stood, places)) == ["C"]
    assert searches["A"]["parameters"] == {"max_edits": 1, "report": "best", "multiple": "secondary", "max_hits": None}
    assert searches["B"]["parameters"] == {"max_edits": 2, "report": "best", "multiple": "xa", "max_hits": 9}
    assert searches["B"]["facts"] == {
        "sample": "B", "reference": "x", "reads": "b.fq", "system": "reads",
        "parameters": "edits=2; report=best; multiple=xa; max_hits=9",
    }  # fmt: skip
    assert {search["seeds"] for search in searches.values()} == {("bam", "bam.bai")}


def test_how_the_matches_of_a_sample_are_found(folder: Path) -> None:
    samples, places = read(
        "sample\treads\tsystem\tmin_length\tkind\tboth_strands\tmax_occurrences\tmax_hits\tk\n"
        "A\ta.fq\tmems\nB\tb.fq\tmems\t14\tmaximal\tfalse\t50\t9\nC\tb.fq\tkmers\t\t\t\t\t\t20\n"
    )
    searches = sample_mem_searches(samples_of({"samples": samples, "reads": {}}, References({}), "x", places))
    assert [search["parameters"] for search in searches.values()] == [
        {"min_length": 20, "kind": "super", "both_strands": True, "max_occurrences": None, "max_hits": None},
        {"min_length": 14, "kind": "maximal", "both_strands": False, "max_occurrences": 50, "max_hits": 9},
    ]
    assert list(searches) == ["A", "B"]
    assert searches["B"]["facts"] == {
        "sample": "B", "reference": "x", "reads": "b.fq", "system": "mems",
        "parameters": "min_length=14; kind=maximal; strands=1; max_occurrences=50; max_hits=9",
    }  # fmt: skip
    assert {search["seeds"] for search in searches.values()} == {("paf.gz", "paf.gz.tbi")}


def test_how_the_kmers_of_a_sample_are_counted(folder: Path) -> None:
    samples, places = read(
        "sample\treads\tsystem\tk\tchunks\tmax_hits\nA\ta.fq\ttree_bitmap\nB\tb.fq\ttree_bitmap\t31\nC\tb.fq\tkmers\t20\n"
    )
    known = samples_of({"samples": samples, "reads": {}}, References({}), "x", places)
    counted = counted_samples(known, places)
    assert {name: sample["k"] for name, sample in counted.items()} == {"A": 15, "B": 31}
    assert counted["B"]["reads"] == "b.fq"
    assert counted["B"]["facts"] == {"sample": "B", "reads": "b.fq", "system": "tree_bitmap", "parameters": "k=31"}
    for key, value in (("chunks", 2), ("max_hits", 5)):
        with pytest.raises(ConfigError, match=f"The sample 'A' has {key} {value}"):
            counted_samples({"A": known["A"] | {key: value}}, places)


def test_how_the_records_of_a_sample_are_compared(folder: Path) -> None:
    samples, places = read(
        "sample\treads\tsystem\ttree\tnormalise\nA\ta.fq\tebwt\nB\tb.fq\tebwt\tupgma\ttrue\nC\tb.fq\ttree_bitmap\n"
    )
    known = samples_of({"samples": samples, "reads": {}}, References({}), "x", places)
    compared = compared_samples(known, places)
    assert {name: (sample["tree"], sample["normalise"]) for name, sample in compared.items()} == {
        "A": ("nj", False),
        "B": ("upgma", True),
    }
    assert [sample["facts"]["parameters"] for sample in compared.values()] == ["tree=nj", "tree=upgma; normalise=1"]
    assert compared["A"]["facts"] | {"parameters": ""} == {
        "sample": "A", "reads": "a.fq", "system": "ebwt", "parameters": "",
    }  # fmt: skip
    with pytest.raises(
        ConfigError, match="'A' has chunks 2, but its records are compared by one job, and have no hits"
    ):
        compared_samples({"A": known["A"] | {"chunks": 2}}, places)


def test_the_sheet_of_the_readme_is_a_valid_one(folder: Path) -> None:
    text = (ROOT / "config" / "README.md").read_text()
    sheet = re.search(r"^```\n(# comment.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert sheet
    samples, _ = read(sheet.group(1))
    assert (
        samples["tumour"]
        == from_yaml(next(iter(re.findall(r"^samples:\n  tumour:.*\n", text, re.MULTILINE))))["tumour"]
    )
    mapping = from_yaml("samples:\n" + text.partition("\nsamples:\n")[2].partition("```")[0])
    assert samples["mapped"] == mapping["mapped"] and samples["long"] == mapping["long"]
    assert {name: sample["system"] for name, sample in samples.items()} == {
        "tumour": "kmers", "normal": "kmers", "phage": "kmers", "mapped": "reads",
        "long": "mems", "counted": "tree_bitmap", "phages": "ebwt",
    }  # fmt: skip
