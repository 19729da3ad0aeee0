"""The script that publishes the records of a run, on records that it made up."""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import warpseed
from fake_cards import UUIDS, install_nvidia_smi
from warpseed.measure.records import read_records, write_records

SCRIPTS = Path(warpseed.__file__).resolve().parents[1]
SHARED: dict[str, Any] = {"system": "-", "tool": "warpseed", "stage": "total", "value": 1.5}


def test_what_making_the_genome_took_is_published_and_which_card_each_job_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_nvidia_smi(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    run = tmp_path / "run" / "human_like"
    own = {"item": "simulation", "case": "human_like", "parameters": "bases=20000", "threads": 2}
    write_records(run / "simulation.tsv", [SHARED | own])
    write_records(run / "index.tsv", [SHARED | {"item": "index", "case": "build", "device": "gpu"}])
    write_records(run / "kmer_seeds" / "S20.tsv", [SHARED | {"system": "kmer_seeds", "item": "whole", "case": "S20"}])

    records = [str(run / name) for name in ("simulation.tsv", "index.tsv", "kmer_seeds/S20.tsv")]
    published = {"index": records[:2], "kmer_seeds": records[2:]}
    folder = tmp_path / "published"
    job = SimpleNamespace(
        input=SimpleNamespace(records=records),
        params=SimpleNamespace(published=published, config={}),
        output=SimpleNamespace(
            records=[str(folder / f"{name}.tsv") for name in published], provenance=str(folder / "provenance.json")
        ),
    )
    runpy.run_path(str(SCRIPTS / "publish_measurements.py"))["main"](job)

    simulation, build = read_records(folder / "index.tsv").to_dict("records")
    assert (simulation["item"], simulation["value"], simulation["threads"]) == ("simulation", 1.5, 2)
    assert simulation["parameters"] == "bases=20000" and build["item"] == "index"
    assert read_records(folder / "kmer_seeds.tsv")["item"].tolist() == ["whole"]
    assert json.loads((folder / "provenance.json").read_text())["cards"] == {UUIDS[1]: ["index.tsv"]}
