"""Stopwatch, records and provenance."""

import json
import subprocess

import pytest
from warpseed.compute import machine
from warpseed.compute.machine import peak_memory
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.measure import provenance
from warpseed.measure.records import (
    FORMAT_LINE,
    RECORD_COLUMNS,
    SHARED,
    index_rows,
    join_parameters,
    measured_rows,
    publish_records,
    read_records,
    split_parameters,
    write_records,
)

ROW = {
    "system": "kmer_seeds",
    "item": "whole",
    "tool": "warpseed",
    "case": "S20",
    "parameters": "k=20; mismatches=1",
    "stage": "total",
    "value": 0.1234567890123,
    "machine": "m",
}


def test_stopwatch_adds_up(monkeypatch):
    ticks = iter([1.0, 3.0, 10.0, 10.5])
    monkeypatch.setattr("warpseed.compute.stopwatch.time.perf_counter", lambda: next(ticks))
    watch = Stopwatch()
    for _ in range(2):
        with watch.stage("search"):
            pass
    watch.add("kernel", 0.25)
    watch.add("kernel", 0.25)
    assert watch.seconds == {"search": 2.5, "kernel": 0.5}


def test_of_stopwatches_side_by_side_the_slowest_counts():
    watch, one, other = Stopwatch(), Stopwatch(), Stopwatch()
    watch.add("kernel", 1.0)
    for each, seconds in ((one, 2.0), (other, 3.0)):
        each.add("kernel", seconds)
        each.count("letters", 4)
    one.add("sort", 0.5)
    watch.take_slowest([one, other])
    assert watch.seconds == {"kernel": 4.0, "sort": 0.5} and watch.counts == {"letters": 8}


