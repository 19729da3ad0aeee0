"""Seeds of a user's own samples: from a sheet, alone, a second time, and from another workflow."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pysam
import pytest
from warpseed import ebwt_distances
from workflow_runs import ROOT, snakemake

pytestmark = pytest.mark.workflow

READ_LENGTH, K, STEP = 60, 20, 10


def write_genome(path: Path, seed: int) -> str:
    """Write a random genome of one contig, named as the file, and return its bases."""
    bases = "".join(np.random.default_rng(seed).choice(list("ACGT"), 3000))
    path.write_text(f">{path.stem}\n{bases}\n")
    return bases


def write_reads(path: Path, genome: str, count: int) -> dict[str, int]:
    """Write FASTQ reads of the forward strand, gzip where the name says so, and return where each was drawn."""
    starts = {f"r{i}": i * 37 % (len(genome) - READ_LENGTH) for i in range(count)}
    lines = [f"@{name}\n{genome[p : p + READ_LENGTH]}\n+\n{'I' * READ_LENGTH}\n" for name, p in starts.items()]
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return starts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two genomes, reads of each, a sheet with samples of both, and a configuration that names it."""
    folder = tmp_path_factory.mktemp("own data")
    for number, (genome, reads) in enumerate((("one", "first.fq.gz"), ("two", "second.fq"))):
        write_reads(folder / reads, write_genome(folder / f"{genome}.fa", number), 50)
    # Several pieces, which are what chunks share.
    write_reads(folder / "many.fq", (folder / "two.fa").read_text().splitlines()[1], 45_000)
    (folder / "samples.tsv").write_text(
        "# samples of two genomes\nsample\treference\treads\t"
        "k\tstep\tcount\tchunks\tsystem\tmax_edits\tmultiple\treport\tmin_length\tkind\n"
        f"first\tone.fa\tfirst.fq.gz\t{K}\t{STEP}\nsecond\ttwo.fa\tsecond.fq\t{K}\t\t30\n"
        f"whole\ttwo.fa\tmany.fq\t{K}\t{STEP}\t\t\nshared\ttwo.fa\tmany.fq\t{K}\t{STEP}\t\t3\n"
        "mapped\ttwo.fa\tmany.fq\t\t\t\t\treads\nparted\ttwo.fa\tmany.fq\t\t\t\t3\treads\n"
        "listed\tone.fa\tfirst.fq.gz\t\t\t\t\treads\t2\txa\tall\n"
        "matched\ttwo.fa\tmany.fq\t\t\t\t\tmems\nmatches\ttwo.fa\tmany.fq\t\t\t\t3\tmems\n"
        "short\ttwo.fa\tsecond.fq\t\t\t\t\tmems\t\t\t\t11\tmaximal\n"
        "counted\t\tmany.fq\t21\t\t\t\ttree_bitmap\ncompared\t\tsecond.fq\t\t\t\t\tebwt\n"
    )
    (folder / "my.yaml").write_text("samples: samples.tsv\nmeasure: {devices: [cpu]}\n")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> str:
    """What a run of the target `seeds` printed."""
    done = snakemake("seeds", "--configfile", str(folder / "my.yaml"), directory=folder)
    assert done.returncode == 0, done.stdout
    return done.stdout


def jobs(output: str) -> set[str]:
    """The rules in the table of a run's jobs."""
    table = re.search(r"^job +count\n-+ +-+\n((?:\w+ +\d+\n)+)", output, re.MULTILINE)
    assert table, output
    return {line.split()[0] for line in table.group(1).splitlines()} - {"total"}


def seeds_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def table_of(path: Path) -> list[dict[str, str]]:
    header, *lines = (line.split("\t") for line in path.read_text().splitlines())
    return [dict(zip(header, line, strict=True)) for line in lines]


