"""The workflow as a user meets it: dry runs, the smoke configuration end to end, mistakes, interruptions."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from warpseed.compute.machine import gpu_description
from warpseed.report.systems import SYSTEMS
from workflow_runs import ROOT, SMOKE, command, snakemake

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of one whole run of the smoke configuration."""
    directory = tmp_path_factory.mktemp("smoke run")  # a space in the path is part of the test
    done = snakemake("--configfile", SMOKE, directory=directory)
    assert done.returncode == 0, done.stdout
    return directory


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a dry run of the smoke configuration prints: its jobs with their inputs."""
    done = snakemake("-n", "--quiet", "host", "--configfile", SMOKE, directory=tmp_path_factory.mktemp("planned"))
    assert done.returncode == 0, done.stdout
    return done.stdout


def records(folder: Path) -> list[dict[str, str]]:
    """Every record below a folder."""
    rows = []
    for path in sorted(folder.rglob("*.tsv")):
        lines = path.read_text().splitlines()
        assert lines[0].startswith("# warpseed records")
        rows += csv.DictReader([line for line in lines if not line.startswith("# ")], delimiter="\t")
    return rows


# ------------------------------------------------------------------------------------------------ dry runs


@pytest.mark.parametrize(
    "configuration",
    [
        "config",
        "paper",
        "h200",
        "h200_reads",
        "two_gpus",
        "smoke",
        "bench_cpu",
        "bench_gpu",
        "bench_reads",
        "bench_mems",
        "h200_tree_bitmap",
    ],
)
@pytest.mark.thorough
def test_dry_run_needs_no_network(configuration: str, tmp_path: Path) -> None:
    """Whatever the configuration, planning asks no server: a curl that is called would leave a file."""
    called = tmp_path / "called"
    curl = tmp_path / "bin" / "curl"
    curl.parent.mkdir()
    curl.write_text(f'#!/bin/sh\ntouch "{called}"\nexit 1\n')
    curl.chmod(0o755)
    path = f"{curl.parent}{os.pathsep}{os.environ['PATH']}"
    file = str(ROOT / "config" / f"{configuration}.yaml")
    done = snakemake("-n", "--configfile", file, directory=tmp_path, PATH=path, no_proxy="*")
    assert done.returncode == 0, done.stdout
    assert "write_report" in done.stdout
    assert ("time_gpu_limits" in done.stdout) == (configuration == "h200") or gpu_description()["gpu_count"]
    assert not called.exists()


@pytest.mark.parametrize(("devices", "jobs"), [("[cpu, gpu]", 1), ("[cpu]", 0)])
def test_builds_on_a_gpu_alone_are_planned_where_one_is_measured(devices: str, jobs: int, tmp_path: Path) -> None:
    """What `index_builds.devices` names is built on, as far as it is measured."""
    layers = [str(ROOT / "config" / f"{name}.yaml") for name in ("paper", "h200_human")]
    wanted = f"measure={{devices: {devices}}}", "kmer_seeds={index_builds: {threads: [1], devices: [gpu]}}"
    done = snakemake("-n", "--configfile", *layers, "--config", *wanted, directory=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^time_index +(\d+)$", done.stdout, re.M)[:1] == ["1"] * jobs


@pytest.mark.thorough
def test_the_catalogues_snakefile_plans_the_same_jobs(planned: str, tmp_path: Path) -> None:
    """workflow/Snakefile, where a catalogue looks for one, makes by default what Snakefile makes."""
    done = snakemake("-n", "--configfile", SMOKE, directory=tmp_path, snakefile=ROOT / "workflow" / "Snakefile")
    assert done.returncode == 0, done.stdout
    ours, catalogues = (
        re.findall(r"^(?:time|find|build|write|draw|make|verify|cut|simulate)_\w+ +\d+$", output, re.M)
        for output in (planned, done.stdout)
    )
    assert ours == catalogues
    assert len(ours) > 8


def inputs_of(rule: str, output: str) -> str:
    """The input line of the first job of a rule in a dry run's output."""
    found = re.search(rf"^(?:local)?rule {rule}:\n\s+input: (.*)$", output, re.MULTILINE)
    assert found, output
    return found.group(1)


