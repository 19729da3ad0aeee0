"""BAM: every record is a placement that the oracle knows, and says of it what the reference says."""

from __future__ import annotations

import pickle
import random
import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import warpseed
from made_up_hits import placements_of
from oracles.kmers import reverse_complement
from oracles.reads import best_placements, find_reads
from warpseed import batches, cli, tasks
from warpseed.batches import write_results
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.one_error import bam, bam_records, read_search
from warpseed.output.density import Density
from warpseed.output.sorted_lines import merge_run_files, open_run_writer
from warpseed.sequences import pieces
from warpseed.sequences.queries import Queries

pysam = pytest.importorskip("pysam")

DRAW = random.Random(7)
UNIT = "".join(DRAW.choices("ACGT", k=300))
GENOME = {
    "chr2": UNIT + "A" * 60 + UNIT[:200] + "NNN" + UNIT[100:260],
    "chr10": reverse_complement(UNIT[:250]) + "".join(DRAW.choices("ACGT", k=10_600)),
    "empty-handed": "N" * 5 + "".join(DRAW.choices("ACGT", k=40)) + "N",
    "tiny": "AC",
}
LONG = GENOME["chr10"][300:10_300]
COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")


def changed(read: str, at: int, kind: str) -> str:
    other = "C" if read[at] != "C" else "G"
    return read[:at] + {"X": other, "I": other + read[at], "D": ""}[kind] + read[at + 1 :]


def drawn_reads() -> list[tuple[str, str, str]]:
    """Names, bases and qualities: from both strands, with and without edits, at the ends too; and odd ones."""
    named: list[tuple[str, str]] = []
    for i in range(60):
        contig = DRAW.choice(["chr2", "chr10"])
        length = DRAW.choice([20, 35, 60, 100])
        start = DRAW.randrange(len(GENOME[contig]) - length)
        read = GENOME[contig][start : start + length]
        kind, at = DRAW.choice("=XID"), DRAW.choice([0, length - 1, DRAW.randrange(length)])
        read = read if kind == "=" else changed(read, at, kind)
        named.append((f"r{i}", reverse_complement(read) if i % 2 else read))
    named += [
        ("one", "G"), ("long", reverse_complement(changed(LONG, 5000, "I"))), ("", UNIT[40:90]),
        ("r1", UNIT[:50]), ("nowhere", "ACGT" * 12), ("iupac", UNIT[:30] + "R" + UNIT[31:60]),
        ("minus", (UNIT[60:90] + "Y" + UNIT[91:120])[::-1].translate(COMPLEMENT)), ("lower", UNIT[7:50].lower()),
        ("rna", UNIT[:20] + "U" + UNIT[21:45]), ("two", "N" + UNIT[1:39] + "N"), ("every", "RYSWKMBDHVN"),
        ("poly", "A" * 25), ("!|~", UNIT[3:70]), ("n" * 254, UNIT[200:260]), ("N", "N"),
    ]  # fmt: skip
    return [(name, read, "".join(chr(33 + DRAW.randrange(94)) for _ in read)) for name, read in named]


READS = drawn_reads()
PLACEMENTS = find_reads(list(GENOME.values()), [read for _, read, _ in READS])
BEST = best_placements(PLACEMENTS, [len(read) for _, read, _ in READS], 1)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("genome")
    (folder / "g.fa").write_text("".join(f">{name}\n{bases}\n" for name, bases in GENOME.items()))
    warpseed.build_index(folder / "g.fa").save(folder / "i")
    return str(folder / "i")


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("reads") / "r.fq"
    path.write_text("".join(f"@{name} 1:N:0 x\n{read}\n+\n{quality}\n" for name, read, quality in READS))
    return str(path)


def written(index: str, reads: str, path: Path, *options: str) -> list[pysam.AlignedSegment]:
    """The records of what the command writes, in the order of the file, which samtools finds whole."""
    assert cli.main(["reads", index, reads, "-o", str(path), "-q", *options]) == 0
    return records_of(path)


def records_of(path: Path) -> list[pysam.AlignedSegment]:
    pysam.quickcheck(str(path))
    with pysam.AlignmentFile(str(path)) as file:
        return list(file.fetch(until_eof=True))


