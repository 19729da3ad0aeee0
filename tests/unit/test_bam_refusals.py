"""What BAM cannot hold is a sentence, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import warpseed
from made_up_hits import placements_of
from warpseed import cli
from warpseed.errors import InputError

pysam = pytest.importorskip("pysam")

READ = b"ACGTTGCATTAGCAGGATCCAT"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("genome")
    (folder / "g.fa").write_bytes(b">c\nTTG" + READ + b"CAA\n")
    warpseed.build_index(folder / "g.fa").save(folder / "i")
    return str(folder / "i")


@pytest.mark.parametrize(
    ("contigs", "sentence"),
    [
        ({"a": 9, "b,c": 9}, r"contig b,c: in SAM and BAM a contig's name has no commas"),
        ({"é": 9}, r"contig é: in SAM and BAM a contig's name has no .* letters beyond ASCII"),
        ({"*x": 9}, r"contig \*x: in SAM and BAM a contig's name has .* does not begin with \* or ="),
        ({"long": 1 << 31}, r"contig long: it has 2,147,483,648 bases, but in BAM at most 2,147,483,647; write \.tsv"),
    ],
)
def test_contigs_that_bam_cannot_have(tmp_path: Path, contigs: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        warpseed.write_placements(tmp_path / "x.bam", placements_of(contigs, [], ["ACGT"]))
    assert list(tmp_path.iterdir()) == []


def test_a_contig_that_would_end_an_entry_of_xa(tmp_path: Path) -> None:
    """A semicolon is a letter of a contig's name as others are, but not in XA."""
    hits = placements_of({"a;b": 90}, [(0, 0, 5, 35, 0, 0, 0, 0, 0)], ["ACGTA" * 6])
    with pytest.raises(InputError, match=r"^contig a;b: a semicolon ends an entry of the tag XA, .* another name\.$"):
        warpseed.write_placements(tmp_path / "x.bam", hits, multiple="xa")
    assert list(tmp_path.iterdir()) == []
    warpseed.write_placements(tmp_path / "x.bam", hits)
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        assert [record.reference_name for record in file] == ["a;b"]


@pytest.mark.parametrize("name", ["caf\u00e9".encode(), "caf\u00e9".encode("latin-1"), b"a@b", b"x\x7f"])
def test_a_name_that_is_none_in_sam(
    tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str], name: bytes
) -> None:
    path, output = tmp_path / "r.fa", tmp_path / "x.bam"
    path.write_bytes(b">!?A~\n" + READ + b"\n>" + name + b"\n" + READ + b"\n")
    assert cli.main(["reads", index, str(path), "-o", str(output), "-q"]) == 1
    shown = name.decode("utf-8", "replace")
    said = f"{path}: the name of the read '{shown}' holds an @, or what is no visible ASCII character, but"
    assert said in capsys.readouterr().err and [each.name for each in tmp_path.iterdir()] == ["r.fa"]
    assert cli.main(["reads", index, str(path), "-o", str(tmp_path / "x.tsv"), "-q"]) == 0
    assert b"\n" + name + b"\t" in (tmp_path / "x.tsv").read_bytes()


@pytest.mark.parametrize("ending", [".bai", ".csi"])
def test_a_folder_in_the_place_of_the_index(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "x.bam"
    Path(f"{path}{ending}").mkdir()
    with pytest.raises(InputError, match=rf"^.*x\.bam\{ending}: this is a folder, but the index of .*x\.bam is a file"):
        warpseed.write_placements(path, placements_of({"a": 90}, [], ["ACGT"]))
    assert [each.name for each in tmp_path.iterdir()] == [f"x.bam{ending}"]


def test_what_bam_has_no_room_for_is_a_sentence(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "r.fa", tmp_path / "x.bam"
    path.write_text(f">a\n{READ.decode()}\n>{'n' * 255}\n{READ.decode()}\n")
    assert cli.main(["reads", index, str(path), "-o", str(output), "-q"]) == 1
    said = f"{path}: the name of the read '{'n' * 60}…' has 255 bytes, but in BAM at most 254; shorten it, or write"
    assert said in capsys.readouterr().err and not output.exists()
    expected = r"which BAM needs: give placements from find_reads or iter_read_hits, found with keep_reads=True\.$"
    for hits in (call(index, [READ]) for call in (warpseed.find_reads, warpseed.find_kmers, warpseed.find_mems)):
        with pytest.raises(InputError, match=expected):
            warpseed.write_placements(output, hits)
    with pytest.raises(InputError, match=r"^multiple is 'all', but 'secondary' or 'xa' was expected\.$"):
        warpseed.write_placements(output, [], multiple="all")
    assert not output.exists()
