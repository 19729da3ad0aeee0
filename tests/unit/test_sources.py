"""References, read sets, samples and timed data sets of a configuration, and the files they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.batches import Options
from warpseed.errors import ConfigError
from warpseed.workflow import available
from warpseed.workflow.available import devices_to_measure, is_peer_measured, measured_part, one_gpu
from warpseed.workflow.download import CatalogueEntry
from warpseed.workflow.kmer_seeds_cases import (
    beside_bowtie,
    build_devices,
    index_parts,
    is_tagged,
    sample_searches,
    timed_builds,
    timed_datasets,
)
from warpseed.workflow.sheets import Places
from warpseed.workflow.sources import OwnFile, References, reads_of, samples_of

SCHEMAS = Path(__file__).resolve().parents[2] / "workflow" / "schemas"
CATALOGUE = {"tiny": CatalogueEntry("tiny", "https://x/t.fa.gz", "words", {"c": 5}, other_contigs=False)}
READ_SET = {"source": "simulated", "length": 100, "qualities": False}
MEASURED: dict[str, Any] = {"threads": [1, "all"], "tiers": ["paper", "fast"], "gpus": [1]}
BLOCK: dict[str, Any] = {
    "count": 100,
    "items": ["whole", "file_to_file"],
    "datasets": {"S20": {"k": 20, "mismatches": 1, "count": 7, "items": None}},
    "throughput": {"k": [12], "mismatches": 0, "count": None},
    "scaling": {"dataset": "S20", "count": {"paper": 9, "fast": None}, "threads": [1, 2]},
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files of a user's own."""
    for name in ("my genome.fa.gz", "reads.fq", "a{b}.fa"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sample(**keys: Any) -> dict[str, Any]:
    defaults = {"reference": None, "system": "kmers", "k": 20, "step": None, "count": "all", "mismatches": 0}
    return defaults | {"max_hits": None} | keys


def test_references_by_name_path_and_address(files: Path) -> None:
    references = References(CATALOGUE)
    sources = ("simulated", "human_like", "tiny", "my genome.fa.gz", "https://x/y/other.fa")
    names = [references.add(source, "reference") for source in sources]
    assert names == ["simulated", "human_like", "tiny", "my_genome", "other"]
    expected = [
        "results/reference/simulated.fa",
        "results/reference/human_like.fa",
        "results/reference/tiny.fa.gz",
        sources[3],
        "results/reference/other.fa.gz",
    ]
    assert [references.path(name) for name in names] == expected
    assert [isinstance(references.path(name), OwnFile) for name in names] == [False, False, False, True, False]
    assert references.add("tiny", "samples.a.reference") == "tiny"
    assert list(references.sources) == names


def test_a_download_depends_on_no_description() -> None:
    references = References(CATALOGUE)
    references.add("tiny", "reference")
    references.add("https://x/other.fa", "reference")
    wanted = {"name": "tiny", "url": "https://x/t.fa.gz", "contigs": {"c": 5}, "other_contigs": False}
    assert references.download("tiny") == wanted
    assert references.download("other") == {
        "name": "https://x/other.fa", "url": "https://x/other.fa", "contigs": {}, "other_contigs": True,
    }  # fmt: skip


def test_references_that_cannot_be(files: Path) -> None:
    references = References(CATALOGUE)
    with pytest.raises(ConfigError, match=r"'nowhere' \(over there\) is not a file, .*'human_like', .*\(tiny\)"):
        references.add("nowhere", "over there")
    with pytest.raises(ConfigError, match="did you mean 'tiny'"):
        references.add("tinny", "reference")
    with pytest.raises(ConfigError, match="has a brace, a tab or a line end in its path"):
        references.add("a{b}.fa", "reference")
    references.add("my genome.fa.gz", "reference")
    with pytest.raises(ConfigError, match="would both be called 'my_genome'"):
        references.add("https://x/my_genome.fa", "reference")


def test_a_reference_has_one_name_however_its_path_is_spelt(files: Path) -> None:
    (files / "folder").mkdir()
    (files / "tiny").write_text("")
    (files / "folder" / "my genome.fa.gz").symlink_to(files / "my genome.fa.gz")
    references = References(CATALOGUE)
    paths = ["my genome.fa.gz", "./folder/../my genome.fa.gz", str(files / "my genome.fa.gz"), "folder/my genome.fa.gz"]
    assert {references.add(path, "reference") for path in paths} == {"my_genome"}
    assert references.path("my_genome") == paths[0]
    references.add("tiny", "reference")
    (files / "folder" / "my genome.fa.gz").unlink()
    (files / "folder" / "my genome.fa.gz").write_text("")
    for path, name in (("folder/my genome.fa.gz", "my_genome"), ("./tiny", "tiny")):
        with pytest.raises(ConfigError, match=f"would both be called '{name}' in results/: rename one"):
            references.add(path, "reference")


def test_reads_are_simulated_on_a_reference_or_a_file(files: Path) -> None:
    read_sets = {
        "short": READ_SET,
        "own": READ_SET | {"source": "reads.fq"},
        "braces": READ_SET | {"source": "a{b}.fa"},
    }
    assert reads_of(read_sets, "short", "tiny", "kmer_seeds.reads").startswith("results/reads/tiny/short.")
    assert reads_of(read_sets, "own", "tiny", "kmer_seeds.reads") == "reads.fq"
    with pytest.raises(
        ConfigError, match="key 'kmer_seeds.reads' is 'long', but the read sets .* are short, own, braces"
    ):
        reads_of(read_sets, "long", "tiny", "kmer_seeds.reads")
    with pytest.raises(ConfigError, match=r"'a\{b\}.fa' \(configuration key 'reads.braces.source'\) has a brace"):
        reads_of(read_sets, "braces", "tiny", "kmer_seeds.reads")


def test_reads_with_qualities_are_fastq() -> None:
    read_sets = {
        "a": READ_SET,
        "b": READ_SET | {"qualities": True, "length": [5, 5]},
        "c": READ_SET | {"length": [9, 5]},
    }
    assert [reads_of(read_sets, name, "tiny", "k")[-5:] for name in "ab"] == ["/a.fa", "/b.fq"]
    with pytest.raises(
        ConfigError, match=r"'reads.c.length' is \[9, 5\], but the smallest comes first, the largest last"
    ):
        reads_of(read_sets, "c", "tiny", "k")


def test_samples_stand_on_files(files: Path) -> None:
    config = {
        "reads": {"short": READ_SET},
        "samples": {
            "a": sample(reads="short", reference="tiny"),
            "b": sample(reads="reads.fq", k=None),
            "c": sample(reads="reads.fq", count=5),
        },
    }
    references = References(CATALOGUE)
    samples = samples_of(config, references, "simulated", Places())
    assert samples["a"]["reads"].startswith("results/reads/tiny/short.")
    assert [samples[name]["reference"] for name in "abc"] == ["tiny", "simulated", "simulated"]
    searches = sample_searches(samples, Places())
    assert [searches[name]["queries"] for name in "bc"] == ["reads.fq", "results/seeds/c.kmers.fa"]
    assert "tiny" in references.sources


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"reads": "short", "k": None},
            r"'mine' has simulated reads but no k: .* \(configuration key 'samples.mine.k'\)",
        ),
        ({"reads": "long"}, r"'long' \(configuration key 'samples.mine.reads'\) does not exist: .*'reads' \(short\)"),
        ({"reads": "short", "reference": "nowhere"}, "key 'samples.mine.reference'"),
    ],
)
def test_samples_that_cannot_be(keys: dict[str, Any], sentence: str, files: Path) -> None:
    config = {"reads": {"short": READ_SET}, "samples": {"mine": sample(**keys)}}
    with pytest.raises(ConfigError, match=sentence):
        sample_searches(samples_of(config, References(CATALOGUE), "simulated", Places()), Places())


