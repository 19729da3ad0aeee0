"""What the documentation names exists, and its examples run as they stand."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed
import yaml
from made_up_samples import write_sample
from warpseed import cli
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds.output import TSV_HEADER
from warpseed.measure.records import FORMAT_LINE, RECORD_COLUMNS, read_records
from warpseed.report.samples import COUNTS, DENSITY_COLUMNS, FACTS
from warpseed.workflow.configuration import check_configuration, load_schema

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FORMATS = ROOT / "docs" / "formats.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "config" / "README.md"])
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
FOLDERS = {"config", "docs", "envs", "profiles", "resources", "tests", "tools", "workflow"}
GENOME = "ACGTTGCAAGCTTACGGATCCATGACCTTGACCATGAGCCTAGGCTAGTCCATTGACGATTACA" * 3
BELOW = {
    "h200_human": ["paper"],
    "h200_human_index": ["paper", "h200_human"],
    "h200_human_mems": ["paper"],
    "h200_human_all_mems": ["paper", "h200_human_mems"],
    "h200_reads_files": ["h200_reads"],
    "two_gpus_ebwt": ["two_gpus"],
    "two_gpus_tree_bitmap": ["two_gpus"],
}
"""The layers that a file of config/ is laid over."""
KMERS = {"a": "ACGTTGCAAGCTTACGGATC", "b": "TAGCCTAGGCTCATGGTCAA", "c": "TTGACCATGANCCTAGGCTA"}
EACH_PAGE_OR_CONFIGURATION = pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / "config").glob("*.yaml"))], ids=lambda page: page.relative_to(ROOT).as_posix()
)


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """The code blocks of a page: language and content."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [(language, content) for language, content in found]


def block_of(page: Path, language: str, word: str = "") -> str:
    """The first code block in a language that holds a word."""
    return next(content for found, content in blocks_of(page) if found == language and word in content)


def code_of(page: Path) -> list[str]:
    """Everything on a page that is set as code: blocks, then spans."""
    rest = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [content for _, content in blocks_of(page)] + re.findall(r"`([^`\n]+)`", rest)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ------------------------------------------------------------------------------------------ names of things


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in [link for link in links if "://" not in link]:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


@EACH_PAGE
def test_paths_of_the_repository_exist(page: Path) -> None:
    named = {word.rstrip(".,:;") for code in code_of(page) for word in code.split() if word.split("/")[0] in FOLDERS}
    for path in named:
        if "/" in path and not re.search(r"[<*…]", path):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_python_files_that_pages_name_exist(page: Path) -> None:
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/**/*.py")}
    for path in re.findall(r"`((?:\w+/)*\w+\.py)`", page.read_text(encoding="utf-8")):
        assert any(f"/{file}".endswith(f"/{path}") for file in files), path


def test_the_readme_shows_the_layout_that_there_is() -> None:
    lines = block_of(README, "", "Snakefile  Makefile").splitlines()
    named = [name for line in lines for name in re.split(" {2,}", line)[:-1]]
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
    shown = {name.split("/")[0] for name in named}
    assert shown >= FOLDERS


@EACH_PAGE_OR_CONFIGURATION
def test_resources_of_a_command_leave_timed_jobs_alone(page: Path) -> None:
    """What the command line says takes the place of all that the profile says, which has one timed job at a time."""
    for given in re.findall(r"--resources((?: \w+=\d+)+)", page.read_text(encoding="utf-8")):
        assert "bench=1" in given.split(), given


@EACH_PAGE_OR_CONFIGURATION
def test_a_layer_is_laid_over_what_it_belongs_to(page: Path) -> None:
    """h200_human.yaml alone would measure a genome of 2 Mbp, and publish it as one of 3.1 Gbp."""
    runs = re.findall(r"--configfile((?:[\s#]+config/\w+\.yaml)+)", page.read_text(encoding="utf-8"))
    for files in (re.findall(r"config/(\w+)\.yaml", run) for run in runs):
        for place, file in enumerate(files):
            assert file not in BELOW or files[:place] == BELOW[file]


def test_what_is_said_of_c_elegans_is_measured_on_it() -> None:
    """Files with a genome of their own are of another one, and config.yaml's is too short for `first_bases`."""
    lines = block_of(ROOT / "config" / "README.md", "", "snakemake seeds").splitlines()
    for file in ("bench_index", "bench_tags"):
        [line] = [line for line in lines if f"config/{file}.yaml" in line]
        assert "--config reference=celegans" in line
    assert not any("C. elegans" in line and "reference=celegans" not in line for line in lines)


