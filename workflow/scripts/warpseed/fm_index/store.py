"""An index on disk: a folder of .npy files that map into memory, and index.json that says what they must be."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from warpseed.compute.machine import usable_cores
from warpseed.compute.stopwatch import Stopwatch, checked_watch
from warpseed.errors import IndexFormatError, InputError, check_number
from warpseed.fm_index import checks
from warpseed.fm_index.checksum import checksum
from warpseed.fm_index.layout import SeedIndex, Segments
from warpseed.fm_index.manifest import MANIFEST, Manifest, describe, sign, understand
from warpseed.fm_index.npy import FileEntry, digest_of_pieces, map_array, write_array
from warpseed.fm_index.parts import CORE, PARTS, Arrays, Sizes, Work, choose_parts, file_name, part_bytes
from warpseed.fm_index.target import NEW_MANIFEST, written_whole
from warpseed.fm_index.text import PackedText
from warpseed.sequences.files import sha256_file

__all__ = ["IndexFiles", "add_parts", "open_index", "save_index", "verify_index", "written_index"]

MOST_THREADS = 8
"""That write, hash or sum an index's files."""
CHECKED_UP_TO = 10**9
"""Bytes of an index up to which all of it is compared with its checksums whenever it is opened."""


def save_index(index: SeedIndex, folder: str | os.PathLike[str]) -> None:
    """Write an index; the folder appears whole or not at all, and replaces an older index of that name.

    Raises
    ------
    IndexFormatError : `folder` exists and is something else than an index, or cannot be written
    """
    needed = sum(array.nbytes for array in index.arrays().values())
    with written_index(folder, needed, Stopwatch()) as files:
        files.finish(index)


class IndexFiles:
    """The files of an index that is being made."""

    def __init__(self, folder: int, watch: Stopwatch, entries: dict[str, FileEntry] | None = None) -> None:
        """Of a folder by its descriptor, where the files of `entries` are already."""
        self._folder, self._watch = folder, watch
        self._entries = dict(entries or {})

    def keep(self, part: str, name: str, array: np.ndarray) -> np.ndarray:
        """Write an array; returns it mapped from its file, so that its memory is free where nothing else holds it."""
        file = file_name(part, name)
        with self._watch.stage("save"):
            self._entries[file] = write_array(file, self._folder, array, _threads())
            try:
                return map_array(file, self._folder, array.dtype.type, len(array))
            except IndexFormatError as error:
                raise _changed(file) from error

    def finish(self, index: SeedIndex, manifest: str = MANIFEST) -> None:
        """Write what is not written yet, and index.json, which may have another name at first."""
        with self._watch.stage("save"):
            arrays = index.arrays()
            left = {name: array for name, array in arrays.items() if f"{name}.npy" not in self._entries}
            self._entries |= _write_arrays(self._folder, left)
            for file, entry in self._entries.items():
                if _size(file, self._folder) != entry.size:
                    raise _changed(file)
            _write_manifest(self._folder, manifest, describe(index, self._entries))


def _size(file: str, folder: int) -> int:
    """Of a file of the folder; -1 where it is gone."""
    try:
        return os.stat(file, dir_fd=folder).st_size
    except FileNotFoundError:
        return -1


def _changed(file: str) -> OSError:
    return OSError(errno.EIO, f"{file} was changed or removed while the index was made")


@contextmanager
def written_index(folder: str | os.PathLike[str], needed: int, watch: Stopwatch) -> Iterator[IndexFiles]:
    """Files of a new index in a folder, which appears when the block succeeds and replaces an older index there.

    Parameters
    ----------
    needed : bytes that it will take, for the sentence about a full disk
    watch : takes the seconds of the stage `save`

    Raises
    ------
    IndexFormatError : as `save_index`
    """
    with written_whole(folder, needed) as temporary:
        yield IndexFiles(temporary, watch)


def _write_arrays(folder: int, arrays: Arrays) -> dict[str, FileEntry]:
    return {f"{name}.npy": write_array(f"{name}.npy", folder, array, _threads()) for name, array in arrays.items()}


def _threads() -> int:
    """Of what is as fast as memory and disk."""
    return min(MOST_THREADS, usable_cores())


def _write_manifest(folder: int, name: str, content: dict[str, object]) -> None:
    number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644, dir_fd=folder)
    with open(number, "w", encoding="utf-8") as handle:
        handle.writelines(sign(content))


