"""On a GPU: the command writes what it writes on the CPU, and no library's warning reaches the terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warpseed
from command_line import CONTIGS, QUERIES, fasta, save

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

pytestmark = pytest.mark.gpu


def start(*arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Python as users start it, which ends well."""
    library = os.pathsep.join([str(Path(warpseed.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": library} | settings
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True)


def run(*arguments: str, cache: Path) -> tuple[bytes, str]:
    """A command, with an empty compile cache: what it writes to its two streams."""
    done = start("-m", "warpseed", *arguments, NUMBA_CACHE_DIR=str(cache / "code"))
    return done.stdout, done.stderr.decode()


SEARCHES = [
    ["kmers"],
    ["kmers", "--max-mismatches", "2"],
    ["kmers", "--max-mismatches", "1", "--tier", "paper"],
    ["reads"],
    ["reads", "--max-edits", "2"],
    ["reads", "--tier", "paper"],
    ["mems", "--min-length", "12"],
]


@pytest.mark.parametrize("command", SEARCHES, ids=" ".join)
def test_libraries_say_nothing(tmp_path: Path, command: list[str]) -> None:
    """Few queries make the smallest grids, of which a library might warn."""
    genome, queries = save(tmp_path, "g.fa", fasta(CONTIGS)), save(tmp_path, "k.fa", fasta(QUERIES))
    index, (name, *arguments) = str(tmp_path / "index"), command
    run("index", genome, "-o", index, "--parts", "fast,paper", cache=tmp_path)
    on_cpu, _ = run(name, index, queries, "-o", "-", *arguments, cache=tmp_path)
    on_gpu, told = run(name, index, queries, "-o", "-", "--device", "gpu", *arguments, cache=tmp_path)
    assert on_gpu == on_cpu and on_gpu.count(b"\n") >= 2
    assert not re.search("warning|numba|cupy", told, re.IGNORECASE), told


COMMAND = """
import sys
from warpseed.cli import main
status = main(sys.argv[1:])
print("Numba" if "numba" in sys.modules else "no Numba")
sys.exit(status)
"""


@pytest.mark.parametrize(
    "command", [*SEARCHES, ["ebwt"], ["stream", "-k", "9"], ["stream", "-k", "31"], ["index"]], ids=" ".join
)
def test_a_command_that_was_run_before_does_without_numba(tmp_path: Path, command: list[str]) -> None:
    """Kernels and what runs on the host are machine code on disk then; both times the same is written."""
    (name, *arguments), code = command, str(tmp_path / "code")
    given = [save(tmp_path, "g.fa", fasta(CONTIGS))]
    if command in SEARCHES:
        index = str(tmp_path / "index")
        start("-m", "warpseed", "index", *given, "-o", index, "--parts", "fast,paper")
        given = [index, save(tmp_path, "k.fa", fasta(QUERIES))]
    said, written = [], []
    for time in ("first", "second"):
        folder = tmp_path / time
        settings = ["-q", "--device", "gpu", "-o", str(folder / "out.tsv"), *arguments]
        said.append(start("-c", COMMAND, name, *given, *settings, NUMBA_CACHE_DIR=code).stdout)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "index.json")
        written.append([(path.relative_to(folder), path.read_bytes()) for path in files])
    assert said == [b"Numba\n", b"no Numba\n"]
    assert written[0] == written[1] != []


SEARCH = """
import sys, warpseed
index, words = warpseed.build_index(sys.argv[1]), ["ACGTTGCAAGCTTACGGATC", "GATTACA", "TTTT"] * 1000
on_cpu, on_gpus = (warpseed.find_kmers(index, words, max_mismatches=1, device=device) for device in ("cpu", "gpu:all"))
print(on_cpu == on_gpus)
"""


def test_a_process_ends_well_after_all_gpus_were_used(tmp_path: Path) -> None:
    """Nothing is unloaded twice, however little Numba keeps for later, whether kernels are compiled or were before."""
    genome, code = save(tmp_path, "g.fa", fasta(CONTIGS)), str(tmp_path / "code")
    for _ in range(2):
        done = start("-c", SEARCH, genome, NUMBA_CACHE_DIR=code, NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT="0")
        assert done.stdout == b"True\n"