def test_timed_datasets() -> None:
    datasets = timed_datasets(BLOCK, MEASURED, ["cpu", "gpu"])
    assert list(datasets) == ["S20", "throughput-k12", "scaling-S20-paper", "scaling-S20-fast"]
    assert datasets["S20"]["parameters"] == "k=20; mismatches=1"
    assert [wanted["case"] for wanted in datasets.values()] == ["S20", "k=12", "S20", "S20"]
    assert [wanted["count"] for wanted in datasets.values()] == [7, 100, 9, 7]
    assert [wanted["threads"] for wanted in datasets.values()] == [[1, "all"], [1, "all"], [1, 2], [1, 2]]
    both = ["paper", "fast"]
    assert [wanted["tiers"] for wanted in datasets.values()] == [both, both, ["paper"], ["fast"]]
    assert all(wanted["devices"] == ["cpu", "gpu"] for wanted in datasets.values())
    fast = timed_datasets(BLOCK, MEASURED | {"tiers": ["fast"]}, ["cpu"])
    assert list(fast) == ["S20", "throughput-k12", "scaling-S20-fast"]


def test_a_data_set_may_be_for_one_device_or_tier() -> None:
    own = {"k": 20, "mismatches": 1, "count": 7, "items": None}
    block = BLOCK | {
        "datasets": {"S20": own | {"tiers": ["fast"], "devices": None}, "S20_GPU": own | {"devices": ["gpu"]}},
        "throughput": {"k": []},
    }
    both = timed_datasets(block, MEASURED, ["cpu", "gpu"])
    assert {name: (wanted["tiers"], wanted["devices"]) for name, wanted in both.items()} == {
        "S20": (["fast"], ["cpu", "gpu"]),
        "S20_GPU": (["paper", "fast"], ["gpu"]),
        "scaling-S20-fast": (["fast"], ["cpu", "gpu"]),
    }
    assert timed_datasets(block, MEASURED | {"tiers": ["paper"]}, ["cpu"]) == {}


