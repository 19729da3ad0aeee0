"""Where the command line writes to: files, pipes, links, streams that are closed or full; and how it is ended."""

from __future__ import annotations

import errno
import gzip
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import warpseed
from command_line import CHROMOSOME, CONTIGS, QUERIES, expected_bed, fasta, program, save
from warpseed import cli
from warpseed.errors import InputError
from warpseed.fm_index import build, store
from warpseed.output import hits as hits_module
from warpseed.output import opening
from warpseed.sequences.files import atomic_path, open_for_writing


def test_a_reader_that_stops_early_is_no_mistake(tmp_path: Path) -> None:
    genome = save(tmp_path, "g.fa", f">a\n{'A' * 400_000}\n")
    assert cli.main(["index", genome, "-o", str(tmp_path / "i")]) == 0
    source = save(tmp_path, "k.fa", f">as\n{'A' * 20}\n")
    with program("kmers", str(tmp_path / "i"), source, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"a\t0\t20\tas\t0\t+\n"
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Error" not in said and "Traceback" not in said


@pytest.mark.parametrize("order", [[], ["--sorted"]])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_that_is_ended_leaves_nothing(tmp_path: Path, index: str, number: int, order: list[str]) -> None:
    folder = tmp_path / "out"
    process = program("kmers", index, "-", "-o", str(folder / "h.bed.gz"), *order, stdin=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (folder.is_dir() and list(folder.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(folder.iterdir())  # it has begun to write
    process.send_signal(number)
    process.send_signal(signal.SIGINT)  # impatient: what is being removed is removed all the same
    _, said = process.communicate(timeout=60)
    assert process.returncode in (128 + number, 128 + signal.SIGINT)  # the first of two that arrive at once
    assert b"Traceback" not in said
    assert said.decode().splitlines()[-1].endswith("; no half-written file is left.")
    assert not folder.exists()


def test_a_signal_while_numpy_is_imported(tmp_path: Path, index: str) -> None:
    """NumPy makes an ImportError of what is raised in its import; here one that takes a minute."""
    save(
        tmp_path,
        "numpy.py",
        "import time\ntry: print(flush=True); time.sleep(60)\nexcept BaseException: raise ImportError\n",
    )
    with program("kmers", index, "-", stdout=subprocess.PIPE, before=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and b"Traceback" not in said
    assert said.decode().splitlines()[-1] == "Interrupted by SIGTERM; no half-written file is left."


def test_a_signal_does_not_wait_for_who_reads_standard_output(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is full, and Python's stream holds some more when the signal comes."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    search = "def search(options): sys.stdout.buffer.write(bytes(99)); os.kill(os.getpid(), 15); time.sleep(9)"
    script = f"import os, sys, time\nfrom warpseed import cli\n{search}\ncli._kmers = search\nsys.exit(cli.main())"
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, bytes(4096)):
            pass
    os.set_blocking(writing, True)
    with program("kmers", index, "-", script=script, stdout=writing) as process:
        try:
            _, said = process.communicate(timeout=10)
        finally:
            process.kill()
            os.close(reading)
            os.close(writing)
    assert process.returncode == 143
    assert said.decode().splitlines()[-1] == "Interrupted by SIGTERM; no half-written file is left."


def test_sorted_hits_and_their_index(
    tmp_path: Path, index: str, kmers: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines = expected_bed(CONTIGS, QUERIES, 1).splitlines(keepends=True)
    text = "".join(sorted(lines, key=lambda line: (line.split("\t")[0], *map(int, line.split("\t")[1:3]))))
    path = tmp_path / "h.bed.gz"
    command = ["kmers", index, kmers, "--max-mismatches", "1", "--sorted"]
    assert cli.main([*command, "-o", str(path)]) == 0
    assert gzip.decompress(path.read_bytes()).decode() == text != "".join(lines)
    assert (tmp_path / "h.bed.gz.tbi").exists()
    capsysbinary.readouterr()
    assert cli.main(command) == 0
    assert capsysbinary.readouterr().out.decode() == text


# ------------------------------------------------------------------------------------------ mistakes in where to write


@pytest.mark.parametrize("name", ["hits", "hits.bam", "hits.BED", "hits.bed.bz2", "bed", "."])
def test_endings_that_say_no_format(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = refused("kmers", index, kmers, "-o", name)
    assert sentence == f"{name}: the ending says no output format; end it in .bed or .tsv, or .gz behind these."


def test_outputs_that_cannot_be_written(tmp_path: Path, index: str, kmers: str, refused: Callable[..., str]) -> None:
    folder = tmp_path / "folder.bed"
    folder.mkdir()
    assert refused("kmers", index, kmers, "-o", str(folder)).startswith(
        f"{folder}: this is a folder, but results go to"
    )
    for target, reason in (
        (f"{kmers}/hits.bed", "(a file stands where its folder should be); name another folder."),
        (f"{tmp_path}/{'x' * 300}.bed", "(File name too long); choose a shorter name."),
        ("/proc/hits.bed", "(No such file or directory); see what the system says."),
    ):
        assert refused("kmers", index, kmers, "-o", target) == f"{target}: cannot be written {reason}"
    for empty in ("", " "):
        assert refused("kmers", index, kmers, "-o", empty).startswith("the name of the output file is empty; name a")


class FullDisk(io.BytesIO):
    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "cannot be written (No space left on device); free some space"
    monkeypatch.setattr(opening, "open_for_writing", lambda path, **_: Path(path).touch() or FullDisk())
    target = str(tmp_path / "hits.tsv")
    assert refused("kmers", index, kmers, "-o", target).startswith(f"{target}: {full}")
    for command, unbuffered in ((["kmers", index, kmers], ""), (["check"], ""), (["check"], "1")):
        monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
        with open("/dev/full", "wb") as sink, program(*command, stdout=sink) as process:
            assert process.stderr is not None
            said = process.stderr.read().decode().splitlines()
        assert process.returncode == 1 and said[-1].startswith(f"Error: standard output: {full}")


def test_a_disk_that_fills_while_the_index_is_saved(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_array", full)
    sentence = refused("index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(tmp_path / "i"))
    assert sentence.startswith(f"{tmp_path / 'i'}: cannot be written (No space left on device); the index takes ")


def test_an_allocation_that_fails(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 512. GiB")

    monkeypatch.setattr(hits_module, "format_rows", fail)
    sentence = refused("kmers", index, kmers, "-o", str(tmp_path / "h.bed"), "--threads", "2")
    assert sentence == (
        "there is not enough memory (Unable to allocate 512. GiB); use a machine with more, or fewer --threads."
    )


def test_an_old_output_stays_until_the_new_one_is_whole(
    tmp_path: Path, index: str, refused: Callable[..., str]
) -> None:
    target = tmp_path / "hits.bed"
    target.write_text("precious\n")
    refused("kmers", index, save(tmp_path, "k.fa", f">a\n{CHROMOSOME[:20]}\n>b\nAC!\n"), "-o", str(target))
    assert target.read_text() == "precious\n"


def test_index_targets_that_are_something_else(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_nothing(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    genome = save(tmp_path, "g.fa", fasta(CONTIGS))
    results = tmp_path / "results"
    results.mkdir()
    (results / "thesis.txt").write_text("years of work")
    monkeypatch.setattr(build, "build_index", build_nothing)
    assert refused("index", genome, "-o", genome).startswith(f"{genome}: exists and is no folder")
    for _ in range(2):
        sentence = refused("index", genome, "-o", str(results))
        assert (
            sentence.startswith(f"{results}: exists, and holds ")
            and "is not overwritten; name a new folder" in sentence
        )
        (results / "index.json").write_text("{}")  # anybody's: many programs write a file of that name
    assert (results / "thesis.txt").read_text() == "years of work"


def test_a_damaged_index_is_found(tmp_path: Path, kmers: str, refused: Callable[..., str]) -> None:
    folder = tmp_path / "i"
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(folder)]) == 0
    assert cli.main(["verify", str(folder)]) == 0
    part = folder / "fast.table.npy"
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    expected = f"{part}: {len(content) - 1:,} bytes, but {len(content):,} were expected; build the index again."
    assert refused("kmers", str(folder), kmers, "-o", str(tmp_path / "h.bed")) == expected
    part.unlink()
    assert refused("kmers", str(folder), kmers).startswith(f"{part}: missing from the index")
    missing = tmp_path / "none"
    sentence = refused("kmers", str(missing), kmers)
    assert sentence.startswith(f"{missing}: there is no such folder")
    assert "python -m warpseed index GENOME.fa" in sentence


def test_verify_finds_a_changed_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "i"
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(folder)]) == 0
    capsys.readouterr()
    assert cli.main(["verify", str(folder)]) == 0
    assert capsys.readouterr().err.startswith(f"{folder}: ")
    part = folder / "fast.suffix_array.npy"
    content = bytearray(part.read_bytes())
    content[-5] ^= 1
    part.write_bytes(content)
    assert cli.main(["verify", str(folder)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"Error: {part}: its SHA-256 is not the recorded one; build the index again.\n"


# ------------------------------------------------------------------------------------------ outputs of every kind


def test_the_output_is_not_an_input(tmp_path: Path, index: str, refused: Callable[..., str]) -> None:
    kmers = Path(save(tmp_path, "k.bed", fasta(QUERIES)))
    link, hard = tmp_path / "link.bed", tmp_path / "hard.bed"
    link.symlink_to(kmers)
    hard.hardlink_to(kmers)
    before = kmers.read_bytes()
    for source, target in ((kmers, kmers), (kmers, link), (link, kmers), (kmers, hard), (kmers, f"{tmp_path}/./k.bed")):
        sentence = refused("kmers", index, str(source), "-o", str(target))
        assert sentence == f"{target}: the output is the file {source}, which is read; name another file."
    with open(kmers, "ab") as sink, program("kmers", index, str(kmers), stdout=sink) as process:
        assert process.stderr is not None
        assert b"-: the output is the file" in process.stderr.read()
    assert process.returncode == 1
    assert kmers.read_bytes() == before and link.is_symlink()


@pytest.mark.parametrize(
    ("output", "ending", "order"),
    [("h.bed.gz", ".tbi", ["--sorted"]), ("h.bed.gz", ".csi", ["--sorted"]), ("h.bed.gz", ".tbi", [])],
)
def test_a_folder_where_the_index_goes(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], output: str, ending: str, order: list[str]
) -> None:
    folder = tmp_path / "out"
    (folder / (output + ending)).mkdir(parents=True)
    (folder / output).write_bytes(b"the old one")
    sentence = refused("kmers", index, kmers, "-o", str(folder / output), *order)
    path = folder / output
    assert sentence == f"{path}{ending}: this is a folder, but the index of {path} is a file; remove it, or rename it."
    assert path.read_bytes() == b"the old one" and len(list(folder.iterdir())) == 2


def test_a_link_leads_to_what_is_written(tmp_path: Path, index: str, kmers: str) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "old.bed").write_text("old")
    for name, target in (("hits.bed", "old.bed"), ("new.bed", "not-there-yet.bed")):
        (tmp_path / name).symlink_to(folder / target)
        assert cli.main(["kmers", index, kmers, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).is_symlink()
        assert (folder / target).read_text() == expected_bed(CONTIGS, QUERIES, 0)
    assert sorted(path.name for path in folder.iterdir()) == ["not-there-yet.bed", "old.bed"]


def test_a_named_pipe_and_a_device_are_written_as_they_stand(tmp_path: Path, index: str, kmers: str) -> None:
    pipe, device = tmp_path / "pipe.bed", tmp_path / "nowhere.bed"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    with program("kmers", index, kmers, "-o", str(pipe)) as process:
        assert pipe.read_text() == expected_bed(CONTIGS, QUERIES, 0)
        process.communicate()
    assert process.returncode == 0 and pipe.is_fifo()
    assert cli.main(["kmers", index, kmers, "-o", str(device)]) == 0
    assert device.is_symlink() and Path("/dev/null").is_char_device()


# ------------------------------------------------------------------------------------------ standard streams


def shell(command: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A shell's command line, in which $WS is warpseed and $1, $2, … are the arguments."""
    library = str(Path(warpseed.__file__).parents[1])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": library, "PYTHON": sys.executable}
    script = 'WS() { "$PYTHON" -m warpseed "$@"; }; ' + command
    return subprocess.run(["bash", "-c", script, "bash", *arguments], env=environment, capture_output=True)


def test_what_is_said_does_not_go_into_the_output_where_standard_error_is_closed(index: str, kmers: str) -> None:
    done = shell('WS kmers "$1" "$2" 2>&-', index, kmers)
    assert (done.returncode, done.stdout.decode()) == (0, expected_bed(CONTIGS, QUERIES, 0))
    done = shell('WS kmers "$1" "$2" 2>/dev/full', index, kmers)
    assert (done.returncode, done.stdout.decode()) == (0, expected_bed(CONTIGS, QUERIES, 0))


def test_a_note_that_nobody_takes_is_no_mistake(tmp_path: Path, index: str) -> None:
    rna = save(tmp_path, "rna.fa", ">u\nACGUACGU\n")
    for where in ("&-", "/dev/full"):
        done = shell(f'WS kmers -q "$1" "$2" 2>{where}', index, rna)
        assert (done.returncode, done.stdout) == (0, b"")
    assert shell('WS kmers -q "$1" "$2"', index, rna).stderr.decode() == (
        f"Note: {rna}: the bases are written with U (RNA), which are taken as N; write T.\n"
    )


def test_closed_streams_are_said(tmp_path: Path, index: str, kmers: str) -> None:
    for command, sentence in (
        ('WS kmers "$1" "$2" >&-', "standard output: it is closed; name a file, or send it to one."),
        ("WS check >&-", "standard output: it is closed; name a file, or send it to one."),
        ('WS kmers "$1" - <&-', "standard input: it is closed; give the path of a file."),
        ('WS index - -o "$3/i" <&-', "standard input: it is closed; give the path of a file."),
    ):
        done = shell(command, index, kmers, str(tmp_path))
        assert done.returncode == 1 and done.stdout == b""
        assert done.stderr.decode().splitlines()[-1] == f"Error: {sentence}"
    assert sorted(tmp_path.iterdir()) == [Path(kmers)]


def test_a_full_standard_output_is_said_whatever_python_buffers(index: str, kmers: str) -> None:
    done = shell('WS kmers "$1" "$2" > /dev/full', index, kmers)
    assert done.returncode == 1
    errors = [line for line in done.stderr.decode().splitlines() if line.startswith("Error")]
    assert errors == [
        "Error: standard output: cannot be written (No space left on device); free some space, or write elsewhere."
    ]


def test_streams_of_text_in_the_place_of_standard_ones(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(fasta(QUERIES)))
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(["kmers", index, "-"]) == 0
    assert out.getvalue() == expected_bed(CONTIGS, QUERIES, 0)


def test_a_thread_may_run_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(sys, "argv", ["warpseed", "check"])
    worker = threading.Thread(target=lambda: statuses.append(cli.main()))
    worker.start()
    worker.join()
    assert statuses == [0] and capsys.readouterr().out.startswith("warpseed ")


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "free some space, or write elsewhere"),
        (errno.EACCES, "get the permission, or name another place"),
        (errno.EROFS, "that place is read-only, name another one"),
        (errno.EIO, "see what the system says"),
    ],
)
def test_advice_is_by_cause(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, code: int,
    advice: str,
) -> None:  # fmt: skip
    class Failing(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(opening, "open_for_writing", lambda path, **_: Path(path).touch() or Failing())
    target = str(tmp_path / "h.bed")
    expected = f"{target}: cannot be written ({os.strerror(code)}); {advice}."
    assert refused("kmers", index, kmers, "-o", target) == expected


def test_an_error_that_names_no_file_blames_none(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(hits_module, "format_rows", fail)
    sentence = refused("kmers", index, kmers, "-o", str(tmp_path / "h.bed"))
    assert sentence == "Too many open files; close other programs, or raise the limit (ulimit -n)."


def test_a_full_disk_names_the_file_that_was_to_be() -> None:
    with pytest.raises(OSError, match="No space left") as caught, open_for_writing("/dev/full") as handle:
        handle.write(b"x" * (1 << 20))
    assert caught.value.filename == "/dev/full"


@pytest.mark.parametrize("name", ["hits.bed", "hits.bed.gz"])
def test_a_plain_file_that_is_written_behind_and_has_no_room(tmp_path: Path, name: str) -> None:
    target, noise = tmp_path / name, os.urandom(1 << 17)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with (
            pytest.raises(InputError, match="File too large") as caught,
            opening.open_output(target, threads=2) as handle,
        ):
            for _ in range(3 if name.endswith(".bed") else 30):
                handle.write(noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert str(caught.value).startswith(f"{target}: cannot be written")
    assert os.listdir(tmp_path) == []


def test_an_atomic_file_is_named_by_its_final_name(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, atomic_path(tmp_path / "final.fa") as temporary:
        raise OSError(errno.ENOSPC, "No space left on device", str(temporary))
    assert caught.value.filename == str(tmp_path / "final.fa")


def test_a_read_only_file_system_is_told_of_the_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "unlink", refused)  # as the system does, of what is not there, too
    with pytest.raises(OSError) as caught, atomic_path(tmp_path / "final.fa") as temporary:
        raise OSError(errno.EROFS, "Read-only file system", str(temporary))
    assert caught.value.filename == str(tmp_path / "final.fa")
