"""Numbers that stand in the documentation and in the code are the same numbers."""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.compute import vectors
from warpseed.ebwt import solid, timed, weighted
from warpseed.fm_index import build, layout, manifest, npy, store, table
from warpseed.kmer_seeds import cpu as kmer_cpu
from warpseed.kmer_seeds import cpu_fast, cpu_tags, fast, kmers
from warpseed.measure import records
from warpseed.measure.records import read_records
from warpseed.mems import cpu as mem_cpu
from warpseed.mems import cpu_fast as mem_cpu_fast
from warpseed.mems import output as mem_output
from warpseed.one_error import bam_records, paper, peers, reads
from warpseed.one_error import cpu as read_cpu
from warpseed.one_error import cpu_fast as read_cpu_fast
from warpseed.one_error import output as read_output
from warpseed.output import bam, density, rows, sorted_lines, tabix
from warpseed.report import clusters
from warpseed.report import tree_bitmap_values as stream_values
from warpseed.report.measurements import load_measurements
from warpseed.sequences import bgzf, pieces
from warpseed.workflow import configuration

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from warpseed.compute import device_sorting  # noqa: E402
from warpseed.fm_index import tagged  # noqa: E402
from warpseed.kmer_seeds import gpu as kmer_gpu  # noqa: E402
from warpseed.kmer_seeds import gpu_crowded, gpu_inexact, gpu_paper  # noqa: E402
from warpseed.mems import gpu_fast as mem_gpu_fast  # noqa: E402
from warpseed.one_error import gpu_fast  # noqa: E402
from warpseed.output import from_device  # noqa: E402
from warpseed.tree_bitmap import cpu as tree_cpu  # noqa: E402
from warpseed.tree_bitmap import gpu_direct, gpu_flight, gpu_memory, gpu_structures  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
Q, P = (inspect.signature(build.build_index).parameters[name].default for name in ("occ_interval", "sa_interval"))
"""The intervals of an index for which nothing else was asked."""


@cache
def load_schema() -> dict[str, Any]:
    """What the configuration may hold."""
    return configuration.load_schema(ROOT / "workflow" / "schemas")


@cache
def load_configuration() -> dict[str, Any]:
    """The configuration that the project comes with."""
    return yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))


CASES = yaml.safe_load((ROOT / "resources" / "papers" / "kmer_seeds.yaml").read_text(encoding="utf-8"))["cases"]
LENGTHS = [case["k"] for case in CASES.values()]

_LONG_BLOCK = gpu_memory._MOST_FACTOR * 2 * gpu_memory.BLOCK_BASES
"""Bases of a block of a long stream on two GPUs."""


def _blocks_mb(bases: int = gpu_memory.BLOCK_BASES, devices: int = 1) -> int:
    """Megabytes of the blocks on their way through each of some GPUs, with a dictionary that grows."""
    return round(gpu_memory.block_bytes(bases, devices, with_bits=devices > 1) / 1e6)


def _on_host_mb(bases: int) -> int:
    return round((gpu_flight._LANES + gpu_memory.IN_FLIGHT) * bases / 1e6)


def _bytes_a_kmer(counting: bool) -> int:
    """What a long k-mer takes on a GPU, of many."""
    few, many = (gpu_memory.Need.of(31, kmers, counting=counting).bytes() for kmers in (10**8, 2 * 10**8))
    return round((many - few) / 10**8)