def test_a_rule_depends_on_the_library_it_uses_and_on_no_more(planned: str) -> None:
    """A changed kernel re-times; a changed plot does not."""
    timing, figures = inputs_of("time_kmer_seeds", planned), inputs_of("draw_kmer_seeds", planned)
    for kernel in ("kmer_seeds/paper.py", "kmer_seeds/fast.py", "kmer_seeds/cpu.py", "fm_index/search.py"):
        assert kernel in timing
        assert kernel not in figures
    assert "report/charts.py" in figures
    assert "warpseed/report/" not in timing


def test_seeds_wait_for_an_index_that_was_verified(planned: str) -> None:
    """Damage that opening an index cannot see is found before seeds are written."""
    assert "results/seeds/index/simulated.verified" in inputs_of("find_seeds", planned)


def test_a_download_depends_on_no_file(tmp_path: Path) -> None:
    """A changed error sentence, or a genome added to the catalogue, downloads nothing again."""
    done = snakemake("-n", "--quiet", "host", "--config", "reference=phix174", directory=tmp_path)
    found = re.search(r"^(?:local)?rule get_reference:\n((?: {4}.*\n)+)", done.stdout, re.MULTILINE)
    assert found, done.stdout
    assert "output: results/reference/phix174.fa.gz" in found.group(1)
    assert "input:" not in found.group(1)


