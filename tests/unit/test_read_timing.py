"""What is timed of reads with one error: every item's records, on a small genome, and on a stand-in for a GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warpseed import build_index, find_reads
from warpseed.batches import Settings
from warpseed.errors import InputError
from warpseed.fm_index.store import open_index
from warpseed.measure import floors as measured_floors
from warpseed.measure import searches
from warpseed.measure.records import read_records, split_parameters, write_records
from warpseed.one_error import cpu, floors, timing
from warpseed.one_error.paper import READS_A_LAUNCH, RESULT_BYTES
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.one_error.results import fullest_launch, stored_in, write_results
from warpseed.one_error.timing import Case, chosen_reads, time_dataset
from warpseed.sequences.queries import read_queries, write_fastq
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

SETTINGS = Settings(["paper", "fast"], ["cpu"], [1, 2])
ON_CPU = ["fixed_slots", "results", "profile", "in_memory", "file_to_file", "file_to_bam"]


@pytest.fixture
def made(write_reference: Callable[..., Path], tmp_path: Path) -> tuple[Path, Case]:
    """An index of a genome with repeats, and 120 reads of 20 to 60 bases with errors."""
    fasta = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 20 + "GATTACA" * 20, "CCGTAAGCTTGCA" * 25])
    build_index(fasta, parts=("fast", "forward")).save(tmp_path / "index")
    reads = simulate_reads(
        read_reference(fasta), count=120, length=[20, 60], error_rate=0.01, insertion_rate=0.005, deletion_rate=0.005,
        qualities=True, seed=1,
    )  # fmt: skip
    write_fastq(reads, tmp_path / "reads.fq")
    return tmp_path / "index", Case("mixed", str(tmp_path / "reads.fq"), None, None, Criteria(1, 2), [3, 7], [8, 32])


def timed(made: tuple[Path, Case], items: list[str], tmp_path: Path, settings: Settings = SETTINGS) -> Any:
    """The records of some items after a round through a file."""
    write_records(tmp_path / "a.tsv", time_dataset(*made, settings, items=items, repeats=2))
    return read_records(tmp_path / "a.tsv")


def stages_of(frame: Any, **where: Any) -> list[str]:
    for column, value in {"repeat": 1, "metric": "time", **where}.items():
        frame = frame[frame[column] == value]
    return list(dict.fromkeys(frame["stage"]))


def test_every_item_has_its_records_and_the_same_results(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ON_CPU, tmp_path)
    assert list(dict.fromkeys(frame["item"])) == ON_CPU
    assert set(frame["system"]) == {"one_error"} and set(frame["case"]) == {"mixed"} and set(frame["queries"]) == {120}
    hits = find_reads(made[0], made[1].reads)
    in_memory = frame[frame["item"] == "in_memory"]
    assert set(in_memory["digest"]) == {hits.digest()} and set(in_memory["results"]) == {len(hits)}
    assert in_memory.groupby(["tier", "threads"]).ngroups == 4
    files = frame[frame["item"] == "file_to_file"]
    assert set(files["tier"]) == {"fast"} and set(files["results"]) == {len(hits)} and files["digest"].nunique() == 1
    bam = frame[frame["item"] == "file_to_bam"]
    best = find_reads(made[0], made[1].reads, report="best")
    assert set(bam["results"]) == {len(best)} and bam["digest"].nunique() == 1 and set(bam["threads"]) == {1, 2}
    # What is the paper's runs on one thread, in the paper tier.
    paper = frame[frame["item"].isin(["fixed_slots", "results", "profile"])]
    assert set(paper["tier"]) == {"paper"} and set(paper["threads"]) == {1}
    searched = cpu.search_paper(open_index(made[0]), pack_reads(read_queries(made[1].reads)), slots=7)
    seven = paper[paper["parameters"] == "slots=7; edits=1; strands=2"]
    assert set(seven["results"]) == {int(searched.stored.sum())} and seven["digest"].nunique() == 1
    assert set(seven["item"]) == {"fixed_slots", "profile"}


def test_two_edits(made: tuple[Path, Case], tmp_path: Path) -> None:
    case = made[1]._replace(criteria=Criteria(2, 2))
    frame = timed((made[0], case), ["in_memory", "file_to_file"], tmp_path, Settings(["fast"], ["cpu"], [1]))
    hits = find_reads(made[0], case.reads, max_edits=2)
    assert len(hits) > len(find_reads(made[0], case.reads))
    assert set(frame["results"]) == {len(hits)} and set(frame["parameters"]) == {"edits=2; strands=2"}


def test_each_item_has_the_stages_of_its_way(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["fixed_slots", "profile", "in_memory", "file_to_file"], tmp_path)
    assert stages_of(frame, item="fixed_slots") == ["load", "search", "total"]
    assert stages_of(frame, item="profile") == ["read_index", "read", "pack", "search", "write"]
    assert stages_of(frame, item="in_memory", tier="paper") == ["load", "search", "locate", "total"]
    assert stages_of(frame, item="file_to_file") == ["load", "read", "pack", "search", "format", "write", "total"]
    rates = frame[frame["metric"] == "throughput"]
    assert set(rates["item"]) == {"in_memory"} and set(rates["unit"]) == {"reads/s"}


def test_figure_5_is_what_searches_with_so_many_slots_keep(made: tuple[Path, Case], tmp_path: Path) -> None:
    frame = timed(made, ["results"], tmp_path)
    index, reads = open_index(made[0]), pack_reads(read_queries(made[1].reads))
    most = int(cpu.search_paper(index, reads).counts.max())
    counts = {}
    for row in frame.to_dict("records"):
        counts.setdefault(row["metric"], {})[int(split_parameters(row["parameters"])["slots"])] = row["value"]
    assert sorted(counts["count"]) == [slots for slots in timing.FIGURE_SLOTS if slots < most] + [most]
    for slots, value in counts["count"].items():
        assert value == cpu.search_paper(index, reads, slots=slots).stored.sum()
        assert counts["memory"][slots] == slots * RESULT_BYTES * 120
        assert counts["compact_memory"][slots] == value * RESULT_BYTES  # one launch


def test_memory_of_results_is_that_of_the_fullest_launch() -> None:
    found = np.zeros(2 * READS_A_LAUNCH + 10, np.int64)
    found[:5], found[READS_A_LAUNCH : READS_A_LAUNCH + 3], found[-1] = 4, 9, 100
    assert fullest_launch(found, 50) == 50 and fullest_launch(found, 5) == 20 and fullest_launch(found, 1) == 5
    assert stored_in(found, 5) == 20 + 15 + 5 and fullest_launch(found[:0], 5) == 0


def test_results_are_written_as_the_paper_has_them(made: tuple[Path, Case], tmp_path: Path) -> None:
    reads = read_queries(made[1].reads)
    searched = cpu.search_paper(open_index(made[0]), pack_reads(reads), slots=9)
    write_results(tmp_path / "results.tsv", reads, searched)
    heading, *lines = [line.split("\t") for line in (tmp_path / "results.tsv").read_text().splitlines()]
    assert heading == ["read", "strand", "kind", "offset", "base", "low", "high"]
    names = [reads.name(i) for i in range(len(reads)) for _ in range(searched.stored[i])]
    assert [line[0] for line in lines] == names
    assert [int(line[5]) for line in lines] == searched.results.low.tolist()
    assert [int(line[6]) for line in lines] == searched.results.high.tolist()
    assert {line[2] for line in lines} == set("=XDI") and {line[1] for line in lines} == {"+", "-"}
    edit = searched.results.edit[7]
    assert lines[7][1:5] == ["+-"[edit >> 4 & 1], "=XDI"[edit & 3], str(edit >> 5), "ACGT"[edit >> 2 & 3]]


def test_the_digest_of_file_to_file_is_of_the_file(
    made: tuple[Path, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands otherwise in the file has another digest."""
    parse = searches.parse_hits

    def altered(path: Path, *arguments: Any) -> np.ndarray:
        text = path.read_text().splitlines(keepends=True)
        path.write_text(
            "".join(line if number != 5 else line.replace("\t1\t", "\t0\t") for number, line in enumerate(text))
        )
        return parse(path, *arguments)

    whole = timed(made, ["file_to_file"], tmp_path)
    monkeypatch.setattr(searches, "parse_hits", altered)
    changed = timed(made, ["file_to_file"], tmp_path)
    assert set(changed["results"]) == set(whole["results"]) and not set(changed["digest"]) & set(whole["digest"])


