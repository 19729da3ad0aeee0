"""Outputs that may not be written are left as they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_that_may_not_be_written_stays(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    """Though its folder would let another one take its name."""
    kept, link = tmp_path / "kept.bed", tmp_path / "link.bed"
    kept.write_text("mine")
    kept.chmod(0o444)
    link.symlink_to(kept)
    target = link if is_link else kept
    if os.geteuid() == 0:  # who may write everything
        opened = os.open

        def denied(path: Any, flags: int, *more: Any, **named: Any) -> int:
            if flags & os.O_WRONLY and os.path.realpath(path) == str(kept):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, flags, *more, **named)

        monkeypatch.setattr(os, "open", denied)
    expected = f"{target}: cannot be written (Permission denied); get the permission, or name another place."
    assert refused("kmers", index, kmers, "-o", str(target)) == expected
    assert kept.read_text() == "mine" and set(tmp_path.iterdir()) == {kept, link, Path(kmers)}
