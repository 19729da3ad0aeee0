"""What a run finds on the machine where it starts, for the keys of the configuration that say `auto`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from warpseed.compute.machine import gpu_description

__all__ = [
    "devices_to_measure",
    "is_package_measured",
    "is_peer_measured",
    "measured_part",
    "measured_parts",
    "one_gpu",
]


def devices_to_measure(wanted: list[str] | str) -> list[str]:
    """Return the devices of `measure.devices`; 'auto' is the CPU, and a GPU where nvidia-smi lists one."""
    if wanted != "auto":
        return list(wanted)
    return ["cpu", "gpu"] if gpu_description()["gpu_count"] else ["cpu"]


def is_peer_measured(wanted: bool | str, programs: Iterable[str], *, by_conda: bool) -> bool:
    """Whether a peer is measured: as `peers` says; 'auto' is where its programs are installed or conda brings them."""
    if wanted != "auto":
        return bool(wanted)
    return by_conda or all(shutil.which(program) is not None for program in programs)


def is_package_measured(wanted: bool | str, packages: Iterable[str], *, by_conda: bool) -> bool:
    """The same of Python packages, which the environments of conda do not bring."""
    if wanted != "auto":
        return bool(wanted)
    return not by_conda and all(find_spec(package) is not None for package in packages)


def measured_part(
    wanted: Mapping[str, Any],
    measured: Mapping[str, Any],
    devices: Sequence[str],
    programs: Mapping[str, Iterable[str]] | None = None,
    is_measured: Callable[[Iterable[str]], bool] = lambda programs: False,
) -> dict[str, Any] | None:
    """Return what of a data set is measured in this run; None where nothing is.

    Parameters
    ----------
    wanted : mapping
        Its `tiers`, `devices` (or None for all), and `peers` and `threads` where it has some.
    measured : mapping
        `measure` of a checked configuration.
    devices : sequence of str
        What is measured on.
    programs : mapping
        The programs of each tool that it may name.
    is_measured : callable
        Whether a peer with these programs is.

    Returns
    -------
    dict or None
        The keys of the data set; `tiers` and `peers` are those that are measured, `threads` the CPU threads, `devices`
        what is searched on: 'cpu', 'gpu', and as 'gpu:0,1' the first of several GPUs.
    """
    chosen = {
        "tiers": [tier for tier in wanted["tiers"] if tier in measured["tiers"]],
        "devices": [
            name
            for device in devices
            if device in (wanted["devices"] or devices)
            for name in _searched_on(device, measured["gpus"])
        ],
        "peers": [peer for peer in wanted.get("peers", ()) if is_measured((programs or {})[peer])],
    }
    if not chosen["tiers"] or not chosen["devices"]:
        return None
    return {"threads": measured["threads"], **wanted, **chosen}


def _searched_on(device: str, gpus: Iterable[int]) -> list[str]:
    """Return what `warpseed.compute.devices` calls a device; of 'gpu' each number of GPUs, the first ones."""
    if device != "gpu":
        return [device]
    return ["gpu" if count == 1 else f"gpu:{','.join(map(str, range(count)))}" for count in gpus]


def one_gpu(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is measured of a system whose searches are not timed on several GPUs."""
    return {**measured, "gpus": [1]}


def measured_parts(
    datasets: Mapping[str, Mapping[str, Any]],
    measured: Mapping[str, Any],
    devices: Sequence[str],
    programs: Mapping[str, Iterable[str]],
    is_measured: Callable[[Iterable[str]], bool],
) -> dict[str, dict[str, Any]]:
    """Return what `measured_part` leaves of each data set, by its name; one that it leaves nothing of is left out."""
    parts = {name: measured_part(wanted, measured, devices, programs, is_measured) for name, wanted in datasets.items()}
    return {name: part for name, part in parts.items() if part is not None}