def test_stopwatch_waits_for_the_device_before_it_stops(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("warpseed.compute.stopwatch.time.perf_counter", lambda: clock[0])
    watch = Stopwatch()
    with watch.stage("kernel", synchronise=lambda: clock.__setitem__(0, 7.0)):
        pass
    assert watch.seconds == {"kernel": 7.0}


def test_stopwatch_keeps_the_time_of_a_failed_stage():
    watch = Stopwatch()
    with pytest.raises(KeyError), watch.stage("read"):
        raise KeyError("x")
    assert list(watch.seconds) == ["read"]


@pytest.mark.parametrize("name", ["", "Table I", "kernel\t", "k=20", "-", "_x", "search\n"])
def test_a_stage_is_a_word(name, tmp_path):
    watch = Stopwatch()
    with pytest.raises(ValueError, match="no name of a stage"), watch.stage(name):
        pass
    with pytest.raises(ValueError, match="no name of a stage"):
        watch.add(name, 1.0)
    if name != "-":  # a size belongs to no stage
        with pytest.raises(ValueError, match="no name of a stage"):
            write_records(tmp_path / "a.tsv", [{**ROW, "stage": name}])


def test_any_word_is_a_stage(tmp_path):
    watch = Stopwatch()
    watch.add("chain_seeds", 1.0)
    write_records(tmp_path / "a.tsv", measured_rows(watch, **{key: ROW[key] for key in ROW if key != "stage"}))
    assert read_records(tmp_path / "a.tsv")["stage"].tolist() == ["chain_seeds"]


def test_measured_rows():
    watch = Stopwatch()
    watch.add("read", 1.0)
    watch.add("total", 2.0)
    rows = measured_rows(watch, item="whole", repeat=2)
    assert [(row["stage"], row["value"], row["repeat"]) for row in rows] == [("read", 1.0, 2), ("total", 2.0, 2)]


def test_records_survive_a_round_trip(tmp_path):
    rows = [ROW, {**ROW, "tier": "fast", "threads": 2, "results": 5, "digest": "00ff", "case": 'quote" and space'}]
    write_records(tmp_path / "a.tsv", rows)
    frame = read_records(tmp_path / "a.tsv")
    assert tuple(frame.columns) == RECORD_COLUMNS
    assert list(frame["value"]) == [ROW["value"]] * 2
    assert list(frame["case"]) == [ROW["case"], 'quote" and space']
    assert frame.loc[0, ["tier", "device", "threads", "results", "digest"]].tolist() == ["-", "cpu", 1, -1, ""]
    assert frame.loc[1, ["tier", "threads", "results", "digest"]].tolist() == ["fast", 2, 5, "00ff"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]


def test_a_row_says_how_many_gpus_were_used(tmp_path):
    rows = [ROW, {**ROW, "device": "gpu"}, {**ROW, "device": "gpu", "gpus": 4}]
    write_records(tmp_path / "a.tsv", rows)
    assert read_records(tmp_path / "a.tsv")["gpus"].tolist() == [0, 1, 4]
    for wrong in ({"device": "cpu", "gpus": 1}, {"device": "gpu", "gpus": 0}):
        with pytest.raises(ValueError, match="has [01] GPUs"):
            write_records(tmp_path / "b.tsv", [{**ROW, **wrong}])


def test_parameters_are_joined_and_split():
    values = {"k": 20, "mismatches": 1, "error_rate": 0.01}
    assert join_parameters(values) == "k=20; mismatches=1; error_rate=0.01"
    assert split_parameters(join_parameters(values)) == {"k": "20", "mismatches": "1", "error_rate": "0.01"}
    assert split_parameters(join_parameters({})) == {}
    for wrong in ({"a": "x; b=1"}, {"a=b": 1}, {"a": "x\ty"}, {"a": " x"}):
        with pytest.raises(ValueError, match="cannot stand in a record's parameters"):
            join_parameters(wrong)


def test_records_of_another_format_are_refused(tmp_path):
    path = tmp_path / "a.tsv"
    write_records(path, [ROW])
    for first in ("# warpseed records, format 1", "# warpseed records, format 20", "\t".join(RECORD_COLUMNS)):
        path.write_text("\n".join([first, *path.read_text().splitlines()[1:]]) + "\n")
        with pytest.raises(InputError, match=f"a.tsv begins with .* begin with '{FORMAT_LINE}'; remove the file"):
            read_records(path)


def test_records_of_several_files_and_of_none(tmp_path):
    write_records(tmp_path / "a.tsv", [ROW])
    write_records(tmp_path / "b.tsv", [])
    assert len(read_records([tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "a.tsv"])) == 2
    empty = read_records([])
    assert tuple(empty.columns) == RECORD_COLUMNS
    assert len(empty) == 0
    assert empty["value"].dtype == "float64"


def test_machine_is_filled_in(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "machine_name", lambda: "some-machine")
    write_records(tmp_path / "a.tsv", [{k: v for k, v in ROW.items() if k != "machine"}])
    assert read_records(tmp_path / "a.tsv")["machine"].tolist() == ["some-machine"]


def test_a_wrong_row_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="no column \\['thread'\\]"):
        write_records(tmp_path / "a.tsv", [{**ROW, "thread": 1}])
    with pytest.raises(ValueError, match="needs a value for case"):
        write_records(tmp_path / "a.tsv", [{k: v for k, v in ROW.items() if k != "case"}])
    assert list(tmp_path.iterdir()) == []


def test_wrong_files_are_named(tmp_path):
    path = tmp_path / "a.tsv"
    with pytest.raises(InputError, match="a.tsv is no readable record table"):
        read_records(path)
    path.write_text("system\titem\nkmer_seeds\twhole\n")
    with pytest.raises(InputError, match="a.tsv begins with 'system.titem', but records .* '# warpseed records, form"):
        read_records(path)
    path.write_bytes(f"{FORMAT_LINE}\n\xff".encode("latin-1"))
    with pytest.raises(InputError, match="a.tsv is no readable record table"):
        read_records(path)
    path.write_text(f"{FORMAT_LINE}\na\tb\n1\t2\n")
    with pytest.raises(InputError, match="a.tsv has the columns a, b"):
        read_records(path)
    write_records(path, [ROW])
    path.write_text(path.read_text().replace("0.1234567890123", "fast"))
    with pytest.raises(InputError, match="a.tsv holds a value that is no number"):
        read_records(path)


