"""Compiled functions: what they take and give, and how they are kept on disk and found again without Numba."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from warpseed.compute.compiled import float64, int64, scalar, uint64
from warpseed.compute.intrinsics import popcount

LIBRARY = Path(__file__).resolve().parents[2] / "workflow" / "scripts"
SORT = """
import sys
import numpy as np
from warpseed.compute.sorting import sort_ranges
values = np.array([3, 1, 2, 9, 8], np.uint64)
sort_ranges(values, np.array([3, 2]))
print(*values, "numba" in sys.modules)
"""


class Inner(NamedTuple):
    values: np.ndarray
    factor: int


class Outer(NamedTuple):
    inner: Inner
    doubled: bool
    weights: np.ndarray


@scalar
def weighted(outer, start):
    total = int64(start)
    for i in range(outer.weights.shape[0]):
        total += int64(outer.inner.values[i]) * int64(outer.weights[i]) * int64(outer.inner.factor)
    return total * int64(2) if outer.doubled else total


@scalar
def folded(values):
    """A number that tells the order in which an array's values are met."""
    total = int64(0)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            total = total * int64(31) + int64(values[row, column])
    return total, int64(values.size), int64(values.itemsize), int64(values.ndim)


@scalar
def twice(value):
    return value + value


def square() -> np.ndarray:
    return np.arange(36, dtype=np.int32).reshape(6, 6)


ARRAYS = {
    "C order": square,
    "Fortran order": lambda: np.asfortranarray(square()),
    "transposed": lambda: square().T,
    "every second": lambda: square()[::2, ::2],
    "backwards": lambda: square()[::-1, ::-1],
    "one row": lambda: square()[:1],
    "one column": lambda: square()[:, :1],
    "no rows": lambda: square()[:0],
    "bytes": lambda: square().astype(np.uint8),
    "unaligned": lambda: np.frombuffer(b"\0" + square().tobytes(), np.uint8)[1:].view(np.int32).reshape(6, 6),
    "read only": lambda: np.frombuffer(square().tobytes(), np.int32).reshape(6, 6),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_an_array_of_any_layout_is_read_as_it_is(make: Callable[[], np.ndarray]) -> None:
    array = make()
    with np.errstate(over="ignore"):
        assert folded(array) == tuple(map(int, folded.py_func(array)))


def test_tuples_in_tuples_are_taken_apart_in_order() -> None:
    outer = Outer(Inner(np.array([1, 2, 3], np.uint32), -7), True, np.array([10, 100, 1000], np.int64))
    assert weighted(outer, -1) == 2 * (-7 * 3210 - 1)
    assert weighted(outer._replace(doubled=False, weights=outer.weights[:0]), -1) == -1


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (5, 10), (-(1 << 62), -(1 << 63)), ((1 << 63) + 1, 2), (1.25, 2.5), (True, 2), (np.True_, 2), (np.int8(-4), -8),
        (np.uint8(200), 400), (np.uint64(1 << 63), 0), (np.float32(0.5), 1.0), (np.float64(-0.5), -1.0),
    ],
)  # fmt: skip
def test_numbers_of_all_types_arrive(value: Any, result: Any) -> None:
    given = twice(value)
    assert given == result and type(given) is type(result)


def test_results_are_numbers_of_python_or_tuples_of_them() -> None:
    @scalar
    def results(n):
        return -n, uint64(0) - uint64(n), n > int64(3), n < int64(3), float64(n) / float64(4)

    @scalar
    def one(n):
        return (n,)

    @scalar
    def nothing(values):
        values[0] = 7

    values = np.zeros(1, np.int64)
    assert results(5) == (-5, (1 << 64) - 5, True, False, 1.25)
    assert [type(each) for each in results(5)] == [int, int, bool, bool, float]
    assert one(4) == (4,) and nothing(values) is None and values[0] == 7


def test_functions_and_intrinsics_are_seen_from_compiled_functions() -> None:
    @scalar
    def outer(word):
        return twice(popcount(word)) + twice(popcount(~word))

    assert outer(uint64(0xFF00FF)) == 128