def test_lint_is_clean(tmp_path: Path) -> None:
    """`snakemake --lint` has nothing to say."""
    done = snakemake("--lint", directory=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Congratulations" in done.stdout


# -------------------------------------------------------------------------------------------------- the run


def test_smoke_run_makes_everything(smoke: Path) -> None:
    """The report, every table and figure, the seeds, and a log and a benchmark for every job."""
    results = smoke / "results"
    page = (results / "report.html").read_text()
    assert len(page) > 10_000
    assert 'id="figure_samples_smoke"' in page and 'href="seeds/smoke.bed.gz"' in page
    assert 'href="seeds/placed.bam"' in page and "reads: 2 edits, report = best, multiple = secondary" in page
    assert 'href="seeds/matched.paf.gz"' in page and "mems: min_length = 15, kind = maximal, 2 strands" in page
    assert 'href="seeds/counted.kmers.tsv.gz"' in page and "tree_bitmap: k = 12" in page
    assert 'href="seeds/compared.distances.tsv"' in page and "ebwt: tree = upgma, normalise = 1" in page
    # Reads with qualities are FASTQ, those without FASTA; both were cut into k-mers.
    reads = {path.name: path.read_text() for path in (results / "reads" / "simulated").iterdir()}
    assert {name: text[0] for name, text in reads.items()} == {
        "short.fa": ">", "long.fq": "@", "mixed.fq": "@", "r100.fq": "@", "pacbio.fa": ">",
    }  # fmt: skip
    assert len({len(line) for line in reads["long.fq"].splitlines()[1::4]}) > 5
    for stem in ("statements", "stages", "kinds", "memory", "settings"):
        assert len((results / "tables" / "mems" / f"{stem}.tsv").read_text().splitlines()) > 1, stem
    for stem in ("statements", "kernels", "counted", "structures", "versions", "events", "streams", "fixed"):
        assert len((results / "tables" / "tree_bitmap" / f"{stem}.tsv").read_text().splitlines()) > 1, stem
    for stem in ("table_4", "table_5", "results"):
        assert (results / "tables" / "one_error" / f"{stem}.tsv").stat().st_size > 0
    for stem in ("table_1", "table_2", "summary"):
        assert (results / "tables" / "kmer_seeds" / f"{stem}.tsv").stat().st_size > 0
    for ending in ("svg", "pdf", "png", "tsv"):
        assert (results / "figures" / "kmer_seeds" / f"figure_5.{ending}").stat().st_size > 0
    logs = {path.relative_to(smoke / "logs").with_suffix("") for path in (smoke / "logs").rglob("*.log")}
    marks = {path.relative_to(smoke / "benchmarks").with_suffix("") for path in (smoke / "benchmarks").rglob("*.tsv")}
    assert logs == marks
    assert len(logs) > 15


def test_smoke_run_finds_the_same_hits_everywhere(smoke: Path) -> None:
    """Within a case, every tool, tier, device and number of threads has the same digest."""
    digests: dict[tuple[str, str, str], set[tuple[str, str]]] = defaultdict(set)
    tiers = defaultdict(set)
    for row in records(smoke / "results" / "measurements"):
        if row["item"] in ("whole", "throughput", "scaling", "in_memory", "fixed"):
            digests[row["item"], row["case"], row["parameters"]].add((row["results"], row["digest"]))
            tiers[row["item"]].add(row["tier"])
    assert len(digests) >= 5
    assert all(len(found) == 1 for found in digests.values()), digests
    assert tiers["whole"] >= {"paper", "fast"}


def test_smoke_run_writes_seeds_as_sorted_bed(smoke: Path) -> None:
    """BED6 by coordinates; most of the k-mers cut from simulated reads are found, on both strands."""
    lines = gzip.decompress((smoke / "results" / "seeds" / "smoke.bed.gz").read_bytes()).decode().splitlines()
    fields = [line.split("\t") for line in lines]
    assert all(len(field) == 6 and int(field[2]) - int(field[1]) == 20 for field in fields)
    assert {field[5] for field in fields} == {"+", "-"}
    assert len({field[3] for field in fields}) > 50
    places = [(field[0], int(field[1])) for field in fields]
    assert places == sorted(places)


def test_second_run_does_nothing(smoke: Path) -> None:
    """Nothing is repeated without a reason."""
    done = snakemake("--configfile", SMOKE, directory=smoke)
    assert done.returncode == 0, done.stdout
    assert "Nothing to be done" in done.stdout


def test_snakemake_report_needs_no_cores(smoke: Path) -> None:
    """`snakemake --report FILE` works as it stands, and holds our page."""
    done = snakemake("--report", "report.zip", "--configfile", SMOKE, directory=smoke)
    assert done.returncode == 0, done.stdout
    assert (smoke / "report.zip").stat().st_size > 10_000


def test_weighted_sequences_are_timed(tmp_path: Path) -> None:
    """`snakemake ebwt`, which needs no reference: both tiers order the same conjugates alike."""
    done = snakemake("ebwt", "--configfile", SMOKE, directory=tmp_path)
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "results" / "reference").exists()
    digests = defaultdict(set)
    tiers = set()
    for row in records(tmp_path / "results" / "measurements"):
        digests[row["item"], row["case"]].add((row["results"], row["digest"]))
        tiers.add(row["tier"])
    assert {item for item, _ in digests} == {"table_1", "table_2", "table_3", "transform", "pairs", "files"}
    assert all(len(found) == 1 for found in digests.values())
    assert tiers == {"paper", "fast"}
    # With the tables and figures of its paper, for which no other system is measured.
    results = tmp_path / "results"
    assert {path.parent.name for path in (results / "measurements").rglob("*.tsv")} == {"ebwt"}
    assert (results / "figures" / "ebwt" / "table_3.svg").stat().st_size > 0
    assert [path.name for path in (results / "tables").iterdir()] == ["ebwt"]


def copy_of_checkout(to: Path) -> Path:
    """The Snakefile and what it needs, elsewhere: a run that publishes writes into its own checkout."""
    for folder in ("workflow", "config", "envs", "resources"):
        shutil.copytree(ROOT / folder, to / folder, ignore=shutil.ignore_patterns("__pycache__", "measurements"))
    shutil.copy2(ROOT / "Snakefile", to / "Snakefile")
    return to / "Snakefile"


