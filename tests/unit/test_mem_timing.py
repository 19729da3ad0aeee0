"""What is timed of maximal exact matches: every item's records, on a small genome, and on a stand-in for a GPU."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.kmers import reverse_complement
from warpseed import build_index, find_mems
from warpseed.batches import Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.binned import PAPER_PARAMETERS, binned_index, binned_report
from warpseed.fm_index.store import open_index
from warpseed.fm_index.text import unpack_text
from warpseed.measure import floors as measured_floors
from warpseed.measure.records import read_records, split_parameters, write_records
from warpseed.mems import cpu, floors
from warpseed.mems.fast import how_for
from warpseed.mems.matches import KINDS, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.mems.timing import Case, chosen_reads, time_dataset
from warpseed.sequences.queries import Queries, read_queries, write_fastq
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

SETTINGS = Settings(["paper", "fast"], ["cpu"], [1, 2])


@pytest.fixture
def made(write_reference: Callable[..., Path], tmp_path: Path) -> tuple[Path, Case]:
    """An index of a genome with repeats, and 20 long reads with errors."""
    fasta = write_reference(
        ["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 20 + "GATTACA" * 20, "CCGTAAGCTTGCA" * 25 + "NNACGGATTCAG"]
    )
    build_index(fasta, parts=("fast",)).save(tmp_path / "index")
    rates = {"error_rate": 0.02, "insertion_rate": 0.03, "deletion_rate": 0.03}
    reads = simulate_reads(read_reference(fasta), count=20, length=[50, 120, 300], qualities=True, seed=1, **rates)
    write_fastq(reads, tmp_path / "reads.fq")
    tried = [PAPER_PARAMETERS._replace(bin_size=32), PAPER_PARAMETERS._replace(pre_calc_length=2)]
    return tmp_path / "index", Case("long", str(tmp_path / "reads.fq"), None, [8, 12], ["super"], 2, tried)


def timed(made: tuple[Path, Case], items: list[str], tmp_path: Path, settings: Settings = SETTINGS) -> Any:
    """The records of some items after a round through a file."""
    write_records(tmp_path / "a.tsv", time_dataset(*made, settings, items=items, repeats=2))
    return read_records(tmp_path / "a.tsv")


def stages_of(frame: Any, **where: Any) -> list[str]:
    for column, value in {"repeat": 1, "metric": "time", **where}.items():
        frame = frame[frame[column] == value]
    return list(dict.fromkeys(frame["stage"]))


def test_stages_are_of_the_papers_kind_in_both_tiers(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["stages"], tmp_path)
    own = frame[frame["item"] == "stages"]
    assert own.groupby(["tier", "threads", "parameters"]).ngroups == 8
    assert (own.groupby("parameters")[["digest", "results"]].nunique() == 1).all().all()
    for length in (8, 12):
        hits = find_mems(made[0], made[1].reads, min_length=length, kind="paper")
        named = own[own["parameters"] == f"min_length={length}; kind=paper; strands=2"]
        assert set(named["results"]) == {len(hits)} and len(hits) > 20
    paper = ["load", "pack", "intervals", "filter", "split", "locate", "sort", "total"]
    assert stages_of(own, tier="paper") == paper and stages_of(own, tier="fast") == ["load", "search", "total"]
    reads = frame[frame["item"] == "reads"].set_index("metric")["value"].to_dict()
    lengths = read_queries(made[1].reads).lengths
    assert reads == {"count": lengths.sum(), "longest": lengths.max()} and set(frame["queries"]) == {20}


def test_the_digest_is_of_the_matches(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["in_memory", "file_to_file"], tmp_path)
    own = frame[frame["item"] == "in_memory"]
    assert set(own["tier"]) == {"fast"} and set(own["threads"]) == {1, 2}
    reads = pack_long_reads(read_queries(made[1].reads))
    for length in (8, 12):
        found = cpu.find_fast(open_index(made[0]), reads, Criteria(length, KINDS["super"], 2))
        digest = hashlib.sha256(found.counts.tobytes() + found.hits.tobytes()).hexdigest()
        named = own[own["parameters"] == f"min_length={length}; kind=super; strands=2"]
        assert set(named["digest"]) == {digest} and set(named["results"]) == {len(found.hits)}
    files = frame[frame["item"] == "file_to_file"]
    assert files.groupby("parameters")["digest"].nunique().tolist() == [1, 1] and set(files["tier"]) == {"fast"}
    assert (
        files.groupby("parameters")["results"].first().to_dict()
        == own.groupby("parameters")["results"].first().to_dict()
    )
    assert stages_of(files) == ["load", "read", "pack", "search", "format", "write", "total"]


def test_one_strand(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed((made[0], made[1]._replace(strands=1)), ["file_to_file"], tmp_path, Settings(["fast"], ["cpu"], [1]))
    files = frame[frame["item"] == "file_to_file"]
    for row in files.to_dict("records"):
        length = int(split_parameters(row["parameters"])["min_length"])
        assert row["results"] == len(find_mems(made[0], made[1].reads, min_length=length, both_strands=False))


def test_every_kind_is_counted_once(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["kinds"], tmp_path)
    own = frame[frame["item"] == "kinds"]
    assert len(own) == 6 and set(own["metric"]) == {"count"}
    for row in own.to_dict("records"):
        facts = split_parameters(row["parameters"])
        hits = find_mems(made[0], made[1].reads, min_length=int(facts["min_length"]), kind=facts["kind"])
        assert row["value"] == row["results"] == len(hits)


def test_parts_and_settings_are_of_the_papers_index(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["parts", "settings"], tmp_path)
    index = open_index(made[0])
    parts = frame[(frame["item"] == "parts") & (frame["metric"] != "count")]
    report = {
        entry["part"]: (entry["bytes"], entry["formula_bytes"]) for entry in binned_report(binned_index(index, 12))
    }
    sizes = parts.set_index(["parameters", "metric"])["value"]
    assert {part: (sizes[f"part={part}", "size"], sizes[f"part={part}", "formula"]) for part in report} == report
    own = frame[frame["item"] == "settings"]
    assert set(own["tier"]) == {"paper"} and set(own["threads"]) == {2}
    tried = [
        {name: int(split_parameters(text)[name]) for name in PAPER_PARAMETERS._fields}
        for text in dict.fromkeys(own["parameters"])
    ]
    longest = index.table_length
    assert tried == [
        {"bin_size": bins, "sa_ratio": 7, "pre_calc_length": length}
        for least in (8, 12) for bins, length in ((64, min(least, longest)), (32, min(least, longest)), (64, 2))
    ]  # fmt: skip
    own_times = own[own["metric"] == "time"]
    lengths = own_times["parameters"].str.extract(r"min_length=(\d+)")[0]
    assert (own_times.groupby(lengths)["digest"].nunique() == 1).all()
    assert own[own["metric"] == "size"]["value"].nunique() == 3


def test_only_the_first_reads_are_timed_where_so_many_are_asked_for(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed((made[0], made[1]._replace(most=7)), ["kinds"], tmp_path)
    assert set(frame["queries"]) == {7}
    chosen = chosen_reads(made[1].reads, 7)
    assert chosen.qualities is None and [chosen.name(i) for i in range(7)] == list("0123456")
    (tmp_path / "empty.fa").write_text("")
    with pytest.raises(InputError, match=r"empty.fa"):
        chosen_reads(str(tmp_path / "empty.fa"), None)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(("length", "table_length"), [(4, 5), (12, 8), (20, 11), (20, 16), (60, 16)])
def test_the_floor_counts_what_must_be_read(
    made: tuple[Path, Case], length: int, table_length: int, marked: bool
) -> None:
    """A sector of the table for each seed; one of rows for four that begin with what its matches hold, and of text for
    each."""
    index, queries = open_index(made[0]), read_queries(made[1].reads)
    if marked:
        queries.codes[::97] = 4
    reads, criteria = pack_long_reads(queries), Criteria(length, KINDS["maximal"], 2)
    found = cpu.find_fast(index, reads, criteria)
    how, seeds, rows, text = how_for(criteria, table_length, index.rows), 0, 0, 0
    genome = "".join("$ACGT"[code] for code in unpack_text(index.text, index.segments).tolist())
    held = min(length - how.step + 1, 32)
    occurrences = Counter(genome[i : i + held] for i in range(len(genome)))
    for i in range(len(queries)):
        for read in (queries.sequence(i), reverse_complement(queries.sequence(i))):
            for at in range(0, len(read) - (length - how.step + 1) + 1, how.step):
                if set(read[at : at + held]) <= set("ACGT"):
                    count = occurrences[read[at : at + held]]
                    seeds, rows, text = seeds + 1, rows + -(-count // 4), text + count
    text += sum(bases // 128 for bases in (found.hits["span"] >> np.uint64(32)).tolist())
    for threads in (1, 3):
        sectors = floors.least_sectors(index, reads, criteria, found, table_length=table_length, threads=threads)
        assert sectors == {"table": seeds, "rows": rows, "text": text}
    assert seeds > 100


def test_the_floor_of_crowded_reads_is_that_of_their_longest_matches(tmp_path: Path) -> None:
    """Seeds of what the text is full of have more rows than there are sectors for the longest matches: one of the table
    for every base that a match may begin at, and one of the rows where the table's string there occurs."""
    fasta = tmp_path / "repeats.fa"
    fasta.write_text(">a\n" + "GATTACAGGCATTC" * 400 + "\n")
    index, sequences = build_index(fasta), ["GATTACAGGCATTC" * 10, "GATTACA" * 5]
    reads, strings = pack_long_reads(Queries.from_sequences(sequences)), []
    for read in sequences:
        strings += [each[i : i + 10] for each in (read, reverse_complement(read)) for i in range(len(read) - 13)]
    there = sum(string in "GATTACAGGCATTC" * 3 for string in strings)
    for kind in ("super", "maximal"):
        criteria = Criteria(14, KINDS[kind], 2)
        found = cpu.find_fast(index, reads, criteria)
        sectors = floors.least_sectors(index, reads, criteria, found, table_length=10)
        expected = {"table": len(strings), "rows": there, "text": 0}
        assert (sectors == expected) == (kind == "super")
        assert (sectors["rows"] > len(strings)) == (kind == "maximal")
    assert 0 < there < len(strings)


