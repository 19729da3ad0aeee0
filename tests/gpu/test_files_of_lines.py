"""On a GPU: files of hits whose lines were made there have the bytes of the CPU's, for every number of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from device_files import SEARCHES, write_file, write_queries
from warpseed import build_index
from warpseed.compute.gpu import device_count

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, real_genome: Path) -> Any:
    """A genome with a repeat that gives many queries more hits than a device hands on together."""
    path = tmp_path_factory.mktemp("repeats") / "repeats.fa"
    path.write_text(">a contig with spaces\n" + "ACGTTGCATTGACCA" * 60_000 + "\n>b\nNN" + "GATTACA" * 3000 + "NACCA\n")
    return {"repeats": build_index(path, parts=("fast", "paper"), threads=2), "genome": build_index(real_genome)}


@SEARCHES
def test_files_are_those_of_the_cpu(index: Any, tmp_path: Path, how: Any) -> None:
    if how.options.get("tier") == "paper":
        pytest.skip("the paper tier's hits are on the host")
    for genome, count in (("genome", 40_000), ("repeats", 40)):
        reads = write_queries(index[genome], tmp_path / "reads.fa", count=count, name="read/{} of many")
        expected = write_file(how, index[genome], reads, tmp_path / "cpu", "cpu", 2)
        for device in ("gpu", "gpu:all") if device_count() > 1 else ("gpu",):
            assert write_file(how, index[genome], reads, tmp_path / "gpu", device, 4) == expected, (genome, device)
        assert genome == "repeats" or len(expected) > 10_000