def test_the_target_seeds_makes_what_samples_need(run: str, folder: Path) -> None:
    """No benchmark, no report, nothing simulated, and of an index the fast tier's part alone."""
    made = {
        "build_sample_index",
        "verify_sample_index",
        "compare_records",
        "count_kmers",
        "cut_sample_kmers",
        "find_seeds",
        "merge_seeds",
        "merge_bam",
        "merge_paf",
        "list_samples",
    }
    assert jobs(run) == made | {"seeds"}
    assert {path.name for path in (folder / "results").iterdir()} == {"seeds"}
    assert not list((folder / "results" / "seeds" / "chunks").rglob("*.runs"))
    files = {path.name for path in (folder / "results" / "seeds" / "index" / "one").glob("*.npy")}
    assert {name.split(".")[0] for name in files} == {"core", "fast", "tags"}


def test_every_seed_is_traced_to_its_read(run: str, folder: Path) -> None:
    """READ:OFFSET of a k-mer is where it was cut; that of one that is found uniquely says where its read lies."""
    genome = (folder / "one.fa").read_text().splitlines()[1]
    starts = {f"r{i}": i * 37 % (len(genome) - READ_LENGTH) for i in range(50)}
    expected = {
        ("one", str(start + offset), str(start + offset + K), f"{name}:{offset}", "0", "+")
        for name, start in starts.items()
        for offset in range(0, READ_LENGTH - K + 1, STEP)
    }
    assert {tuple(fields) for fields in seeds_of(folder / "results" / "seeds" / "first.bed.gz")} == expected
    drawn = {fields[3] for fields in seeds_of(folder / "results" / "seeds" / "second.bed.gz")}
    assert len(drawn) == 30
    assert all(re.fullmatch(r"r\d+:\d+", name) for name in drawn)


def test_chunks_are_not_seen_in_the_result(run: str, folder: Path) -> None:
    """Reads that three jobs share give the bytes of one job; each of them had some of the reads."""
    seeds = folder / "results" / "seeds"
    for ending in ("bed.gz", "bed.gz.tbi", "density.tsv"):
        assert (seeds / f"whole.{ending}").read_bytes() == (seeds / f"shared.{ending}").read_bytes(), ending
    whole, shared = ((seeds / f"{name}.summary.tsv").read_text() for name in ("whole", "shared"))
    assert whole.replace("whole", "shared") == shared
    logs = [(folder / "logs" / "seeds" / "samples" / "shared" / f"{chunk}.log").read_text() for chunk in (1, 2, 3)]
    reads = [int(re.search(r"^reads: ([\d,]+)$", log, re.MULTILINE).group(1).replace(",", "")) for log in logs]
    assert sum(reads) == 45_000
    assert min(reads) > 2_000


def test_seeds_are_sorted_and_can_be_asked_for_by_place(run: str, folder: Path) -> None:
    seeds = seeds_of(folder / "results" / "seeds" / "whole.bed.gz")
    places = [(int(fields[1]), int(fields[2])) for fields in seeds]
    assert places == sorted(places)
    with pysam.TabixFile(str(folder / "results" / "seeds" / "whole.bed.gz")) as table:
        asked = [line.split("\t") for line in table.fetch("two", 1000, 1001)]
    assert asked == [fields for fields in seeds if int(fields[1]) <= 1000 < int(fields[2])]
    assert len(asked) > 10


def test_summaries_say_what_the_seeds_add_up_to(run: str, folder: Path) -> None:
    seeds = folder / "results" / "seeds"
    rows = table_of(seeds / "samples.tsv")
    names = [
        "first",
        "second",
        "whole",
        "shared",
        "mapped",
        "parted",
        "listed",
        "matched",
        "matches",
        "short",
        "counted",
        "compared",
    ]
    assert [row["sample"] for row in rows] == names
    for row in rows:
        assert (seeds / row["seeds"]).is_file() and row["seeds"].startswith(f"{row['sample']}.")
        own = {column: value for column, value in row.items() if value}
        assert table_of(seeds / f"{row['sample']}.summary.tsv") == [own]
    for row in (row for row in rows if row["system"] == "kmers"):
        hits = seeds_of(seeds / f"{row['sample']}.bed.gz")
        assert int(row["hits"]) == len(hits)
        bins = table_of(seeds / f"{row['sample']}.density.tsv")
        for strand, column in (("+", "plus"), ("-", "minus")):
            assert sum(int(bin[column]) for bin in bins) == sum(fields[5] == strand for fields in hits)
        for bin in bins[::50]:
            begin = [fields for fields in hits if int(bin["start"]) <= int(fields[1]) < int(bin["end"])]
            assert int(bin["plus"]) + int(bin["minus"]) == len(begin)
    assert (
        rows[0] | {"reference": "one", "reads": "first.fq.gz", "parameters": "k=20; step=10; mismatches=0"} == rows[0]
    )
    assert rows[1]["parameters"] == "k=20; count=30; mismatches=0"
    assert (rows[0]["queries"], rows[0]["found"], rows[1]["queries"]) == ("250", "250", "30")