@pytest.mark.thorough
def test_a_run_is_published_and_then_reported_by_others(smoke: Path, tmp_path: Path) -> None:
    """Every record ends up in one file under the machine's name; a run without that name reads it, and no other."""
    snakefile = copy_of_checkout(tmp_path / "checkout")
    run = shutil.copytree(smoke, tmp_path / "run")
    arguments = ["--configfile", SMOKE, "--snakefile", str(snakefile), "--rerun-triggers", "mtime"]
    done = snakemake("publish", *arguments, "--config", "machine=tested", directory=run)
    assert done.returncode == 0, done.stdout
    assert "time_kmer_seeds" not in done.stdout

    published = snakefile.parent / "resources" / "measurements" / "tested"
    names = {f"{name}.tsv" for name in ("index", *SYSTEMS)} | {"provenance.json"}
    assert {path.name for path in published.iterdir()} == names
    assert sorted(map(str, records(published))) == sorted(map(str, records(run / "results" / "measurements")))
    shared = [row for row in records(published) if row["system"] == "-"]
    assert [row["parameters"] for row in shared if row["case"] == "reference"] == ["reference=simulated"]
    provenance = json.loads((published / "provenance.json").read_text())
    assert provenance["config"]["kmer_seeds"]["count"] == 100
    assert {row["machine"] for row in records(published)} == {provenance["machine"]}

    done = snakemake(*arguments, directory=run)
    assert done.returncode == 0, done.stdout
    page = (run / "results" / "report.html").read_text()
    assert "Reference machine: tested" in page
    assert "tested (reference machine)" in page


def jobs_of(process: subprocess.Popen[bytes], script: str) -> Iterator[psutil.Process]:
    """The running Python processes of a rule's script below a Snakemake process."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            line = child.cmdline()
        except psutil.Error:
            continue
        if len(line) == 2 and line[1].endswith(script):
            yield child


@pytest.mark.thorough
def test_a_killed_job_leaves_nothing_behind_and_is_resumed(tmp_path: Path) -> None:
    """Kill the building of the index in its middle: the run fails, no index is there, the next run makes it."""
    arguments = ("index", "--configfile", SMOKE)
    with subprocess.Popen(
        command(*arguments, directory=tmp_path), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        killed = False
        while process.poll() is None and not killed:
            for job in jobs_of(process, "build_fm_index.py"):
                job.kill()
                killed = True
            time.sleep(0.02)
        assert killed
        assert process.wait(timeout=120) != 0
    assert not (tmp_path / "results" / "index" / "simulated").exists()
    assert (tmp_path / "results" / "reference" / "simulated.fa").exists()

    done = snakemake(*arguments, directory=tmp_path)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "results" / "index" / "simulated.verified").exists()
    assert "simulate_reference" not in done.stdout


# ------------------------------------------------------------------------------------------------- mistakes

MISTAKES = {
    "a misspelt key": (
        ["referense=simulated"],
        "The configuration key 'referense' is not known: did you mean 'reference'?",
    ),
    "a misspelt inner key": (
        ["kmer_seeds={cuont: 3}"],
        "The configuration key 'kmer_seeds.cuont' is not known: did you mean 'count'?",
    ),
    "a reference that is not there": (
        ["reference=nowhere/genome.fa"],
        "The reference 'nowhere/genome.fa' (configuration key 'reference') is not a file, a URL, ",
    ),
    "reads that are not there": (
        ["reads={short: {source: nowhere/reads.fq}}"],
        "The read file 'nowhere/reads.fq' (configuration key 'reads.short.source') does not exist",
    ),
    "an unknown data set for scaling": (
        ["kmer_seeds={scaling: {dataset: S99}}"],
        "The configuration key 'kmer_seeds.scaling.dataset' is 'S99'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_configuration_is_one_sentence(mistake: str, tmp_path: Path) -> None:
    """One line names the key and what to do; there is no stack, and nothing is written."""
    settings, sentence = MISTAKES[mistake]
    done = snakemake("-n", "--config", *settings, directory=tmp_path)
    assert done.returncode != 0
    said = [line for line in done.stdout.splitlines() if sentence in line]
    assert len(said) == 1, done.stdout
    assert "Traceback" not in done.stdout
    assert ".smk" not in done.stdout
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("samples: {5: {reads: short, k: 20}}", "'samples' holds a name that YAML reads as a number"),
        (
            "samples:\n  a: {reads: short, k: 20}\n  a: {reads: short, k: 21}",
            "key 'samples.a' stands here and in line 2",
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    """What only a file can hold: a name that is no text, a key that stands twice."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    done = snakemake("-n", "--configfile", str(file), directory=tmp_path / "run")
    assert done.returncode != 0
    assert len([line for line in done.stdout.splitlines() if sentence in line]) == 1, done.stdout
    assert "Traceback" not in done.stdout
    assert ".smk" not in done.stdout