def add_parts(
    folder: str | os.PathLike[str],
    parts: str | Iterable[str],
    *,
    threads: int = 1,
    device: str = "cpu",
    watch: Stopwatch | None = None,
) -> SeedIndex:
    """Add parts to an index on disk; the reference is not needed. Those that are there already are left as they are.

    The new files are written beside the old ones, and become part of the index when its index.json is replaced. So
    an addition that fails, or is killed, leaves the index that was there.

    Parameters
    ----------
    parts, threads, device : as in `build_index`; the index keeps the intervals and the table length that it was built
        with
    watch : takes the seconds of each stage

    Returns
    -------
    SeedIndex, with the old parts and the new, and the seconds of each stage; without any where nothing was missing

    Raises
    ------
    IndexFormatError : no index, a damaged one, or one that cannot be written
    InputError : names that are no parts, or `threads` that is no whole number
    MemoryLimitError : less memory is available than is needed, on the host or on the GPU
    """
    from warpseed.fm_index.build import check_memory, make_parts, one_device

    chosen, gpu = choose_parts(parts), one_device(device)
    threads = check_number("threads", threads, 1)
    watch, began = checked_watch(watch), time.perf_counter()
    with _folder(folder) as (path, number), _sole_writer(path, number):
        with watch.stage("load"):
            read = _inode(number)
            manifest = _read_manifest(path, number)
            _check(path, number, manifest)
            index = _open(path, number, manifest)
        missing = tuple(part for part in chosen if part not in index.parts)
        if not missing:
            return index
        text = PackedText(index.text, index.segments)
        known = index.fast.suffix_array if "fast" in index.parts else None
        if known is None or "reverse" in missing:
            check_memory(index.rows, missing, manifest.sizes.parameters, device=device)
        with _all_or_nothing(path, number, read, missing, manifest.sizes):
            files = IndexFiles(number, watch, manifest.files)
            work = Work(text, manifest.sizes, threads, watch, files.keep)
            with make_parts(gpu, work, missing, known) as (_, made):
                arrays = index.arrays_of | made
            result = replace(index, arrays_of={part: arrays[part] for part in PARTS if part in arrays})
            files.finish(result, NEW_MANIFEST)
            if _inode(number) != read:
                raise IndexFormatError(
                    f"{path}: another process made an index there while parts were added, so they are not; add them "
                    "again."
                )
            os.replace(NEW_MANIFEST, MANIFEST, src_dir_fd=number, dst_dir_fd=number)
    return replace(result, seconds=watch.seconds | {"total": time.perf_counter() - began})


@contextmanager
def _sole_writer(path: str, number: int) -> Iterator[None]:
    """Hold the folder's lock; it is free again when its descriptor is closed, however this process ends."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise IndexFormatError(f"{path}: another process adds parts to it; wait until that has ended.") from None
    yield


def _inode(number: int) -> int | None:
    """Which file index.json is; None where it is gone, as another process has replaced the folder."""
    try:
        return os.stat(MANIFEST, dir_fd=number).st_ino
    except FileNotFoundError:
        return None


@contextmanager
def _all_or_nothing(path: str, number: int, read: int | None, parts: tuple[str, ...], sizes: Sizes) -> Iterator[None]:
    """Remove the files of new parts where not all came to be, but not from an index with another index.json than the
    one that was read: in the new one they are parts, and another process's are its own."""
    try:
        yield
    except BaseException as error:
        ours = _inode(number) == read
        new = [file_name(part, name) for part in parts for name in PARTS[part]] if ours else []
        for name in [*new, NEW_MANIFEST]:
            try:
                os.unlink(name, dir_fd=number)
            except OSError:
                continue  # it was not written
        if isinstance(error, OSError):
            needed = sum(part_bytes(part, sizes) for part in parts)
            said = error.strerror or str(error)
            left = "the index is as it was" if ours else "another process has replaced the index meanwhile"
            raise IndexFormatError(
                f"{path}: the files of {', '.join(parts)} cannot be added ({said}), which take {needed:,} bytes; "
                f"{left}."
            ) from error
        raise


@contextmanager
def _folder(folder: str | os.PathLike[str]) -> Iterator[tuple[str, int]]:
    """The folder's name and an open descriptor of it."""
    try:
        path = os.fspath(folder)
    except TypeError:
        raise InputError(
            f"the index is of type {type(folder).__name__}, but a SeedIndex or a folder was expected."
        ) from None
    if not path:
        raise IndexFormatError("the name of the index's folder is empty; give the folder of an index.")
    make = f"make one with 'python -m warpseed index GENOME.fa -o {path}'."
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise IndexFormatError(f"{path}: there is no such folder, so there is no index; {make}") from None
    except NotADirectoryError:
        raise IndexFormatError(
            f"{path}: is a file, but an index is a folder; name the folder that 'warpseed index' wrote."
        ) from None
    except (OSError, ValueError) as error:
        raise IndexFormatError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error}).") from None
    try:
        yield path, number
    finally:
        os.close(number)