def test_reads_are_placed_as_bam(run: str, folder: Path) -> None:
    """Every read lies where it was drawn; three jobs make the bytes of one."""
    seeds = folder / "results" / "seeds"
    for ending in ("bam", "bam.bai", "density.tsv"):
        assert (seeds / f"mapped.{ending}").read_bytes() == (seeds / f"parted.{ending}").read_bytes(), ending
    assert not list(seeds.glob("mapped.bed*"))
    pysam.quickcheck(str(seeds / "mapped.bam"))
    with pysam.AlignmentFile(str(seeds / "mapped.bam")) as file:
        records = list(file.fetch("two"))
        assert len(list(file.fetch("two", 1000, 1001))) > 100 and file.nocoordinate == 0
    primary = {record.query_name: record for record in records if not record.is_secondary}
    assert len(primary) == 45_000
    for i in range(0, 45_000, 500):
        record = primary[f"r{i}"]
        place = (record.reference_start, record.cigarstring, record.flag, record.get_tag("NM"))
        assert place == (i * 37 % (3000 - READ_LENGTH), f"{READ_LENGTH}M", 0, 0)
    row = table_of(seeds / "mapped.summary.tsv")[0]
    assert (int(row["queries"]), int(row["found"]), int(row["hits"])) == (45_000, 45_000, len(records))
    assert (row["system"], row["parameters"]) == ("reads", "edits=1; report=best; multiple=secondary")


def test_placements_that_are_listed_are_counted(run: str, folder: Path) -> None:
    seeds = folder / "results" / "seeds"
    with pysam.AlignmentFile(str(seeds / "listed.bam")) as file:
        records = list(file.fetch(until_eof=True))
    assert len(records) == 50 and not any(record.is_secondary for record in records)
    hits = sum(1 + record.get_tag("XA").count(";") for record in records)
    bins = table_of(seeds / "listed.density.tsv")
    assert sum(int(bin["plus"]) + int(bin["minus"]) for bin in bins) == hits > 500
    assert int(table_of(seeds / "listed.summary.tsv")[0]["hits"]) == hits


def test_matches_of_reads_are_paf(run: str, folder: Path) -> None:
    """A read without an error matches where it was drawn; three jobs make the bytes of one."""
    seeds = folder / "results" / "seeds"
    for ending in ("paf.gz", "paf.gz.tbi", "density.tsv"):
        assert (seeds / f"matched.{ending}").read_bytes() == (seeds / f"matches.{ending}").read_bytes(), ending
    lines = seeds_of(seeds / "matched.paf.gz")
    assert len(lines) == int(table_of(seeds / "matched.summary.tsv")[0]["hits"]) >= 45_000
    for name, *fields in lines[::500]:
        start = int(name[1:]) * 37 % (3000 - READ_LENGTH)
        place = ["two", "3000", str(start), str(start + READ_LENGTH)]
        assert fields[:8] == [str(READ_LENGTH), "0", str(READ_LENGTH), "+", *place]
    starts = [int(fields[7]) for fields in lines]
    assert starts == sorted(starts)
    with pysam.TabixFile(str(seeds / "matched.paf.gz")) as table:
        asked = [line.split("\t") for line in table.fetch("two", 1000, 1001)]
    assert asked == [fields for fields in lines if int(fields[7]) <= 1000 < int(fields[8])] and len(asked) > 100
    rows = {row["sample"]: row for row in table_of(seeds / "samples.tsv")}
    told = {name: (rows[name]["system"], rows[name]["parameters"]) for name in ("matched", "short")}
    assert told == {
        "matched": ("mems", "min_length=20; kind=super; strands=2"),
        "short": ("mems", "min_length=11; kind=maximal; strands=2"),
    }


