"""A paper as the report needs it: what it printed where, on what hardware, and what we do differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from warpseed.errors import InputError
from warpseed.measure.records import join_parameters

__all__ = ["Paper", "read_paper"]


@dataclass(frozen=True)
class Paper:
    """One resources/papers/<system>.yaml, and the system's name.

    Attributes
    ----------
    system : str
        The file's stem: the `system` of the records.
    id, name, title, about, reference : str
        The paper's number, a short name of its subject, its title (or what it says of itself), what the section
        begins with, and what it searched.
    authors, year
        As printed, or None.
    hardware : mapping
        cpu, cores, gpu.
    queries, queries_name
        Queries in each published data set, and what they are called, such as "k-mers".
    inside : str
        What a time inside a process is of, which leaves out how the process starts: "index open", or "in memory".
    searches_an_index : bool
        Whether what is timed searches the index of a genome.
    cases : mapping
        Data set to its parameters.
    items : mapping
        A record's item to `printed` (the table or figure), `title`, `note`, `stage`, `summary`; `prints`, where it is
        several tables; and `method`, which names what is special about the item's methods.
    methods : mapping
        A printed method to `device` and `threads`, or to `over` and `threads` for the GPU's speedup over them.
    figures : mapping
        A figure's stem to its caption, in the order of the page.
    differences : list
        `what` differs from the paper, and `why`.
    """

    system: str
    id: str
    name: str
    title: str
    authors: str | None
    year: int | None
    about: str
    hardware: Mapping[str, Any]
    queries: int
    queries_name: str
    inside: str
    searches_an_index: bool
    reference: str
    cases: Mapping[str, Mapping[str, Any]]
    items: Mapping[str, Mapping[str, Any]]
    methods: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, str]
    differences: list[Mapping[str, str]]

    @property
    def machine(self) -> str:
        """The paper's hardware, such as "AMD Opteron 2378, Tesla C2050"."""
        return f"{self.hardware['cpu']}, {self.hardware['gpu']}"

    def item_of(self, printed: str) -> str:
        """The record's item that a printed table or figure is, or the printed name where we measure no such item."""
        own = (item for item, facts in self.items.items() if printed in facts.get("prints", [facts["printed"]]))
        return next(own, printed)

    def printed(self, item: str) -> str:
        """Where the paper prints an item, or the item's own name."""
        return str(self.items.get(item, {}).get("printed", item))

    def case_parameters(self, case: str) -> str:
        """The parameters of a case as a record keeps them, or "" where the paper's file states none."""
        return join_parameters(self.cases.get(case, {}))


def read_paper(path: str | Path) -> Paper:
    """Read resources/papers/<system>.yaml.

    Raises
    ------
    InputError
        If it is no readable YAML, or a key is missing or not known.
    """
    import yaml

    path = Path(path)
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{path} is no readable YAML ({error}); restore the file from the repository") from error
    expected = {field.name for field in fields(Paper)} - {"system"}
    found = set(document) if isinstance(document, dict) else set()
    if found != expected:
        odd = ", ".join(sorted(map(str, found ^ expected)))
        raise InputError(f"{path} lacks keys of a paper, or has others ({odd}); restore the file from the repository")
    return Paper(system=path.stem, **document)
