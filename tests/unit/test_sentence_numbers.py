"""What README and docs say of records in sentences, and in tables that no other test holds, is what these say."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tables_of_pages import rows_of
from warpseed.measure.records import read_records

ROOT = Path(__file__).resolve().parents[2]
MEASUREMENTS, PUBLISHED = (ROOT / "resources" / name for name in ("measurements", "published"))
README, MEMS, READS, STREAMS, EBWT, INDEX, DECISIONS = (
    " ".join((ROOT / name).read_text(encoding="utf-8").split())
    for name in ("README.md", *(f"docs/{page}.md" for page in ("mems", "one_error", "tree_bitmap", "ebwt", "fm_index")))
    + ("docs/decisions.md",)
)


@cache
def records_of(machine: str, system: str) -> pd.DataFrame:
    return read_records(MEASUREMENTS / machine / f"{system}.tsv")


def seconds_of(machine: str, system: str, *keys: str, **where: object) -> Any:
    """Medians by some columns, of the times that have these values in others."""
    records = records_of(machine, system)
    own = records[records["metric"] == "time"]
    for column, value in where.items():
        own = own[own[column] == value]
    assert len(own), where
    return own.groupby(list(keys))["value"].median()


@cache
def printed_of(system: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"{system}.tsv", sep="\t", dtype=str, keep_default_na=False)


def said(page: str, sentence: str) -> list[str]:
    """The numbers of the only sentence that reads so, with {} for each of them."""
    found = re.findall(r"(\d(?:[\d,.]*\d)?)".join(map(re.escape, sentence.split("{}"))), page)
    assert len(found) == 1, f"{len(found)} sentences read so: {sentence}"
    return [found[0]] if isinstance(found[0], str) else list(found[0])


def places(*values: float, digits: int) -> list[str]:
    return [f"{value:.{digits}f}" for value in values]


def figures(*values: float, digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]


# ------------------------------------------------------------------------------------------------------- k-mers


def test_kmers_from_file_to_file_on_a_gpu() -> None:
    """README's table, its sentence on what an index takes to come to the GPU, and what docs/decisions.md says."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = rows_of(text, "| data set | hits | FASTA to BED |")
    records = records_of("nvidia-h200-files", "kmer_seeds")
    medians = seconds_of("nvidia-h200-files", "kmer_seeds", "case", "stage")
    stages = [stage for _, stage in medians.index if stage not in ("total", "load", "index_to_device")]
    assert {row[0].split(",")[0] for row in rows} == set(records["case"]) and set(records["repeat"]) == set(range(5))
    for name, hits, *cells in rows:
        case = name.split(",")[0]
        own = records[records["case"] == case]
        assert set(own["queries"]) == {1_000_000} and {f"{results:,}" for results in own["results"]} == {hits}
        assert medians[case, "write"] == max(medians[case, stage] for stage in stages)
        assert cells == [f"{1e3 * medians[case, stage]:.0f} ms" for stage in ("total", "write")]
    brought = [value for (_, stage), value in medians.items() if stage == "index_to_device"]
    told = said(README, "The index is on the GPU already: a process that brings it there takes {} to {} s more.")
    assert told == places(min(brought), max(brought), digits=1)
    told = said(DECISIONS, "a million k-mers, FASTA to BED: {}, {}, {}, {} and {} ms for S11 to S30")
    assert told == [row[2].removesuffix(" ms") for row in rows]


def test_a_thousand_kmers_as_a_process() -> None:
    medians = seconds_of("intel-xeon", "kmer_seeds", "tool", "stage", case="k20_D0_1000", item="file_to_file")
    index = records_of("intel-xeon", "index")
    size = index.loc[index["metric"] == "size", "value"].sum() / 1e6
    sentence = "As a process on 1,000 k-mers (k=20, D=0), the index's {} MB checked: {} s, most"
    processes = places(medians["warpseed", "process"], medians["bowtie", "process"], digits=2)
    assert said(README, sentence) == [f"{size:.1f}", processes[0]]
    assert said(README, "-a-warm-process)); bowtie's {} s.") == processes[1:]