def test_the_kmers_of_reads_are_counted(run: str, folder: Path) -> None:
    seeds = folder / "results" / "seeds"
    reads = (folder / "many.fq").read_text().splitlines()[1::4]
    counts = Counter(read[i : i + 21] for read in reads for i in range(READ_LENGTH - 20))
    heading, *lines = seeds_of(seeds / "counted.kmers.tsv.gz")
    assert heading == ["record", "start", "count", "kmer", "status"]
    assert {line[3]: int(line[2]) for line in lines} == counts and len(lines) == len(counts)
    assert all(line[4] == "new" and reads[int(line[0][1:])][int(line[1]) :][:21] == line[3] for line in lines)
    (row,) = table_of(seeds / "counted.summary.tsv")
    assert row == {
        "sample": "counted", "reads": "many.fq", "system": "tree_bitmap", "parameters": "k=21",
        "seeds": "counted.kmers.tsv.gz", "records": "45000", "bases": str(45_000 * READ_LENGTH),
        "kmers": str(counts.total()), "new": str(len(counts)),
    }  # fmt: skip


def test_records_are_compared(run: str, folder: Path) -> None:
    seeds = folder / "results" / "seeds"
    (row,) = table_of(seeds / "compared.summary.tsv")
    assert row == {
        "sample": "compared", "reads": "second.fq", "system": "ebwt", "parameters": "tree=nj",
        "seeds": "compared.distances.tsv", "records": "50", "bases": str(50 * READ_LENGTH), "pairs": "1225",
    }  # fmt: skip
    expected = ebwt_distances(folder / "second.fq")
    rows = table_of(seeds / "compared.distances.tsv")
    assert [[int(row[name]) for name in expected.names] for row in rows] == expected.values.tolist()
    made = {path.name.removeprefix("compared.") for path in seeds.glob("compared.*")}
    assert made == {
        "dendrogram.svg", "distances.tsv", "ebwt.txt", "heatmap.svg", "newick", "phylip", "summary.tsv", "words.tsv",
    }  # fmt: skip


def test_a_second_run_does_nothing(run: str, folder: Path) -> None:
    done = snakemake("seeds", "--configfile", str(folder / "my.yaml"), directory=folder)
    assert done.returncode == 0, done.stdout
    assert "Nothing to be done" in done.stdout


def test_a_sample_is_found_again_when_its_line_changes(run: str, folder: Path) -> None:
    sheet = (
        (folder / "samples.tsv").read_text().replace(f"first.fq.gz\t{K}\t{STEP}\n", f"first.fq.gz\t{K}\t{STEP + 1}\n")
    )
    (folder / "other.tsv").write_text(sheet)
    arguments = ("seeds", "-n", "--configfile", str(folder / "my.yaml"), "--config", "samples=other.tsv")
    done = snakemake(*arguments, directory=folder)
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {"find_seeds", "merge_seeds", "list_samples", "seeds"}
    assert re.search(r"^find_seeds +1$", done.stdout, re.MULTILINE)


def test_a_sample_more_or_less_touches_no_other(run: str, folder: Path) -> None:
    """Also one that is searched with mismatches, in the reference of others that are not."""
    _, header, *lines = (folder / "samples.tsv").read_text().splitlines()
    assert lines[0] == f"first\tone.fa\tfirst.fq.gz\t{K}\t{STEP}" and "mismatches" not in header
    inexact = lines[0].replace("first", "inexact", 1) + "\t" * (header.count("\t") - lines[0].count("\t")) + "\t1"
    more = [f"{header}\tmismatches", *lines, inexact]
    for sheet, made in ((more, {"find_seeds", "merge_seeds"}), ([header, *lines[1:]], set())):
        (folder / "other.tsv").write_text("\n".join(sheet) + "\n")
        arguments = ("seeds", "-n", "--configfile", str(folder / "my.yaml"), "--config", "samples=other.tsv")
        done = snakemake(*arguments, directory=folder)
        assert done.returncode == 0, done.stdout
        assert jobs(done.stdout) == made | {"list_samples", "seeds"}, done.stdout


