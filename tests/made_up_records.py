"""Records that no machine made, for tests of what is shown of them."""

from pathlib import Path

from warpseed.measure.records import index_rows, write_records
from warpseed.report.measurements import load_measurements

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "resources" / "published" / "kmer_seeds.tsv"
PAPER = ROOT / "resources" / "papers" / "kmer_seeds.yaml"
KMERS = 20_000
PARAMETERS = {
    "S11": "k=11; mismatches=0",
    "S15": "k=15; mismatches=0",
    "S20": "k=20; mismatches=1",
    "S24": "k=24; mismatches=1",
    "S30": "k=30; mismatches=2",
}
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
SHARES = {"read": 0.1, "pack": 0.05, "search": 0.5, "locate": 0.25, "sort": 0.1}
GPU_SHARES = {
    "read": 0.3,
    "host_to_device": 0.1,
    "kernel": 0.25,
    "device_to_host": 0.2,
    "lookup": 0.15,
}


def fields(item, case, method, **more):
    """A record without stage and value."""
    tool, tier, device, threads = method
    return {
        "system": "kmer_seeds",
        "item": item,
        "tool": tool,
        "tier": tier,
        "device": device,
        "threads": threads,
        "case": case,
        "parameters": PARAMETERS.get(case, ""),
        "queries": KMERS,
        "results": 31_000,
        "digest": "d" * 64,
        "machine": "test-cpu",
        **more,
    }


def table_rows(item, methods, repeats=3, **more):
    """An item of every data set: total, stages, process."""
    rows = []
    for case, one_core in ONE_CORE.items():
        for method, factor in methods.items():
            common = fields(item, case, method, **more)
            total = one_core * factor
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
    """Throughput, scaling and the index."""
    rows = []
    for mismatches in (0, 1, 2):
        for k in (12, 16, 20, 24, 30):
            for method, factor in methods.items():
                seconds = factor * 0.002 * (1 + abs(k - 18)) * 9**mismatches
                parameters = f"k={k}; mismatches={mismatches}"
                common = fields("throughput", f"k={k}", method, parameters=parameters, **more)
                rows.append({**common, "stage": "total", "value": seconds})
    for threads in (1, 2, 4, 8):
        for tier, part in (("paper", 0.02), ("fast", 0.12)):
            seconds = part + (1 - part) / threads
            for case in ("S20", "S30"):
                scaled = fields("scaling", case, ("warpseed", tier, "cpu", threads), **more)
                rows.append({**scaled, "stage": "total", "value": seconds})
    report = [
        {"part": "bwt", "bytes": 1_250_000, "formula_bytes": 1_300_000},
        {"part": "rbwt", "bytes": 1_250_000, "formula_bytes": 1_300_000},
        {"part": "suffix_array", "bytes": 8_000_000, "formula_bytes": None},
        {"part": "sampled_suffix_array", "bytes": 250_000, "formula_bytes": 250_000},
        {"part": "bucket_table", "bytes": 4_194_308, "formula_bytes": None},
        {"part": "text", "bytes": 500_000},
    ]
    return rows + index_rows(report, bases=2_000_000, reference="made_up", tool="warpseed", machine="test-cpu")


def limit_rows():
    """Two cases beside the GPU's limits, one of them in both tiers, and the rate of one array."""
    gpu = {"system": "kmer_seeds", "item": "limits", "tool": "warpseed", "device": "gpu", "machine": "test-cpu"}
    gpu |= {"stage": "kernel"}
    array = {"case": "random sectors of the table", "parameters": "array=table; bytes=17179869188"}
    rows = [{**gpu, **array, "metric": "rate", "value": 38.1e9, "unit": "1/s"}]
    for k, tiers in ((20, ("paper", "fast")), (30, ("fast",))):
        case = {"case": f"k={k}, D=0", "parameters": f"k={k}; mismatches=0", "queries": 1_000_000}
        for tier in tiers:
            common = {**gpu, **case, "tier": tier}
            seconds = 0.00482 if tier == "fast" else 0.25
            rows += [{**common, "repeat": r, "value": seconds * (0.9 + 0.1 * r)} for r in range(3)]
            rows.append({**common, "metric": "throughput", "value": 1e6 / seconds, "unit": "k-mers/s"})
            if tier == "fast":
                rows.append({**common, "metric": "floor", "value": 0.00241, "unit": "s"})
                rows.append({**common, "metric": "share", "value": 0.5, "unit": "1"})
    return rows


def local_rows(gpu=False, peers=True):
    """All that a run of kmer_seeds measures."""
    methods = {m: f for m, f in METHODS.items() if peers or m[0] == "warpseed"}
    methods |= GPU_METHODS if gpu else {}
    rows = table_rows("whole", methods) + other_rows(methods)
    rows += table_rows("search", {m: f * 0.6 for m, f in methods.items() if m[0] == "warpseed"})
    rows += table_rows("file_to_file", {m: f * 1.5 for m, f in methods.items() if m[0] == "warpseed"})
    if gpu:
        rows += table_rows("locate_on_cpu", {("warpseed", "paper", "gpu", 1): 0.2}) + limit_rows()
    return rows


def reference_rows():
    """What a machine with a GPU measured earlier, on a million k-mers."""
    return [{**row, "queries": 1_000_000} for row in local_rows(gpu=True)]


def change(rows, where, **new):
    """The rows, with new values in those that have all of `where`."""
    return [{**row, **new} if all(row.get(k) == v for k, v in where.items()) else row for row in rows]


def load(folder, local, reference=None, published=(PUBLISHED,), papers=(PAPER,)):
    """Measurements of records that are written below `folder` first."""
    write_records(folder / "here.tsv", local)
    references = []
    if reference is not None:
        references = [folder / "measurements" / "nvidia-test" / "kmer_seeds.tsv"]
        write_records(references[0], reference)
    return load_measurements([folder / "here.tsv"], references, published, papers)


def nothing():
    """Published values, and no measurement."""
    return load_measurements([], [], [PUBLISHED], [PAPER])
