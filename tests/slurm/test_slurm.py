"""The workflow on a real Slurm: `make test-slurm`. What a GPU would compute, the CPU computes in a job that has one.

A card is a character device that Slurm gives away; a stand-in of nvidia-smi lists it where Slurm has made it visible,
and nowhere else. So a job that did not ask for a card fails as it would on a cluster.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml

from slurm import one_node

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.environ.get("WARPSEED_SLURM") != "1", reason="`make test-slurm` starts a Slurm of its own"),
]

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {"all", "seeds"}
Jobs: TypeAlias = dict[str, list[dict[str, str]]]
Finished: TypeAlias = tuple[Path, str, Jobs]
CONFIGURATION = {
    "kmer_seeds": {
        "reads": "r100",
        "datasets": {"S11": None, "S15": None, "S24": None, "S30": None},
        "throughput": {"k": []},
        "scaling": {"dataset": None},
        "gpu_limits": [],
    },
    "one_error": {"datasets": {"mixed": None}},
    "mems": {"datasets": {"pacbio": None, "pacbio_20": {"reads": "long"}, "pacbio_index": None}},
    "tree_bitmap": {"datasets": dict.fromkeys(("edits", "structures", "dynamic", "streams", "each_k", "fixed"))},
    "ebwt": {"collections": {"of_each_other": None}},
    "samples": {
        "smoke": {"chunks": 2},
        "drawn": {"reads": "r100"},
        "placed": {"chunks": 1},
        "matched": {"chunks": 1},
        "counted": {"reads": "r100"},
    },
}
"""Laid over the smoke configuration: each rule once, and one sample that is found by two jobs. Every job starts two
Snakemakes of its own, and what a data set's jobs ask for is tests/unit/test_resources.py's."""
SECONDS = 1_800
"""A run takes two minutes on two idle cores. A job that fits no node would wait for ever."""
IMPATIENT = """
import sys
from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor
Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
main(sys.argv[1:])
"""
"""Snakemake, with a Slurm plugin that asks every second what became of its jobs, and does not wait longer each time."""
JOB = 'job = globals()["snakemake"]'
GPU_STAND_IN = """
class _OnTheCpu:
    def __init__(self, job):
        self._job, self.params = job, job.params
        if "gpu" in (self.params.get("devices") or [self.params.get("device")]):
            if not __import__("os").environ.get("CUDA_VISIBLE_DEVICES"):
                raise SystemExit("The stand-in of a GPU: Slurm gave this job no card.")
            self.params.devices, self.params.device = ["cpu"], "cpu"

    def __getattr__(self, name):
        return getattr(self._job, name)

"""
"""Put before the last lines of a script: a job whose work on a GPU is done by the CPU, where Slurm gave it a card."""
NVIDIA_SMI = """#!/bin/sh
[ -n "$CUDA_VISIBLE_DEVICES" ] || { echo "No devices were found"; exit 6; }
case "$1" in --query-gpu=*) echo "Fake Card, 1.0, 1024, 9.0" ;; *) echo "GPU 0: Fake Card" ;; esac
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running Slurm, and the file of its partitions."""
    reason = one_node.missing()
    if reason:
        pytest.fail(reason, pytrace=False)
    folder = tmp_path_factory.mktemp("slurm")
    partitions = folder / "partitions.yaml"
    limits = {name: {"max_threads": os.cpu_count(), "max_mem_mb": one_node.MEMORY_MB} for name in one_node.PARTITIONS}
    limits["cards"]["max_gpu"] = one_node.CARDS
    partitions.write_text(yaml.safe_dump({"partitions": limits}))
    with one_node.running(folder / "daemons"):
        yield partitions


def run(*arguments: str, directory: Path, checkout: Path = ROOT, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run Snakemake; standard error is in `stdout` too."""
    program = [sys.executable, "-c", IMPATIENT, "--snakefile", str(checkout / "Snakefile"), "--nocolor"]
    return subprocess.run(
        [*program, "--directory", str(directory), *arguments],
        cwd=checkout,
        env=os.environ | {"PATH": f"{path}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def files_of(folder: Path) -> list[str]:
    """The smoke configuration, and CONFIGURATION, which lies in a run's folder, over it."""
    return ["--configfile", str(ROOT / "config" / "smoke.yaml"), str(folder / "slurm.yaml")]


def on_slurm(cluster: Path) -> list[str]:
    """The Slurm profile, with what this cluster has: its partitions, no accounting, fewer CPUs than 16."""
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    threads = [f"{entry.split('=')[0]}={os.cpu_count()}" for entry in profile["set-threads"]]
    return [
        *("--workflow-profile", str(ROOT / "profiles" / "slurm"), "--slurm-partition-config", str(cluster)),
        *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "1"),
        *("--set-threads", *threads),
    ]


def jobs_of(output: str) -> Jobs:
    """What Slurm knows of every job that Snakemake submitted, by rule."""
    jobs: Jobs = {}
    for number in re.findall(r"has been submitted with SLURM jobid (\d+)", output):
        told = subprocess.run(["scontrol", "show", "job", number], capture_output=True, text=True, check=True).stdout
        job = dict(re.findall(r"(\w+)=(\S*)", told))
        rule = re.sub(r"^rule_|_wildcards_.*", "", job["Comment"])
        jobs.setdefault(rule, []).append(job)
    return jobs


def number_of_jobs(output: str) -> int:
    """Jobs of a run as Snakemake counts them, without targets, which have nothing to do."""
    counted = dict(re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE))
    return sum(int(count) for name, count in counted.items() if name not in {*TARGETS, "total"})