def test_samples_whose_names_look_like_other_files_have_logs_of_their_own(folder: Path) -> None:
    """No log or benchmark is another one's, or the folder that another one is in."""
    names = ("a", "a.log", "a.kmers", "a.kmers.log", "samples", "samples.tsv", "samples.tsv.log", "index", "1", "one")
    lines = (f"{name}\tone.fa\tfirst.fq.gz\t{K}\t30\n" for name in names)
    (folder / "names.tsv").write_text("sample\treference\treads\tk\tcount\n" + "".join(lines))
    arguments = ("seeds", "-n", "--quiet", "host", "--configfile", str(folder / "my.yaml"))
    done = snakemake(*arguments, "--config", "samples=names.tsv", directory=folder)
    assert done.returncode == 0, done.stdout
    for kind in ("log", "benchmark"):
        files = re.findall(rf"^    {kind}: (\S+)", done.stdout, re.MULTILINE)
        assert len(files) > 3 * len(names)
        assert len(files) == len(set(files))
        assert not {Path(file) for file in files} & {folder for file in files for folder in Path(file).parents}


def test_the_target_seeds_without_samples_is_one_sentence(tmp_path: Path) -> None:
    done = snakemake("seeds", "-n", directory=tmp_path)
    assert done.returncode != 0
    assert "the configuration names none: add the key 'samples'" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_mistake_in_a_sheet_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text("sample\treads\tk\nx\tnowhere.fq\t20\n")
    done = snakemake("seeds", "-n", "--config", "samples=bad.tsv", directory=tmp_path)
    assert done.returncode != 0
    said = [line for line in done.stdout.splitlines() if "(bad.tsv, line 2, column 'reads') does not exist" in line]
    assert len(said) == 1, done.stdout
    assert "Traceback" not in done.stdout
    assert ".smk" not in done.stdout


OUTER = """
rule all:
    input:
        "found.txt",

module warpseed:
    snakefile: "{snakefile}"
    config: config["warpseed"]
    prefix: "below"

use rule * from warpseed as warpseed_*

rule count:
    input:
        "below/results/seeds/first.bed.gz",
    output:
        "found.txt",
    shell:
        "gzip -dc {{input}} | wc -l > {{output}}"
"""


def test_another_workflow_uses_this_one_as_a_module(run: str, folder: Path, tmp_path: Path) -> None:
    """With a prefix, a name of its own for every rule, its own default target, and the configuration that it gives."""
    for name in ("one.fa", "first.fq.gz"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "Snakefile").write_text(OUTER.format(snakefile=ROOT / "Snakefile"))
    (tmp_path / "outer.yaml").write_text(
        "mine: 1\nwarpseed:\n  measure: {devices: [cpu]}\n"
        f"  samples: {{first: {{reads: first.fq.gz, reference: one.fa, k: {K}, step: {STEP}}}}}\n"
    )
    arguments = ("--configfile", str(tmp_path / "outer.yaml"))
    done = snakemake(*arguments, directory=tmp_path, snakefile=tmp_path / "Snakefile")
    assert done.returncode == 0, done.stdout
    made = {"build_sample_index", "verify_sample_index", "find_seeds", "merge_seeds"}
    assert jobs(done.stdout) == {f"warpseed_{name}" for name in made} | {"count", "all"}
    assert not (tmp_path / "results").exists()
    names = ("results", "seeds", "first.bed.gz")
    assert (tmp_path / "below").joinpath(*names).read_bytes() == folder.joinpath(*names).read_bytes()
    assert int((tmp_path / "found.txt").read_text()) == 50 * 5
