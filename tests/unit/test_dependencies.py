"""Which library files are inputs of which rule: what a script really loads, and nothing that decides no result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warpseed
from warpseed.errors import ConfigError
from warpseed.workflow.dependencies import GLUE, library_files, take_library_of

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow" / "scripts"
RULE_SCRIPTS = sorted(path.name for path in SCRIPTS.glob("*.py"))
TIMED_PROCESS = ("warpseed.cli", "warpseed.output.lines")
GENOME = "ACGTTGCAAGCTTACGGATCCATGACCTTGACCATGAGCCTAGGCTAGTCCATTGACGATTACA" * 3


def names_of(script: str, *modules: str) -> set[str]:
    """The library files of a rule, as seen from the package's folder."""
    return {
        path.relative_to(SCRIPTS / "warpseed").as_posix() for path in library_files(script, *modules, scripts=SCRIPTS)
    }


def package_of(folder: Path, **files: str) -> Path:
    """A made-up package `warpseed` with one script beside it; returns the folder of scripts."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/").replace("init_file", "__init__") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize("script", RULE_SCRIPTS)
def test_what_decides_no_result_is_nobodys_input(script: str) -> None:
    """An error's sentence, a record's column, a name added to the list of peers: nothing is made again."""
    assert not names_of(script, *TIMED_PROCESS) & GLUE


def test_the_files_of_no_rule_exist() -> None:
    """A file that was moved must not become an input unseen."""
    assert {name for name in GLUE if not (SCRIPTS / "warpseed" / name).is_file()} == set()


def test_timing_depends_on_what_it_times_and_on_no_plot() -> None:
    timing, figures = names_of("time_kmer_seeds.py", *TIMED_PROCESS), names_of("draw_system.py")
    kernels = {
        "kmer_seeds/paper.py",
        "kmer_seeds/fast.py",
        "kmer_seeds/cpu.py",
        "kmer_seeds/gpu.py",
        "fm_index/search.py",
    }
    assert timing >= kernels | {"cli.py", "output/lines.py", "output/rows.py"}
    assert names_of("find_kmers.py") >= kernels | {"compute/device_batches.py", "output/lines.py"}
    assert not {name for name in timing if name.startswith(("report/", "workflow/"))}
    assert not figures & kernels
    assert {name for name in figures if name.startswith("report/")}


def test_an_index_depends_on_no_search() -> None:
    assert not {
        name for name in names_of("build_fm_index.py") if name.startswith(("kmer_seeds/", "output/", "report/"))
    }
    assert "fm_index/build.py" in names_of("build_fm_index.py")


def timed_process(script: str) -> tuple[str, ...]:
    """The modules that the rule of a script names, as it times a process that runs them."""
    rules = "\n".join(path.read_text() for path in sorted((SCRIPTS.parent / "rules").glob("*.smk")))
    (named,) = re.findall(rf'library\("{re.escape(script)}"((?:, "[\w.]+")*)\)', rules)
    return tuple(re.findall(r'"([\w.]+)"', named))


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("time_bowtie.py", ["kmers", "index", "kmers.fa", "-o", "hits.bed"], "kmer_seeds/cpu.py"),
        ("time_index.py", ["index", "genome.fa", "-o", "new", "--parts", "fast"], "fm_index/make.py"),
        ("time_one_error_peers.py", ["reads", "index", "kmers.fa", "-o", "places.tsv"], "one_error/cpu.py"),
        ("time_mems_peers.py", ["mems", "index", "kmers.fa", "-o", "matches.tsv"], "mems/cpu.py"),
        ("time_collections.py", ["ebwt", "kmers.fa", "-o", "out", "--no-distances"], "ebwt/collection.py"),
    ],
)
def test_what_the_timed_process_loads_is_listed(
    script: str, arguments: list[str], expected: str, tmp_path: Path
) -> None:
    """The modules that the command line really loads, from its input to its output, are inputs, or decide no result."""
    (tmp_path / "genome.fa").write_text(f">chr\n{GENOME}\n")
    (tmp_path / "kmers.fa").write_text(f">a\n{GENOME[7:27]}\n")
    warpseed.build_index(tmp_path / "genome.fa").save(tmp_path / "index")
    program = (
        "import sys; from warpseed import cli\n"
        "status = cli.main(sys.argv[1:])\n"
        "files = [m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'warpseed' and m.__file__]\n"
        "print(*files, sep='\\n'); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        text=True, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    loaded = {Path(line).relative_to(SCRIPTS / "warpseed").as_posix() for line in done.stdout.splitlines()}
    assert {"cli.py", expected} <= loaded
    assert loaded - GLUE <= names_of(script, *timed_process(script))


def test_imports_are_followed_but_not_through_glue_types_or_the_command_line(tmp_path: Path) -> None:
    scripts = package_of(
        tmp_path,
        script="from warpseed.a import first\nfrom warpseed.errors import E\n",
        warpseed__init_file="import warpseed.far\n",
        warpseed__a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import warpseed.typed\n"
        "else:\n    import warpseed.other\n\ndef first():\n    from warpseed import lazy\n",
        warpseed__errors="import warpseed.far\n",
        warpseed__cli="import warpseed.far\n",
        **{f"warpseed__{name}": "" for name in ("typed", "other", "lazy", "far", "named")},
    )
    found = library_files("script.py", scripts=scripts)
    assert [path.stem for path in found] == ["a", "lazy", "other"]
    found = library_files("script.py", "warpseed.cli", "warpseed.named", scripts=scripts)
    assert [path.stem for path in found] == ["a", "cli", "lazy", "named", "other"]


def test_the_library_of_a_checkout_stands_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/other::{tmp_path}")
    take_library_of(tmp_path)
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(tmp_path.resolve()), "/other"]
    with pytest.raises(ConfigError, match=r"/a:b has a ':', which Python takes for the end of a name"):
        take_library_of(tmp_path / "a:b")


def test_imports_in_any_block_are_followed(tmp_path: Path) -> None:
    blocks = """
try:
    import warpseed.a
except ImportError:
    import warpseed.b
else:
    import warpseed.c
finally:
    import warpseed.d
match 1:
    case _:
        import warpseed.e
with f() as x, g():
    for y in x:
        while True:
            import warpseed.f
    else:
        import warpseed.g
class Made:
    async def make(self):
        async with self:
            if x: import warpseed.h
            elif y: import warpseed.i
try: pass
except* OSError: import warpseed.j
"""
    modules = {f"warpseed__{name}": "" for name in "abcdefghij"}
    scripts = package_of(tmp_path, script=blocks, **modules)
    assert [path.stem for path in library_files("script.py", scripts=scripts)] == list("abcdefghij")


def test_no_module_is_imported_by_a_name_that_is_put_together() -> None:
    """What is followed is what is written; the package's own lazy names are in no rule's script."""
    files = [*(SCRIPTS / "warpseed").rglob("*.py"), *SCRIPTS.glob("*.py")]
    found = {path.relative_to(SCRIPTS).as_posix() for path in files if "import_module(" in path.read_text()}
    assert found == {"warpseed/__init__.py"}


def test_a_module_that_is_not_there_is_no_silent_gap(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no module warpseed\.outptu"):
        library_files("get_reference.py", "warpseed.outptu", scripts=SCRIPTS)