def described(bases: str, contig: str, start: int, cigar: list[tuple[int, int]]) -> tuple[int, str, int]:
    """NM and MD of an alignment, and its end, from the reference, base by base."""
    edits, text, run, at, place = 0, "", 0, 0, start
    reference = GENOME[contig]
    for operation, length in cigar:
        if operation == 1:
            edits, at = edits + length, at + length
        elif operation == 2:
            text += f"{run}^{reference[place : place + length]}"
            edits, run, place = edits + length, 0, place + length
        else:
            assert operation == 0
            for _ in range(length):
                if bases[at] == reference[place]:
                    run += 1
                else:
                    text, edits, run = f"{text}{run}{reference[place]}", edits + 1, 0
                at, place = at + 1, place + 1
    assert at == len(bases)
    return edits, f"{text}{run}", place


def as_bam_has_it(read: str) -> str:
    return read.upper().replace("U", "N")


def number_of(record: pysam.AlignedSegment, keys: dict[tuple, list[int]]) -> int:
    """The number of the read that a primary or unmapped record is of, by all it says."""
    qualities = tuple(record.get_forward_qualities() or ())
    return keys[(record.query_name, record.get_forward_sequence(), qualities)].pop(0)


def check(
    found: list[pysam.AlignedSegment],
    expected: list[tuple[int, ...]],
    given: list[tuple[str, str, str]] | None = None,
    in_xa: bool = False,
) -> None:
    """Every record is a placement of those expected, each once; one of each read is primary, by the rule."""
    given = READS if given is None else given
    names = list(GENOME)
    keys: dict[tuple, list[int]] = {}
    for number, (name, read, quality) in enumerate(given):
        keys.setdefault((name or "*", as_bam_has_it(read), tuple(ord(c) - 33 for c in quality)), []).append(number)
    of_read: dict[int, list[tuple[int, ...]]] = {number: [] for number in range(len(given))}
    for row in expected:
        of_read[row[0]].append(row)
    whole = [record for record in found if not record.is_secondary]
    assert len(whole) == len(given)
    secondary = Counter()
    for record in whole:
        number = number_of(record, keys)
        rows, length = of_read[number], len(given[number][1])
        if record.is_unmapped:
            assert (record.flag, record.reference_id, record.reference_start, rows) == (4, -1, -1, [])
            assert record.cigarstring is None and not record.get_tags() and record.mapping_quality == 0
            continue
        first = min(rows, key=lambda row: (row[5], row[3] - row[2] != length, row[1], row[2], row[4], row[3]))
        place = (number, record.reference_id, record.reference_start, record.reference_end, int(record.is_reverse))
        assert (*place, record.get_tag("NM")) == first
        others = [row for row in rows if row != first]
        nearest = min((row[5] for row in others), default=None)
        assert record.mapping_quality == (60 if nearest is None else 20 * (nearest - first[5]))
        assert record.get_tag("NH") == len(rows) and record.flag in (0, 16)
        if in_xa:
            is_listed = 0 < len(others) <= bam_records.MOST_IN_XA
            assert record.has_tag("XA") == is_listed
            listed = record.get_tag("XA").rstrip(";").split(";") if is_listed else []
            for entry, row in zip(listed, others if is_listed else [], strict=True):
                contig, place, cigar, edits = entry.split(",")
                operations = [("MID".index(op), int(n)) for n, op in re.findall(r"(\d+)(\D)", cigar)]
                start = int(place[1:]) - 1
                bases = as_bam_has_it(given[number][1])
                bases = bases[::-1].translate(COMPLEMENT) if place[0] == "-" else bases
                nm, _, end = described(bases, contig, start, operations)
                assert (number, names.index(contig), start, end, int(place[0] == "-"), nm) == row
                assert nm == int(edits)
        else:
            for row in others:
                secondary[(given[number][0] or "*", length, *row[1:])] += 1
        assert record.query_sequence is not None
        nm, text, end = described(
            record.query_sequence, record.reference_name, record.reference_start, record.cigartuples
        )
        assert (nm, text, end) == (record.get_tag("NM"), record.get_tag("MD"), record.reference_end)
    for record in found:
        if record.is_secondary:
            assert record.flag in (256, 272) and record.mapping_quality == 0 and record.query_sequence is None
            length = sum(n for operation, n in record.cigartuples if operation != 2)
            place = (record.reference_id, record.reference_start, record.reference_end, int(record.is_reverse))
            secondary[(record.query_name, length, *place, record.get_tag("NM"))] -= 1
            bases = {
                as_bam_has_it(read)
                for name, read, _ in given
                if (name or "*", len(read)) == (record.query_name, length)
            }
            strand = {read[::-1].translate(COMPLEMENT) if record.is_reverse else read for read in bases}
            told = (record.get_tag("NM"), record.get_tag("MD"), record.reference_end)
            here = (record.reference_name, record.reference_start, record.cigartuples)
            assert told in {described(read, *here) for read in strand}
    assert not +secondary and not -secondary
    places = [
        (len(names) if each.is_unmapped else each.reference_id, each.reference_start, each.reference_end or 0,
         each.is_reverse)
        for each in found
    ]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_best_placements(tmp_path: Path, index: str, reads: str, threads: str) -> None:
    found = written(index, reads, tmp_path / "x.bam", "--threads", threads)
    check(found, BEST)
    assert sum(record.is_unmapped for record in found) > 3 and any(record.is_secondary for record in found)


