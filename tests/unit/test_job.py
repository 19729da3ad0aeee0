"""What a rule script says when it fails: one sentence for what a user can mend, the traceback for a bug."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
import warpseed
from warpseed.errors import InputError, explain

CASES = {
    "raise InputError('reads.fq: the file is empty.')": "Error: reads.fq: the file is empty.",
    "open('/dev/full', 'wb', 0).write(b'x')": "Error: No space left on device; free some space, or write elsewhere.",
    "with open_for_writing('/dev/full') as full: full.write(b'x')": (
        "Error: /dev/full: No space left on device; free some space, or write elsewhere."
    ),
    "open('/proc/none/x', 'wb')": "Error: /proc/none/x: No such file or directory; see what the system says.",
    "np.empty(1 << 60, np.uint8)": "Error: there is not enough memory (Unable to allocate",
}


def failing_job(log: Path, statement: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    script = (
        "import sys\nimport numpy as np\nfrom warpseed.errors import InputError\n"
        "from warpseed.sequences.files import open_for_writing\nfrom warpseed.workflow.job import rule_log\n"
        f"with rule_log(sys.argv[1]):\n    {statement}\n"
    )
    library = str(Path(warpseed.__file__).parents[1])
    command = [sys.executable, "-c", script, str(log)]
    done = subprocess.run(command, env={"PYTHONPATH": library, "HOME": "/tmp"}, capture_output=True, text=True)
    return done, log.read_text().splitlines()


@pytest.mark.parametrize("statement", CASES)
def test_what_a_user_can_mend_is_one_sentence_in_log_and_terminal(tmp_path: Path, statement: str) -> None:
    done, said = failing_job(tmp_path / "job.log", statement)
    assert done.returncode == 1
    assert len(said) == 1 and said[0].startswith(CASES[statement])
    assert done.stderr.splitlines() == [f"The end of {tmp_path / 'job.log'}:", *said]


def test_a_bug_is_a_traceback(tmp_path: Path) -> None:
    done, said = failing_job(tmp_path / "job.log", "[][0]")
    assert done.returncode == 1
    assert said[0].startswith("Traceback") and said[-1] == "IndexError: list index out of range"


def test_explained_are_mistakes_the_system_and_memory() -> None:
    assert explain(InputError("a sentence.")) == "a sentence."
    assert explain(ValueError("a bug")) is None
    assert explain(OSError(errno.ENOSPC, "No space left on device", "x.fa")) == (
        "x.fa: No space left on device; free some space, or write elsewhere."
    )
    assert str(explain(MemoryError())).startswith("there is not enough memory (an allocation failed)")