# A GPU, played by the CPU: what the records of one look like


@pytest.fixture
def pretended(made: tuple[Path, Case], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.pretend_gpu import install

    yield install(monkeypatch, open_index(made[0]))


def test_a_gpu_has_the_same_results_and_its_own_stages(made: tuple[Path, Case], tmp_path: Path, pretended: Any) -> None:
    items = ["stages", "in_memory", "file_to_file"]
    frame = timed(made, items, tmp_path, Settings(["paper", "fast"], ["cpu", "gpu"], [1]))
    frame = frame[frame["item"] != "reads"]
    assert (frame.groupby(["item", "parameters"])["digest"].nunique() == 1).all()
    own = frame[(frame["device"] == "gpu") & (frame["tier"] == "fast")]
    assert set(own["item"]) == set(items)
    assert {"host_to_device", "kernel", "device_to_host", "total"} <= set(stages_of(own, item="in_memory"))


def test_the_papers_stages_on_a_gpu_are_those_on_the_cpu(
    made: tuple[Path, Case], tmp_path: Path, pretended: Any
) -> None:
    """With its index and with others, of which each lies on the device before it is timed."""
    frame = timed(made, ["stages", "settings"], tmp_path, Settings(["paper"], ["cpu", "gpu"], [1]))
    stages = {"pack", "intervals", "filter", "split", "locate", "total"}
    for item in ("stages", "settings"):
        own = frame[(frame["item"] == item) & (frame["metric"] == "time")]
        assert set(own["device"]) == {"cpu", "gpu"}
        assert (own.groupby("parameters")["digest"].nunique() == 1).all()
        for device, copies in (("cpu", set()), ("gpu", {"host_to_device", "device_to_host"})):
            assert set(stages_of(own, device=device)) >= stages | copies, device


def test_kernels_stand_beside_their_floor(
    made: tuple[Path, Case], tmp_path: Path, pretended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"table": 1e9, "rows": 1e9, "text": 1e9}
    monkeypatch.setattr(
        measured_floors, "gather_rates", lambda arrays, repeats, fields: (dict.fromkeys(arrays, 1e9), [])
    )
    frame = timed(made, ["on_device"], tmp_path, Settings(["fast"], ["cpu", "gpu"], [1]))
    limits = frame[frame["item"] == "limits"].set_index(["parameters", "metric"])["value"]
    index, reads = open_index(made[0]), pack_long_reads(read_queries(made[1].reads))
    from warpseed.compute.gpu import on_device
    from warpseed.fm_index.device import tagged_on_device

    with on_device(0):
        table_length = tagged_on_device(index, Stopwatch()).table_length
    for length in (8, 12):
        criteria = Criteria(length, KINDS["super"], 2)
        found = cpu.find_fast(index, reads, criteria)
        sectors = floors.least_sectors(index, reads, criteria, found, table_length=table_length)
        named = f"min_length={length}; kind=super; strands=2; count=20"
        assert limits[named, "floor"] == pytest.approx(sum(sectors[name] / rates[name] for name in rates))
        assert limits[named, "share"] == pytest.approx(limits[named, "floor"] / np.median(limits[[(named, "time")]]))


def test_what_needs_a_gpu_has_no_records_without_one(made: tuple[Path, Case], tmp_path: Path) -> None:
    assert set(timed(made, ["on_device"], tmp_path)["item"]) == {"reads"}