def _read_manifest(path: str, number: int) -> Manifest:
    try:
        with open(os.open(MANIFEST, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=number), "rb") as handle:
            data = handle.read()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EISDIR):
            raise IndexFormatError(f"{path}/{MANIFEST}: cannot be read ({error.strerror}).") from None
        raise IndexFormatError(
            f"{path}: has no {MANIFEST}, so it is no warpseed index; make one with "
            f"'python -m warpseed index GENOME.fa -o {path}'."
        ) from None
    return understand(path, data)


def open_index(
    folder: str | os.PathLike[str],
    reference: str | os.PathLike[str] | None = None,
    *,
    check: bool | None = None,
) -> SeedIndex:
    """Map an index into memory: the core and those parts that are there.

    index.json, the headers and sizes of all files and the values of the small arrays are always checked.

    Parameters
    ----------
    reference : path of the file that the index should be of, whose SHA-256 is then compared
    check : bool, whether to compare all arrays with their checksums (docs/formats.md says how fast that is) and the
        parts of a BWT with each other; None does so for an index of up to 1 GB

    Raises
    ------
    IndexFormatError : no index, damaged, of another version, or of another reference
    """
    with _folder(folder) as (path, number):
        manifest = _read_manifest(path, number)
        _check_reference(path, manifest, reference)
        checked = manifest.size <= CHECKED_UP_TO if check is None else check
        return _open(path, number, manifest, check=checked, thorough=checked)


def _check_reference(path: str, manifest: Manifest, reference: str | os.PathLike[str] | None) -> None:
    if reference is None:
        return
    if not os.path.isfile(reference):
        name = os.fspath(reference)
        missing = f"{name}: there is no such file" if name.strip() else "the name of the reference is empty"
        raise InputError(f"{missing}; give the path of the index's reference.")
    if sha256_file(reference) != manifest.reference:
        raise IndexFormatError(
            f"{path}: was built from another reference than {os.fspath(reference)} (SHA-256 differs); "
            "build the index again."
        )


def _each_array(path: str, number: int, manifest: Manifest, *, check: bool) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every array, mapped, behind its part and its name; with `check`, compared with its checksum."""
    for part in (CORE, *manifest.parts):
        for name, spec in PARTS[part].items():
            file = file_name(part, name)
            array = map_array(f"{path}/{file}", number, spec.dtype, spec.length(manifest.sizes))
            if check and checksum(array, _threads()) != manifest.files[file].checksum:
                raise IndexFormatError(f"{path}/{file}: its checksum is not the recorded one; build the index again.")
            yield part, name, array


def _check(path: str, number: int, manifest: Manifest) -> None:
    """Compare all that is compared where an index is opened: checksums with an array or two mapped at a time, so that
    no others take memory meanwhile, then the parts of a BWT with each other; nothing is mapped afterwards."""
    for _ in _each_array(path, number, manifest, check=True):
        pass
    _open(path, number, manifest, thorough=True)


def _open(path: str, number: int, manifest: Manifest, *, check: bool = False, thorough: bool = False) -> SeedIndex:
    """Map an index.

    Parameters
    ----------
    check : whether to compare all arrays with their checksums
    thorough : whether to compare the parts of a BWT with each other
    """
    arrays: dict[str, Arrays] = {part: {} for part in (CORE, *manifest.parts)}
    for part, name, array in _each_array(path, number, manifest, check=check):
        arrays[part][name] = array
    core = arrays.pop(CORE)
    text = core.pop("text")
    segments = Segments(**core)
    _check_values(path, manifest, segments, arrays, thorough=thorough)
    return SeedIndex(
        manifest.names,
        manifest.lengths,
        manifest.reference,
        manifest.sizes.parameters,
        text,
        segments,
        arrays,
        {},
        path,
    )


def _check_values(
    path: str, manifest: Manifest, segments: Segments, arrays: dict[str, Arrays], *, thorough: bool
) -> None:
    wrong = [(CORE, name) for name in checks.wrong_in_segments(segments, manifest.sizes, manifest.lengths)]
    if not wrong:
        for part in ("forward", "reverse"):
            if part in arrays:
                found = checks.wrong_in_bwt(part, arrays[part], manifest.sizes, segments, thorough=thorough)
                wrong += [(part, name) for name in found]
    for part, name in wrong:
        raise IndexFormatError(
            f"{path}/{file_name(part, name)}: its values do not fit the rest of the index; build the index again."
        )


def verify_index(folder: str | os.PathLike[str]) -> int:
    """Check all that `open_index` can check, and the SHA-256 of every file's pieces; the number of bytes checked."""
    with _folder(folder) as (path, number):
        manifest = _read_manifest(path, number)
        _open(path, number, manifest)
        for name, entry in manifest.files.items():
            with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=number), "rb") as handle:
                found = digest_of_pieces(handle.fileno(), _threads())
            if found != entry.sha256_of_pieces:
                raise IndexFormatError(f"{path}/{name}: its SHA-256 is not the recorded one; build the index again.")
        _check(path, number, manifest)
        return manifest.size
