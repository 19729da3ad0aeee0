"""Fixtures and Hypothesis profiles that all tests share.

Environment variables: WARPSEED_DATA (folder of real data), WARPSEED_REQUIRE_GPU=1 (GPU tests run and fail
where no GPU answers, instead of being skipped), WARPSEED_GPU_RECORD (folder of measurements, in which passing
GPU tests leave a note), WARPSEED_SORTED_BASES (of a genome that a GPU sorts, instead of 1000000000; where it is
set, the CPU sorts it, too), WARPSEED_REQUIRE_PEERS=1 (tests that compare with another tool fail where it is not
installed, instead of being skipped), WARPSEED_SLURM=1 (the tests on a Slurm that they start themselves, as root, run),
HYPOTHESIS_PROFILE (dev, ci, thorough; ci wherever CI is set), CI (tests marked `thorough` run).
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest
import warpseed
from command_line import CONTIGS, QUERIES, fasta, save
from hypothesis import HealthCheck, settings
from warpseed import cli

REPOSITORY = Path(__file__).resolve().parent.parent
REAL_GENOME, REAL_READS = "ecoli_k12_mg1655.fa.gz", "ecoli_k12_first10kb_R1.fq.gz"

COMMON = {
    # The first call of a function compiles it: no example may be called slow for that.
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("dev", max_examples=20, **COMMON)
settings.register_profile("ci", max_examples=60, derandomize=True, print_blob=True, **COMMON)
settings.register_profile("thorough", max_examples=1000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


PEERS = {
    "bedtools": ("bedtools",),
    "bowtie": ("bowtie-build", "bowtie-align-s"),
    "bwa": ("bwa",),
    "mummer": ("mummer",),
    "seqan-apps": ("razers3", "yara_indexer", "yara_mapper"),
    "tabix": ("bgzip", "tabix"),
}
"""Tools that tests marked `peer("bowtie")` compare with, and their programs."""
MISSING_PEER = "missing peer"
"""The property of a skipped test that names its peer: properties reach the process that prints the summary."""
MOST_WORKERS = 4
LONG = ("property", "workflow")
"""Folders whose files take minutes."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: a process for each CPU that we may use, and no more than the few large files keep busy."""
    return min(MOST_WORKERS, len(os.sched_getaffinity(0)))


