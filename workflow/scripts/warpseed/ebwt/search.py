"""Where the conjugates of words are ordered: by device, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpseed.batches import Options
from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu
from warpseed.ebwt.fast import Found
from warpseed.ebwt.matrix import check_room
from warpseed.ebwt.transform import transform_of
from warpseed.errors import InputError

if TYPE_CHECKING:
    from warpseed.ebwt.words import Words

__all__ = ["check_target", "search"]


def check_target(options: Options) -> None:
    """Refuse, before anything is read, a tier or devices that words do not go to.

    Raises
    ------
    InputError : the paper tier, or a limit of hits
    DeviceError : all GPUs are asked for, and none answers
    """
    if options.tier != "fast":
        raise InputError(
            "tier is 'paper', but that tier runs only inside `snakemake ebwt`, which times it; leave the option out."
        )
    if options.max_hits is not None:
        raise InputError("max_hits is given, but words have no hits; leave it out.")
    devices_of(options.device)  # (raises where no GPU answers)


def search(words: Words, options: Options, *, transform: bool, distances: bool, watch: Stopwatch) -> Found:
    """Order the conjugates of words once, and make of the order what is wanted; on a GPU the order stays there.

    Several GPUs share all of it, where words are not few.

    Parameters
    ----------
    words : Words
    options : that `check_target` takes
    transform, distances : what is wanted
    watch : takes the seconds of each stage

    Returns
    -------
    Found, without the order

    Raises
    ------
    MemoryLimitError : there is not enough memory, of the host or of the device
    DeviceError : a GPU is asked for, and does not answer
    """
    if distances:
        check_room(len(words.lengths))
    if options.device != "cpu":
        from warpseed.ebwt import gpu

        devices = devices_of(options.device)
        return gpu.find(
            words, transform=transform, distances=distances, devices=devices, threads=options.threads, watch=watch
        )
    threads = options.threads
    order = cpu.order_conjugates(words, threads=threads, watch=watch)
    made = None
    if transform:
        with watch.stage("transform"):
            made = transform_of(words, order, threads=threads)
    return Found(None, made, cpu.distances(words, order, threads=threads, watch=watch) if distances else None)
