"""Tables, figures and the page, from synthetic records."""

import base64
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from warpseed.errors import InputError
from warpseed.measure import index_rows, write_records
from warpseed.report import figures, tables
from warpseed.report.tables import DATA_SETS

PUBLISHED = Path(__file__).parents[2] / "resources" / "published" / "kmer_seeds.tsv"
KMERS = 20_000
# Seconds for the CPU on one thread, paper tier; the other methods are fractions of it.
ONE_CORE = {"S11": 0.13, "S15": 0.044, "S20": 0.42, "S24": 0.37, "S30": 2.9}
METHODS = {
    ("warpseed", "paper", "cpu", 1): 1.0,
    ("warpseed", "paper", "cpu", 2): 0.5,
    ("warpseed", "fast", "cpu", 1): 0.05,
    ("warpseed", "fast", "cpu", 2): 0.025,
    ("bowtie", "-", "cpu", 1): 0.4,
    ("bowtie", "-", "cpu", 2): 0.2,
}
GPU_METHODS = {("warpseed", "paper", "gpu", 1): 0.1, ("warpseed", "fast", "gpu", 1): 0.004}
SHARES = {"read": 0.1, "pack": 0.05, "search": 0.5, "locate": 0.25, "sort": 0.1, "write": 0.2}
GPU_SHARES = {
    "read": 0.3,
    "host_to_device": 0.1,
    "kernel": 0.25,
    "device_to_host": 0.2,
    "lookup": 0.15,
    "write": 0.4,
}


def fields(item, case, method, **more):
    tool, tier, device, threads = method
    return {
        "system": "kmer_seeds",
        "item": item,
        "tool": tool,
        "tier": tier,
        "device": device,
        "threads": threads,
        "case": case,
        "queries": KMERS,
        "results": 31_000,
        "digest": "d" * 64,
        "machine": "test-cpu",
        **more,
    }


def table_rows(item, methods, repeats=3, **more):
    rows = []
    for data_set in DATA_SETS:
        for method, factor in methods.items():
            common = fields(item, data_set.case, method, **more)
            total = ONE_CORE[data_set.name] * factor
            shares = {} if method[0] == "bowtie" else GPU_SHARES if method[2] == "gpu" else SHARES
            for repeat in range(repeats):
                seconds = total * (1 + 0.05 * (repeat - 1))
                rows.append({**common, "stage": "total", "repeat": repeat, "value": seconds})
                rows += [
                    {**common, "stage": stage, "repeat": repeat, "value": seconds * share}
                    for stage, share in shares.items()
                ]
                rows.append({**common, "stage": "process", "repeat": repeat, "value": seconds + 0.02})
    return rows


def other_rows(methods, **more):
    rows = []
    for mismatches in (0, 1, 2):
        for k in (12, 16, 20, 24, 30):
            for method, factor in methods.items():
                seconds = factor * 0.002 * (1 + abs(k - 18)) * 9**mismatches
                case = f"k={k}; mismatches={mismatches}"
                rows.append(
                    {**fields("Throughput", case, method, **more), "stage": "total", "value": seconds}
                )
    for threads in (1, 2, 4, 8):
        for tier, part in (("paper", 0.02), ("fast", 0.12)):
            seconds = part + (1 - part) / threads
            for case in ("S20; mismatches=1", "S30; mismatches=2"):
                scaled = fields("Scaling", case, ("warpseed", tier, "cpu", threads), **more)
                rows.append({**scaled, "stage": "total", "value": seconds})
    report = [
        {"part": "bwt", "bytes": 1_250_000, "formula_bytes": 1_300_000},
        {"part": "rbwt", "bytes": 1_250_000, "formula_bytes": 1_300_000},
        {"part": "suffix_array", "bytes": 8_000_000, "formula_bytes": None},
        {"part": "sampled_suffix_array", "bytes": 250_000, "formula_bytes": 250_000},
        {"part": "bucket_table", "bytes": 4_194_308, "formula_bytes": None},
        {"part": "text", "bytes": 500_000},
    ]
    return rows + index_rows(
        report, bases=2_000_000, system="kmer_seeds", tool="warpseed", machine="test-cpu"
    )


def local_rows(gpu=False, peers=True):
    methods = {m: f for m, f in METHODS.items() if peers or m[0] == "warpseed"}
    methods |= GPU_METHODS if gpu else {}
    rows = table_rows("Table I", methods) + other_rows(methods)
    rows += table_rows("Table II", {m: f * 0.6 for m, f in methods.items() if m[0] == "warpseed"})
    if gpu:
        rows += table_rows("Figure 5", {("warpseed", "paper", "gpu", 1): 0.2})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


@pytest.fixture
def measure(tmp_path):
    def build(local, reference=None):
        write_records(tmp_path / "here.tsv", local)
        references = []
        if reference is not None:
            references = [tmp_path / "measurements" / "nvidia-test" / "kmer_seeds.tsv"]
            write_records(references[0], reference)
        return tables.load_measurements([tmp_path / "here.tsv"], references, PUBLISHED)

    return build