@pytest.mark.parametrize("value", ["nan", "-1", "1e400", "-inf", "0"])
def test_a_value_that_nothing_measured_has_is_refused(tmp_path, value):
    path = tmp_path / "a.tsv"
    write_records(path, [ROW, ROW])
    before, _, after = path.read_text().rpartition("0.1234567890123")
    path.write_text(before + value + after)
    with pytest.raises(InputError, match="a.tsv holds the time .* of whole, .*, which nothing measured can have"):
        read_records(path)


def test_index_rows(tmp_path):
    report = [{"part": "bwt", "bytes": 10, "formula_bytes": 12}, {"part": "text", "bytes": 3, "formula_bytes": None}]
    write_records(tmp_path / "a.tsv", index_rows(report, bases=40, reference="lambda", tool="warpseed"))
    frame = read_records(tmp_path / "a.tsv")
    assert list(zip(frame["case"], frame["metric"], frame["value"], strict=True)) == [
        ("reference", "count", 40),
        ("part=bwt", "size", 10),
        ("part=bwt", "formula", 12),
        ("part=text", "size", 3),
    ]
    assert set(frame["system"]) == {SHARED}
    assert frame["parameters"][0] == "reference=lambda"


def test_peak_memory_sees_an_allocation():
    block = bytearray(peak_memory() + (64 << 20))
    block[::4096] = b"x" * len(block[::4096])
    assert peak_memory() >= len(block)


@pytest.fixture
def fresh():
    caches = (machine.machine_name, machine._gpus, provenance.commit)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def commands(monkeypatch, answers):
    """Answer commands by the first word that `answers` knows; all others fail."""

    def output_of(command):
        return next((text for word, text in answers.items() if word in command), None)

    monkeypatch.setattr(machine, "output_of", output_of)
    monkeypatch.setattr(provenance, "output_of", output_of)


def test_a_gpu_names_the_machine(monkeypatch, fresh):
    commands(monkeypatch, {"nvidia-smi": "NVIDIA H200, 580.1, 143771, 9.0\nNVIDIA H200, 580.1, 143771, 9.0\n"})
    described = machine.gpu_description()
    assert described == {
        "gpu": "NVIDIA H200",
        "gpu_count": 2,
        "gpu_memory_bytes": 143771 * 2**20,
        "compute_capability": "9.0",
        "driver": "580.1",
    }
    assert machine.machine_name() == "nvidia-h200"


def test_without_a_gpu_the_cpu_names_the_machine(monkeypatch, fresh):
    commands(monkeypatch, {})
    monkeypatch.setattr(machine, "cpu_model", lambda: "Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz")
    assert machine.gpu_description()["gpu"] is None
    assert machine.machine_name() == "intel-xeon-e5-2620-v3"


def test_the_newest_cuda_of_the_driver(monkeypatch):
    commands(monkeypatch, {"nvidia-smi": "| Driver Version: 570.1   CUDA Version: 12.8 |"})
    assert machine.driver_cuda_version() == "12.8"
    commands(monkeypatch, {"nvidia-smi": "an unknown format"})
    assert machine.driver_cuda_version() is None
    commands(monkeypatch, {})
    assert machine.driver_cuda_version() is None


def test_commit_from_git_before_the_environment(monkeypatch, fresh):
    monkeypatch.setenv("WARPSEED_COMMIT", "fromenvironment")
    commands(monkeypatch, {"ls-files": "provenance.py\n", "rev-parse": "abc123\n", "status": " M a.py\n"})
    assert provenance.commit() == "abc123+changes"


