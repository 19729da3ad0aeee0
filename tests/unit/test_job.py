"""What the log of a rule's job says, and what a job leaves behind that fails or is ended."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import warpseed
from warpseed.errors import InputError, explain

SCRIPTS = Path(warpseed.__file__).resolve().parents[1]
CASES = {
    "raise InputError('reads.fq: the file is empty.')": "Error: reads.fq: the file is empty.",
    "open('/dev/full', 'wb', 0).write(b'x')": "Error: No space left on device; free some space, or write elsewhere.",
    "with open_for_writing('/dev/full') as full: full.write(b'x')": (
        "Error: /dev/full: No space left on device; free some space, or write elsewhere."
    ),
    "open('/proc/none/x', 'wb')": "Error: /proc/none/x: No such file or directory; see what the system says.",
    "np.empty(1 << 60, np.uint8)": "Error: there is not enough memory (Unable to allocate",
}
HEADER = """
import logging, sys, time
from types import SimpleNamespace as Some
import numpy as np
from warpseed.errors import InputError
from warpseed.sequences.files import atomic_path, open_for_writing
from warpseed.workflow.job import rule_log

job = Some(
    rule="cut_things", wildcards={"dataset": "S20"}, threads=3, resources={}, log=[sys.argv[1]],
    input={"reads": "a.fq", "lib": ["x.py"]}, output={"tables": ["t1", "t2", "t3", "t4", "t5", "t6"]},
)
"""


def start(log: Path | str, block: str, **options: object) -> subprocess.Popen[str]:
    """A job whose script does `block`, as a process of its own."""
    script = f"{HEADER}with rule_log(job):\n    {block}\n"
    return subprocess.Popen(
        [sys.executable, "-c", script, str(log)], env={"PYTHONPATH": str(SCRIPTS), "HOME": "/tmp"}, text=True,
        stderr=subprocess.PIPE, **options,  # type: ignore[call-overload]
    )  # fmt: skip


def failing_job(log: Path, block: str) -> tuple[list[str], list[str]]:
    """What log and terminal of a job say that ends with status 1."""
    with start(log, block) as process:
        _, said = process.communicate()
    assert process.returncode == 1
    return log.read_text().splitlines(), said.splitlines()


def test_a_log_says_what_ran_how_far_it_is_and_what_it_took(tmp_path: Path) -> None:
    log = tmp_path / "new" / "job.log"
    with start(log, "print('half'); logging.getLogger('warpseed.x').info('case %d', 1); time.sleep(60)") as process:
        deadline = time.monotonic() + 30
        while not (log.is_file() and log.read_text().endswith("case 1\n")) and time.monotonic() < deadline:
            time.sleep(0.05)
        lines = log.read_text().splitlines()  # also of a job that is killed
        process.kill()
    version = re.escape(warpseed.__version__)
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"warpseed {version}: cut_things \(dataset=S20\), threads: 3, on \S+, {when}", lines[0])
    assert lines[1:4] == ["reads a.fq", "writes t1, t2, t3, t4 and 2 more", "half"]
    assert re.fullmatch(r"\d\d:\d\d:\d\d case 1", lines[4])
    with start(log, "print('done')") as process:
        assert process.communicate()[1] == ""  # nothing on the terminal
    assert process.returncode == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 6 and lines[3] == "done"
    assert re.fullmatch(r"seconds: total \d+\.\d{3}", lines[4])
    assert re.fullmatch(r"peak memory: \d+ MiB", lines[5])


@pytest.mark.parametrize("block", CASES)
def test_what_a_user_can_mend_is_one_sentence_in_log_and_terminal(tmp_path: Path, block: str) -> None:
    log, terminal = failing_job(tmp_path / "job.log", block)
    assert log[-1].startswith(CASES[block]) and log[-2].startswith("peak memory: ")
    assert len(log) == 6 and "Traceback" not in "".join(log)
    assert terminal == [f"The end of {tmp_path / 'job.log'}:", *log]


def test_a_bug_is_a_traceback(tmp_path: Path) -> None:
    log, terminal = failing_job(tmp_path / "job.log", "[][0]")
    assert log[5].startswith("Traceback") and log[-1] == "IndexError: list index out of range"
    assert terminal == [f"The end of {tmp_path / 'job.log'}:", *log]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_job_that_is_ended_leaves_nothing_half_written(tmp_path: Path, number: int) -> None:
    folder, log = tmp_path / "results", tmp_path / "job.log"
    block = "with atomic_path(sys.argv[2]) as path, open(path, 'w') as file: file.write('half'); time.sleep(60)"
    block = block.replace("sys.argv[2]", repr(str(folder / "seeds.bed")))
    with start(log, block) as process:
        deadline = time.monotonic() + 30
        while not (folder.is_dir() and list(folder.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert list(folder.iterdir())
        process.send_signal(number)
        process.send_signal(number)  # impatient
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert not folder.exists()
    sentence = f"Interrupted by {signal.Signals(number).name}; no half-written file is left."
    assert log.read_text().splitlines()[-1] == sentence == said.splitlines()[-1]
    assert "Traceback" not in said


def test_a_signal_that_becomes_another_exception_ends_a_job_all_the_same(tmp_path: Path) -> None:
    """As in NumPy's import, which makes an ImportError of whatever is raised in it."""
    block = "import os\n    try: os.kill(os.getpid(), 15); time.sleep(9)\n    except BaseException: raise ImportError"
    with start(tmp_path / "job.log", block) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and "Traceback" not in said + (tmp_path / "job.log").read_text()
    assert said.splitlines()[-1] == "Interrupted by SIGTERM; no half-written file is left."


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    block = "import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('goes on')"
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    with start(tmp_path / "job.log", block, preexec_fn=ignore) as process:
        process.communicate()
    assert process.returncode == 0 and "goes on" in (tmp_path / "job.log").read_text()


