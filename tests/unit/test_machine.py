"""The memory that a control group, of either version, wherever it is mounted, or a limit leaves to this process."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from warpseed.compute import machine
from warpseed.errors import MemoryLimitError

GIB = 1 << 30
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")
UNLIMITED_V1 = 9223372036854771712


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A made-up /proc with 64 GiB available; `kernel(own groups, mounts)` gives the folder of the mounts."""

    def write(own: str, mounts: str) -> Path:
        (tmp_path / "proc" / "self").mkdir(parents=True)
        (tmp_path / "proc" / "self" / "cgroup").write_text(own)
        (tmp_path / "proc" / "self" / "mountinfo").write_text(mounts.replace("GROUPS", str(tmp_path / "groups")))
        (tmp_path / "proc" / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {64 * GIB // 1024} kB\n")
        return tmp_path / "groups"

    monkeypatch.setattr(machine, "_PROC", tmp_path / "proc")
    return write


def group(folder: Path, names: tuple[str, str, str], limit: int | str, used: int, cached: int) -> None:
    """The files of one control group."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cached}\n")


def test_the_group_of_a_slurm_job_counts(kernel: Callable[[str, str], Path]) -> None:
    """Version 2: the limit stands some levels below the root, which itself has no limit files."""
    own = "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"
    groups = kernel(own, "30 23 0:26 / GROUPS rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n")
    job = groups / "system.slice" / "slurmstepd.scope" / "job_7"
    group(job / "step_0" / "user" / "task_0", V2, "max", GIB, 0)
    group(job / "step_0", V2, "max", 2 * GIB, 0)
    group(job, V2, 8 * GIB, 3 * GIB, GIB)
    assert machine.available_memory() == 6 * GIB
    assert machine.memory_bytes() <= 8 * GIB
    group(job / "step_0", V2, 4 * GIB, 2 * GIB, 0)  # the tightest of them
    assert machine.available_memory() == 2 * GIB
    group(job, V2, 8 * GIB, 9 * GIB, 0)  # above its limit for a moment
    assert machine.available_memory() == 0


def test_version_1_has_its_own_files(kernel: Callable[[str, str], Path]) -> None:
    mounts = (
        "33 31 0:31 / GROUPS/cpu rw,relatime - cgroup cgroup rw,cpu\n"
        "36 31 0:34 / GROUPS/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
        "40 31 0:38 / GROUPS/unified rw - cgroup2 cgroup2 rw\n"
    )
    groups = kernel("9:name=systemd:/\n4:memory:/slurm/job_7\n1:cpu,cpuacct:/other\n0::/\n", mounts)
    group(groups / "memory", V1, UNLIMITED_V1, 50 * GIB, 0)
    group(groups / "memory" / "slurm" / "job_7", V1, 5 * GIB, 4 * GIB, 3 * GIB)
    group(groups / "cpu" / "slurm" / "job_7", V1, 1, 1, 0)
    assert machine.available_memory() == 4 * GIB


@pytest.mark.parametrize("own", ["/docker/abc", "/docker/abc/job", "/elsewhere", "/"])
def test_a_container_sees_its_own_part_of_the_tree(kernel: Callable[[str, str], Path], own: str) -> None:
    groups = kernel(f"4:memory:{own}\n", "36 31 0:34 /docker/abc GROUPS ro - cgroup cgroup rw,memory\n")
    group(groups, V1, 3 * GIB, GIB, 0)
    group(groups / "job", V1, 2 * GIB, GIB, 0)
    assert machine.available_memory() == (GIB if own.endswith("job") else 2 * GIB)


def test_without_a_limit_the_kernel_decides(kernel: Callable[[str, str], Path]) -> None:
    groups = kernel("0::/a/b\n", "30 23 0:26 / GROUPS rw - cgroup2 cgroup2 rw\n")
    assert machine.available_memory() == 64 * GIB
    group(groups / "a", V2, "max", 70 * GIB, 0)
    (groups / "a" / "memory.current").unlink()
    assert machine.available_memory() == 64 * GIB


@pytest.mark.parametrize(("limit", "free"), [(12 << 20, 2 << 20), (10 << 20, 0), (resource.RLIM_INFINITY, 64 * GIB)])
def test_a_limit_of_address_space_bounds_memory(
    kernel: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, limit: int, free: int
) -> None:
    kernel("", "")
    (machine._PROC / "self" / "statm").write_text(f"{(10 << 20) // resource.getpagesize()} 5 5 5 0 5 0\n")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, resource.RLIM_INFINITY))
    assert machine.available_memory() == free
    machine.require_address_space(free, "To be there")
    if free < GIB:
        with pytest.raises(
            MemoryLimitError, match=r"To be there takes 0\.00\d+ GB of address space, but .* \(ulimit -v\)"
        ):
            machine.require_address_space(free + (1 << 20), "To be there")


def test_this_machine() -> None:
    assert 0 < machine.available_memory() <= machine.memory_bytes()


_HERE = """
import os
from pathlib import Path

def here():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""
_FREED = f"""
{_HERE}
import ctypes
from warpseed.compute.machine import return_freed_memory

before, blocks = here(), [ctypes.create_string_buffer(b"x" * 50_000) for _ in range(1001)]
top = blocks.pop()
filled = here()
del blocks
kept = here()
return_freed_memory()
print(filled - before, kept - before, here() - before)
"""


_IN_TURN = f"""
{_HERE}
import sys
import numpy as np
from warpseed.compute import machine

for name in sys.argv[1:]:
    getattr(machine, name)()
before, blocks = here(), [np.ones(1 << 20, np.uint8) for _ in range(101)]
top = blocks.pop()
del blocks
print(here() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
@pytest.mark.parametrize("kept", [False, True])
def test_what_is_freed_is_kept_or_goes_back(kept: bool) -> None:
    """Blocks of a megabyte below one that is still used. Who gives them back does so for good."""
    names = ["keep_what_is_freed"] if kept else ["keep_what_is_freed", "return_what_is_freed", "keep_what_is_freed"]
    done = subprocess.run([sys.executable, "-c", _IN_TURN, *names], capture_output=True, text=True, check=True)
    assert (int(done.stdout) > 50_000_000) == kept


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")
def test_freed_memory_goes_back_to_the_system() -> None:
    """What lies below a block that is still used is kept, unless it is asked for."""
    done = subprocess.run([sys.executable, "-c", _FREED], capture_output=True, text=True, check=True)
    filled, kept, left = map(int, done.stdout.split())
    assert min(filled, kept) > 40_000_000 and left < 10_000_000
