"""The shape of the code: imports go one way, files, functions and parameter lists stay small, nothing stands twice."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "workflow" / "scripts"
FILES = sorted(path for folder in ("workflow", "tests", "tools") for path in (ROOT / folder).rglob("*.py"))
MODULES = sorted((LIBRARY / "warpseed").rglob("*.py"))

SYSTEMS = ("kmer_seeds", "one_error", "mems", "tree_bitmap", "ebwt")
LAYERS = (
    ("errors", "version", "cache"), ("compute",), ("sequences",), ("fm_index",), ("output",), ("tasks",), ("batches",),
    ("measure",), SYSTEMS, ("report",), ("workflow",), ("cli",), ("__init__", "__main__"),
)  # fmt: skip
"""Each may import what stands before it, and itself; a system imports no other system."""
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}
KERNELS = {"kernel", "bounded_kernel", "jit"}
MOST_LINES, MOST_PARAMETERS, MOST_COMMON_LINES = 450, 8, 10


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(node: ast.AST) -> Iterator[str]:
    """Modules that a piece of code imports when it runs, at once or later, also by `import_module("…")`."""
    if is_type_checking(node):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
        parts = ast.walk(node.args[0])
        yield next((part.value for part in parts if isinstance(part, ast.Constant)), "warpseed.__init__")
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def part_of(module: str) -> str:
    """The part of the library that a module belongs to: of warpseed.compute.gpu it is compute."""
    words = module.rstrip(".").split(".")
    return words[1] if len(words) > 1 and words[1] in RANKS else "__init__"


@each(MODULES)
def test_imports_go_one_way(path: Path) -> None:
    part = path.relative_to(LIBRARY / "warpseed").parts[0].removesuffix(".py")
    assert part in RANKS, "a new part of the library needs its place in LAYERS"
    for module in imported(tree_of(path)):
        if module.split(".")[0] == "warpseed":
            other = part_of(module)
            assert other == part or RANKS[other] < RANKS[part], f"{part} imports {module}"


def module_at(name: str) -> Path | None:
    """Where a module of the library lies."""
    place = LIBRARY.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path in MODULES), None)


@cache
def offered(path: Path) -> set[str]:
    """The names of a module's __all__."""
    for node in tree_of(path).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and getattr(target, "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def taken(path: Path) -> Iterator[tuple[str, str]]:
    """What a module takes from others of the library, by its name or as `module.name`: (module, name)."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "warpseed":
            for alias in node.names:
                if module_at(f"{node.module}.{alias.name}"):
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                else:
                    yield str(node.module), alias.name
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id], node.attr


@each(MODULES)
def test_what_others_take_stands_in_all(path: Path) -> None:
    for module, name in taken(path):
        other = module_at(module)
        assert other and name in offered(other), f"{name} is not in __all__ of {module}"


@each(MODULES)
def test_cuda_and_cupy_are_imported_in_one_module_each(path: Path) -> None:
    found = {name for name in imported(tree_of(path)) if f"{name}.".startswith(("numba.cuda.", "cupy.", "numba_cuda."))}
    of_cupy = {name for name in found if name.startswith("cupy")}
    there = path.name if path.parent == LIBRARY / "warpseed" / "compute" else ""
    assert not of_cupy or there == "gpu.py", found
    assert not found - of_cupy or there == "gpu_compiler.py", found


@each(MODULES)
def test_numba_is_imported_where_code_is_compiled(path: Path) -> None:
    found = {name for name in imported(tree_of(path)) if name.split(".")[0] == "numba"}
    assert not found or path.name in {"compiled.py", "compiler.py", "gpu_compiler.py"}, (
        f"take {found} from warpseed.compute.compiled: a process whose code is compiled does without Numba"
    )


@each(FILES)
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@each(FILES)
def test_parameter_lists_are_short(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        words = {word for line in getattr(node, "decorator_list", []) for word in ast.walk(line)}
        if KERNELS & {getattr(word, "id", getattr(word, "attr", "")) for word in words}:
            continue
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        assert count <= MOST_PARAMETERS, f"line {node.lineno}: {count} parameters"


def code_lines(path: Path) -> list[tuple[int, str]]:
    """Numbers and words of the lines that do something: no blank ones, comments, docstrings, imports or signatures."""
    left_out: set[int] = set()
    for node in ast.walk(tree_of(path)):
        documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if documented or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.FunctionDef):  # searches of all tiers and devices are called alike
            left_out.update(range(node.lineno, node.body[0].lineno))
    words: dict[int, list[str]] = {}
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.start[0] not in left_out and token.type != tokenize.COMMENT and token.string.strip():
            words.setdefault(token.start[0], []).append(token.string)
    return [(number, " ".join(line)) for number, line in sorted(words.items())]


def duplicates(paths: list[Path], most: int) -> list[str]:
    """The places of blocks of more than `most` lines that stand elsewhere too, each said once."""
    seen: dict[tuple[str, ...], tuple[Path, int]] = {}
    found = []
    for path in paths:
        lines = code_lines(path)
        last = -2
        for i in range(len(lines) - most):
            block = tuple(words for _, words in lines[i : i + most + 1])
            first_path, first = seen.setdefault(block, (path, i))
            if (first_path, first) == (path, i) or (first_path == path and i - first <= most):
                continue
            if i > last + 1:
                there = code_lines(first_path)[first][0]
                found.append(f"{path}:{lines[i][0]} is {first_path}:{there}")
            last = i
    return found


def test_no_block_of_code_stands_twice() -> None:
    assert duplicates(FILES, MOST_COMMON_LINES) == []


def test_a_block_that_stands_twice_is_found(tmp_path: Path) -> None:
    block = [f"    x = f({i})" for i in range(11)]
    for name, lines in (("a.py", block), ("b.py", [*block[:5], "", "    # other words", *block[5:]])):
        (tmp_path / name).write_text("\n".join(["import os", f"def {name[0]}():", f'    """{name}"""', *lines, ""]))
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    assert duplicates(paths, 10) == [f"{paths[1]}:4 is {paths[0]}:4"]
    assert duplicates(paths, 11) == []


SHARED = [
    *(path for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")) if path.stem not in SYSTEMS),
    *(LIBRARY / f"{name}.py" for name in ("merge_seeds", "list_samples", "draw_samples", "write_report")),
    LIBRARY / "warpseed" / "report" / "samples.py",
]


@each(SHARED)
def test_rules_and_scripts_of_all_systems_name_none(path: Path) -> None:
    """What a system is to the samples stands in its own rules and its own modules."""
    text = path.read_text(encoding="utf-8")
    assert not re.findall(rf"k-?mers?\b|mismatch|{'|'.join(SYSTEMS)}", text, re.IGNORECASE)


def test_tests_on_slurm_lie_together() -> None:
    """`make test-slurm` looks into their folder alone, and `make test` leaves out whatever is marked."""
    mark = "mark." + "slurm"
    marked = [path for path in (ROOT / "tests").rglob("*.py") if mark in path.read_text()]
    assert {path.parent.name for path in marked} == {"slurm"}
