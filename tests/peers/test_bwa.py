"""bwa's index: built, timed and removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from warpseed.errors import PeerError
from warpseed.measure.peers.bwa import bwa_version, time_bwa_index


@pytest.mark.peer("bwa")
def test_the_index_is_timed_and_removed(write_reference: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    built = time_bwa_index(write_reference(["ACGTTGCATG" * 50]), tmp_path / "out")
    assert built.seconds > 0 and built.peak_bytes > 1 << 20
    assert list((tmp_path / "out").iterdir()) == []
    assert str(bwa_version()).startswith("0.")


def test_without_bwa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bwa_version() is None
    with pytest.raises(PeerError, match="bwa is not on PATH: install bwa 0.7"):
        time_bwa_index(tmp_path / "genome.fa", tmp_path)
