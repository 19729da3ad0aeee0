"""The machine of a run, as its records tell it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_cards import UUIDS, install_nvidia_smi
from warpseed.compute.machine import name_of
from warpseed.errors import InputError
from warpseed.measure.machines import describe_run, name_machines, one_machine
from warpseed.measure.provenance import machine_description
from warpseed.measure.records import FORMAT_LINE, MACHINE_MARK, read_records, write_records

XEON, EPYC = "Intel(R) Xeon(R) Platinum 8480C", "AMD EPYC 9654 96-Core Processor"
H200 = {"gpu": "NVIDIA H200", "gpu_count": 1, "gpu_memory_bytes": 150 << 30, "driver": "580.1"}
ROW = {"system": "kmer_seeds", "item": "whole", "tool": "warpseed", "case": "S20", "stage": "total", "value": 1.0}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A function that writes the records of one job as it would on a machine of this kind, and returns their path.

    Rows with `gpus` were measured on so many.
    """

    def write(name: str, cpu: str = XEON, *, gpu: dict[str, Any] | None = None, gpus: int = 0, **more: Any) -> Path:
        seen = {"gpu": None, "gpu_count": 0, "gpu_memory_bytes": None, "driver": None, **(gpu or {})}
        description = {**machine_description(), "machine": name_of(cpu, seen["gpu"]), "cpu": cpu, **seen, **more}
        on_gpus = [{**ROW, "device": "gpu", "gpus": count} for count in range(1, gpus + 1)]
        with monkeypatch.context() as patch:
            patch.setattr("warpseed.measure.provenance.machine_description", lambda: description)
            write_records(tmp_path / f"{name}.tsv", [ROW, *on_gpus])
        return tmp_path / f"{name}.tsv"

    return write


def test_a_job_that_saw_no_gpu_has_the_name_of_the_others(job: Callable[..., Path]) -> None:
    """Slurm hides the GPU from a job that asked for none, on the same node."""
    paths = [job("index", cores=4), job("S20", gpu=H200, cores=16), job("bowtie")]
    assert [read_records(path)["machine"][0] for path in paths] == [
        "intel-xeon-platinum-8480c",
        "nvidia-h200",
        "intel-xeon-platinum-8480c",
    ]
    assert one_machine(paths) == "nvidia-h200"
    assert [list(names.values()) for names in name_machines(paths).values()] == [["nvidia-h200"]] * 3
    run = describe_run(paths)
    assert {key: run[key] for key in H200} == H200
    assert (run["machine"], run["cpu"], run["cores"]) == ("nvidia-h200", XEON, max(16, machine_description()["cores"]))
    assert set(run) == set(machine_description()) | {"cards"}


def test_what_one_job_knows_is_taken_from_it_and_what_differs_stands_side_by_side(job: Callable[..., Path]) -> None:
    one = job("a", commit="abc", peers={"bowtie": None, "bwa": None}, versions={"numba": "1", "numpy": "2"})
    other = job("b", commit="def", peers={"bowtie": "1.3.1", "bwa": None}, versions={"numba": "1", "numpy": "3"})
    run = describe_run([one, other])
    assert run["commit"] == "abc, def"
    assert run["peers"] == {"bowtie": "1.3.1", "bwa": None}
    assert run["versions"] == {"numba": "1", "numpy": "2, 3"}


def test_two_kinds_of_machine_are_told_apart(job: Callable[..., Path]) -> None:
    """By their names, or where these are equal by their CPUs; what is refused names every file."""
    paths = [job("index"), job("S20", EPYC, gpu=H200)]
    with pytest.raises(InputError, match="come from 2 machines .'intel-.*': .*index.tsv; 'nvidia-h200': .*S20.tsv.: k"):
        one_machine(paths)
    assert describe_run(paths)["machine"] == "intel-xeon-platinum-8480c, nvidia-h200"
    paths[0] = job("index", gpu=H200)
    with pytest.raises(InputError, match="'nvidia-h200-amd-epyc-9654': .*S20.tsv; 'nvidia-h200-intel-xeon"):
        one_machine(paths)


def test_two_gpus_on_one_cpu_name_no_job_that_saw_none(job: Callable[..., Path]) -> None:
    paths = [job("a", gpu=H200), job("b", gpu=H200 | {"gpu": "NVIDIA L4"}), job("c")]
    names = [next(iter(names.values())) for names in name_machines(paths).values()]
    assert names == ["nvidia-h200", "nvidia-l4", "intel-xeon-platinum-8480c"]


def test_records_without_a_machine_are_refused(tmp_path: Path, job: Callable[..., Path]) -> None:
    """Those of an older version, and those that somebody cut."""
    path = job("a")
    lines = path.read_text().splitlines()
    assert lines[0] == FORMAT_LINE
    assert json.loads(lines[1].removeprefix(MACHINE_MARK))["cpu"] == XEON
    path.write_text("\n".join([lines[0], *lines[2:], ""]))
    assert len(read_records(path)) == 1
    for refuses in (one_machine, describe_run, name_machines):
        with pytest.raises(InputError, match="a.tsv does not say which machine measured it"):
            refuses([path])
    path.write_text("\n".join([lines[0], lines[1][:-9], *lines[2:], ""]))
    with pytest.raises(InputError, match="a.tsv is no readable record table"):
        one_machine([path])
    with pytest.raises(InputError, match="no records to publish"):
        one_machine([])


def test_a_run_tells_which_jobs_worked_on_each_card(
    job: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is of one machine, whatever cards its jobs had."""
    install_nvidia_smi(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "kmer_seeds").mkdir()
    paths = [job("kmer_seeds/bowtie", gpu=H200)]
    for name, visible, gpus in (("kmer_seeds/S20", "2", 1), ("kmer_seeds/S11", "1,2", 2), ("index", "1,2", 1)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        paths.append(job(name, gpu=H200, gpus=gpus))
    assert described(paths[2])["cards"] == UUIDS[1:]
    assert one_machine(paths) == "nvidia-h200"
    assert describe_run(paths)["cards"] == {
        UUIDS[1]: ["index.tsv", "kmer_seeds/S11.tsv"],
        UUIDS[2]: ["kmer_seeds/S11.tsv", "kmer_seeds/S20.tsv"],
    }
    assert describe_run(paths[:1])["cards"] == {}


def test_records_of_a_version_that_told_no_cards_are_read(job: Callable[..., Path]) -> None:
    path = job("old", gpu=H200, gpus=1)
    told = described(path)
    del told["cards"]
    first, _, *rest = path.read_text().splitlines()
    path.write_text("\n".join([first, MACHINE_MARK + json.dumps(told), *rest, ""]))
    assert one_machine([path, job("new")]) == "nvidia-h200"
    run = describe_run([path, job("new")])
    assert run["cards"] == {"unknown": ["old.tsv"]} and run["gpu"] == "NVIDIA H200"


def described(path: Path) -> dict[str, Any]:
    """What a file of records says of its machine."""
    told: dict[str, Any] = json.loads(path.read_text().splitlines()[1].removeprefix(MACHINE_MARK))
    return told
