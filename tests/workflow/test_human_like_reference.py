"""A genome that is made to be like a human one, for whoever names it, and what making it took, among the records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from warpseed.measure.records import read_records
from workflow_runs import snakemake

pytestmark = pytest.mark.workflow
FASTA = "results/reference/human_like.fa"
RECORDS = "results/measurements/human_like/simulation.tsv"


def test_it_is_made_for_whoever_names_it(tmp_path: Path) -> None:
    """As the configuration says, on all cores; families that it names take the place of those by default."""
    features = "human_like_reference={size: 20000, contigs: 2, families: {mine: {share: 0.1, length: 50, shortest: 9}}}"
    done = snakemake("--cores", "2", "--config", "reference=human_like", features, "--", FASTA, directory=tmp_path)
    assert done.returncode == 0, done.stdout
    lines = (tmp_path / FASTA).read_text().splitlines()
    assert [line for line in lines if line.startswith(">")] == [">sim1", ">sim2"]
    assert sum(len(line) for line in lines) == 20_000 + 10
    (record,) = read_records(tmp_path / RECORDS).to_dict("records")
    told = {key: record[key] for key in ("system", "item", "case", "parameters", "stage", "metric", "threads")}
    assert told == {
        "system": "-", "item": "simulation", "case": "human_like", "parameters": "bases=20000", "stage": "total",
        "metric": "time", "threads": 2,
    }  # fmt: skip
    assert 0 < record["value"] < 60
    wrong = snakemake("-n", "--config", features.replace("shortest", "shrotest"), directory=tmp_path)
    assert "The configuration key 'human_like_reference.families.mine.shrotest' is not known" in wrong.stdout


@pytest.mark.parametrize(
    ("reference", "is_timed"), [("human_like", True), ("simulated", False), ("./human_like.fa", False)]
)
def test_its_time_is_reported_and_published_where_it_is_the_reference(
    reference: str, is_timed: bool, tmp_path: Path
) -> None:
    """And of no other: not of a user's own file of that name, which nobody makes."""
    own = tmp_path / "human_like.fa"
    own.write_text(">a\n" + 300 * "ACGTTGCATT" + "\n")
    arguments = ["--config", f"reference={str(own) if reference.startswith('.') else reference}", "machine=tested"]
    done = snakemake("publish", "results/report.html", "-n", "--quiet", "host", *arguments, directory=tmp_path)
    assert done.returncode == 0, done.stdout
    for rule in ("write_report", "draw_kmer_seeds", "publish_measurements"):
        found = re.search(rf"^(?:local)?rule {rule}:\n\s+input: (.*)$", done.stdout, re.MULTILINE)
        assert found, done.stdout
        assert (RECORDS in found.group(1)) == is_timed
    assert ("rule simulate_human_like" in done.stdout) == is_timed
