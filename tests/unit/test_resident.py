"""What lies on devices as long as its owner lives, with a CuPy that the tests make up."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from made_up_gpu import Owner, make_up, takes
from warpseed.compute import resident
from warpseed.errors import MemoryLimitError


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return make_up(monkeypatch)


def test_a_part_is_made_once_for_each_device(made_up: SimpleNamespace) -> None:
    owner, other, made = Owner(), Owner(), []
    for device in (0, 1, 0, 1):
        made_up.device = device
        part = resident.resident(owner, "text", lambda: made.append(made_up.device) or [len(made)])
        assert part == [device + 1]
    made_up.device = 0
    assert resident.resident(owner, "table", lambda: "table") == "table"
    assert resident.resident(other, "text", lambda: "other") == "other"
    assert made == [0, 1]


def test_parts_go_with_their_owner(made_up: SimpleNamespace) -> None:
    owner = Owner()
    resident.resident(owner, "text", takes(made_up, 600, []), needed=600)
    assert made_up.free == 400
    del owner
    gc.collect()
    assert made_up.free == 1000


def test_release_lets_one_part_or_all_go(made_up: SimpleNamespace) -> None:
    owner = Owner()
    for name in ("text", "table", "rows"):
        resident.resident(owner, name, takes(made_up, 100, []))
    resident.release(owner, "table")
    assert made_up.free == 800
    made_up.device = 1
    resident.release(owner)
    assert made_up.free == 800
    made_up.device = 0
    resident.release(owner)
    assert made_up.free == 1000


def test_other_owners_make_room_before_the_own_parts_do(made_up: SimpleNamespace) -> None:
    owner, other, made = Owner(), Owner(), []
    resident.resident(other, "text", takes(made_up, 300, made), needed=300)
    resident.resident(owner, "text", takes(made_up, 200, made), needed=200)
    resident.resident(owner, "bwt", takes(made_up, 200, made), needed=200)
    resident.resident(owner, "rows", takes(made_up, 500, made), needed=500, shares=("text",))
    assert made_up.free == 1000 - 200 - 200 - 500
    resident.release(owner, "rows")
    resident.resident(owner, "rows", takes(made_up, 700, made), needed=700, shares=("text",))
    assert made_up.free == 1000 - 200 - 700
    assert resident.resident(owner, "text", lambda: None) is not None
    with pytest.raises(MemoryLimitError, match="'table'"):
        resident.resident(owner, "table", takes(made_up, 2000, made), needed=2000, shares=("text", "rows"))