def test_reads_are_chosen_by_length_and_number(made: tuple[Path, Case], tmp_path: Path) -> None:
    reads = read_queries(made[1].reads, qualities=True)
    chosen = chosen_reads(made[1].reads, 10, (30, 40))
    fitting = [i for i in range(len(reads)) if 30 <= reads.lengths[i] <= 40][:10]
    assert [chosen.sequence(i) for i in range(10)] == [reads.sequence(i) for i in fitting]
    assert [chosen.name(i) for i in range(10)] == [str(i) for i in range(10)]
    assert chosen.qualities is not None and reads.qualities is not None
    first = reads.offsets[fitting[3]]
    assert chosen.qualities[chosen.offsets[3]] == reads.qualities[first]
    with pytest.raises(InputError, match=r"reads.fq: there are no reads of 100 to 101 bases to be timed"):
        chosen_reads(made[1].reads, None, (100, 101))


# A GPU, played by the CPU: what the records of one look like


@pytest.fixture
def pretended(made: tuple[Path, Case], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.pretend_gpu import install

    yield install(monkeypatch, open_index(made[0]))


def test_a_gpu_has_the_same_results_and_its_own_stages(made: tuple[Path, Case], tmp_path: Path, pretended: Any) -> None:
    items = ["fixed_slots", "results", "profile", "in_memory", "file_to_file", "file_to_bam"]
    frame = timed(made, items, tmp_path, Settings(["paper", "fast"], ["cpu", "gpu"], [1]))
    digests = defaultdict(set)
    for row in frame.itertuples():
        digests[row.item, row.parameters].add(row.digest)
    assert {len(each) for each in digests.values()} == {1} and len(digests) > 5
    own = frame[frame["device"] == "gpu"]
    assert stages_of(own, item="profile") == [
        "read_index", "read", "pack", "index_to_device", "host_to_device", "kernel", "device_to_host", "settle",
        "write",
    ]  # fmt: skip
    # An index of its own is brought to the device in each run; what the warm-up brought is not added to it.
    brought = own[(own["item"] == "profile") & (own["stage"] == "index_to_device")]
    assert brought["repeat"].tolist() == [0, 1]
    fixed = own[(own["item"] == "fixed_slots") & (own["parameters"] == "slots=7; edits=1; strands=2")]
    for _, run in fixed.groupby("repeat"):
        seconds = run.set_index("stage")["value"]
        assert seconds["total"] == pytest.approx(seconds[["host_to_device", "kernel", "device_to_host"]].sum())


@pytest.mark.parametrize(("device", "gpus"), [("gpu:all", 2), ("gpu:1", 1), ("gpu:1,0", 2)])
def test_gpus_by_number_are_those_that_work(
    made: tuple[Path, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, gpus: int
) -> None:
    """Each item runs on them, finds what one finds, and its records say how many they are."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.pretend_gpu import install

    install(monkeypatch, open_index(made[0]), devices=2)
    frame = timed(made, ["fixed_slots", "in_memory"], tmp_path, Settings(["paper", "fast"], ["cpu", device], [1]))
    own = frame[frame["device"] == "gpu"]
    assert set(own["gpus"]) == {gpus} and own.groupby(["item", "tier"]).ngroups == 3
    assert (frame.groupby(["item", "parameters"])["digest"].nunique() == 1).all()


def test_blocks_and_reads_on_the_device(
    made: tuple[Path, Case], tmp_path: Path, pretended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"table": 1e9, "rows": 1e9, "text": 1e9}
    monkeypatch.setattr(
        measured_floors, "gather_rates", lambda arrays, repeats, fields: (dict.fromkeys(arrays, 1e9), [])
    )
    frame = timed(made, ["block_sizes", "on_device"], tmp_path, Settings(["paper", "fast"], ["cpu", "gpu"], [1]))
    index, reads = open_index(made[0]), pack_reads(read_queries(made[1].reads))
    results = cpu.search_paper(index, reads).counts.sum()
    blocks = frame[frame["item"] == "block_sizes"]
    assert set(blocks["parameters"]) == {f"slots=7; block={size}; edits=1; strands=2" for size in (8, 32)}
    assert set(blocks["digest"]) == {f"count={results}"} and set(blocks["stage"]) == {"kernel"}
    limits = frame[frame["item"] == "limits"]
    found = cpu.find_fast(index, reads)
    sectors = floors.least_sectors(found, reads.lengths, Criteria(1, 2))
    assert limits.groupby("tier")["results"].first().to_dict() == {"fast": len(found.hits), "paper": results}
    floor = limits.set_index(["tier", "metric"])["value"]["fast", "floor"]
    assert floor == pytest.approx(sum(sectors[name] / rates[name] for name in rates))
    assert "floor" not in set(limits.loc[limits["tier"] == "paper", "metric"])
    assert set(limits["parameters"]) == {"edits=1; strands=2; count=120"}


def test_what_needs_a_gpu_has_no_records_without_one(made: tuple[Path, Case], tmp_path: Path) -> None:
    assert len(timed(made, ["block_sizes", "on_device"], tmp_path)) == 0


def test_the_floor_counts_what_must_be_read(made: tuple[Path, Case]) -> None:
    """Two halves in two orientations, a row for each place, and the text there; four rows share a sector."""
    reads = pack_reads(read_queries(made[1].reads))
    found = cpu.find_fast(open_index(made[0]), reads)
    sectors = floors.least_sectors(found, reads.lengths, Criteria(1, 2))
    assert sectors["table"] == 4 * 120
    places = defaultdict(list)
    for query in range(120):
        first = int(found.counts[:query].sum())
        for word in found.hits[first : first + int(found.counts[query])]:
            places[query, int(word) >> 31 & 1].append(int(word) >> 32)
    rows = text = 0
    for (query, _), starts in places.items():
        starts.sort()
        loci = 1 + sum(b - a > 2 for a, b in zip(starts, starts[1:], strict=False))
        rows += -(-loci // 4)
        text += loci * -(-int(reads.lengths[query]) // 128)
    assert (sectors["rows"], sectors["text"]) == (rows, text)
    nothing = floors.least_sectors(
        found._replace(hits=found.hits[:0], counts=0 * found.counts), reads.lengths, Criteria(1, 1)
    )
    assert nothing == {"table": 240, "rows": 0, "text": 0}
