"""Names that an output must not have: those of inputs, also of an index beside it, and of other outputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import warpseed
from command_line import QUERIES, fasta, program, save
from made_up_hits import draw_hits
from warpseed import cli
from warpseed.errors import IndexFormatError, InputError
from warpseed.kmer_seeds.output import write_hits
from warpseed.tree_bitmap.dictionary import Dictionary, open_dictionary, save_dictionary

# ------------------------------------------------------------------------------------------ indexes that are inputs


@pytest.mark.parametrize("linked", [None, Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize(
    ("command", "output", "ending"),
    [
        (["kmers"], "o.bed.gz", ".csi"),
        (["kmers", "--sorted"], "o.bed.gz", ".tbi"),
        (["mems"], "o.mums.gz", ".tbi"),
        (["reads"], "x.bam", ".bai"),
        (["reads"], "x.bam", ".csi"),
    ],
)
def test_an_index_of_the_output_is_no_input(
    tmp_path: Path, index: str, refused: Callable[..., str], command: list[str], output: str, ending: str,
    linked: Callable[[Path, Path], None] | None,
) -> None:  # fmt: skip
    path = tmp_path / output
    there = source = Path(save(tmp_path, output + ending, fasta(QUERIES)))
    if linked is not None:
        source = tmp_path / "reads.fa"
        linked(source, there)
    name, *options = command
    assert refused(name, index, str(source), *options, "-o", str(path)) == (
        f"{there}: an index of {path} has this name, but it is the file {source}, which is read; name another output."
    )
    assert there.read_text() == fasta(QUERIES)


def test_an_index_of_the_output_is_not_standard_input(tmp_path: Path, index: str) -> None:
    given = tmp_path / "x.bam.csi"
    given.write_text(fasta(QUERIES))
    with open(given) as source, program("reads", index, "-", "-o", str(tmp_path / "x.bam"), stdin=source) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and b"x.bam has this name, but it is standard input, which is read" in said
    assert os.listdir(tmp_path) == ["x.bam.csi"] and given.read_text() == fasta(QUERIES)


def test_an_output_that_is_standard_input_is_told(tmp_path: Path, index: str) -> None:
    given = tmp_path / "few.bed"
    given.write_text(fasta(QUERIES))
    with open(given) as source, program("kmers", index, "-", "-o", str(given), stdin=source) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and b"few.bed: the output is standard input, which is read; name another" in said


def test_a_dictionary_that_is_read_is_no_index_of_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known, source = tmp_path / "s.tsv.gz.tbi", save(tmp_path, "s.fa", ">a\nACGTACGTAC\n")
    save_dictionary(Dictionary(5, np.array([1, 2], np.uint64)), known)
    assert cli.main(["stream", source, "--dictionary", str(known), "-o", str(tmp_path / "s.tsv.gz"), "-q"]) == 1
    assert f"{known}: an index of {tmp_path / 's.tsv.gz'} has this name, but it is" in capsys.readouterr().err
    assert open_dictionary(known).kmers.tolist() == [1, 2]


@pytest.mark.parametrize("command", ["stream", "inverse"])
def test_no_index_of_an_older_file_is_left(tmp_path: Path, command: str) -> None:
    source, output = save(tmp_path, "s.fa", ">a\nACGTACGTAC\n>b\nGATTACA\n"), tmp_path / "o.tsv.gz"
    arguments = ["stream", source, "-o", str(output), "-q"]
    if command == "inverse":
        assert cli.main(["ebwt", source, "-o", str(tmp_path / "e"), "-q"]) == 0
        arguments = ["ebwt", str(tmp_path / "e"), "--inverse", "-o", str(output), "-q"]
    for ending in (".tbi", ".csi"):
        Path(f"{output}{ending}").write_bytes(b"of an older file")
    assert cli.main(arguments) == 0
    assert [path.name for path in tmp_path.glob("o.*")] == ["o.tsv.gz"]


# ------------------------------------------------------------------------------------------ links, and no names


@pytest.mark.parametrize("target", ["lp.bed", "other.bed"])
def test_a_link_to_itself_is_no_output(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], target: str
) -> None:
    link = tmp_path / "lp.bed"
    link.symlink_to(target)
    if target != link.name:
        (tmp_path / target).symlink_to(link.name)
    sentence = refused("kmers", index, kmers, "-o", str(link))
    assert sentence == f"{link}: this link leads to itself, but results go to a file; name a file."
    assert link.is_symlink()


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_two_files_of_ebwt_are_not_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], link: Callable[[Path, Path], None], exists: bool
) -> None:
    source, phylip, newick = save(tmp_path, "s.fa", ">a\nACGT\n>b\nGAT\n"), tmp_path / "e.phylip", tmp_path / "e.newick"
    if exists or link is Path.hardlink_to:
        phylip.write_text("an older one")
    link(newick, phylip)
    before = sorted(os.listdir(tmp_path))
    assert cli.main(["ebwt", source, "-o", str(tmp_path / "e"), "-q"]) == 1
    said = f"{phylip}: this and {newick} are one file by a link; remove it, or choose other names."
    assert capsys.readouterr().err == f"Error: {said}\n"
    assert sorted(os.listdir(tmp_path)) == before
    assert cli.main(["ebwt", source, "-o", str(tmp_path / "e"), "--no-distances", "-q"]) == 0


def test_names_that_no_file_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = "is '.ud800.*', but no name has half of a surrogate pair; "
    with pytest.raises(InputError, match=f"^path {said}name another file"):
        write_hits("\ud800.bed", [])
    genome = save(tmp_path, "g.fa", ">a\nACGT\n")
    with pytest.raises(IndexFormatError, match=f"^the index's folder {said}rename it"):
        warpseed.make_index(genome, "\ud800")
    assert os.listdir(tmp_path) == ["g.fa"]


# ------------------------------------------------------------------------------------------ two that write one file


@pytest.mark.parametrize("removed", [False, True])
def test_another_ones_file_gets_no_index_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    path, replace = tmp_path / "h.bed.gz", os.replace

    def replace_and_be_replaced(source: Path, target: str) -> None:
        replace(source, target)
        if str(target) == str(path):
            path.unlink()
            if not removed:
                path.write_bytes(b"another one's")

    monkeypatch.setattr(os, "replace", replace_and_be_replaced)
    with pytest.raises(InputError, match=r"h\.bed\.gz: another process has replaced it, or removed it, meanwhile; wri"):
        write_hits(path, draw_hits(1, queries=3, hits=20), sorted=True)
    assert os.listdir(tmp_path) == ([] if removed else ["h.bed.gz"])