@pytest.mark.parametrize(("column", "cores"), [(10, "1 core"), (12, "4 cores")])
def test_speedups_of_the_worms_kmers_as_printed(column: int, cores: str) -> None:
    """README's Table I: the columns of the paper's own speedups."""
    printed = printed_of("kmer_seeds")
    own = printed[(printed["item"] == "Table I") & (printed["method"] == f"GPU vs {cores}")]
    rows = rows_of((ROOT / "README.md").read_text(encoding="utf-8"), "| data set | k-mers | paper tier: 1 core |")
    assert [(row[0].replace(", D=", "; mismatches="), row[column]) for row in rows] == list(
        zip(own["case"], own["value"], strict=True)
    )


def test_an_index_of_the_papers_size_in_three_runs() -> None:
    records = records_of("nvidia-h200-human-index", "kmer_seeds")
    own = records[(records["device"] == "cpu") & (records["stage"] == "total") & (records["metric"] == "time")]
    assert len(own) == 3
    told = said(INDEX, "from FASTA to arrays in memory ({} to {} in three runs)")
    assert told == places(own["value"].min(), own["value"].max(), digits=1)


# -------------------------------------------------------------------------------------------------------- reads


def test_stages_of_reads_on_one_core() -> None:
    sides = seconds_of("intel-xeon-reads", "one_error", "item", "tool", "stage", case="r100")
    ours = {stage: value for (item, tool, stage), value in sides.items() if (item, tool) == ("edits", "warpseed")}
    told = said(
        READS, "Of the {} s, reading takes {} ms, packing {}, the search {}, rows and lines {}, and writing {}."
    )
    assert told[0] == f"{ours['total']:.3f}"
    assert told[1:] == places(*(1e3 * ours[at] for at in ("read", "pack", "search", "format", "write")), digits=0)
    told = said(READS, "bwa aln takes {} s on E. coli with one edit; bowtie, which finds substitutions alone, {} s.")
    assert told == places(sides["edits", "bwa", "total"], sides["substitutions", "bowtie", "total"], digits=2)


def test_reads_that_yara_leaves_out() -> None:
    records = records_of("intel-xeon-celegans", "one_error")
    sides = records[records["item"] == "edits"].groupby(["case", "tool"])["results"].max()
    told = said(READS, "yara leaves out one of {} reads that razers3 and we place, with two edits one of {}, another")
    for case, number in zip(("r100", "r100_two_edits"), told, strict=True):
        assert {f"{sides[case, tool]:,}" for tool in ("razers3", "warpseed")} == {number}
        assert sides[case, "razers3"] - sides[case, "yara"] == 1
    reads = [records.loc[records["case"] == case, "queries"].iloc[0] for case in ("r100", "r100_two_edits")]
    told = said(README, "more bases ({}; with two edits those of 100 to 149, {}), the rest as above")
    assert told == [f"{count:,}" for count in reads]


@pytest.mark.parametrize(
    ("machine", "case", "told"),
    [
        ("intel-xeon-reads", "r100", "| 1, beside razers3 3.5.8 |"),
        ("intel-xeon-reads", "r100_two_edits", "| 2, beside razers3 | 0.16 s |"),
        ("intel-xeon-celegans", "r100", "| 1, beside yara | 0.36 s |"),
        ("intel-xeon-celegans", "r100_two_edits", "| 2, beside yara | 0.63 s |"),
    ],
)
def test_reads_a_second_in_memory(machine: str, case: str, told: str) -> None:
    """The last cell of README's tables of reads on one core."""
    assert README.count(told) == 1
    cell = README.split(told)[1].split(" reads/s |")[0].split(", ")[-1].removesuffix(" M")
    records = records_of(machine, "one_error")
    [reads] = set(records.loc[records["case"] == case, "queries"])
    medians = seconds_of(machine, "one_error", "stage", case=case, item="in_memory")
    assert cell == f"{reads / medians['total'] / 1e6:.{len(cell.partition('.')[2])}f}" and len(cell) > 2


def test_what_paper_001_prints() -> None:
    """README's Tables 4 and 5: speedups with and without copies, and the kernel's time."""
    rows = rows_of((ROOT / "README.md").read_text(encoding="utf-8"), "| case | reads | CPU, 1 thread |")
    printed = printed_of("one_error")
    kernels = []
    for row, table in zip(rows[:2], ("Table 4", "Table 5"), strict=True):
        own = printed[printed["item"] == table].set_index("metric")["value"]
        assert row[8] == ", ".join(f"{float(own[name]):.1f}" for name in ("speedup", "speedup without copies"))
        kernels.append(f"{int(own['kernel']):,}")
    assert said(README, "The paper prints {} and {} for the kernel with two million reads") == kernels