def test_publishing_without_a_name_is_one_sentence(tmp_path: Path) -> None:
    """The target says which key it needs."""
    done = snakemake("-n", "publish", directory=tmp_path)
    assert done.returncode != 0
    assert "configuration key 'machine' is null: name it" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_file_that_is_no_fasta_is_one_sentence_and_leaves_no_index(tmp_path: Path) -> None:
    """The job fails with its sentence on the terminal, and nothing half-written stays."""
    genome = tmp_path / "genome.fa"
    genome.write_text("this is no FASTA\n")
    done = snakemake("index", "--config", f"reference={genome}", directory=tmp_path)
    assert done.returncode != 0
    assert f"Error: {genome}" in done.stdout
    assert "logs/measurements/genome/index.log" in done.stdout
    assert "Traceback" not in done.stdout
    assert list((tmp_path / "results").rglob("*.npy")) == []


# ------------------------------------------------------------------------- what has to agree with each other


def test_the_slurm_profile_names_rules_that_there_are_and_every_timed_one() -> None:
    """A timed job has its node and its CPUs; memory and time stand beside each rule (tests/unit/test_resources.py)."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    bodies = dict(re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", rules, re.MULTILINE | re.DOTALL))
    timed = {name for name, body in bodies.items() if "bench=1" in body}
    assert timed >= {"build_fm_index", "time_kmer_seeds", "time_gpu_limits", "time_bowtie"}
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    entries = [entry.split(":", 1) for entry in profile["set-resources"]]
    assert {name for name, resource in entries if "--exclusive" in resource} == timed
    # What a rule says is what the machine has that submits, and tells nothing of the nodes.
    with_threads = {name for name, body in bodies.items() if "    threads:" in body}
    with_threads |= {
        name for base, name in re.findall(r"^use rule (\w+) as (\w+)", rules, re.MULTILINE) if base in with_threads
    }
    assert {entry.split("=")[0] for entry in profile["set-threads"]} == with_threads > timed
    assert {name for name, _ in entries} <= set(bodies)
    # Of one run, every timed job runs on the same kind of machine.
    for name in timed:
        assert "gpu=GPUS_A_JOB" in bodies[name], name


def test_environments_have_the_pins_of_the_requirements() -> None:
    """Each package of requirements.txt that jobs use is in every environment, in the same version."""
    pins = {}
    for name in ("requirements.txt", "requirements-gpu.txt"):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith("#"):
                package, version = line.split("==")
                pins[package.split("[")[0].lower()] = version
    for name in ("cpu", "gpu", "peers"):
        dependencies = yaml.safe_load((ROOT / "envs" / f"{name}.yaml").read_text())["dependencies"]
        plain = [line.replace(" =", "==") for line in dependencies if isinstance(line, str) and "=" in line]
        pip = [line for entry in dependencies if isinstance(entry, dict) for line in entry["pip"]]
        found = {}
        for line in plain + pip:
            package, version = line.split("==")
            found[package.split("[")[0].removesuffix("-base").removeprefix("python-")] = version
        missing = {"isal", "numba", "llvmlite", "numpy", "pandas", "matplotlib"} - set(found)
        assert not missing, name
        assert {p: v for p, v in found.items() if p in pins} == {p: v for p, v in pins.items() if p in found}
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "make_envs.py"), "--check"], check=False)
    assert done.returncode == 0