@EACH_PAGE
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets >= {"run", "test"}
    for code in code_of(page):
        named = re.findall(r"(?:^|\s)make ([a-z][a-z-]*)", code, re.MULTILINE)
        assert set(named) <= targets, code


@EACH_PAGE
def test_snakemake_targets_exist(page: Path) -> None:
    rules = set(re.findall(r"^rule (\w+):", (ROOT / "Snakefile").read_text(), re.MULTILINE))
    assert rules >= {"all", "kmer_seeds"}
    for code in code_of(page):
        for word in re.findall(r"(?:^|\s)snakemake +([a-z]\S*)", code, re.MULTILINE):
            assert "/" in word or word in rules, code


@pytest.mark.workflow
def test_rules_make_the_results_that_the_docs_name(tmp_path: Path) -> None:
    words = {word for page in PAGES for code in code_of(page) for word in code.split() if word.startswith("results/")}
    words = {word for word in words if not re.search(r"[<*…]", word)}
    files = sorted(word for word in words if Path(word).suffix and not word.startswith("results/seeds/"))
    assert len(files) > 8
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path)]
    done = subprocess.run([*command, "-n", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_configuration_is_shown() -> None:
    shown = set(re.findall(r"config/(\w+\.yaml)", block_of(ROOT / "config" / "README.md", "", "snakemake seeds")))
    assert shown | {"config.yaml"} == {path.name for path in (ROOT / "config").glob("*.yaml")}


@pytest.mark.parametrize("part", ["fm_index", "tree_bitmap", "mems", "one_error", "kmer_seeds", "ebwt"])
def test_a_folder_says_where_each_of_its_files_belongs(part: str) -> None:
    folder = ROOT / "workflow" / "scripts" / "warpseed" / part
    told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = set(re.findall(r"`(\w+)`", told))
    assert sorted(named) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


# -------------------------------------------------------------------------------------------------- examples


@pytest.fixture
def in_a_folder_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the README's examples name."""
    (tmp_path / "genome.fa.gz").write_text(f">chr\n{GENOME}\n")
    (tmp_path / "genomes.fa.gz").write_text(f">first\n{GENOME}\n>second\n{GENOME[:40]}\n>third\n{GENOME[9:80]}\n")
    (tmp_path / "kmers.fa").write_text("".join(f">{name}\n{bases}\n" for name, bases in KMERS.items()))
    (tmp_path / "reads.fq.gz").write_text("".join(f">read{i}\n{GENOME[i : i + 50]}\n" for i in range(5)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_readme_run(in_a_folder_with_files: Path) -> None:
    lines = block_of(README, "", "warpseed check").splitlines()
    assert len(lines) >= 6
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "warpseed"
        assert cli.main(words[1:]) == 0, line
    assert (in_a_folder_with_files / "hits.bed.gz.tbi").exists()
    assert (in_a_folder_with_files / "hits.tsv").read_bytes().startswith(TSV_HEADER)
    first = (in_a_folder_with_files / "hits.bed").read_text().splitlines()[0]
    assert first.split("\t") == ["chr", "0", "20", "a", "0", "+"]


def test_the_python_of_the_readme_runs(in_a_folder_with_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block_of(README, "python"), names)
    assert len(names["hits"]) > 0
    assert Path("hits.bed.gz.tbi").exists()
    assert list(names["hits"].to_frame().columns) == TSV_HEADER.decode().split()
    assert "chr" in capsys.readouterr().out


def test_the_genome_file_of_the_readme_is_made_as_it_says(in_a_folder_with_files: Path) -> None:
    """bedtools takes names and lengths of the contigs, in the order of the reference."""
    contigs = [("chr2", 3000), ("chr10 x", 40), ("a", 5)]
    write_sample(Path("results/seeds"), "tumour", contigs, lambda contig, start: (1, 0))
    commands = [line for line in block_of(README, "", "tabix ").splitlines() if line.endswith(" > genome.txt")]
    assert len(commands) == 1
    subprocess.run(commands[0], shell=True, check=True)
    assert Path("genome.txt").read_text() == "".join(f"{name}\t{length}\n" for name, length in contigs)


def test_the_sample_sheet_of_the_readme_is_a_valid_configuration(in_a_folder_with_files: Path) -> None:
    (in_a_folder_with_files / "samples.tsv").write_text(block_of(README, "", "sample\treference"))
    config = yaml.safe_load(block_of(README, "yaml", "samples:"))
    check_configuration(config, load_schema(ROOT / "workflow" / "schemas"))
    assert [sample["step"] for sample in config["samples"].values()] == [10, 10]
    assert f"results/seeds/{next(iter(config['samples']))}.bed.gz" in README.read_text(encoding="utf-8")


def test_the_figures_of_the_pages_are_what_the_records_give() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "draw_figures.py"), "--check"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow" / "scripts")}
    done = subprocess.run(tool, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = [README, *(ROOT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"figures/(\w+\.svg)", page.read_text(encoding="utf-8"))}
    assert shown >= {path.name for path in (ROOT / "docs" / "figures").iterdir()}


# --------------------------------------------------------------------------------------------------- formats


def rows_of(page: Path) -> list[list[str]]:
    """The cells of every table row of a page."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_file_of_an_index_is_described(in_a_folder_with_files: Path) -> None:
    described = {row[0].strip("`"): row[1] for row in rows_of(FORMATS) if len(row) == 3}
    index: SeedIndex = warpseed.build_index("genome.fa.gz", parts=("tags", "paper"))
    for name, array in index.arrays().items():
        # One row stands for both directions.
        file = f"{name}.npy".replace("reverse.", "forward.")
        assert described[file].split("[")[0] == np.dtype(array.dtype).name, name
    there = {f"{name}.npy" for name in index.arrays() if not name.startswith("reverse.")}
    assert {name for name in described if name.endswith(".npy")} == there | {"reverse.*.npy"}


def test_every_column_and_stage_of_a_record_is_described() -> None:
    text = FORMATS.read_text(encoding="utf-8")
    described = [row[0] for row in rows_of(FORMATS) if len(row) == 2]
    first = described.index("`system`")
    assert described[first : first + len(RECORD_COLUMNS)] == [f"`{column}`" for column in RECORD_COLUMNS]
    assert f"`{FORMAT_LINE}`" in text
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "scripts").rglob("*.py"))
    stages = set(re.findall(r"""(?:\.stage\(|\.add\(|\bmark\(|time_on_device\(watch, )"([a-z_]+)\"""", sources))
    assert len(stages) > 8
    assert [stage for stage in sorted(stages) if f"`{stage}`" not in text] == []


@pytest.mark.parametrize("column", ["item", "tool", "stage", "unit"])
def test_every_word_of_the_committed_records_is_described(column: str) -> None:
    text = FORMATS.read_text(encoding="utf-8").partition("## Records")[2].partition("\n## ")[0]
    files = sorted((ROOT / "resources" / "measurements").glob("*/*.tsv"))
    words = {word for file in files for word in read_records(file)[column]}
    assert len(words) > 5
    assert sorted(word for word in words if f"`{word}`" not in text) == []


def test_what_the_report_reads_of_a_sample_is_described() -> None:
    text = FORMATS.read_text(encoding="utf-8").partition("## Samples")[2].partition("\n## ")[0]
    first = [word for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)]
    assert first == [*FACTS, *DENSITY_COLUMNS]
    assert set(COUNTS) <= {row[0].strip("`") for row in rows_of(FORMATS) if len(row) == 2}


# ------------------------------------------------------------------------------------- citation and the rest


def test_the_citation_file_is_complete() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "type", "version", "license"} <= set(citation)
    assert citation["title"] == "warpseed"
    assert citation["version"] == warpseed.__version__
    assert citation["authors"] == [{"name": "The warpseed authors"}]
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", warpseed.__version__]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Where packages come from is for the user's own settings to say. (Names in pieces: this file is searched too.)"""
    hosts = {("pypi", "org"), ("python" + "hosted", "org"), ("anaconda", "org"), ("anaconda", "com"), ("npmjs", "org")}
    hosts |= {("npmjs", "com"), ("crates", "io"), ("golang", "org"), ("rubygems", "org")}
    pattern = re.compile("|".join(rf"\b{name}\.{ending}\b" for name, ending in sorted(hosts)))
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in (*FOLDERS, ".ci"):
        files += [Path(where, name) for where, _, names in os.walk(ROOT / folder) for name in names]
    checked = 0
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        checked += 1
        assert not pattern.search(text), path
    assert checked > 50