def test_several_gpus_may_share_the_queries() -> None:
    measured = MEASURED | {"gpus": [1, 2, 4]}
    shared = ["gpu", "gpu:0,1", "gpu:0,1,2,3"]
    assert all(
        wanted["devices"] == ["cpu", *shared] for wanted in timed_datasets(BLOCK, measured, ["cpu", "gpu"]).values()
    )
    assert measured_part({"tiers": ["fast"], "devices": ["gpu"]}, measured, ["cpu", "gpu"])["devices"] == shared
    assert measured_part({"tiers": ["fast"], "devices": ["cpu"]}, measured, ["cpu", "gpu"])["devices"] == ["cpu"]
    of_one = one_gpu(measured)
    assert measured_part({"tiers": ["fast"], "devices": None}, of_one, ["gpu"])["devices"] == ["gpu"]
    assert measured["gpus"] == [1, 2, 4]


def test_what_is_timed_on_one_gpu_alone() -> None:
    from warpseed.kmer_seeds import timing as kmers
    from warpseed.mems import timing as mems
    from warpseed.one_error import timing as reads

    for device, expected in (("cpu", False), ("gpu", True), ("gpu:0,1", False)):
        paper, fast = (Options(tier, device) for tier in ("paper", "fast"))
        assert kmers._applies("locate_on_cpu", paper, 0) is expected
        assert reads._applies("on_device", fast, 1) is expected and reads._applies("block_sizes", paper, 1) is expected
        assert mems._applies("on_device", fast, 1) is expected


def test_a_data_set_may_have_items_of_its_own() -> None:
    own = {"k": 20, "mismatches": 1, "count": 7}
    datasets = {"S20": own | {"items": None}, "S20_1M": own | {"items": ["search"]}}
    found = timed_datasets(BLOCK | {"datasets": datasets}, MEASURED, ["cpu"])
    assert [found[name]["items"] for name in datasets] == [["whole", "file_to_file"], ["search"]]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((["whole"], ["search"]), ("whole", ["a"])),
        ((["whole"], ["file_to_file"]), ("file_to_file", ["b"])),
        ((["whole", "file_to_file"], ["file_to_file"]), ("file_to_file", ["a", "b"])),
        ((["search"], ["in_memory"]), ("whole", [])),
    ],
)
def test_bowtie_stands_where_files_go_to_files(items: tuple[list[str], ...], expected: tuple[str, list[str]]) -> None:
    """What a data set has for itself counts, too; no row stands beside one that is not timed on a CPU."""
    datasets = {name: {"items": own, "devices": ["cpu"]} for name, own in zip("ab", items, strict=True)}
    assert beside_bowtie(datasets) == expected
    on_gpu = {"items": ["file_to_file"], "devices": ["gpu"]}
    assert beside_bowtie(datasets | {"c": on_gpu}) == expected and beside_bowtie({"c": on_gpu})[1] == []


