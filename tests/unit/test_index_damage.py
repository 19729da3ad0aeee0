"""Whatever lies in the files of an index: one sentence, or a search that ends. WARPSEED_DAMAGE=20 tries 20 times as
many flipped bits and random fillings (`make test-damage`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from damage.cases import Case, edits, fillings, flips
from warpseed.fm_index.build import build_index

TESTS = Path(__file__).resolve().parents[1]
TIMES = int(os.environ.get("WARPSEED_DAMAGE") or 1)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with all parts of two contigs in three segments, and k-mers of it beside it."""
    folder = tmp_path_factory.mktemp("damage")
    rng = np.random.default_rng(5)
    first, second = ("".join(rng.choice(list("ACGT"), size)) for size in (66_000, 3_000))
    (folder / "genome.fa").write_text(f">chr1\n{first[:4000]}NN{first[4000:]}\n>chr2\n{second}\n")
    build_index(folder / "genome.fa", parts=("tags", "paper"), sa_interval=7).save(folder / "index")
    (folder / "kmers.txt").write_text(
        "\n".join([*(first[i : i + 20] for i in range(0, 60_000, 3_000)), second[:18], "A"])
    )
    return folder / "index"


def answers(index: Path, scratch: Path, cases: Iterable[Case]) -> dict[Case, str]:
    """What the worker said of each case; of the one that ended it, that. Another worker goes on behind it."""
    left, found = list(cases), {}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "workflow" / "scripts")])}
    while left:
        done = subprocess.run(
            [sys.executable, "-m", "damage.worker", str(index), str(scratch)],
            input="".join(json.dumps(case) + "\n" for case in left),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        said = [json.loads(line) for line in done.stdout.splitlines()]
        if len(said) < len(left):
            said.append(f"ended the process: {done.returncode}, {done.stderr[-500:]}")
        found |= dict(zip(left, said, strict=False))
        left = left[len(said) :]
    return found


def test_every_flipped_bit_is_seen(index: Path, tmp_path: Path) -> None:
    found = answers(index, tmp_path, flips(index, seed=1, each=8 * TIMES))
    assert {case: said for case, said in found.items() if not said.startswith("refused: ")} == {}
    assert {said for said in found.values() if "\n" in said or not said.endswith(".")} == set()


@pytest.mark.thorough
def test_a_made_up_index_is_refused_or_searched(index: Path, tmp_path: Path) -> None:
    found = answers(index, tmp_path, [*fillings(index, range(TIMES)), *edits()])
    assert {case: said for case, said in found.items() if said != "finished" and not said.startswith("refused: ")} == {}
    # Both must occur, or this has tried nothing.
    assert min(Counter(said.split(":")[0] for said in found.values()).values()) > 50


def test_an_index_that_is_sound_is_searched(index: Path, tmp_path: Path) -> None:
    sound = Case("edit", "index.json", "long contigs", 0, True)
    assert answers(index, tmp_path, [sound]) == {sound: "finished"}