NUMBERS: list[tuple[str, str, Any]] = [
    # page, pattern whose groups are the numbers, what they are in the code
    ("docs/formats.md", r"uint64\[n // 32 \+ (\d+)\]", layout.PAD_WORDS),
    ("docs/formats.md", r"uint32\[\(n >> (\d+)\) \+ 2\]", layout.HINT_SHIFT),
    ("docs/formats.md", r"segment that text position x · ([\d,]+) lies in", 1 << layout.HINT_SHIFT),
    ("docs/formats.md", r"version of this format, (\d+);", manifest.FORMAT_VERSION),
    ("docs/formats.md", r"SHA-256 of each (\d+) MiB", npy.PIECE_BYTES >> 20),
    ("docs/formats.md", r"on up to (\d+) threads; an E\. coli index", store.MOST_THREADS),
    ("docs/fm_index.md", r"in pieces of (\d+) MiB", npy.PIECE_BYTES >> 20),
    ("docs/formats.md", r"headers of (\d+) bytes", npy.HEADER_BYTES),
    ("docs/formats.md", r"Up to (\d+) GB, or with `check=True`", store.CHECKED_UP_TO // 10**9),
    ("docs/formats.md", r"mismatches, 0 to (\d)", fast.MAX_MISMATCHES),
    ("docs/formats.md", r"`# warpseed records, format (\d+)`", int(records.FORMAT_LINE.split()[-1])),
    ("docs/formats.md", r"more than ([\d,]+) bases, which .tbi has", tabix.LONGEST_IN_TBI),
    ("docs/formats.md", r"Rows beyond (\d+) MiB wait on the disk", sorted_lines.MEMORY >> 20),
    ("docs/formats.md", r"more than (\d+) MiB of rows writes several runs", sorted_lines.MEMORY >> 20),
    ("docs/formats.md", r"name of more than (\d+) bytes is refused", bam.LONGEST_NAME),
    ("docs/formats.md", r"with `\*` or `=`; more than ([\d,]+) bases", bam.LONGEST_CONTIG),
    ("docs/kmer_seeds.md", r"Columns take (\d+) bytes a hit", rows.HIT_ROW.itemsize),
    ("docs/one_error.md", r"placement: (\d+) bytes a placement in all", read_output.PLACEMENT_ROW.itemsize),
    ("docs/mems.md", r"`occurrences`: (\d+)\s+bytes a match in all", mem_output.MATCH_ROW.itemsize),
    ("docs/mems.md", r"a read of ([\d,]+) bases or more by parts", mem_cpu.LONG_READ),
    ("CHANGELOG.md", r"share a read of ([\d,]+) bases or more\.", mem_cpu.LONG_READ),
    ("docs/mems.md", r"seeds with more than (\d+) rows are left to whole warps", mem_gpu_fast.CROWDED),
    ("docs/mems.md", r"Where K bases have more than (\d+)\s+rows, the seed is taken apart", mem_cpu_fast.CROWDED),
    ("docs/one_error.md", r"with more than ([\d,]+) others has none of them listed", bam_records.MOST_IN_XA),
    ("docs/one_error.md", r"quality\*\* is (\d+) where", bam_records.map_quality(0, -1)),
    ("docs/one_error.md", r"Else it is (\d+) for each edit", bam_records.map_quality(0, 1)),
    ("docs/one_error.md", r"reads of 1 to ([\d,]+) bases\.", reads.MAX_LENGTH),
    ("docs/one_error.md", r"SA interval\), (\d+) bytes", paper.RESULT_BYTES),
    ("docs/one_error.md", r"they\s+have more than (\d+) rows, the places at", read_cpu.CROWDED),
    ("docs/one_error.md", r"still has more than (\d+) rows is narrowed", read_cpu_fast.NARROW_ABOVE),
    ("docs/one_error.md", r"(\d+) orientations of reads at once", read_cpu_fast._OWNERS),
    ("docs/one_error.md", r"hold the (\d+) bases behind the table's K", tagged.TAG_BASES),
    ("docs/one_error.md", r"piece with more than (\d+) rows is looked up", gpu_fast._MANY_ROWS),
    ("docs/one_error.md", r"more than (\d+) rows is left to a second kernel", gpu_fast._CROWDED),
    ("docs/one_error.md", r"whose warps take runs of (\d+)", gpu_fast._RUN),
    ("docs/one_error.md", r"a thread up to (\d+), by a warp up to (\d+)", (device_sorting.FEW, device_sorting.BY_WARP)),
    ("docs/one_error.md", r"a thread a read, launches of ([\d,]+) reads", paper.READS_A_LAUNCH),
    ("docs/one_error.md", r"hits we have within (\d) bases", peers.NEAR),
    ("docs/formats.md", r"gzip in blocks of ([\d,]+) bytes", bgzf.BLOCK_BYTES),
    ("docs/fm_index.md", r"hints, one every ([\d,]+) positions", 1 << layout.HINT_SHIFT),
    ("docs/fm_index.md", r"about 16 m \+ n / ([\d,]+) ", (1 << layout.HINT_SHIFT) // 4),
    ("docs/fm_index.md", r"With q = (\d+) and p = (\d+) that is", (Q, P)),
    ("docs/ebwt.md", r"at least τ, by default ([\d.]+)\. The", solid.THRESHOLD),
    ("docs/ebwt.md", r"more than ([\d,]+), unless another limit", solid.LIMIT),
    ("docs/ebwt.md", r"each with ([\d.]+) to ([\d.]+), and no more", weighted.DRAWN),
    ("docs/ebwt.md", r"and no more than (\d+), so that", timed.Case([]).most_weighted),
    ("docs/ebwt.md", r"Above (\d+)\s+records figures have no names", clusters.MOST_NAMED),
    ("docs/formats.md", r"and add up to 1, ([\d.]+) more or less", weighted.TOLERANCE),
    ("docs/decisions.md", r"where records begin, every (\d+) MiB of text", pieces.PIECE_BYTES >> 20),
    ("docs/kmer_seeds.md", r"pack pieces of (\d+) MiB of text", pieces.PIECE_BYTES >> 20),
    ("docs/kmer_seeds.md", r"make lines of\s+them, 2\^(\d+) at most\s+together", from_device._ROOM.bit_length() - 1),
    (
        "docs/decisions.md",
        r"handed on in it, 2\^(\d+) hits at most at a time, or 2\^(\d+) with their lines",
        (from_device._ROOM.bit_length() - 1, from_device._CHUNK.bit_length() - 1),
    ),
    ("docs/decisions.md", r"Bytes are told apart (\d+) at once", vectors.WIDTH),
    ("docs/kmer_seeds.md", r"the first ([\d,]+) of a bucket are", cpu_tags._MOST_TAGGED),
    ("docs/decisions.md", r"would leave no more than (\d+) % of\s+rows", round(100 * cpu_tags._MOST_LEFT)),
    (
        "docs/fm_index.md",
        r"that is ([\d.]+) bytes a base and the table, ([\d.]+) without tags",
        (round(6 + 2 * (20 / Q + 1 / 4 + 4 / P) + 0.25, 1), round(4 + 2 * (20 / Q + 1 / 4 + 4 / P) + 0.25, 1)),
    ),
    ("docs/fm_index.md", r"takes ([\d.]+)\s+bytes a base", round(2 * (20 / Q + 1 / 4 + 4 / P), 2)),
    (
        "docs/fm_index.md",
        r"rounded down, and (\d+) to (\d+):",
        (table.choose_table_length(1), table.choose_table_length(1 << 32)),
    ),
    ("docs/fm_index.md", r"at most q / 32 = (\d+) of them", Q // 32),
    ("docs/kmer_seeds.md", r"with mean p − 1 = (\d+) steps", P - 1),
    (
        "docs/kmer_seeds.md",
        r"bucket costs ([\d.]+) on the CPU and ([\d.]+) on the GPU",
        (kmer_cpu.COSTS.row, kmer_gpu.COSTS.row),
    ),
    (
        "docs/kmer_seeds.md",
        r"entries lie apart, ([\d.]+) on the CPU and ([\d.]+) on the GPU",
        (kmer_cpu.COSTS.short_look_up, kmer_gpu.COSTS.short_look_up),
    ),
    ("docs/kmer_seeds.md", r"In a bucket with more than (\d+) rows, a binary search", cpu_fast.NARROW_ABOVE),
    ("docs/kmer_seeds.md", r"a block of (\d+) look-ups goes through", cpu_fast._LOOK_UPS),
    (
        "docs/kmer_seeds.md",
        r"blocks of (\d+) threads \(exact\) and (\d+) \(inexact\)",
        (gpu_paper._EXACT_BLOCK, gpu_paper._INEXACT_BLOCK),
    ),
    (
        "docs/tree_bitmap.md",
        r"on\s+their\s+way\s+through\s+it,\s+some (\d+) MB \(where two share a dictionary that grows (\d+), and",
        (_blocks_mb(), _blocks_mb(devices=2)),
    ),
    (
        "docs/tree_bitmap.md",
        r"and up to ([\d,]+) where these take a long array; the\s+host \d+ MB that they copy from and to, or (\d+)\)",
        (_blocks_mb(_LONG_BLOCK, 2), _on_host_mb(_LONG_BLOCK)),
    ),
    ("CHANGELOG.md", r"need up to ([\d,]+) MB beside the table for it", _blocks_mb(_LONG_BLOCK, 2)),
    ("docs/tree_bitmap.md", r"of k-mers so\s+far: (\d+) bytes\s+each", _bytes_a_kmer(False)),
    ("docs/tree_bitmap.md", r"bytes\s+each, (\d+) when they are counted", _bytes_a_kmer(True)),
    ("docs/tree_bitmap.md", r"the\s+host (\d+) MB that they copy", _on_host_mb(gpu_memory.BLOCK_BASES)),
    ("docs/tree_bitmap.md", r"Blocks of (\d+) Mbases,\s+of which the first", gpu_memory.BLOCK_BASES >> 20),
    ("CHANGELOG.md", r"A GPU takes (\d+) MB beside the table", _blocks_mb()),
    ("docs/tree_bitmap.md", r"up to k = (\d+) a bit \(`gpu_direct", gpu_structures._MOST_BITS_K),
    ("docs/decisions.md", r"for every two places at most, up to k = (\d+)", tree_cpu._MOST_COUNTED_K),
    ("docs/decisions.md", r"of k up to 6 \(([\d,]+) words of 4 bytes", gpu_direct.SHARED_CELLS),
    ("docs/kmer_seeds.md", r"in two sizes: k up to 32, and up to (\d+)", kmers.MAX_LENGTH),
    ("docs/kmer_seeds.md", r"and\s+the (\d+) bases behind the first K of its suffix", tagged.TAG_BASES),
    ("docs/kmer_seeds.md", r"A row thus decides K \+ (\d+) bases", tagged.TAG_BASES),
    ("docs/kmer_seeds.md", r"to one of (\d+)\s+lists with a counter each", gpu_inexact.SEGMENTS),
    ("docs/kmer_seeds.md", r"A bucket of more than (\d+) rows a strand is first narrowed", gpu_inexact._CROWDED),
    (
        "docs/kmer_seeds.md",
        r"the rest, a row of the second window's bucket is tried by the (\d+)\s",
        tagged.BASES_BEFORE,
    ),
    ("docs/kmer_seeds.md", r"where there are more than (\d+) rows a string", gpu_crowded._ROWS_A_PROBE),
    ("docs/kmer_seeds.md", r"behind the first (\d+) rows of a string it is set aside", gpu_crowded._SLICE),
    ("docs/kmer_seeds.md", r"More than ([\d,]+) rows in a window behind one of K", gpu_crowded._RUN),
    ("docs/kmer_seeds.md", r"than it allows, or (\d+) for\s+each string where the bases", gpu_crowded._ROWS_A_STRING),
    ("docs/kmer_seeds.md", r"a lane every 32nd, in runs of ([\d,]+) rows", gpu_crowded._LONG_RUN),
    ("docs/kmer_seeds.md", r"rows, or of ([\d,]+) without max_hits", gpu_crowded._RUN),
    (
        "docs/kmer_seeds.md",
        r"in the (\d+) bits above the (\d+) of a packed hit",
        (64 - kmers.QUERY_SHIFT, kmers.QUERY_SHIFT),
    ),
    ("README.md", r"k-mers with up to (\d) mismatches", fast.MAX_MISMATCHES),
    ("README.md", r"in your genome, with up to (\d)\s+mismatches", fast.MAX_MISMATCHES),
    ("README.md", r"its data\s+sets: k-mers of (\d+) to (\d+) bases", (min(LENGTHS), max(LENGTHS))),
    ("README.md", r"along the reference, in about (\d+) bins", density.BINS),
    ("docs/formats.md", r"reference, about (\d+) of equal width", density.BINS),
    ("config/README.md", r"in each of some (\d+) bins", density.BINS),
]


@pytest.mark.parametrize(("page", "pattern", "value"), NUMBERS, ids=lambda part: part if isinstance(part, str) else "")
def test_a_number_in_the_docs_is_the_codes(page: str, pattern: str, value: Any) -> None:
    found = re.findall(pattern, " ".join((ROOT / page).read_text(encoding="utf-8").split()))
    assert len(found) == 1, "the sentence has changed: adapt the pattern, or remove its line"
    numbers = [float(number.replace(",", "")) for number in ([found[0]] if isinstance(found[0], str) else found[0])]
    assert numbers == [float(number) for number in (value if isinstance(value, tuple) else (value,))]


# ---------------------------------------------------------------------------------------------- configuration

PATHS = [
    "samples.*", "$sample_reads", "$sample_mems", "$sample_tree_bitmap", "$sample_ebwt", "seeds", "",
    "simulated_reference", "human_like_reference", "human_like_reference.families.*", "reads.*", "index", "kmer_seeds",
    "kmer_seeds.datasets.*", "kmer_seeds.gpu_limits.*", "one_error", "one_error.datasets.*", "mems",
    "mems.datasets.*", "tree_bitmap", "tree_bitmap.datasets.*", "ebwt", "ebwt.datasets.*", "ebwt.collections.*",
    "measure", "",
]  # fmt: skip
"""Where the keys of each table of config/README.md stand, table by table."""


def tables_of(page: Path) -> list[list[list[str]]]:
    """Each table with a column `values`: its rows, without header and rule."""
    found = re.findall(r"^\| key \| values .*\n\|[-|]+\n((?:\|.*\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [[[cell.strip() for cell in row.strip("|").split(" | ")] for row in table.splitlines()] for table in found]


def resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return resolved(schema, schema["$defs"][node["$ref"].split("/")[-1]]) | node
    return node


def node_of(schema: dict[str, Any], path: str) -> dict[str, Any]:
    node = schema
    for word in filter(None, path.split(".")):
        node = resolved(schema, node)
        if word == "*":
            children = [
                *node.get("patternProperties", {}).values(),
                node.get("additionalProperties"),
                node.get("items"),
            ]
            options = [resolved(schema, child) for child in children if isinstance(child, dict)]
            alternatives = [resolved(schema, each) for child in options for each in child.get("anyOf", [child])]
            node = next(each for each in alternatives if "properties" in each)
        else:
            node = schema["$defs"][word[1:]] if word.startswith("$") else node["properties"][word]
    return resolved(schema, node)


def value_of(config: Any, path: str) -> Any:
    for word in filter(None, path.split(".")):
        config = config.get(word) if isinstance(config, dict) else None
    return config


ROWS = [
    (path, *row[:3]) for path, rows in zip(PATHS, tables_of(ROOT / "config" / "README.md"), strict=True) for row in rows
]


@pytest.mark.parametrize(("where", "name", "values", "default"), ROWS, ids=lambda part: part.strip("`")[:20])
def test_ranges_and_defaults_of_the_configuration(where: str, name: str, values: str, default: str) -> None:
    schema = load_schema()
    path = f"{where}.{name.strip('`')}".lstrip(".")
    node = node_of(schema, path)
    numbers = re.search(r"([\d.,]+) to ([\d.,]+)|≥ (\d+)", values)
    if numbers:
        low, high, least = (float(text.replace(",", "")) if text else None for text in numbers.groups())
        limits = resolved(schema, node.get("items", node))
        limits = next((each for each in limits.get("anyOf", []) if "minimum" in each), limits)
        allowed = [value for value in limits.get("enum", []) if value is not None] or [
            limits.get("minimum"),
            limits.get("maximum"),
        ]
        assert [allowed[0], allowed[-1]] == ([least, None] if high is None else [low, high])
    in_file = value_of(load_configuration(), path.replace("reads.*", "reads.short"))
    expected = node.get("default") if in_file is None else in_file
    if isinstance(expected, dict) and expected:
        assert set(re.findall(r"\w+", default)) == set(expected)
    elif re.fullmatch(r"-?[\d.]+|null|true|false|`\w+`", default):
        assert yaml.safe_load(default.strip("`")) == expected


def test_every_key_of_the_schema_has_a_row() -> None:
    schema = load_schema()
    named = {f"{where}.{name.strip('`')}".lstrip(".") for where, name, *_ in ROWS}
    for where in dict.fromkeys(PATHS):
        for key, node in node_of(schema, where)["properties"].items():
            path = f"{where}.{key}".lstrip(".")
            if where.startswith("$sample") and key in schema["$defs"]["sample"]["properties"]:
                continue  # in the table of all samples
            of_tables = [name for name in named if f"{name}.".startswith(f"{path}.")]  # a section, or a key with dots
            assert of_tables or path == "peers", f"{path}: {node.get('description')}"


@pytest.mark.parametrize(
    ("row", "machine", "case"),
    [(0, "intel-xeon-reads", "r100"), (1, "intel-xeon-reads", "r100_two_edits"),
     (2, "intel-xeon-celegans", "r100"), (3, "intel-xeon-celegans", "r100_two_edits")],
)  # fmt: skip
def test_reads_on_one_core_are_the_records(row: int, machine: str, case: str) -> None:
    """The table of docs/one_error.md: placements, and medians of the seconds of each side."""
    page = (ROOT / "docs" / "one_error.md").read_text(encoding="utf-8")
    cells = page.split("| reads, genome, edits |")[1].splitlines()[2 + row].split("|")[2:-1]
    records = read_records(ROOT / "resources" / "measurements" / machine / "one_error.tsv")
    records = records[(records["case"] == case) & (records["threads"] == 1)]
    total = records[(records["stage"] == "total") & (records["metric"] == "time")]
    medians = total.groupby(["item", "tool"])["value"].median()
    sides = [("edits", "warpseed"), ("edits", "razers3"), ("edits", "yara"), ("in_memory", "warpseed")]
    places = [len(cell.strip().partition(".")[2]) for cell in cells[1:]]
    told = [f"{medians[side]:.{digits}f}" for side, digits in zip(sides, places, strict=True)]
    results = records.loc[records["item"] == "in_memory", "results"].iloc[0]
    assert [cell.strip() for cell in cells] == [f"{results:,}", *told] and min(places) > 0
    if machine == "intel-xeon-reads":
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        assert re.findall(r"E\. coli, ([\d,]+) of 100,000 simulated reads", readme) == [
            f"{records['queries'].iloc[0]:,}"
        ]


@pytest.mark.parametrize(
    ("row", "item", "tool"),
    [(0, "super", "warpseed"), (1, "super", "bwa"), (2, "maximal", "warpseed"), (3, "maximal", "mummer")],
)
def test_matches_on_one_core_are_the_records(row: int, item: str, tool: str) -> None:
    """The table of docs/mems.md, and the one of the README: matches, and medians of the seconds of each side."""
    records = read_records(ROOT / "resources" / "measurements" / "intel-xeon-mems" / "mems.tsv")
    own = records[(records["item"] == item) & (records["metric"] == "time")]
    medians = own.groupby(["tool", "stage"])["value"].median()
    page = (ROOT / "docs" / "mems.md").read_text(encoding="utf-8")
    cells = [cell.strip() for cell in page.split("| in turns |")[1].splitlines()[2 + row].split("|")[2:-1]]
    told = [float(f"{medians[tool, stage]:.3g}") for stage in ("total", "process")]
    assert cells[0] == f"{own['results'].iloc[0]:,}" and [float(cell) for cell in cells[1:]] == told
    line = re.search(rf"^\| {item}, beside .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert line
    shown = [float(cell.strip(" s").replace(",", "")) for cell in line.group().split("|")[2:-1]]
    peer = {"super": "bwa", "maximal": "mummer"}[item]
    for first, stage in ((1, "total"), (4, "process")):
        ours, theirs = medians["warpseed", stage], medians[peer, stage]
        assert shown[first : first + 3] == [float(f"{ours:.2f}"), float(f"{theirs:.3g}"), float(f"{theirs / ours:.2g}")]


_SIDES = [("super", "warpseed"), ("super", "bwa"), *(("maximal", tool) for tool in ("warpseed", "mummer4", "mummer"))]


@pytest.mark.parametrize("row", range(15))
def test_both_mummers_beside_ours_are_the_records(row: int) -> None:
    """The table of docs/mems.md of runs with MUMmer 3 and 4: simulated reads, then real ones of two genomes."""
    machine = ("amd-epyc-mems", "amd-epyc-mems-nanopore", "amd-epyc-mems-celegans")[row // 5]
    item, tool = _SIDES[row % 5]
    records = read_records(ROOT / "resources" / "measurements" / machine / "mems.tsv")
    own = records[(records["item"] == item) & (records["metric"] == "time")]
    medians = own.groupby(["tool", "stage"])["value"].median()
    page = (ROOT / "docs" / "mems.md").read_text(encoding="utf-8")
    cells = [cell.strip() for cell in page.split("| reads | side |")[1].splitlines()[2 + row].split("|")[3:-1]]
    told = [f"{medians[tool, stage]:.3g}" for stage in ("total", "process")]
    assert cells == [f"{own['results'].iloc[0]:,}", *told]
    if (machine, item) == ("amd-epyc-mems-celegans", "maximal") and tool != "mummer":
        front = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        pairs = re.search(r"all of one locus, (\S+) against (\S+) and (\S+) against (\S+), in", front)
        assert pairs and pairs.groups()[tool == "mummer4" :: 2] == tuple(told)


@pytest.mark.parametrize(("row", "kind"), [(0, "super"), (1, "maximal")])
def test_matches_on_two_cores_are_the_records(row: int, kind: str) -> None:
    """The table of docs/mems.md of one and two threads, in memory and from file to file."""
    records = read_records(ROOT / "resources" / "measurements" / "intel-xeon-mems" / "mems.tsv")
    own = records[records["parameters"].str.contains(f"kind={kind}") & (records["stage"] == "total")]
    medians = own[own["tool"] == "warpseed"].groupby(["item", "threads"])["value"].median()
    page = (ROOT / "docs" / "mems.md").read_text(encoding="utf-8")
    cells = [cell.strip() for cell in page.split("| kind | in memory: 1 thread |")[1].splitlines()[2 + row].split("|")]
    told = []
    for item in ("in_memory", "file_to_file"):
        one, two = medians[item, 1], medians[item, 2]
        told += [float(f"{one:.3g}"), float(f"{two:.3g}"), float(f"{one / two:.2g}")]
    assert [float(cell) for cell in cells[2:-1]] == told


@pytest.mark.parametrize(("row", "tool"), [(0, "warpseed"), (1, "ahocorasick_rs"), (2, "numpy")])
def test_a_fixed_dictionary_beside_others_is_the_record(row: int, tool: str) -> None:
    """The table of docs/tree_bitmap.md: seconds of building, of the stream, of both; the report shows the same ones."""
    path = ROOT / "resources" / "measurements" / "intel-xeon-tree-bitmap" / "tree_bitmap.tsv"
    records = read_records(path)
    own = records[(records["item"] == "fixed") & (records["tool"] == tool) & (records["threads"] == 1)]
    medians = own[own["metric"] == "time"].groupby("stage")["value"].median()
    published, paper = (ROOT / "resources" / name for name in ("published/tree_bitmap.tsv", "papers/tree_bitmap.yaml"))
    measured = load_measurements([], [path], [published], [paper])
    table = stream_values.fixed_table(measured.of("tree_bitmap"))
    shown = table[(table["tool"] == tool) & (table["threads"] == 1)].iloc[0]
    page = (ROOT / "docs" / "tree_bitmap.md").read_text(encoding="utf-8")
    cells = page.split("| | built in | stream read in | together |")[1].splitlines()[2 + row].split("|")[2:-1]
    for cell, stage in zip(cells, ("build", "search", "total"), strict=True):
        figures = len(cell.strip().replace(".", "").lstrip("0"))
        assert float(cell) == float(f"{medians[stage]:.{figures}g}") and shown[f"{stage}_s"] == medians[stage]
    if tool == "ahocorasick_rs":
        told = re.search(r"That is (\d+) times ahocorasick_rs, (\d+) times with what is built", page)
        ours = table[(table["tool"] == "warpseed") & (table["threads"] == 1)].iloc[0]
        whole = shown["total_s"] / ours["total_s"]
        assert told and told.groups() == (f"{shown['search_speedup']:.0f}", f"{whole:.0f}")


@pytest.mark.parametrize("k", [15, 31])
def test_a_growing_dictionary_on_a_gpu_is_the_record(k: int) -> None:
    """The tables of docs/tree_bitmap.md and of the README."""
    records = read_records(ROOT / "resources" / "measurements" / "nvidia-h200-tree-bitmap" / "tree_bitmap.tsv")
    own = records[records["parameters"].str.startswith(f"k={k}; length=100286076")]
    totals = own[(own["item"] == "in_memory") & (own["stage"] == "total") & (own["tier"] == "fast")]
    medians = totals.groupby(["device", "threads"])["value"].median()
    limits = own[own["item"] == "limits"].set_index("metric")["value"]
    told = [medians["cpu", 1], medians["cpu", 16], medians["gpu", 16], limits["throughput"] / 1e9, limits["share"]]
    digits = [3, 3, 3, 1, 2]
    page = (ROOT / "docs" / "tree_bitmap.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if re.match(rf"\| {k} \| [\d.]+ s \|", line))
    assert re.findall(r"[\d.]+", row)[1:] == [f"{value:.{places}f}" for value, places in zip(told, digits, strict=True)]
    front = re.search(rf"^\| C\. elegans, k = {k} .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert front
    shown = re.findall(r"[\d.]+", front.group().partition("|")[2].partition("|")[2])
    assert shown == [f"{value:.{places}f}" for value, places in zip(told, [2, 3, 3, 1, 2], strict=True)]
