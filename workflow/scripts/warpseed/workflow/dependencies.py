"""Which library files a rule depends on: those that decide what its script makes.

Snakemake does not see imports, so rules list these files among their inputs: a job is repeated when a kernel changes,
and left alone when a plot does.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from warpseed.errors import ConfigError

__all__ = ["GLUE", "imported_modules", "library_files", "take_library_of"]

GLUE = frozenset(
    {
        "__init__.py",
        "errors.py",
        "measure/__init__.py",
        "measure/provenance.py",
        "measure/records.py",
        "version.py",
        "workflow/__init__.py",
        "workflow/check.py",
        "workflow/job.py",
        "workflow/program.py",
        "workflow/progress.py",
    }
)
"""Files that no rule depends on: what a result is called, how an error or an end is said, which versions are noted.
Neither they nor what they alone import are anybody's inputs."""

_NOT_FOLLOWED = frozenset({"cli.py"})
"""Files that import what each of several commands needs: who runs one of these names its modules."""


@cache  # every rule comes through the same files, and every job's Snakemake through every rule
def imported_modules(path: Path, scripts: Path) -> frozenset[str]:
    """Return the names of the warpseed modules that a Python file imports, imports inside functions included.

    Parameters
    ----------
    path : Path
        A file below `scripts`.
    scripts : Path
        The folder that the package `warpseed` lies in.

    Returns
    -------
    frozenset of str
        Dotted names; a name taken from a module is among them, as it may be a module itself. What stands under
        ``if TYPE_CHECKING:`` is never executed, so it is left out.
    """
    package = path.relative_to(scripts).with_suffix("").parts[:-1]
    names: set[str] = set()
    for node in _executed_statements(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names.add(origin)
            names.update(f"{origin}.{name.name}" for name in node.names)
    return frozenset(name for name in names if name.split(".")[0] == "warpseed")


def _executed_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement of a syntax tree but those under ``if TYPE_CHECKING:``."""
    queue: list[ast.AST] = [*tree.body]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            queue.extend(node.orelse)
            continue
        yield node
        for blocks in ("body", "orelse", "handlers", "finalbody", "cases"):
            queue.extend(getattr(node, blocks, ()))


@cache
def _module_files(name: str, scripts: Path) -> frozenset[Path]:
    """The files that importing a module executes: its own and the __init__.py of every package above."""
    parts = name.split(".")
    files = [scripts.joinpath(*parts[:length], "__init__.py") for length in range(1, len(parts) + 1)]
    files.append(scripts.joinpath(*parts).with_suffix(".py"))
    glue = {scripts / "warpseed" / path for path in GLUE}
    return frozenset(path for path in files if path.is_file()) - glue


def library_files(script: str, *modules: str, scripts: Path) -> list[Path]:
    """Return the library files that a rule's script uses, directly or not.

    Parameters
    ----------
    script : str
        The script's name in `scripts`.
    *modules : str
        Modules that it uses without importing them, because it starts a process that does. `warpseed.cli` stands for
        its own file alone: the modules of the command that is run are named beside it.
    scripts : Path
        The folder that the script and the package `warpseed` lie in.

    Returns
    -------
    list of Path
        Sorted, without the files of `GLUE`.
    """
    files: set[Path] = set()
    for name in modules:
        named = _module_files(name, scripts)
        if not named:
            raise ValueError(f"{script}: there is no module {name}")
        files |= named
    queue = [scripts / script, *files]
    unfollowed = {scripts / "warpseed" / path for path in _NOT_FOLLOWED}
    while queue:
        path = queue.pop()
        if path in unfollowed:
            continue
        for name in imported_modules(path, scripts):
            new = _module_files(name, scripts) - files
            files |= new
            queue.extend(new)
    return sorted(files)


def take_library_of(scripts: Path) -> None:
    """Let every process that this one starts take the library in a folder, before any that is installed.

    Raises
    ------
    ConfigError
        If the folder's name cannot stand in PYTHONPATH.
    """
    if os.pathsep in str(scripts.resolve()):
        raise ConfigError(
            f"The name of the folder {scripts.resolve()} has a '{os.pathsep}', which Python takes for the end of a "
            "name in its path: move this checkout to a folder without it."
        )
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(scripts.resolve()), *filter(None, others)]))
