"""The command `reads`: what it writes and refuses."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import CHROMOSOME, CONTIGS, fasta, program, save
from oracles.kmers import reverse_complement
from oracles.reads import find_reads, leftmost_edit
from warpseed import cli
from warpseed.output import sorted_lines

BASES = CHROMOSOME[200:260]
READS = {
    "there": BASES,
    "back": reverse_complement(BASES),
    "changed": BASES[:20] + ("A" if BASES[20] != "A" else "C") + BASES[21:],
    "longer": BASES[:30] + "GT"[BASES[30] == "G"] + BASES[30:],
    "shorter": BASES[:40] + BASES[41:],
    "nowhere": "ACGT" * 10,
    "N": BASES[:5] + "N" + BASES[6:],
}


def expected(columns: str, strands: tuple[int, ...] = (0, 1), max_edits: int = 1) -> list[str]:
    """The oracle's placements as lines, in its order."""
    names, contigs, lines = list(READS), list(CONTIGS.values()), []
    for query, contig, start, end, strand, distance in find_reads(
        contigs, list(READS.values()), max_edits, None, strands
    ):
        read = list(READS.values())[query]
        bases = contigs[contig][start:end]
        edit = leftmost_edit(reverse_complement(read) if strand else read, bases) if distance < 2 else ("several", 0)
        kind, offset, *_ = edit
        letter = {"match": "=", "mismatch": "X", "insertion": "D", "deletion": "I", "several": "*"}[kind]
        place, sign = (list(CONTIGS)[contig], start, end), "+-"[strand]
        line = (names[query], *place, sign, distance, letter, offset) if columns == "tsv" else (
            *place, names[query], distance, sign
        )  # fmt: skip
        lines.append("\t".join(map(str, line)))
    return lines