# ------------------------------------------------------------------------------------------ a disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of one megabyte."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a disk of one megabyte cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


RULES = {
    "simulate_reference": (
        "output=dict(fasta='{disk}/g.fa'), params=Some(simulation=dict(size=3_000_000, seed=1))", "{disk}/g.fa: "
    ),
    "simulate_human_like": (
        "output=dict(fasta='{disk}/g.fa', records='{disk}/r.tsv'), "
        "params=Some(simulation=dict(size=3_000_000, seed=1))",
        "{disk}/g.fa: ",
    ),
    "simulate_reads": (
        "input=Some(fasta='{genome}'), output=Some(reads='{disk}/r.fq'), "
        "params=dict(number=9000, length=100, qualities=True, seed=1)",
        "{disk}/r.fq: ",
    ),
    "cut_kmers": (
        "input=Some(reads='{genome}'), output=Some(kmers='{disk}/k.fa'), "
        "params=Some(k=200, number=9000, seed=1, deduplicate=False, traced=False)",
        "{disk}/k.fa: ",
    ),
    "build_fm_index": (
        "input=Some(fasta='{genome}'), output=Some(index='{disk}/i', records='{disk}/r.tsv'), "
        "params=Some(parts=['fast'], occ_interval=128, sa_interval=32, table_length=9, device='cpu'), "
        "wildcards=Some(reference='small')",
        "{disk}/i: cannot be written (",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_a_full_disk_is_one_sentence_that_names_the_file(tmp_path: Path, small_disk: Path, rule: str) -> None:
    from warpseed.sequences.simulate import simulate_reference

    genome = tmp_path / "genome.fa"
    simulate_reference(genome, size=300_000, seed=1)
    arguments, named = (text.format(disk=small_disk, genome=genome) for text in RULES[rule])
    script = f"""
import runpy, sys
class Some(dict):
    __getattr__ = dict.__getitem__
snakemake = dict(rule={rule!r}, threads=1, log=[sys.argv[1]])
snakemake |= dict.fromkeys(("wildcards", "resources", "input", "output"), Some())
snakemake |= dict({arguments})
snakemake = Some({{name: Some(part) if type(part) is dict else part for name, part in snakemake.items()}})
runpy.run_path({str(SCRIPTS / f"{rule}.py")!r}, {{"snakemake": snakemake}})
"""
    log = tmp_path / "job.log"
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(log)], env=environment, capture_output=True, text=True, check=False
    )
    said = log.read_text().splitlines()
    assert done.returncode == 1, said
    assert said[-1].startswith(f"Error: {named}") and "No space left on device" in said[-1] and "free some" in said[-1]
    assert "Traceback" not in log.read_text() + done.stderr
    assert list(small_disk.rglob("*")) == []


def test_the_terminal_is_told_where_the_log_is_on_a_full_disk(small_disk: Path) -> None:
    with suppress(OSError):
        (small_disk / "full").write_bytes(bytes(2 << 20))
    with start(small_disk / "job.log", "raise InputError('a sentence.')") as process:
        _, said = process.communicate()
    assert process.returncode == 1
    assert said.splitlines() == [f"The end of {small_disk / 'job.log'}:", "Error: a sentence."]


def test_explained_are_mistakes_the_system_and_memory() -> None:
    assert explain(InputError("a sentence.")) == "a sentence."
    assert explain(ValueError("a bug")) is None
    assert explain(RuntimeError("a bug")) is None
    assert explain(RuntimeError("can't start new thread"), "fewer --threads") == (
        "there is not enough memory (can't start new thread); use a machine with more, or fewer --threads."
    )
    assert explain(OSError(errno.ENOSPC, "No space left on device", "x.fa")) == (
        "x.fa: No space left on device; free some space, or write elsewhere."
    )
    assert str(explain(MemoryError())).startswith("there is not enough memory (an allocation failed)")


def test_every_script_has_such_a_log() -> None:
    for path in SCRIPTS.glob("*.py"):
        assert path.read_text().endswith("    with rule_log(job):\n        main(job)\n"), path