def test_reads_to_bam_in_decisions() -> None:
    sides = seconds_of("nvidia-h200-reads", "one_error", "threads", "stage", item="file_to_bam", device="cpu")
    told = said(DECISIONS, "took one core {} s, and 16 no less than {}, {} of them in the stage of the thread that")
    assert told == places(sides[1, "total"], sides[16, "total"], sides[16, "write"], digits=2)
    files = seconds_of(
        "nvidia-h200-reads-files", "one_error", "item", "threads", case="mixed_2M", device="cpu", stage="total"
    )
    many, one, lines, lines_of_one = (files[f"file_to_{to}", threads] for to in ("bam", "file") for threads in (16, 1))
    told = said(DECISIONS, "come to BAM in {} s, {} times as fast as on one ({}), and to TSV in {} and {} s (records:")
    assert told == [f"{many:.2f}", f"{one / many:.1f}", *places(one, lines, lines_of_one, digits=2)]


# ------------------------------------------------------------------------------------------------------ matches


def totals_of_matches(machine: str, threads: int = 1) -> Any:
    """By item, kind, tool and stage."""
    records = records_of(machine, "mems")
    own = records[(records["metric"] == "time") & (records["threads"] == threads)]
    kinds = own["parameters"].str.extract(r"kind=(\w+)")[0]
    return own.groupby([own["item"], kinds, own["tool"], own["stage"]])["value"].median()


def test_matches_of_a_worms_nanopore_reads() -> None:
    """The table of docs/mems.md of C. elegans on the Xeon, and what is said below it."""
    alone, later = "intel-xeon-mems-celegans", "intel-xeon-mems-celegans-maximal"
    head = "| in turns | matches | in memory | two threads | index open | process |"
    rows = rows_of((ROOT / "docs" / "mems.md").read_text(encoding="utf-8"), head)
    ratios = []
    for row, kind, tool, machine in zip(
        rows,
        ("super", "super", "maximal", "maximal"),
        ("warpseed", "bwa", "warpseed", "mummer"),
        (alone, alone, later, later),
        strict=True,
    ):
        sides = totals_of_matches(machine)
        inside = [totals_of_matches(alone, threads)["in_memory", kind, "warpseed", "total"] for threads in (1, 2)]
        records = records_of(machine, "mems")
        [matches] = set(records.loc[(records["item"] == kind) & (records["tool"] == tool), "results"]) - {-1}
        whole = [sides[kind, kind, tool, stage] for stage in ("total", "process")]
        memory = [f"{value:.2f}" for value in inside] if tool == "warpseed" else ["", ""]
        assert row[1:4] == [f"{matches:,}", *memory]
        assert [float(cell) for cell in row[4:]] == figures(*whole, digits=3)
        ratios += [
            sides[kind, kind, tool, stage] / sides[kind, kind, "warpseed", stage] for stage in ("total", "process")
        ]
    told = said(MEMS, "So `super` is {} times as fast as fastmap there with the index open, {} as a process; `maximal`")
    assert told == places(*ratios[2:4], digits=1)
    assert said(MEMS, "`maximal` {} and {} times as mummer 3. Seeds") == places(*ratios[6:], digits=0)


def test_how_many_times_as_fast_matches_are() -> None:
    def times(machine: str, kind: str, tool: str) -> list[float]:
        sides = totals_of_matches(machine)
        return [sides[kind, kind, tool, stage] / sides[kind, kind, "warpseed", stage] for stage in ("total", "process")]

    told = said(MEMS, "on the simulated reads `maximal` is {} times as fast with the index open, {} as a process.")
    assert told == places(*times("intel-xeon-mems", "maximal", "mummer"), digits=0)
    sides = totals_of_matches("amd-epyc-mems")
    pairs = [sides["maximal", "maximal", tool, at] for at in ("total", "process") for tool in ("warpseed", "mummer4")]
    told = said(README, "of simulated reads {} s against {} with the index open, {} against {} as processes")
    assert [float(number) for number in told] == figures(*pairs, digits=3)
    simulated, real = (times(f"amd-epyc-mems{of}", "maximal", "mummer4") for of in ("", "-nanopore"))
    sentence = (
        "So `maximal` is {} times as fast as MUMmer 4 on the simulated reads and {} times on the real ones with the "
        "index open, {} and {} times as a process"
    )
    assert said(MEMS, sentence) == places(*(side[at] for at in (0, 1) for side in (simulated, real)), digits=0)
    worm = "amd-epyc-mems-celegans"
    sentence = (
        "Of *C. elegans* it is {} times as fast with the index open, {} as a process, {} and {} times as fast as "
        "MUMmer 3, and `super` {} and {} times as fast as fastmap; two threads take {} s for `maximal` and {} for "
        "`super` in memory, where one takes {} and {}."
    )
    inside = [
        totals_of_matches(worm, threads)["in_memory", kind, "warpseed", "total"]
        for threads in (2, 1)
        for kind in ("maximal", "super")
    ]
    told = places(*times(worm, "maximal", "mummer4"), *times(worm, "maximal", "mummer"), digits=0)
    told += places(*times(worm, "super", "bwa"), digits=1)
    assert said(MEMS, sentence) == [*told, *places(*inside, digits=2)]