def test_a_kind_of_arguments_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpseed.compute import compiler

    compiled = []
    compile_entry = compiler.compile_entry
    monkeypatch.setattr(compiler, "compile_entry", lambda *given: compiled.append(given) or compile_entry(*given))

    @scalar
    def size(values, number):
        return values.shape[0] * number

    two_rows = np.zeros((2, 3))
    assert [size(two_rows, 1), size(np.zeros((5, 1)), 2), size(np.zeros((0, 0)), np.int64(3))] == [2, 10, 0]
    assert len(compiled) == 1
    assert [size(two_rows.T, 1), size(two_rows, 1.5), size(two_rows[::2, ::2], 1)] == [3, 3.0, 1]
    assert len(compiled) == 4


def test_threads_that_meet_a_new_function_compile_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpseed.compute import compiler

    compiled = []
    compile_entry = compiler.compile_entry
    monkeypatch.setattr(compiler, "compile_entry", lambda *given: compiled.append(given) or compile_entry(*given))

    @scalar
    def thrice(number):
        return number * int64(3)

    results: list[int] = []
    threads = [threading.Thread(target=lambda n=n: results.append(thrice(n))) for n in range(8)]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [3 * n for n in range(8)] and len(compiled) == 1


def test_the_interpreter_goes_on_while_a_function_runs() -> None:
    @scalar
    def walk(state, steps):
        for _ in range(steps):
            state = state * uint64(6364136223846793005) + uint64(1442695040888963407)
        return state

    walk(uint64(1), 1)
    thread = threading.Thread(target=walk, args=(uint64(1), 1 << 28))
    thread.start()
    time.sleep(0.01)
    assert thread.is_alive()
    thread.join()


@pytest.mark.parametrize("value", ["text", None, [1, 2], {"a": 1}, 1j])
def test_what_no_function_takes_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=f"arrays, numbers and tuples of them, not {type(value).__name__}"):
        twice(value)


def test_what_cannot_be_handed_back_is_refused() -> None:
    @scalar
    def itself(values):
        return values

    with pytest.raises(TypeError, match=r"itself returns array\(int64, 1d, C\), but a compiled function returns num"):
        itself(np.zeros(3, np.int64))


def test_a_function_that_fails_says_so() -> None:
    @scalar
    def divide(a, b):
        return a // b

    assert divide(7, 2) == 3
    with pytest.raises(RuntimeError, match="divide failed: it divided by zero"):
        divide(7, 0)


# ------------------------------------------------------------------------------------------------- on disk


def start(script: str, cache: Path | str, **settings: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(LIBRARY), "NUMBA_CACHE_DIR": str(cache)} | settings
    return subprocess.Popen(
        [sys.executable, "-c", script], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def output_of(process: subprocess.Popen[str]) -> str:
    printed, complaints = process.communicate()
    assert process.returncode == 0 and not complaints, complaints
    return printed.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that two processes have filled at once."""
    cache = tmp_path_factory.mktemp("cache")
    for process in [start(SORT, cache), start(SORT, cache)]:
        assert output_of(process) == "1 2 3 8 9 True"
    return cache


def test_a_second_process_finds_machine_code_and_leaves_numba_alone(filled: Path) -> None:
    assert output_of(start(SORT, filled)) == "1 2 3 8 9 False"
    assert [path.suffix for path in filled.rglob("*") if path.is_file()] == [".o"]


TOLD = """
import sys
import numpy as np
from warpseed import cli
from warpseed.compute.sorting import sort_ranges

def sort(options):
    sort_ranges(np.zeros(5, np.uint64), np.array([3, 2]))
    sort_ranges(np.zeros(5, np.uint32), np.array([3, 2]))
    return 0

cli._kmers = sort
sys.argv[1:] = ["kmers", "genome", "reads", *sys.argv[1:]]
sys.exit(cli.main())
"""


def test_a_command_says_once_that_it_compiles(tmp_path: Path) -> None:
    """What later ones find compiled, and one that is to be quiet, is not told."""
    said = []
    for script in (TOLD, TOLD, TOLD.replace('"reads"', '"reads", "-q"')):
        if script is not TOLD:
            shutil.rmtree(tmp_path)
        process = start(script, tmp_path)
        lines = process.communicate()[1].splitlines()
        said.append([line for line in lines if not line.startswith("warpseed ")])
        assert process.returncode == 0
    assert said == [["compiling for this machine, once; the seconds told below contain it"], [], []]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "folder"])
def test_damaged_files_are_made_again(filled: Path, damage: str) -> None:
    (path,) = filled.rglob("*.o")
    whole = path.read_bytes()
    middle = len(whole) // 2
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        damaged = {
            "empty": b"",
            "cut": whole[:middle],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "text": b"not what was written",
        }
        path.write_bytes(damaged[damage])
    assert output_of(start(SORT, filled)) == "1 2 3 8 9 True"
    if damage == "folder":
        path.rmdir()
        path.write_bytes(whole)
    assert output_of(start(SORT, filled)) == "1 2 3 8 9 False"


LIMITED = """
import resource
import sys
import numpy as np
from warpseed.compute import objects
from warpseed.compute.sorting import sort_ranges
from warpseed.errors import MemoryLimitError
if sys.argv[1] == "compiler":
    objects.place_of(objects.host_folder(), "x", "y")
    objects._linker()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (80 << 20), resource.RLIM_INFINITY))