def pytest_configure() -> None:
    """Heed Ctrl-C and hang-ups, which a shell, or nohup, has ignored by what it starts in the background: what tests
    start inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose peer is not installed, or fail it where peers are required; what takes long is continuous
    integration's."""
    if item.get_closest_marker("thorough") and not os.environ.get("CI"):
        pytest.skip("takes long: set CI=1 to run it")
    for marker in item.iter_markers("peer"):
        (peer,) = marker.args
        if all(map(shutil.which, PEERS[peer])):
            continue
        if os.environ.get("WARPSEED_REQUIRE_PEERS") == "1":
            pytest.fail(f"{peer} is not installed, and WARPSEED_REQUIRE_PEERS=1", pytrace=False)
        item.user_properties.append((MISSING_PEER, peer))
        pytest.skip(f"{peer} is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which peers were missing, and how to get them, in one line."""
    skipped = [
        peer
        for report in terminalreporter.stats.get("skipped", [])
        for name, peer in getattr(report, "user_properties", ())
        if name == MISSING_PEER
    ]
    if skipped:
        missing = " ".join(sorted(set(skipped)))
        terminalreporter.write_line(
            f"{len(skipped)} tests that compare with other tools were skipped; to run them: "
            f"apt-get install {missing}, or the conda packages of these names (bioconda)."
        )


def gpu_answers() -> bool:
    """Whether the NVIDIA driver is there and counts at least one device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the folders whose files take long, so that no process is left with one at the end, and skip GPU tests
    where no GPU answers, unless one is required."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)
    if os.environ.get("WARPSEED_REQUIRE_GPU") == "1" or gpu_answers():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU answers on this machine"))


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of what the collector of garbage goes through: there are ten thousand, and the
    library has it collect where memory of a GPU is short."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """After GPU tests that were required and passed, say so beside the measurements of this machine."""
    folder = os.environ.get("WARPSEED_GPU_RECORD")
    if not folder or exitstatus != 0:
        return
    from warpseed.compute.machine import gpu_description, machine_name
    from warpseed.measure.provenance import commit

    # A test that needs two GPUs is collected and skipped where there is one: it has not passed.
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return  # one of several processes, for which another counts
    outcomes = reporter.stats
    counts = {outcome: len(outcomes.get(outcome, [])) for outcome in ("passed", "skipped")}
    record = {"date": f"{date.today():%Y-%m-%d}", "commit": commit(), **counts, **gpu_description()}
    path = Path(folder) / machine_name() / "gpu_tests.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


@pytest.fixture(autouse=True)
def figures_are_closed() -> Iterator[None]:
    """No test keeps the figures that it draws: matplotlib holds them until they are closed."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def write_reference(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes contigs as a FASTA file and returns its path.

    Called as write_reference(contigs, width=60); the contigs are named c0, c1, …. Each call overwrites the
    file of the one before.
    """

    def write(contigs: Sequence[str], width: int = 60) -> Path:
        path = tmp_path / "reference.fa"
        lines = []
        for number, contig in enumerate(contigs):
            lines.append(f">c{number} written by the tests")
            lines += [contig[i : i + width] for i in range(0, len(contig), width)]
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture(scope="session")
def real_genome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """E. coli K-12 MG1655 where the data folder has it, else a simulated genome of its size.

    The simulated one has three contigs, repeats and runs of N, so every test on it still means something.
    """
    folder = os.environ.get("WARPSEED_DATA")
    if folder and (Path(folder) / REAL_GENOME).is_file():
        return Path(folder) / REAL_GENOME
    from warpseed.sequences.simulate import simulate_reference

    path = tmp_path_factory.mktemp("genome") / "simulated.fa"
    simulate_reference(path, size=4_641_652, contigs=3, seed=11)
    return path


@pytest.fixture(scope="session")
def real_reads(real_genome: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Illumina reads of K-12, of 30 to 100 bases, where the data folder has them, else simulated reads of `real_genome`
    that are as unlike in length, with insertions and deletions."""
    if (real_genome.parent / REAL_READS).is_file():
        return real_genome.parent / REAL_READS
    from warpseed.sequences.queries import write_fastq
    from warpseed.sequences.reference import read_reference
    from warpseed.sequences.simulate import simulate_reads

    path = tmp_path_factory.mktemp("reads") / "simulated.fq"
    rates = {"error_rate": 0.005, "insertion_rate": 0.002, "deletion_rate": 0.002}
    reference = read_reference(real_genome)
    write_fastq(simulate_reads(reference, count=20_000, length=[30, 100], **rates, qualities=True, seed=5), path)
    return path


@pytest.fixture(scope="session")
def small_references() -> dict[str, list[str]]:
    """Named references of a few hundred bases at most, each with one property that breaks weak code."""
    return {
        "one base": ["A"],
        "one base of each": ["A", "C", "G", "T"],
        "homopolymer": ["A" * 200],
        "two letters": ["AT" * 70],
        "tandem repeat": ["ACGTTGCA" + "GATTACA" * 20 + "CCGGT"],
        "palindrome": ["GAATTC" * 3 + "ACGCGT" * 4],
        "holes": ["NNACGTNACGTACGNNNNGTACRYGGTACCN"],
        "lower case": ["acgtNNacgtTTga", "ttgaCCA"],
        "contigs that join to a hit": ["ACGTAC", "GTACGT", "AC", "GT"],
        "block borders": ["ACGTTGCATGCCATGA" * 4, "ACGTTGCATGCCATGA" * 8, "G" * 63, "C" * 65],
        "thousands of contigs": ["ACGTTGCA"[i % 8 :] + "ACG" * (i % 3) + "T" for i in range(3000)],
    }


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an index of CONTIGS."""
    folder = tmp_path_factory.mktemp("index")
    genome = save(folder, "genome.fa", fasta(CONTIGS))
    assert cli.main(["index", genome, "-o", str(folder / "index"), "--parts", "fast,paper"]) == 0
    return str(folder / "index")


@pytest.fixture
def kmers(tmp_path: Path) -> str:
    """The path of a FASTA file of QUERIES."""
    return save(tmp_path, "kmers.fa", fasta(QUERIES))


@pytest.fixture
def refused(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., str]:
    """A function that runs a command which must fail, leaving nothing behind; returns its sentence."""

    def run(*arguments: str) -> str:
        capsysbinary.readouterr()
        before = sorted(tmp_path.rglob("*"))
        status = cli.main(arguments)
        out, err = capsysbinary.readouterr()
        assert status == 1
        assert out == b""
        assert sorted(tmp_path.rglob("*")) == before
        lines = err.decode().splitlines()
        assert [line.split(":")[0] for line in lines] == [f"warpseed {warpseed.__version__}", "Error"]
        return lines[-1].removeprefix("Error: ")

    return run