@pytest.mark.parametrize("tier", ["fast", "paper"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_tsv_is_the_oracles(tmp_path: Path, index: str, tier: str, threads: str) -> None:
    output = tmp_path / "placements.tsv"
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["reads", index, reads, "-o", str(output), "--tier", tier, "--threads", threads]) == 0
    heading, *lines = output.read_text().splitlines()
    assert heading == "query\tcontig\tstart\tend\tstrand\tdistance\tkind\toffset"
    assert lines == expected("tsv") and len(lines) == 14


def test_two_edits(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["reads", index, reads, "--max-edits", "2", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == expected("tsv", max_edits=2) and sum(line.endswith("\t2\t*\t0") for line in lines) > 20


def test_one_strand_without_edits(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    reads = save(
        tmp_path, "reads.fq", "".join(f"@{name}\n{read}\n+\n{'I' * len(read)}\n" for name, read in READS.items())
    )
    assert cli.main(["reads", index, reads, "--one-strand", "--max-edits", "0"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1:] == expected("tsv", (0,), 0)
    assert "7 reads, 1 hit written to -" in told.err


def test_sorted_bed_has_an_index(tmp_path: Path, index: str) -> None:
    reads, output = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / "x.bed.gz"
    assert cli.main(["reads", index, reads, "-o", str(output), "--sorted", "-q"]) == 0
    lines = gzip.decompress(output.read_bytes()).decode().splitlines()
    assert sorted(lines) == sorted(expected("bed"))
    keys = [(list(CONTIGS).index(line.split("\t")[0]), *map(int, line.split("\t")[1:3])) for line in lines]
    assert keys == sorted(keys) and (tmp_path / "x.bed.gz.tbi").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--max-edits", "3"], "max_edits is 3, but the fast tier takes 0 to 2."),
        (["--max-edits", "2", "--tier", "paper"], "max_edits is 2, but the paper tier takes 1 alone."),
        (
            ["-o", "x.bam.gz"],
            "x.bam.gz: the ending says no output format; end it in .tsv or .bed, or .gz behind these, or in .bam.",
        ),
        (
            ["-o", "x.tsv", "--multiple", "xa"],
            "--multiple says what becomes of records in BAM; name an output that ends in .bam.",
        ),
    ],
)
def test_what_cannot_be_is_a_sentence(
    tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["reads", index, reads, *arguments, "-q"]) == 1
    assert capsys.readouterr().err == f"Error: {sentence}\n"


def test_paired_files_are_single_reads(tmp_path: Path, index: str) -> None:
    """Mates have one name: each is searched, and told, by itself, in a file of its own, behind the others or beside."""
    pairs = {"a": (BASES, reverse_complement(CHROMOSOME[300:370])), "b": (READS["back"], READS["nowhere"])}
    mates = [
        [f"@{name} {mate + 1}:N:0\n{pair[mate]}\n+\n{'I' * len(pair[mate])}\n" for mate in range(2)]
        for name, pair in pairs.items()
    ]
    first, second = ("".join(pair[mate] for pair in mates) for mate in range(2))
    both = tmp_path / "both.fq.gz"
    both.write_bytes(gzip.compress(first.encode()) + gzip.compress(second.encode()))
    texts = {"R1": first, "R2": second, "interleaved": "".join(map("".join, mates))}
    lines = {}
    files = {name: save(tmp_path, f"{name}.fq", text) for name, text in texts.items()} | {"both": str(both)}
    for name, reads in files.items():
        output = tmp_path / f"{name}.tsv"
        assert cli.main(["reads", index, reads, "-o", str(output), "-q"]) == 0
        lines[name] = output.read_text().splitlines()[1:]
    assert lines["both"] == lines["R1"] + lines["R2"] and sorted(lines["interleaved"]) == sorted(lines["both"])
    assert [{line.split("\t")[0] for line in lines[name]} for name in ("R1", "R2")] == [{"a", "b"}, {"a"}]
    assert cli.main(["reads", index, str(both), "-o", str(tmp_path / "both.bam"), "-q"]) == 0
    with pytest.importorskip("pysam").AlignmentFile(str(tmp_path / "both.bam")) as file:
        records = [(record.query_name, record.flag, record.pos) for record in file.fetch(until_eof=True)]
    # Nothing of a pair: no flag 1, no mate; of the two with a name each is primary.
    assert sorted(records) == [("a", 0, 200), ("a", 16, 300), ("b", 4, -1), ("b", 16, 200)]


def test_reads_come_from_a_pipe_and_go_to_one(tmp_path: Path, index: str) -> None:
    with program("reads", index, "-", "-q", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        out, said = process.communicate(fasta(READS).encode())
    assert process.returncode == 0 and not said
    assert out.decode().splitlines()[1:] == expected("tsv")


# ------------------------------------------------------------------------------------------------- BAM


def test_bam_is_written_where_the_name_says_so(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    reads, output = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / "x.bam"
    assert cli.main(["reads", index, reads, "-o", str(output)]) == 0
    assert f"7 reads, 6 hits written to {output}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reads.fa", "x.bam", "x.bam.bai"]
    with pytest.importorskip("pysam").AlignmentFile(str(output)) as file:
        flags = {record.query_name: record.flag for record in file.fetch(until_eof=True)}
    assert flags == {name: {"back": 16, "nowhere": 4}.get(name, 0) for name in READS}


def test_a_name_that_is_all_ending_is_compressed_as_others(tmp_path: Path, index: str) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    for name in ("x.bam", ".bam"):
        with program("reads", index, reads, "-q", "-o", str(tmp_path / name)) as process:
            try:
                assert process.communicate(timeout=60) == (None, b"") and process.returncode == 0
            finally:
                process.kill()
    for ending in ("", ".bai"):
        assert (tmp_path / f".bam{ending}").read_bytes() == (tmp_path / f"x.bam{ending}").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_that_is_ended_leaves_no_bam(tmp_path: Path, index: str, number: int) -> None:
    folder = tmp_path / "out"
    process = program("reads", index, "-", "-o", str(folder / "x.bam"), stdin=subprocess.PIPE)
    assert process.stdin is not None
    deadline = time.monotonic() + 60
    while not (folder.is_dir() and list(folder.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.stdin.write(b">q\n" + BASES.encode() * 10)
    process.stdin.flush()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number and b"Traceback" not in said
    assert said.decode().splitlines()[-1].endswith("; no half-written file is left.")
    assert not folder.exists()


def test_a_signal_is_answered_while_records_are_merged(tmp_path: Path, index: str) -> None:
    """What is found waits sorted; the signal comes when the first of it goes into the file."""
    script = """if True:
        import os, sys, time
        from warpseed import cli
        from warpseed.output import sorted_lines

        merge = sorted_lines.merge_runs
        def slowly(*arguments, **options):
            for lines in merge(*arguments, **options):
                os.kill(os.getpid(), 15)
                time.sleep(30)
                yield lines
        sorted_lines.merge_runs = slowly
        sys.exit(cli.main())
        """
    reads, folder = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / "out"
    began = time.monotonic()
    with program("reads", index, reads, "-o", str(folder / "x.bam"), script=script) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and time.monotonic() - began < 25
    assert said.decode().splitlines()[-1] == "Interrupted by SIGTERM; no half-written file is left."
    assert not folder.exists()


def test_a_full_disk_is_a_sentence_and_an_old_bam_stays(
    tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, output = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / "out" / "x.bam"
    output.parent.mkdir()
    for name in ("x.bam", "x.bam.bai"):
        (output.parent / name).write_text("the old one")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    device = tmp_path / "full.bam"
    device.symlink_to("/dev/full")
    monkeypatch.setattr(sorted_lines, "block_offsets", full)
    for target, where in ((device, device), (output, f"{output}.bai")):
        assert cli.main(["reads", index, reads, "-o", str(target), "-q"]) == 1
        said = f"Error: {where}: cannot be written (No space left on device); free some space, or write elsewhere.\n"
        assert capsys.readouterr().err == said
    assert [path.read_text() for path in output.parent.iterdir()] == 2 * ["the old one"]
    assert device.is_symlink()


def test_bam_goes_into_a_pipe_and_who_reads_it_may_stop(tmp_path: Path, index: str) -> None:
    reads, pipe, copy = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / "pipe.bam", tmp_path / "copy.bam"
    assert cli.main(["reads", index, reads, "-o", str(tmp_path / "x.bam"), "-q"]) == 0
    os.mkfifo(pipe)
    with program("reads", index, reads, "-o", str(pipe)) as process:
        copy.write_bytes(pipe.read_bytes())
        process.communicate()
    assert process.returncode == 0 and copy.read_bytes() == (tmp_path / "x.bam").read_bytes()
    many = save(tmp_path, "many.fq", "".join(f"@r{i}\n{BASES}\n+\n{BASES}\n" for i in range(40_000)))
    with program("reads", index, many, "-o", str(pipe)) as process:
        with open(pipe, "rb") as handle:
            handle.read(10)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 141 and b"Traceback" not in said and b"Error" not in said
    assert pipe.is_fifo() and not (tmp_path / "pipe.bam.bai").exists()