@pytest.mark.parametrize(
    ("block", "measured", "expected"),
    [
        ({"threads": [1, "all"], "devices": None}, ["cpu", "gpu"], ["cpu", "gpu"]),
        ({"threads": ["all"], "devices": ["gpu"]}, ["cpu", "gpu"], ["gpu"]),
        ({"threads": ["all"], "devices": ["gpu"]}, ["cpu"], []),
        ({"threads": [], "devices": ["gpu"]}, ["cpu", "gpu"], []),
    ],
)
def test_what_builds_the_index_that_is_timed(block: dict[str, Any], measured: list[str], expected: list[str]) -> None:
    assert build_devices(block, measured) == expected


@pytest.mark.parametrize(
    ("devices", "beside", "expected"),
    [(["cpu", "gpu"], ["bwa", "libdivsufsort"], 30), (["cpu"], ["bwa"], 24), (["cpu"], [], 21), (["gpu"], [], 3)],
)
def test_how_often_the_index_is_built_where_that_is_timed(devices: list[str], beside: list[str], expected: int) -> None:
    assert timed_builds({"threads": [1, 8], "first_bases": [5, 6, 7]}, devices, beside, 3) == expected


def test_items_are_those_of_the_timing() -> None:
    """What the configuration offers is what a data set can be timed for, but for figures with keys of their own."""
    from warpseed.kmer_seeds.timing import ITEMS

    schema = yaml.safe_load((SCHEMAS / "kmer_seeds.schema.yaml").read_text())
    assert set(schema["$defs"]["kmer_item"]["enum"]) == set(ITEMS) - {"throughput", "scaling"}
    items = [wanted["items"] for wanted in timed_datasets(BLOCK, MEASURED | {"tiers": ["fast"]}, ["cpu"]).values()]
    assert items == [["whole", "file_to_file"], ["throughput"], ["scaling"]]


def test_an_index_has_the_parts_that_are_timed() -> None:
    assert index_parts(["fast"], []) == ["fast"]
    assert index_parts(["paper"], []) == ["paper"]
    assert index_parts(["fast"], [{"tiers": ["fast"]}, {"tiers": ["paper"]}]) == ["fast", "paper"]


@pytest.mark.parametrize(
    ("tiers", "devices", "tagged"),
    [
        (["fast"], ["cpu"], True),
        (["paper", "fast"], ["cpu", "gpu"], True),
        (["fast"], ["gpu"], False),
        (["paper"], ["cpu"], False),
    ],
)
def test_tags_are_for_k_mers_in_the_fast_tier_on_the_cpu(tiers: list[str], devices: list[str], tagged: bool) -> None:
    assert is_tagged(timed_datasets(BLOCK, MEASURED | {"tiers": tiers}, devices)) == tagged
    assert not is_tagged({})


@pytest.mark.parametrize("name", ["S99", "throughput-k12"])
def test_scaling_needs_one_of_the_data_sets(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'kmer_seeds.scaling.dataset' is '{name}', but kmer_seeds.datasets has S20"):
        timed_datasets(BLOCK | {"scaling": {"dataset": name, "count": {}, "threads": [1]}}, MEASURED, ["cpu"])


def test_auto_is_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, devices in ((0, ["cpu"]), (2, ["cpu", "gpu"])):
        monkeypatch.setattr(available, "gpu_description", lambda count=count: {"gpu_count": count})
        assert devices_to_measure("auto") == devices
        assert devices_to_measure(["gpu"]) == ["gpu"]
    assert is_peer_measured("auto", ["sh"], by_conda=False)
    assert not is_peer_measured("auto", ["sh", "no-such-program"], by_conda=False)
    assert is_peer_measured("auto", ["no-such-program"], by_conda=True)
    assert not is_peer_measured(False, ["sh"], by_conda=True)