def test_bases_of_long_reads() -> None:
    def bases(machine: str, case: str = "pacbio_20") -> tuple[float, float, int]:
        records = records_of(machine, "mems")
        own = records[(records["item"] == "reads") & (records["case"] == case)].set_index("metric")
        return own.loc["count", "value"], own.loc["longest", "value"], own["queries"].iloc[0]

    records = records_of("intel-xeon-mems", "mems")
    for kind, line in (("super", "| super, beside bwa fastmap 0.7.17 | {} |"), ("maximal", "mummer 3.23 | {} |")):
        [matches] = set(records.loc[(records["item"] == kind) & (records["metric"] == "time"), "results"])
        assert said(README, line) == [f"{matches:,}"]
    count, longest, reads = bases("intel-xeon-mems")
    told = said(README, "E. coli, {} simulated reads of pieces of")
    assert told == [f"{reads:,}"]
    assert said(README, "(so that reads have {} in the mean, {} at most)") == [
        f"{count / reads:,.0f}",
        f"{longest:,.0f}",
    ]
    assert said(MEMS, "1,000 simulated reads ({} Mbases, 8 %") == places(count / 1e6, digits=1)
    for machine, genome in (("intel-xeon-mems-nanopore", "E. coli"), ("intel-xeon-mems-celegans", "C. elegans")):
        count, longest, reads = bases(machine)
        told = said(MEMS, f"{{}} Nanopore reads of {genome} ({{}} Mbases, the longest {{}}")
        assert told == [str(reads), f"{count / 1e6:.1f}", f"{longest:,.0f}"]
    million = [bases("nvidia-h200-mems", case)[0] / 1e6 for case in ("pacbio_20_25249", "accurate_25249")]
    assert said(README, "with 12 % of errors ({} Mbases) on an H200") == places(million[0], digits=0)
    assert said(README, "| `super`, 1 % of errors ({} Mbases) |") == places(million[1], digits=0)
    assert said(MEMS, "2,000 of these reads ({} Mbases)") == places(
        bases("nvidia-h200-mems", "pacbio_cores")[0] / 1e6, digits=0
    )
    assert said(MEMS, "search the first 400 reads ({} Mbases)") == places(
        bases("nvidia-h200-human-mems")[0] / 1e6, digits=1
    )


# ------------------------------------------------------------------------------------------------------ streams


def test_streams_on_one_core() -> None:
    """README's first row, and what docs/tree_bitmap.md says of a dictionary that grows."""
    sides = seconds_of("intel-xeon-tree-bitmap", "tree_bitmap", "item", "tool", "tier", "stage", threads=1)
    ours, trie, words = (
        sides["fixed", tool, tier, "total"]
        for tool, tier in (("warpseed", "fast"), ("ahocorasick_rs", "-"), ("numpy", "-"))
    )
    told = said(README, "| E. coli, fixed 20-mers | {} s | | | | ahocorasick_rs {} s, numpy {} s |")
    assert told == [f"{ours:.3f}", *places(trie, words, digits=2)]
    fast, paper = (sides["in_memory", "warpseed", tier, "total"] for tier in ("fast", "paper"))
    told = said(STREAMS, "a dictionary that grows takes {} s, the paper tier {} s: {} times.")
    assert told == [f"{fast:.4f}", f"{paper:.2f}", f"{paper / fast:.0f}"]