try:
    sort_ranges(np.zeros(5, np.uint64), np.array([3, 2]))
except MemoryLimitError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is mapped is read from /proc")
@pytest.mark.parametrize(("what", "said"), [("loader", "To load LLVM takes 0.176 GB"), ("compiler", "To compile ")])
def test_too_little_address_space_is_one_sentence(tmp_path: Path, what: str, said: str) -> None:
    """LLVM would end the process, or never come back."""
    printed = output_of(start(LIMITED.replace("sys.argv[1]", repr(what)), tmp_path))
    assert printed.startswith(said) and printed.endswith("GB are left; raise the limit (ulimit -v).")


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert output_of(start(SORT, tmp_path / "file" / "cache")) == "1 2 3 8 9 True"


def test_code_for_another_processor_is_not_used(filled: Path) -> None:
    for imports_numba in (True, False):
        assert output_of(start(SORT, filled, NUMBA_CPU_NAME="generic")) == f"1 2 3 8 9 {imports_numba}"
    assert len({path.parent for path in filled.rglob("*.o")}) == 2


def test_code_of_other_sources_is_not_used(tmp_path: Path) -> None:
    shutil.copytree(LIBRARY / "warpseed", tmp_path / "warpseed", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "warpseed" / "compute" / "sorting.py"
    # (Not of equal length: within a second Python tells a module's states apart by that alone.)
    for line, printed in (("if counts[i] > 1:", "1 2 3 8 9 True"), ("if counts[i] >= 3:", "1 2 3 9 8 True")):
        path.write_text(path.read_text().replace("if counts[i] > 1:", line))
        assert output_of(start(SORT, tmp_path / "cache", PYTHONPATH=str(tmp_path))) == printed


def test_a_search_in_a_warm_process_imports_no_numba(tmp_path: Path) -> None:
    (tmp_path / "g.fa").write_text(">c\n" + "ACGTTGCATGCCATGANN" * 20 + "\n")
    (tmp_path / "k.fa").write_text(">k\nTTGCATGCC\n")
    script = f"""
import sys
from warpseed.cli import main
assert main(["index", {str(tmp_path / "g.fa")!r}, "-o", {str(tmp_path / "i")!r}]) == 0
before = "numba" in sys.modules
for threads in "12":
    hits = {str(tmp_path)!r} + f"/{{threads}}.bed"
    assert main(["kmers", {str(tmp_path / "i")!r}, {str(tmp_path / "k.fa")!r}, "-o", hits, "--threads", threads]) == 0
print(before, "numba" in sys.modules, "pandas" in sys.modules)
"""
    for _ in range(2):
        # Into the cache of all tests, where it is found from the second time on.
        process = start(script, os.environ["NUMBA_CACHE_DIR"])
        told = process.communicate()[0].strip()
        assert process.returncode == 0
    assert told == "False False False"
    assert (tmp_path / "1.bed").read_text().startswith("c\t3\t12\tk\t0\t+\n")
