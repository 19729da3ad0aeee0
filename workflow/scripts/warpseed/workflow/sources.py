"""What a run starts from: references, read sets and samples of the configuration, and the files they stand for."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpseed.errors import ConfigError
from warpseed.measure.records import join_parameters
from warpseed.workflow.download import CatalogueEntry
from warpseed.workflow.sheets import Places

__all__ = ["SIMULATED", "OwnFile", "References", "facts_of", "is_url", "read_set_file", "reads_of", "samples_of"]

SIMULATED = {"simulated": "simulated_reference", "human_like": "human_like_reference"}
"""References that are made, and the key of the configuration that says of each what it looks like."""


class OwnFile(str):
    """The path of a file of the user's own, which no rule makes."""


def is_url(source: str) -> bool:
    """Whether a reference is given as the address of a file."""
    return re.match(r"(https?|ftp|file)://", source, re.IGNORECASE) is not None


def _check_braces(what: str, path: str, place: str) -> None:
    if re.search(r"[{}\n\t]", path):
        raise ConfigError(
            f"{what} {path!r} ({place}) has a brace, a tab or a line end in its path, which "
            "Snakemake or a table takes for its own: rename it, or link to it from another path."
        )


class References:
    """The references that a configuration names, by the short names that they have in results/.

    Parameters
    ----------
    catalogue : mapping of str to CatalogueEntry
        The genomes that can be named. A name wins over a file of that name; write ``./name`` for the file.

    Attributes
    ----------
    sources : dict of str to str
        Short name to what the configuration says: a name of `SIMULATED` or of the catalogue, a URL or a path.
    """

    def __init__(self, catalogue: Mapping[str, CatalogueEntry]) -> None:
        self.catalogue = catalogue
        self.sources: dict[str, str] = {}

    def add(self, source: str, place: str) -> str:
        """Register what the configuration names, and return its short name.

        Parameters
        ----------
        source : str
            A name of `SIMULATED` or of the catalogue, a URL or a path.
        place : str
            Where it stands, for sentences: ``configuration key 'reference'``.

        Raises
        ------
        ConfigError
            When it is nothing that is known or there, or another reference has that short name.
        """
        source = os.path.expanduser(source)
        if self._is_file(source):
            if not Path(source).is_file():
                close = difflib.get_close_matches(source, [*SIMULATED, *self.catalogue], 1)
                hint = f"did you mean '{close[0]}'?" if close else "correct it or put it there."
                raise ConfigError(
                    f"The reference '{source}' ({place}) is not a file, a URL, {' or '.join(map(repr, SIMULATED))}, or "
                    f"a genome of resources/genomes.yaml ({', '.join(self.catalogue)}): {hint}"
                )
            _check_braces("The reference", source, place)
        name = self._name(source)
        if self._identity(self.sources.setdefault(name, source)) != self._identity(source):
            raise ConfigError(
                f"The references '{self.sources[name]}' and '{source}' would both be called '{name}' in results/: "
                "rename one of the files."
            )
        return name

    def _is_file(self, source: str) -> bool:
        return not (source in SIMULATED or source in self.catalogue or is_url(source))

    def _identity(self, source: str) -> str:
        """What is the same of all paths of one file."""
        return os.path.realpath(source) if self._is_file(source) else source

    def _name(self, source: str) -> str:
        """Letters, digits, '_', '-' and '.'."""
        if source in SIMULATED or source in self.catalogue:
            return source
        stem = re.sub(r"(\.(fa|fasta|fna|fas))?(\.gz)?$", "", Path(source).name, flags=re.IGNORECASE)
        return re.sub(r"[^A-Za-z0-9_.-]", "_", stem) or "reference"

    def path(self, name: str) -> str:
        """The FASTA file: the user's own where it lies, or the one that a rule makes."""
        source = self.sources[name]
        if source in SIMULATED:
            return f"results/reference/{name}.fa"
        if source in self.catalogue or is_url(source):
            return f"results/reference/{name}.fa.gz"
        return OwnFile(source)

    def download(self, name: str) -> dict[str, Any]:
        """What a download must know of a genome; its description is no reason to download it again."""
        source = self.sources[name]
        entry = self.catalogue.get(source) or CatalogueEntry(source, source)
        return {
            "name": entry.name,
            "url": entry.url,
            "contigs": dict(entry.contigs),
            "other_contigs": entry.other_contigs,
        }


def read_set_file(name: str, read_set: Mapping[str, Any]) -> str:
    """The file name of a simulated read set: FASTQ where its reads have qualities, else FASTA."""
    return f"{name}.{'fq' if read_set['qualities'] else 'fa'}"


def reads_of(read_sets: Mapping[str, Any], name: str, reference: str, key: str) -> str:
    """Return the read file that a read set stands for: the user's own, or one simulated on a reference.

    Raises
    ------
    ConfigError
        When the configuration has no such read set, its file is not there, or its lengths are in the wrong order.
    """
    if name not in read_sets:
        raise ConfigError(
            f"The configuration key '{key}' is '{name}', but the read sets of the key 'reads' are "
            f"{', '.join(read_sets) or 'none'}: name one of these, or add it there."
        )
    source, length = read_sets[name]["source"], read_sets[name]["length"]
    if source == "simulated":
        if isinstance(length, list) and length != sorted(length):
            raise ConfigError(
                f"The configuration key 'reads.{name}.length' is {length}, but the smallest comes first, the largest "
                "last: swap them."
            )
        return f"results/reads/{reference}/{read_set_file(name, read_sets[name])}"
    advice = "give a FASTA or FASTQ file, or 'simulated'"
    return _read_file(source, f"configuration key 'reads.{name}.source'", advice)


def _read_file(source: str, place: str, advice: str) -> OwnFile:
    source = os.path.expanduser(source)
    if not Path(source).is_file():
        what = "is a folder" if Path(source).is_dir() else "does not exist"
        raise ConfigError(f"The read file '{source}' ({place}) {what}: {advice}.")
    _check_braces("The read file", source, place)
    return OwnFile(source)


def samples_of(
    config: Mapping[str, Any], references: References, reference: str, places: Places
) -> dict[str, dict[str, Any]]:
    """Return the user's samples with the files they stand on.

    Parameters
    ----------
    config : mapping
        A checked configuration.
    references : References
        Those of the samples are added.
    reference : str
        Short name of the reference of samples that name none.
    places : Places
        Where the keys of the samples stand.

    Returns
    -------
    dict of str to dict
        The sample's own keys, its `reference` as a short name, and the path `reads`.

    Raises
    ------
    ConfigError
        When a file is missing.
    """
    samples = {}
    for name, sample in config["samples"].items():
        of_sample = reference
        if sample["reference"]:
            of_sample = references.add(sample["reference"], places.aside("samples", name, "reference"))
        if sample["reads"] in config["reads"]:
            reads = reads_of(config["reads"], sample["reads"], of_sample, f"samples.{name}.reads")
        else:
            advice = f"give a FASTA or FASTQ file, or a read set of the key 'reads' ({', '.join(config['reads'])})"
            reads = _read_file(sample["reads"], places.aside("samples", name, "reads"), advice)
        samples[name] = {**sample, "reference": of_sample, "reads": reads}
    return samples


def facts_of(name: str, sample: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, str]:
    """What a sample's summary says of it; `parameters` are those of its search, behind which `max_hits` stands."""
    limit = {} if sample["max_hits"] is None else {"max_hits": sample["max_hits"]}
    return {
        "sample": name,
        "reference": sample["reference"],
        "reads": Path(sample["reads"]).name,
        "system": sample["system"],
        "parameters": join_parameters({**parameters, **limit}),
    }