def test_streams_on_a_gpu_in_sentences() -> None:
    records = records_of("nvidia-h200-tree-bitmap", "tree_bitmap")
    limits = records[records["item"] == "limits"].groupby(["parameters", "metric"])["value"].median()
    billion = limits["k=15; length=1000000000"]
    told = said(STREAMS, "there are turns alone, and kernels take {} ms, of which their floor is {}.")
    assert told == [f"{1e3 * billion['time']:.0f}", f"{billion['share']:.2f}"]
    rates = [limits[f"k={k}; length=100286076; bases=genome", "throughput"] / 1e9 for k in (3, 6, 9, 12)]
    assert said(STREAMS, "Its {} to {} G bases/s are") == places(min(rates), max(rates), digits=0)
    own = records[(records["item"] == "counts") & (records["metric"] == "time")]
    of = own.groupby([own["device"], own["threads"], own["parameters"], own["stage"]])["value"].median()
    names = {k: f"k={k}; length=100286076; bases=genome" for k in (12, 15, 31)}
    there, many, one = (
        [of[(*side, name, "total")] for name in names.values()] for side in (("gpu", 16), ("cpu", 16), ("cpu", 1))
    )
    sentence = (
        "The k-mers of C. elegans are counted in {}, {} and {} s for k = 12, 15 and 31, where 16 cores take {}, {} and "
        "{} s, and one core {}, {} and {}; {} and {} % of the GPU's time for k = 15 and 31"
    )
    shares = [
        100
        * sum(of["gpu", 16, names[k], stage] for stage in ("device_to_host", "look_up"))
        / of["gpu", 16, names[k], "total"]
        for k in (15, 31)
    ]
    told = [*places(*there, digits=3), *places(*many, *one, digits=2), *places(*shares, digits=0)]
    assert said(STREAMS, sentence) == told


def test_what_the_thesis_prints() -> None:
    own = printed_of("tree_bitmap").set_index("metric")["value"]
    cpu, serial, concurrent = (own[f"total of {name}"] for name in ("the CPU alone", "serial", "concurrent"))
    assert said(README, "for which it prints {} s on a CPU and {} s on a GPU") == [cpu, concurrent]
    told = said(STREAMS, "So stands the thesis, with {} and {} s on its GPU and {} s on its CPU.")
    assert told == [serial, concurrent, cpu]


# -------------------------------------------------------------------------------------------------------- words


def test_mean_speedups_that_paper_004_prints() -> None:
    printed = printed_of("ebwt")
    means = []
    for item, metric in (("Table 1", "sort"), ("Table 2", "sort"), ("Table 3", "total")):
        own = printed[(printed["item"] == item) & (printed["metric"] == metric)]
        cpu, gpu = (own[own["method"] == method].set_index("case")["value"].astype(float) for method in ("CPU", "CUDA"))
        ratios = cpu / gpu
        means.append(ratios.mean())
    lengths = ratios.index.str.extract(r"^(\d+) ", expand=False).astype(int)
    assert len(lengths) == 22 and (ratios[lengths <= 90] < 1).all()
    told = said(EBWT, "what the print gives: {} in Table 1, {} in Table 2, {} in the totals of Table 3.")
    assert told == [f"{means[0]:.2f}", f"{means[1]:.0f}", f"{means[2]:.2f}"]
    told = said(EBWT, "is the slower one, and from 100 on the mean is {}.")
    assert told == places(ratios[lengths >= 100].mean(), digits=2)


def test_words_in_sentences() -> None:
    took = seconds_of("nvidia-h200-two-ebwt", "ebwt", "case", "gpus", stage="distances")
    cases = [f"{count} words of 5,000 letters" for count in ("20,000", "40,000")]
    told = said(EBWT, "Distances alone are {} times for 20,000 words, {} for 40,000.")
    assert told == places(*(took[case, 1] / took[case, 2] for case in cases), digits=2)
    there = seconds_of("nvidia-h200-ebwt", "ebwt", "case", item="transform", device="gpu", stage="transform")
    told = said(EBWT, "where that begins: {} ms for a hundred million")
    assert told == places(1e3 * there["1,000,000 words of 100 letters"], digits=1)


def test_copies_of_two_gpus_in_decisions() -> None:
    kmers = seconds_of("nvidia-h100-two", "kmer_seeds", "gpus", stage="host_to_device", item="in_memory")
    told = said(DECISIONS, "is copied as it is: {} ms to one and {} to two (`device_copies.py`")
    assert told == places(*(1e3 * kmers[gpus] for gpus in (1, 2)), digits=1)