def test_all_placements(tmp_path: Path, index: str, reads: str) -> None:
    found = written(index, reads, tmp_path / "x.bam", "--report", "all")
    check(found, PLACEMENTS)
    assert len(found) > 30_000  # G alone has those of every base


def test_two_edits(tmp_path: Path, index: str) -> None:
    """Insertions and deletions beside each other, at the ends and apart; NM and MD are of both."""
    given = [(name, read, quality) for name, read, quality in READS if len(read) in range(11, 101)][:40]
    for i in range(80):
        start, length = DRAW.randrange(9000), DRAW.choice([15, 30, 60])
        read = GENOME["chr10"][start : start + length]
        for _ in range(2):
            read = changed(
                read, DRAW.choice([0, len(read) - 1, len(read) // 2, DRAW.randrange(len(read))]), DRAW.choice("XID")
            )
        given.append((f"two{i}", reverse_complement(read) if i % 2 else read, "I" * len(read)))
    path = tmp_path / "r.fq"
    path.write_text("".join(f"@{name}\n{read}\n+\n{quality}\n" for name, read, quality in given))
    found = find_reads(list(GENOME.values()), [read for _, read, _ in given], 2)
    best = best_placements(found, [len(read) for _, read, _ in given], 2)
    check(written(index, str(path), tmp_path / "b.bam", "--max-edits", "2"), best, given)
    everything = written(index, str(path), tmp_path / "a.bam", "--max-edits", "2", "--report", "all")
    check(everything, found, given)
    cigars = " ".join(record.cigarstring or "" for record in everything)
    for kinds in (r"(?<!\d)2D", r"(?<!\d)2I", r"I\d+M\d+D", r"D\d+M\d+I", r"D\d+M\d+D", r"I\d+M\d+I"):
        assert re.search(kinds, cigars), kinds
    check(written(index, str(path), tmp_path / "x.bam", "--max-edits", "2", "--multiple", "xa"), best, given, True)


def test_placements_in_xa(tmp_path: Path, index: str, reads: str) -> None:
    found = written(index, reads, tmp_path / "x.bam", "--multiple", "xa")
    check(found, BEST, in_xa=True)
    most = next(record for record in found if record.query_name == "one")
    assert most.get_tag("NH") > bam_records.MOST_IN_XA and len(found) == len(READS)


def test_reads_without_qualities(tmp_path: Path, index: str) -> None:
    path = tmp_path / "r.fa"
    path.write_text("".join(f">{name}\n{read}\n" for name, read, _ in READS))
    found = written(index, str(path), tmp_path / "x.bam")
    assert len(found) > len(READS) and all(record.query_qualities is None for record in found)
    assert Counter(record.get_forward_sequence() for record in found if not record.is_secondary) == Counter(
        as_bam_has_it(read) for _, read, _ in READS
    )


def test_the_header_tells_of_no_machine(tmp_path: Path, index: str, reads: str) -> None:
    written(index, reads, tmp_path / "x.bam")
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        assert file.header.to_dict() == {
            "HD": {"VN": "1.6", "SO": "coordinate"},
            "SQ": [{"SN": name, "LN": len(bases)} for name, bases in GENOME.items()],
            "PG": [{"ID": "warpseed", "PN": "warpseed", "VN": warpseed.__version__}],
        }


def test_the_index_finds_what_overlaps(tmp_path: Path, index: str, reads: str) -> None:
    found = written(index, reads, tmp_path / "x.bam", "--report", "all")
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        for contig, bases in GENOME.items():
            for begin in (0, len(bases) // 3, len(bases) // 2, len(bases) - 2):
                end = min(begin + 30, len(bases))
                over = [r for r in found if r.reference_name == contig and r.reference_start < end
                        and r.reference_end > begin]  # fmt: skip
                assert [r.to_string() for r in file.fetch(contig, begin, end)] == [r.to_string() for r in over]
        told = {each.contig: each.mapped for each in file.get_index_statistics()}
        assert told == {name: sum(r.reference_name == name for r in found) for name in GENOME}
        assert file.nocoordinate == sum(record.is_unmapped for record in found)
    before = (tmp_path / "x.bam.bai").read_bytes()
    pysam.index(str(tmp_path / "x.bam"))
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        assert {each.contig: each.mapped for each in file.get_index_statistics()} == told
    assert before[:8] == (tmp_path / "x.bam.bai").read_bytes()[:8]


# ---------------------------------------------------------------------------------------------- the same bytes, always


def contents(path: Path) -> list[bytes]:
    return [path.read_bytes(), Path(f"{path}.bai").read_bytes()]


@pytest.mark.parametrize(("report", "multiple"), [("all", "secondary"), ("best", "xa")])
def test_threads_batches_and_parts_of_the_text_do_not_change_a_byte(
    tmp_path: Path, index: str, reads: str, monkeypatch: pytest.MonkeyPatch, multiple: str, report: str
) -> None:
    options = ("--report", report, "--multiple", multiple)
    written(index, reads, tmp_path / "x.bam", *options)
    whole = contents(tmp_path / "x.bam")
    monkeypatch.setattr(bam, "LINES_AT_ONCE", 100)
    for number, (room, threads) in enumerate(((300, 1), (2000, 3))):
        monkeypatch.setattr(tasks, "_ROOM", room)
        monkeypatch.setattr(tasks, "_LARGE_ROOM", 2 * room)
        path = tmp_path / f"{number}.bam"
        written(index, reads, path, *options, "--threads", str(threads))
        assert contents(path) == whole


@pytest.mark.parametrize("multiple", ["secondary", "xa"])
@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_chunks_do_not_change_a_byte(
    tmp_path: Path, index: str, reads: str, monkeypatch: pytest.MonkeyPatch, multiple: str, chunks: int
) -> None:
    """What several jobs write is merged; placements that have no record of their own are counted where they begin."""
    written(index, reads, tmp_path / "x.bam", "--multiple", multiple)
    monkeypatch.setattr(batches, "open_pieces", partial(pieces.open_pieces, piece_bytes=3000))
    files = []
    for chunk in range(chunks):
        search = read_search(index, report="best", keep_reads=True, threads=1 + chunk % 2)
        files.append(tmp_path / f"{chunk}.runs")
        writer = open_run_writer(files[-1], bam.bam_format(multiple), memory=5000)
        write_results(reads, search, writer, share=(chunk, chunks), watch=Stopwatch())
    density = Density(list(GENOME), np.array(list(map(len, GENOME.values()))))
    totals = merge_run_files(
        files[::-1], tmp_path / "m.bam", index_path=tmp_path / "also.bai", threads=3, density=density
    )
    assert contents(tmp_path / "m.bam") == contents(tmp_path / "x.bam")
    assert (tmp_path / "also.bai").read_bytes() == (tmp_path / "m.bam.bai").read_bytes()
    assert totals.hits == len(BEST) == int(density.plus.sum() + density.minus.sum())
    assert totals.queries == len(READS)


def test_python_writes_what_the_command_writes(tmp_path: Path, index: str, reads: str) -> None:
    written(index, reads, tmp_path / "x.bam")
    at_once = warpseed.find_reads(index, reads, report="best", keep_reads=True, threads=2)
    assert warpseed.write_placements(tmp_path / "a.bam", at_once, threads=2) == len(BEST)
    batches = warpseed.iter_read_hits(index, reads, report="best", keep_reads=True)
    assert warpseed.write_placements(tmp_path / "b.bam", batches) == len(BEST)
    assert contents(tmp_path / "a.bam") == contents(tmp_path / "b.bam") == contents(tmp_path / "x.bam")
    assert warpseed.write_placements(tmp_path / "p.tsv", at_once) == len(BEST)
    with pytest.raises(InputError, match="multiple='xa' says what becomes of records in BAM"):
        warpseed.write_placements(tmp_path / "q.tsv", at_once, multiple="xa")
    assert not (tmp_path / "q.tsv").exists()
    assert (tmp_path / "p.tsv").read_text().count("\n") == len(BEST) + 1


def test_placements_with_their_reads_are_hits_as_others(index: str) -> None:
    """They make a frame with both edits, are pickled with their reads, and written by other formats."""
    read = GENOME["chr10"][500:560]
    read = changed(changed(read, 40, "I"), 20, "X")
    hits = warpseed.find_reads(index, [read], max_edits=2, report="best", keep_reads=True)
    (row,) = hits.to_frame().to_dict("records")
    assert (row["contig"], row["start"], row["end"], row["kind"]) == ("chr10", 500, 560, 4)
    edits = [tuple(row[f"{which}_{name}"] for name in ("kind", "offset")) for which in ("first", "second")]
    assert edits[0] == (1, 20) and edits[1][0] == 3 and edits[1][1] <= 40
    again = pickle.loads(pickle.dumps(hits))
    assert again == hits and again.queries is not None and again.queries.sequence(0) == read
    assert len(hits.digest()) == 64


def test_sequences_in_memory_keep_their_letters_and_names(tmp_path: Path, index: str) -> None:
    reads = Queries.from_sequences([UNIT[:60], "ryswkmbdhvnu", UNIT[9:50]], ["a b", "\tx", "c"], letters=True)
    hits = warpseed.find_reads(index, reads, report="best", keep_reads=True)
    warpseed.write_placements(tmp_path / "x.bam", hits)
    found = {r.query_name: r.query_sequence for r in records_of(tmp_path / "x.bam") if not r.is_secondary}
    assert found == {"a": UNIT[:60], "*": "RYSWKMBDHVNN", "c": UNIT[9:50]}
    hits = warpseed.find_reads(index, [UNIT[:20] + "r" + UNIT[21:60]], report="best", keep_reads=True)
    warpseed.write_placements(tmp_path / "y.bam", hits)
    assert records_of(tmp_path / "y.bam")[0].query_sequence == UNIT[:20] + "R" + UNIT[21:60]


@pytest.mark.parametrize("max_edits", [1, 2])
def test_letters_for_several_bases_are_placed_alike_whether_they_are_kept_or_not(index: str, max_edits: int) -> None:
    text, letters = GENOME["chr10"], "NRYSWKMBDHVU"
    reads = [
        text[start : start + place] + letters[place % 12] + text[start + place + 1 : start + 44]
        for place, start in enumerate(range(100, 144))
    ]
    kept = warpseed.find_reads(index, reads, max_edits=max_edits, keep_reads=True)
    plain = warpseed.find_reads(index, reads, max_edits=max_edits)
    assert plain.to_frame()["query"].nunique() == 44
    for name in ("query", "contig", "start", "end", "strand"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(plain, name))


# ------------------------------------------------------------------------------------------- nothing, and too much


def test_no_reads_and_no_placements(tmp_path: Path, index: str) -> None:
    warpseed.write_placements(tmp_path / "no.bam", [])
    with pysam.AlignmentFile(str(tmp_path / "no.bam"), check_sq=False) as file:
        assert list(file.fetch(until_eof=True)) == [] and file.nreferences == 0
    (tmp_path / "r.fa").write_text(">q\nACGTACGTACGTACGTACGTACGT\n>p\nNN\n")
    found = written(index, str(tmp_path / "r.fa"), tmp_path / "x.bam")
    assert [(r.query_name, r.flag, r.query_sequence) for r in found] == [("q", 4, "ACGT" * 6), ("p", 4, "NN")]
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        assert list(file.fetch("chr10")) == [] and file.nocoordinate == 2


def test_a_long_contig_has_a_wide_index(tmp_path: Path) -> None:
    contigs = {"short": 3000, "none": 7, "long": 700_000_000}
    starts = [(0, 5), (2, 3), (2, 536_870_900), (2, 536_870_912), (2, 699_999_000)]
    rows = [(i, contig, start, start + 30, i % 2, 0, 0, 0, 0) for i, (contig, start) in enumerate(starts)]
    hits = placements_of(contigs, rows, ["ACGTA" * 6] * 6)
    for name in ("x.bam.bai", "x.bam.csi"):
        (tmp_path / name).write_bytes(b"of an older file")
    warpseed.write_placements(tmp_path / "x.bam", hits)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bam", "x.bam.csi"]
    pysam.quickcheck(str(tmp_path / "x.bam"))
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        for i, (contig, start) in enumerate(starts):
            over = file.fetch(list(contigs)[contig], start + 29, start + 30)
            assert f"q{i}" in {record.query_name for record in over}
        assert [each.mapped for each in file.get_index_statistics()] == [1, 0, 4] and file.nocoordinate == 1
    warpseed.write_placements(tmp_path / "x.bam", placements_of({"short": 3000}, rows[:1], ["ACGTA" * 6]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bam", "x.bam.bai"]