def records(folder: Path) -> list[dict[str, str]]:
    """Every record below a folder."""
    rows: list[dict[str, str]] = []
    for path in sorted(folder.rglob("*.tsv")):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("# ")]
        rows += csv.DictReader(lines, delimiter="\t")
    return rows


def seeds(directory: Path) -> dict[str, bytes]:
    """The files of the samples' seeds."""
    return {path.name: path.read_bytes() for path in (directory / "results" / "seeds").iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def finished(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The folder of one whole run, what Snakemake said of it, and what Slurm knows of its jobs."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "slurm.yaml").write_text(yaml.safe_dump(CONFIGURATION))
    done = run(*on_slurm(cluster), *files_of(folder), directory=folder)
    assert done.returncode == 0, done.stdout
    return folder, done.stdout, jobs_of(done.stdout)


def test_every_job_is_slurms_and_asks_for_what_it_needs(finished: Finished) -> None:
    """Memory and time of its own and, if it is timed, the whole node."""
    _, output, jobs = finished
    assert sum(map(len, jobs.values())) == number_of_jobs(output) > 10
    for rule, of_rule in jobs.items():
        timed = rule == "build_fm_index" or rule.startswith("time_")
        for job in of_rule:
            assert job["JobState"] == "COMPLETED", job
            assert job["Partition"] == "short", job
            assert int(re.findall(r"mem=(\d+)M", job["TRES"])[0]) >= 1_500, job
            assert job["TimeLimit"] not in ("UNLIMITED", "02:00:00"), job
            # Slurm writes NO where a job shares its node with no other one.
            assert job["OverSubscribe"] == ("NO" if timed else "OK"), job


def test_one_machine_measured(finished: Finished) -> None:
    folder, _, _ = finished
    provenance = json.loads((folder / "results" / "provenance.json").read_text())
    assert {row["machine"] for row in records(folder / "results" / "measurements")} == {provenance["machine"]}


def test_seeds_are_those_of_a_local_run(finished: Finished, tmp_path: Path) -> None:
    """Found by one job there."""
    folder, _, _ = finished
    done = run("seeds", *files_of(folder), "--config", "samples={smoke: {chunks: 1}}", directory=tmp_path)
    assert done.returncode == 0, done.stdout
    assert seeds(folder) == seeds(tmp_path)
    assert len(seeds(folder)) >= 2
    assert all(seeds(folder).values())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout whose scripts do a GPU's work on the CPU, and a folder `bin` with an nvidia-smi."""
    folder = tmp_path / "checkout"
    for name in ("workflow", "config", "envs", "resources"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "Snakefile", folder / "Snakefile")
    mark = 'if "snakemake" in globals():'
    for script in (folder / "workflow" / "scripts").glob("*.py"):
        text = script.read_text()
        assert text.count(mark) == text.count(JOB) == 1, script
        script.write_text(
            text.replace(mark, GPU_STAND_IN + mark).replace(JOB, 'job = _OnTheCpu(globals()["snakemake"])')
        )
    (folder / "bin").mkdir()
    (folder / "bin" / "nvidia-smi").write_text(NVIDIA_SMI)
    (folder / "bin" / "nvidia-smi").chmod(0o755)
    return folder


def test_a_job_that_uses_a_gpu_asks_for_one(cluster: Path, finished: Finished, checkout: Path, tmp_path: Path) -> None:
    """Without `gpu=1` it fails. With it, the run has the GPU's name, though other jobs and the login node saw none."""
    directory = tmp_path / "run"
    shutil.copytree(finished[0], directory, ignore=shutil.ignore_patterns(".snakemake"))
    arguments = [*on_slurm(cluster), *files_of(directory), "--rerun-triggers", "mtime"]
    arguments += ["--config", "measure={devices: [cpu, gpu], threads: [1], repeats: 1}"]
    place = {"directory": directory, "checkout": checkout, "path": f"{checkout / 'bin'}:"}
    measured = "results/measurements/simulated/kmer_seeds/S20.tsv"
    # A missing record alone is no reason to measure: the page that shows it is there.
    for path in (measured, "results/report.html", *(f"results/seeds/{name}" for name in seeds(directory))):
        (directory / path).unlink()
    without = ["--set-resources", "time_kmer_seeds:gpu=0", "--retries", "0"]
    done = run(measured, *arguments, *without, **place)
    assert done.returncode != 0, done.stdout
    (job,) = jobs_of(done.stdout)["time_kmer_seeds"]
    assert job["JobState"] == "FAILED", job
    assert "Slurm gave this job no card" in Path(job["StdOut"]).read_text()

    done = run(*arguments, **place)
    assert done.returncode == 0, done.stdout
    jobs = jobs_of(done.stdout)
    assert "build_fm_index" not in jobs
    for rule in ("time_kmer_seeds", "find_seeds", "write_report"):
        for job in jobs.pop(rule):
            asks = rule != "write_report"
            assert ("gpu" in job.get("TresPerJob", "")) == asks, job
            assert job["Partition"] == ("cards" if asks else "short"), job
    provenance = json.loads((directory / "results" / "provenance.json").read_text())
    assert (provenance["machine"], provenance["gpu"], provenance["gpu_count"]) == ("fake-card", "Fake Card", 1)
    assert "fake-card (here)" in (directory / "results" / "report.html").read_text()
    assert seeds(directory) == seeds(finished[0])
