"""What jobs ask a scheduler for: enough for what they do, and not for a machine that nobody has."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest
from warpseed.ebwt.matrix import check_room
from warpseed.errors import MemoryLimitError
from warpseed.fm_index.build import needed_memory
from warpseed.fm_index.layout import Parameters
from warpseed.fm_index.parts import CORE, Sizes, choose_parts, part_bytes
from warpseed.fm_index.table import choose_table_length
from warpseed.workflow import resources
from warpseed.workflow.download import load_catalogue
from warpseed.workflow.resources import IndexSize, Needs, Request
from warpseed.workflow.sources import References

ROOT = Path(__file__).parents[2]
SETTINGS = {"occ_interval": 128, "sa_interval": 32, "table_length": None}
SIZES = [10_000, 4_641_652, 100_286_401, 1_000_000_000, 2_200_000_000, 3_210_000_000]
SIMULATED = {"simulated": 12_345, "human_like": 678}
PARTS = [("fast",), ("fast", "paper"), ("paper",), ("fast", "tags"), ("tags",)]


def size(bases: int, parts: tuple[str, ...] = ("fast", "paper"), **settings: int | None) -> IndexSize:
    return IndexSize(bases, parts, SETTINGS | settings)


@pytest.mark.parametrize("bases", SIZES)
@pytest.mark.parametrize("parts", PARTS)
def test_a_build_is_given_what_it_says_that_it_needs(bases: int, parts: tuple[str, ...]) -> None:
    """And the text and the packed text that it holds when it looks at what is left, and Snakemake's 300 MB. Tags are
    added when all else is saved and gone."""
    asked = resources.build_index(size(bases, parts)).mem_mb * 10**6
    needed = needed_memory(bases, [part for part in choose_parts(parts) if part != "tags"])
    assert asked >= needed + 1.25 * bases + 300e6
    assert asked <= 1.6 * needed + 2e9


@pytest.mark.parametrize("bases", SIZES)
def test_tags_take_less_than_what_was_built_before_them(bases: int) -> None:
    """So there is memory for them where the build was not refused."""
    tags = part_bytes("tags", Sizes(bases, 1, Parameters(128, 32, choose_table_length(bases))))
    for device in ("cpu", "gpu"):
        assert tags + (200 << 20) <= needed_memory(bases, "fast", device=device)


@pytest.mark.parametrize(
    ("occ_interval", "sa_interval", "table_length"), [(128, 32, None), (32, 1, 12), (65536, 9, 15)]
)
@pytest.mark.parametrize("bases", SIZES)
def test_an_index_is_as_large_as_its_parts(
    bases: int, occ_interval: int, sa_interval: int, table_length: int | None
) -> None:
    parameters = Parameters(occ_interval, sa_interval, table_length or choose_table_length(bases))
    sizes = Sizes(bases, 1, parameters)
    for parts in PARTS:
        true = sum(part_bytes(part, sizes) for part in (CORE, *choose_parts(parts)))
        counted = size(bases, parts, **parameters._asdict() | {"table_length": table_length}).bytes
        assert true - 2**20 <= counted <= 2 * true + 2**20


def test_more_data_and_another_attempt_ask_for_more() -> None:
    small, large = size(10**6), size(10**9)
    for function, more in [
        (resources.build_index, ()),
        (resources.find_seeds, (1000, 1e-5)),
        (resources.time_searches, (1000, 12)),
        (resources.time_gpu_limits, (1000, 12)),
        (resources.time_peers, (1000, 12)),
        (resources.time_builds, (9,)),
    ]:
        assert function(large, *more).mem_mb > function(small, *more).mem_mb + 1000
    assert resources.find_seeds(small, 10**9, 1e-4).runtime > resources.find_seeds(small, 10**9, 1e-5).runtime
    request = Request(lambda wildcards: Needs(wildcards, 7))
    assert [request.mem_mb(100, attempt) for attempt in (1, 2, 3)] == [100, 200, 300]
    assert request.runtime(100, 3) == 21


def test_each_device_runs_a_data_set_once_more() -> None:
    dataset = {"items": ["whole", "search"], "threads": [1, "all"], "devices": ["cpu"]}
    assert resources.timed_runs(dataset, 3) == 4 * 2 * 2
    assert resources.timed_runs(dataset | {"devices": ["cpu", "gpu", "gpu:0,1"]}, 3) == 4 * 2 * 4


def test_the_bases_of_a_reference_are_known_before_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain.fa").write_text(">a\n" + "ACGT" * 1000 + "\n")
    with gzip.open("packed.fa.gz", "wt") as handle:
        handle.write(">a\n" + "ACGTTGCATTGACGTA" * 4000 + "\n")
    references = References(load_catalogue(ROOT / "resources" / "genomes.yaml"))
    names = (
        "simulated",
        "human_like",
        "celegans",
        "hg38",
        "plain.fa",
        "packed.fa.gz",
        "https://example.org/genome.fa.gz",
    )
    simulated, human_like, worm, human, plain, packed, url = (
        resources.reference_bases(references, references.add(name, "reference"), SIMULATED) for name in names
    )
    assert (simulated, human_like, worm) == (12_345, 678, 100_286_401)
    assert 3.209e9 < human < 3.3e9  # 3,209,286,105 bases with all that is not listed
    assert plain == 4004
    assert packed == 4 * Path("packed.fa.gz").stat().st_size
    assert url == resources.UNKNOWN_BASES
    Path("results/reference").mkdir(parents=True)
    Path("packed.fa.gz").rename("results/reference/genome.fa.gz")
    assert resources.reference_bases(references, "genome", SIMULATED) == packed


def test_reads_are_counted_where_they_lie_or_as_they_will_be_drawn(tmp_path: Path) -> None:
    path = tmp_path / "reads.fq"
    path.write_text("@a\nACGT\n+\nIIII\n")
    assert resources.read_bases(path, {}) == 15
    sets = {"long": {"count": 500, "length": [1000, 10000]}, "short": {"count": 20, "length": 100}}
    assert resources.read_bases("results/reads/nowhere/long.fq", sets) == 5_000_000
    assert resources.read_bases("results/reads/nowhere/short.fa", sets) == 2000
    drawn = resources.simulate_reads(0, {"count": 10**7, "length": 100})
    assert drawn.mem_mb > resources.simulate_reads(0, sets["short"]).mem_mb + 3000


def test_reads_of_a_file_are_counted_by_its_beginning(tmp_path: Path) -> None:
    draw, count = random.Random(3), 30_000
    reads = ["".join(draw.choices("ACGT", k=draw.randint(30, 90))) for _ in range(count)]
    fasta = "".join(f">r{number}>\n{read}\n" for number, read in enumerate(reads)).encode()
    fastq = "".join(f"@r{number}\n{read}\n+\n{'>' * len(read)}\n" for number, read in enumerate(reads)).encode()
    path = tmp_path / "reads"
    for text in (b"\n" + fasta, fastq):
        assert len(text) > 1_500_000
        path.write_bytes(text)
        assert 0.98 * count < resources.read_count(path, {}) < 1.02 * count
        path.write_bytes(gzip.compress(text))
        assert 0.5 * count < resources.read_count(path, {}) < 2 * count
    path.write_bytes(fasta[: fasta.index(b">r17>")])
    assert resources.read_count(path, {}) == 17
    path.write_bytes(b">chromosome\n" + b"ACGT" * 10**6)
    assert resources.read_count(path, {}) <= 5
    for nothing in (b"", gzip.compress(fasta)[:40] + bytes(400)):
        path.write_bytes(nothing)
        assert resources.read_count(path, {}) == 0
    assert resources.read_count("results/reads/nowhere/short.fa", {"short": {"count": 20}}) == 20


def test_records_are_given_the_memory_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (resources.compare_records(10**6, count) for count in (0, 30_000))
    monkeypatch.setattr("warpseed.compute.machine.available_memory", lambda: 1e6 * (many.mem_mb - few.mem_mb))
    check_room(30_000)
    with pytest.raises(MemoryLimitError):
        check_room(30_100)
    assert many.runtime > few.runtime + 300


def test_the_cluster_page_says_what_is_asked_for() -> None:
    references = References(load_catalogue(ROOT / "resources" / "genomes.yaml"))
    bases = [
        resources.reference_bases(references, references.add(name, "reference"), SIMULATED)
        for name in ("ecoli_k12", "celegans", "hg38")
    ]
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    for job, asked in {
        "`build_fm_index`, both tiers": [resources.build_index(size(count)) for count in bases],
        "`build_fm_index`, fast tier": [resources.build_index(size(count, ("fast",))) for count in bases],
        "`find_seeds`, fast tier": [resources.find_seeds(size(count, ("fast",)), 10**6, 1e-5) for count in bases],
    }.items():
        assert f"| {job} | {' | '.join(f'{needs.mem_mb:,}' for needs in asked)} |" in page


def test_every_rule_asks_for_memory_and_time() -> None:
    """A rule without would get what the cluster gives by default, and be ended in its middle."""
    text = "".join(path.read_text() for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))
    bodies = dict(
        re.findall(r"^(?:use )?rule (\w+(?: as \w+ with)?):\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    )
    assert len(bodies) > 12
    for name, body in bodies.items():
        asked = re.findall(r"^        (mem_mb|runtime)=([A-Z_]+)\.(\w+),$", body, re.MULTILINE)
        assert [key for key, _, _ in asked] == ["mem_mb", "runtime"], name
        assert all(key == function for key, _, function in asked), name
        assert len({request for _, request, _ in asked}) == 1, name


def test_the_page_on_clusters_says_what_jobs_ask_for() -> None:
    references = References(load_catalogue(ROOT / "resources" / "genomes.yaml"))
    names = [references.add(name, "reference") for name in ("ecoli_k12", "celegans", "hg38")]
    bases = [resources.reference_bases(references, name, SIMULATED) for name in names]
    both, fast, search = (
        [resources.build_index(size(each)).mem_mb for each in bases],
        [resources.build_index(size(each, ("fast",))).mem_mb for each in bases],
        [resources.find_seeds(size(each, ("fast",)), 0, 0).mem_mb for each in bases],
    )
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `\w+`, \w+ tiers? \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)
    assert [[int(cell.replace(",", "")) for cell in row] for row in rows] == [both, fast, search]
