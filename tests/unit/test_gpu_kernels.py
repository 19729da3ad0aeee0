"""How kernels are compiled, kept, loaded and launched, with a CuPy and a driver that the tests make up."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from made_up_gpu import CUDADriverError, make_up
from numba.cuda.api_util import prepare_shape_strides_dtype
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from warpseed.compute import gpu, gpu_compiler, objects
from warpseed.compute.first_compilation import on_first_compilation


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return make_up(monkeypatch)


class Far(np.ndarray):
    """Stands for CuPy's arrays."""

    @property
    def data(self) -> SimpleNamespace:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def far(values: Any, dtype: type = np.uint32) -> Any:
    return np.array(values, dtype).view(Far)


@pytest.fixture
def driver(made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A driver that is given kernels of 14 words, and notes what it would read; `stream` is the current one, `compiled`
    the arguments of which kernels were, and `refused` what the driver says of the next code, in place of taking it."""
    told = SimpleNamespace(launched=[], stream=0, words=14, compiled=[], loaded=[], refused=[])

    def compile_kernel(kernel: gpu.Kernel, arguments: tuple[Any, ...], arrays: tuple[type, ...]) -> objects.Code:
        assert arrays == (Far, gpu.Rows)
        told.compiled.append(arguments)
        return objects.Code(f"kernel {len(told.compiled)}", b"code\n")

    def load(image: bytes) -> int:
        if told.refused:
            raise CUDADriverError(told.refused.pop())
        told.loaded.append(image)
        return 7

    def launch_kernel(handle: int, *rest: int) -> None:
        *shape, shared, stream, parameters, extra = rest
        assert (shared, extra) == (0, 0)
        places = (ctypes.c_uint64 * told.words).from_address(parameters)
        told.launched.append((handle, shape, stream, [ctypes.c_int64.from_address(place).value for place in places]))

    package = gpu.cupy()
    package.cuda.Device = lambda: SimpleNamespace(compute_capability="90")
    package.cuda.driver = SimpleNamespace(
        CUDADriverError=CUDADriverError,
        launchKernel=launch_kernel,
        moduleLoadData=load,
        moduleGetFunction=lambda module, name: 100 + int(name.split()[1]),
    )
    package.cuda.get_current_stream = lambda: SimpleNamespace(ptr=told.stream)
    monkeypatch.setattr(gpu_compiler, "compile_kernel", compile_kernel)
    monkeypatch.setattr(gpu, "_arrays", lambda: (Far, gpu.Rows))
    monkeypatch.setattr(gpu, "_runs", {})
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    objects.folder_of.cache_clear()
    yield told
    objects.folder_of.cache_clear()


def kernel_of(name: str = "elsewhere.kernel") -> gpu.Kernel:
    """One that is kept on disk if its name is one of the library."""

    def py_func() -> None:
        pass

    py_func.__module__, _, py_func.__qualname__ = name.rpartition(".")
    return gpu.Kernel(py_func, is_kept=True)


class Both(NamedTuple):
    one: Any
    other: Any


def test_whoever_asked_is_told_once_that_kernels_are_compiled(driver: SimpleNamespace) -> None:
    told: list[str] = []
    on_first_compilation(lambda: told.append("compiling"))
    driver.words = 1
    for name in ("elsewhere.kernel", "elsewhere.other"):
        gpu.launch(kernel_of(name), 1, 128, 5)
    assert len(driver.launched) == 2 and told == ["compiling"]


def test_the_driver_is_handed_the_words_of_each_argument(driver: SimpleNamespace) -> None:
    """Of an array: two that are nothing here, entries, bytes of each, address, shape, strides."""
    kernel, array = kernel_of(), far(range(6))
    gpu.launch(kernel, 129, 128, Both(array[::2], (-7,)), np.uint8(200), True, 1.5, (1 << 64) - 1, np.float32(0.25), 3)
    gpu.launch(kernel, 0, 128, "nothing")
    bits = [ctypes.c_int64.from_buffer(ctypes.c_double(1.5)).value, -1]
    expected = [0, 0, 3, 4, array.ctypes.data, 3, 8, -7, 200, 1, *bits]
    ((handle, shape, stream, words),) = driver.launched
    assert (handle, shape, stream) == (101, [2, 1, 1, 128, 1, 1], 0)
    assert words[:12] == expected and words[13] == 3
    assert ctypes.c_float.from_buffer(ctypes.c_int64(words[12])).value == 0.25
    ((given, *_),) = driver.compiled
    assert type(given) is Both and given.other == (-7,) and kernel.handles == {0: 101}
    with pytest.raises(TypeError, match="takes arrays, numbers and tuples of them, not str"):
        gpu.launch(kernel, 1, 128, "nothing")
    with pytest.raises(TypeError, match="not float16"):
        gpu.launch(kernel, 1, 128, np.float16(1))


def test_a_kernel_is_compiled_once_for_arguments_of_a_kind_and_device(
    driver: SimpleNamespace, made_up: SimpleNamespace
) -> None:
    kernel, driver.words = kernel_of(), 0
    numbers, wide = far(range(8)), far(range(8), np.uint64)
    for given in ((numbers,), (numbers[:3],), (wide,), (numbers.reshape(2, 4),), (numbers[::2],), (numbers, 1)):
        gpu.launch(kernel, 1, 32, *given)
    assert [handle for handle, *_ in driver.launched] == [101, 101, 102, 103, 104, 105]
    made_up.device = 1
    gpu.launch(kernel, 1, 32, numbers[1:])
    gpu.launch(kernel_of(), 1, 32, numbers)
    assert [handle for handle, *_ in driver.launched][6:] == [106, 107]


def test_a_kernel_of_the_library_is_kept_on_disk(
    driver: SimpleNamespace, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A later process loads what an earlier one compiled; damaged code, or such as the driver refuses, is made anew."""
    driver.words, numbers = 0, far(range(8))

    def launch_anew(name: str = "warpseed.kernel", *arguments: Any) -> int:
        monkeypatch.setattr(gpu, "_runs", {})
        gpu.launch(kernel_of(name), 1, 32, numbers, *arguments)
        return int(driver.launched[-1][0])

    assert [launch_anew(), launch_anew(), launch_anew()] == [101, 101, 101]
    assert launch_anew("warpseed.other") == 102 and launch_anew("warpseed.kernel", 1) == 103
    assert launch_anew("elsewhere.kernel") == 104 and launch_anew("elsewhere.kernel") == 105
    assert launch_anew() == 101 and len(driver.compiled) == 5 and set(driver.loaded) == {b"code\n"}
    driver.refused = ["CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device"]
    assert launch_anew() == 106 and launch_anew() == 106
    driver.refused = ["CUDA_ERROR_OUT_OF_MEMORY: out of memory"]
    with pytest.raises(CUDADriverError, match="out of memory"):
        launch_anew()
    assert launch_anew() == 106 and len(driver.compiled) == 6
    for path in tmp_path.glob("kernels-*/warpseed.kernel-*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert launch_anew() == 107 and launch_anew() == 107
    gpu.cupy().cuda.runtime.driverGetVersion = lambda: 13010
    assert launch_anew() == 108


def test_rows_are_handed_over_as_an_array_of_them(driver: SimpleNamespace) -> None:
    row, array = np.dtype([("place", "u4"), ("length", "u2")], align=True), far(range(24), np.uint8)
    driver.words = 7
    gpu.launch(kernel_of(), 1, 32, gpu.Rows(array, row))
    assert driver.launched[0][3] == [0, 0, 3, 8, array.ctypes.data, 3, 8]


def test_kinds_are_as_fine_as_the_types_of_numba(driver: SimpleNamespace) -> None:
    """What has one kind has one type, whatever the layout."""
    square = far(np.arange(36).reshape(6, 6))
    row = far(np.arange(6))
    arrays = [
        square, square[:3], square.T, square[::2, ::2], square[:1], square[:, :1], row,
        row[::2], row[:1], np.broadcast_to(row, (4, 6), subok=True), np.broadcast_to(row[:1], 6, subok=True),
        far(row, np.int32), far(row, np.uint64), square.reshape(2, 3, 6),
        square.T[:3], np.broadcast_to(row, (1, 6), subok=True), np.broadcast_to(row[:1], 1, subok=True),
        row[:, None], np.broadcast_to(row[:, None], (6, 4), subok=True),
    ]  # fmt: skip
    kinds: dict[Any, Any] = {}
    for array in arrays:
        mine: list[Any] = []
        gpu._take_array(array, mine, [])
        strides = None if array.flags.c_contiguous else array.strides  # as CuPy's interface has them
        shape, strides, dtype = prepare_shape_strides_dtype(array.shape, strides, array.dtype, order="C")
        type_there = DeviceNDArray(shape, strides, dtype, gpu_data=object())._numba_type_
        assert kinds.setdefault(tuple(mine), type_there) == type_there


def test_a_thread_with_a_stream_of_its_own_launches_on_it(
    driver: SimpleNamespace, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams are kept, by device and number."""
    here, entered, driver.words = threading.local(), [], 0

    class Stream:
        made = 0

        def __init__(self, non_blocking: bool, priority: int) -> None:
            assert non_blocking and priority == 0
            Stream.made += 1
            self.ptr = Stream.made

        def __enter__(self) -> None:
            here.stream = self
            entered.append(self.ptr)

        def __exit__(self, *error: object) -> None:
            del here.stream
            entered.append(-self.ptr)

        def synchronize(self) -> None:
            pass

    gpu.cupy().cuda.Stream = Stream
    gpu.cupy().cuda.get_current_stream = lambda: getattr(here, "stream", SimpleNamespace(ptr=0))
    monkeypatch.setattr(gpu, "_streams", {})
    kernel = kernel_of()

    def serve(device: int, number: int) -> None:
        made_up.device = device
        with gpu.on_own_stream(number):
            gpu.launch(kernel, 1, 32)
            thread = threading.Thread(target=gpu.launch, args=(kernel, 1, 32))
            thread.start()
            thread.join()
        gpu.launch(kernel, 1, 32)

    for device, number in ((0, 0), (0, 1), (1, 0), (0, 0)):
        serve(device, number)
    assert [stream for _, _, stream, _ in driver.launched] == [1, 0, 0, 2, 0, 0, 3, 0, 0, 1, 0, 0]
    assert entered == [1, -1, 2, -2, 3, -3, 1, -1]


def test_other_packages_and_folders_of_cuda_make_other_code(driver: SimpleNamespace, monkeypatch: Any) -> None:
    folders = []
    for versions, home in (
        ({}, ""),
        ({"nvidia-nvjitlink": "13.0"}, ""),
        ({"nvidia-nvjitlink": "13.1"}, ""),
        ({}, "/opt"),
    ):

        def version(package: str, versions: dict[str, str] = versions) -> str:
            if package not in versions:
                raise metadata.PackageNotFoundError(package)
            return versions[package]

        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setenv("CUDA_HOME", home)
        objects.toolkit.cache_clear()
        folders.append(gpu._folder())
    objects.toolkit.cache_clear()
    assert len(set(folders)) == 4


LIBRARY = Path(gpu.__file__).parents[2]
EVERY_KERNEL = """
import importlib, sys
from pathlib import Path
library = Path(sys.argv[1])
for path in sorted((library / "warpseed").rglob("*.py")):
    if "from warpseed.compute.gpu import" in path.read_text() and path.name != "gpu_compiler.py":
        importlib.import_module(".".join(path.relative_to(library).with_suffix("").parts))
from warpseed.compute import gpu
print(len(gpu.kernels), hasattr(gpu.cuda, "__wrapped__"), {"numba", "cupy"} & set(sys.modules))
"""


def test_kernels_are_imported_without_numba() -> None:
    """Who loads them from the disk does without."""
    environment = os.environ | {"PYTHONPATH": str(LIBRARY)}
    command = [sys.executable, "-c", EVERY_KERNEL, str(LIBRARY)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    count, *rest = done.stdout.decode().split()
    assert int(count) > 100 and rest == ["False", "set()"]


def test_two_kernels_of_one_name_are_refused() -> None:
    """The tests of kernels find them by name, and would compile the second one alone."""

    def gather_sectors(words: Any) -> None:
        pass

    from warpseed.measure import gpu_floors  # noqa: F401

    with pytest.raises(ValueError, match="kept on disk by its name, which no other one may have"):
        gpu.kernel(gather_sectors)
    gather_sectors.__qualname__ = "gather_sectors"
    with pytest.raises(ValueError, match="two kernels are called gather_sectors"):
        gpu.kernel(gather_sectors)
