"""The machine of a run, told from its records: each job wrote down what it saw of the machine that it ran on.

On a cluster no other process knows: the report is drawn on a node that measured nothing, and of the jobs on one kind
of node only those that asked for a GPU may see it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from warpseed.compute.machine import UNKNOWN_CARD, name_of
from warpseed.errors import InputError
from warpseed.measure.records import MACHINE_MARK

__all__ = ["describe_run", "name_machines", "one_machine"]

Descriptions = dict[Path, dict[str, Any]]


def _read(paths: Iterable[str | Path]) -> Descriptions:
    """What each file of records says of its machine (see `warpseed.measure.provenance.machine_description`).

    Raises
    ------
    InputError
        If a file does not say which machine measured it.
    """
    described = {Path(path): _read_one(Path(path)) for path in paths}
    for path, description in described.items():
        if not {"machine", "cpu", "gpu"} <= description.keys():
            raise InputError(
                f"{path} does not say which machine measured it, as records of this version do; remove "
                "results/measurements and measure again"
            )
    return described


def _read_one(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as handle:
            handle.readline()
            line = handle.readline()
            return dict(json.loads(line.removeprefix(MACHINE_MARK))) if line.startswith(MACHINE_MARK) else {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable record table ({error}); measure again to make it") from error


def _names(described: Descriptions) -> dict[Path, str]:
    """The name of the machine behind each file.

    Jobs that name the same CPU ran on one kind of node: it has the name of the GPU that any of them saw. Where two
    kinds of node would have one name, as their GPUs are the same, the CPU's name follows.
    """
    gpus = defaultdict(set)
    for description in described.values():
        if description["gpu"]:
            gpus[description["cpu"]].add(description["gpu"])
    names, cpus = {}, defaultdict(set)
    for path, description in described.items():
        cpu = description["cpu"]
        gpu = next(iter(gpus[cpu])) if len(gpus[cpu]) == 1 else description["gpu"]
        names[path] = name_of(cpu, gpu)
        cpus[names[path]].add(cpu)
    return {
        path: name if len(cpus[name]) == 1 else f"{name}-{name_of(described[path]['cpu'], None)}"
        for path, name in names.items()
    }


def name_machines(paths: Iterable[str | Path]) -> dict[Path, dict[str, str]]:
    """For each file of records, the name that its job gave its machine, and the machine's name in this run.

    Parameters
    ----------
    paths : iterable of paths
        Files from `write_records`, all of one run.

    Returns
    -------
    dict of path to dict of str to str

    Raises
    ------
    InputError
        If a file does not say which machine measured it.
    """
    described = _read(paths)
    return {path: {described[path]["machine"]: name} for path, name in _names(described).items()}


def one_machine(paths: Iterable[str | Path]) -> str:
    """The name of the one machine, or kind of node, that measured a run.

    Raises
    ------
    InputError
        If there was more than one, or a file does not say which.
    """
    described = _read(paths)
    files = defaultdict(list)
    for path, name in _names(described).items():
        files[name].append(str(path))
    if not files:
        raise InputError("There are no records to publish; measure first, then publish.")
    if len(files) > 1:
        origins = "; ".join(f"'{name}': {', '.join(sorted(measured))}" for name, measured in sorted(files.items()))
        raise InputError(
            f"The records of this run come from {len(files)} machines ({origins}): keep those of one, remove the other "
            "files, and measure them again on nodes of that kind (docs/cluster.md)"
        )
    return next(iter(files))


def describe_run(paths: Iterable[str | Path]) -> dict[str, Any]:
    """The machine and versions of a run, joined from what its jobs saw.

    Returns
    -------
    dict
        The keys of `warpseed.measure.provenance.machine_description`, and `cards`: by each GPU's UUID the files of
        the jobs that worked on it, as seen from their common folder; `UNKNOWN_CARD` has those that do not say. What
        one job knows and another does not (a GPU, the version of a peer) is taken from the one that does. Of numbers,
        the largest stands; texts that differ, as after a run that was continued at another commit, stand beside each
        other.

    Raises
    ------
    InputError
        If a file does not say which machine measured it.
    """
    described = _read(paths)
    seen: list[Mapping[str, Any]] = [
        {key: told for key, told in description.items() if key != "cards"} for description in described.values()
    ]
    return _join(seen) | {"machine": _join_values(list(_names(described).values())), "cards": _cards(described)}


def _cards(described: Descriptions) -> dict[str, list[str]]:
    """Which files' jobs worked on each GPU, both in order. Files of an older version do not say."""
    folder = Path(os.path.commonpath([path.parent for path in described])) if described else Path()
    files = defaultdict(list)
    for path in sorted(described):
        for card in described[path].get("cards", [UNKNOWN_CARD]):
            files[card].append(path.relative_to(folder).as_posix())
    return dict(sorted(files.items()))


def _join(descriptions: list[Mapping[str, Any]]) -> dict[str, Any]:
    keys = dict.fromkeys(key for description in descriptions for key in description)
    return {key: _join_values([description.get(key) for description in descriptions]) for key in keys}


def _join_values(values: list[Any]) -> Any:
    known = list(dict.fromkeys(value for value in values if value is not None and not isinstance(value, Mapping)))
    mappings = [value for value in values if isinstance(value, Mapping)]
    if mappings:
        return _join(mappings)
    if not known:
        return None
    return max(known) if all(isinstance(value, int) for value in known) else ", ".join(map(str, known))
