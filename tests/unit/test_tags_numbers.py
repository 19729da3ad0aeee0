"""What README says of k-mers with tags and without is what their records say."""

from __future__ import annotations

import re
from pathlib import Path

from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("intel-xeon-tags", "intel-xeon-no-tags", "nvidia-h200-host-tags", "nvidia-h200-host-no-tags")


def test_k_mers_with_tags_and_without_are_the_records() -> None:
    """README's table, whose hits are equal."""
    records = [read_records(ROOT / "resources" / "measurements" / name / "kmer_seeds.tsv") for name in FOLDERS]
    rows = rows_of((ROOT / "README.md").read_text(encoding="utf-8"), "| k-mers | two-core Xeon, index with tags |")
    assert len(rows) == 3
    for name, *cells in rows:
        found = re.fullmatch(r"k=(\d+), D=(\d)", name)
        assert found
        own = [each[each["parameters"] == f"k={found[1]}; mismatches={found[2]}"] for each in records]
        assert len({digest for each in own for digest in each["digest"].dropna()}) == 1
        totals = [each[(each["stage"] == "total") & (each["metric"] == "time")] for each in own]
        assert cells == [f"{1e6 * (each['value'] / each['queries']).median():.2f}" for each in totals]