def test_records_of_an_earlier_run_are_no_change_of_the_version(tmp_path, monkeypatch, fresh):
    """Two machines' records may be published from one checkout, one after the other."""
    library, record = tmp_path / "scripts" / "provenance.py", tmp_path / "resources" / "measurements" / "m" / "a.tsv"
    for path in (library, record):
        path.parent.mkdir(parents=True)
        path.write_text("before\n")

    def git(*words):
        told = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path, *told, *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "all")
    monkeypatch.setattr(provenance, "__file__", str(library))
    head = provenance.commit()
    assert len(head) == 40
    for path, told in ((record, head), (library, f"{head}+changes")):
        path.write_text("after\n")
        provenance.commit.cache_clear()
        assert provenance.commit() == told


def test_commit_from_the_environment_then_unknown(monkeypatch, fresh):
    commands(monkeypatch, {"rev-parse": "another repository's\n"})
    monkeypatch.setenv("WARPSEED_COMMIT", "fromenvironment")
    assert provenance.commit() == "fromenvironment"
    provenance.commit.cache_clear()
    monkeypatch.delenv("WARPSEED_COMMIT")
    assert provenance.commit() == "unknown"


def test_a_missing_or_failing_command_is_none():
    assert machine.output_of(["no-such-command-here"]) is None
    assert machine.output_of(["false"]) is None
    assert machine.output_of(["echo", "yes"]) == "yes\n"


def test_a_command_that_hangs_is_none(monkeypatch):
    def hang(*args, **kwargs):
        raise subprocess.TimeoutExpired("echo", 1)

    monkeypatch.setattr(subprocess, "run", hang)
    assert machine.output_of(["echo", "yes"]) is None


def test_seeds_are_found_at_every_depth():
    config = {"seed": 1, "simulate": {"seed": 2, "size": 5, "reads": {"error_seed": 3}}, "seeds": 9}
    assert provenance.seeds(config) == {"seed": 1, "simulate.seed": 2, "simulate.reads.error_seed": 3}


def test_provenance_file(tmp_path):
    provenance.write_provenance(tmp_path / "p.json", provenance.machine_description(), {"reference": {"seed": 7}})
    document = json.loads((tmp_path / "p.json").read_text())
    assert document["seeds"] == {"reference.seed": 7}
    assert document["config"] == {"reference": {"seed": 7}}
    assert document["cores"] >= 1
    assert document["memory_bytes"] > 2**20
    assert set(provenance.PACKAGES) <= set(document["versions"])
    assert document["versions"]["numpy"]
    assert "bowtie" in document["peers"]


def test_published_records_are_all_records(tmp_path):
    write_records(tmp_path / "a.tsv", [ROW])
    write_records(tmp_path / "b.tsv", [{**ROW, "value": 2.0}])
    publish_records(tmp_path / "all.tsv", [tmp_path / "a.tsv", tmp_path / "b.tsv"], machine="m")
    frame = read_records(tmp_path / "all.tsv")
    assert frame["case"].tolist() == [ROW["case"], ROW["case"]]
    assert frame["value"].tolist() == [ROW["value"], 2.0]
    assert set(frame["machine"]) == {"m"}


def test_nothing_is_published_of_nothing(tmp_path):
    with pytest.raises(InputError, match="no records to publish; measure first"):
        publish_records(tmp_path / "all.tsv", [], machine="m")
    assert not (tmp_path / "all.tsv").exists()


def test_published_provenance_names_files_and_not_where_they_lie(tmp_path):
    genome = tmp_path / "genome.fa"
    genome.write_text(">a\nACGT\n")
    url = "https://example.org/genome.fa"
    config = {"reference": str(genome), "samples": {"mine": {"reads": str(genome), "reference": url}}, "k": [1, "all"]}
    provenance.write_provenance(tmp_path / "p.json", {}, config, names_only=True)
    document = json.loads((tmp_path / "p.json").read_text())
    kept = {"reference": "genome.fa", "samples": {"mine": {"reads": "genome.fa", "reference": url}}, "k": [1, "all"]}
    assert document["config"] == kept
