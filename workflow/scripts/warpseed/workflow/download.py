"""References from the network: the catalogue of genomes, and downloads that resume and are verified."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warpseed.errors import ConfigError, DownloadError, InputError
from warpseed.sequences.bgzf_format import is_gzip
from warpseed.sequences.files import open_for_writing, sha256_file

__all__ = ["CatalogueEntry", "fetch_reference", "load_catalogue"]

# What curl's exit codes mean to somebody who wants a genome.
_CURL_REASONS = {
    1: "curl does not know this kind of address",
    3: "the address is no URL",
    5: "the name of the proxy is not known",
    6: "the server's name is not known (is there a network?)",
    7: "the server does not answer (is there a network?)",
    18: "the connection broke before the end",
    22: "the server refused it",
    23: "it cannot be written (is the disk full?)",
    28: "the server stopped sending",
    33: "the server does not go on with a transfer that broke",
    35: "no secure connection could be made",
    36: "the transfer that broke could not be gone on with",
    37: "there is no such file",
    47: "the server sends from one address to the next without an end",
    52: "the server closed the connection without an answer",
    55: "the connection broke",
    56: "the connection broke",
    60: "the server's certificate is not trusted",
    78: "there is no such file on the server",
}
_CANNOT_RESUME = (33, 36)
_WORTH_ANOTHER_TRY = (6, 7, 16, 18, 28, 35, 52, 55, 56, 92)
_BUSY = ("408", "429", "500", "502", "503", "504")
_STALL_SECONDS = 60
_PATIENCE_SECONDS = 180
"""No further try begins after so long without a byte."""
_FIRST_WAIT_SECONDS = 1.0


@dataclass(frozen=True)
class CatalogueEntry:
    """One genome of the catalogue, or a URL.

    Attributes
    ----------
    name : str
        Its name in the catalogue; for a URL, the URL.
    url : str
        A FASTA file, plain or gzip.
    description : str
    contigs : mapping of str to int
        Names and lengths that the file must have; empty when nothing is known.
    other_contigs : bool
        Whether the file may have contigs that are not listed.
    """

    name: str
    url: str
    description: str = ""
    contigs: Mapping[str, int] = field(default_factory=dict)
    other_contigs: bool = True


def load_catalogue(path: str | os.PathLike[str]) -> dict[str, CatalogueEntry]:
    """Read the catalogue of genomes (resources/genomes.yaml).

    Raises
    ------
    ConfigError
        When it is no YAML, or an entry lacks its URL.
    """
    import yaml

    try:
        with open(path, encoding="utf-8") as handle:
            entries = yaml.safe_load(handle)
        return {
            name: CatalogueEntry(
                name,
                entry["url"],
                entry.get("description", ""),
                {str(contig): int(length) for contig, length in entry.get("contigs", {}).items()},
                bool(entry.get("other_contigs", True)),
            )
            for name, entry in entries.items()
        }
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: the catalogue of genomes cannot be used ({reason}); mend the file.") from None


def fetch_reference(
    source: CatalogueEntry | str,
    destination: str | os.PathLike[str],
    *,
    retries: int = 5,
    sha256: str | None = None,
    contigs: Mapping[str, int] | None = None,
) -> None:
    """Download a FASTA file with curl, verify it, and only then give it its name.

    Parameters
    ----------
    source : CatalogueEntry or str
        A genome of the catalogue, or a URL.
    destination : path-like
        The final name. What has come so far lies beside it, with ``.part`` added, and a later call goes on
        from there. When the name ends in ``.gz`` and the file that came is plain, it is compressed.
    retries : int
        How often a transfer that broke, or that a busy server refused, is tried again; not when nothing has come for
        three minutes.
    sha256 : str, optional
        Hexadecimal digest that the downloaded bytes must have.
    contigs : mapping of str to int, optional
        Names and lengths to verify; those of the entry when not given.

    Raises
    ------
    DownloadError
        When curl is missing, the transfer fails, or what came is not what was expected. A file that is wrong
        is removed, so that the next try starts anew; one that is merely not complete is kept.
    """
    entry = source if isinstance(source, CatalogueEntry) else CatalogueEntry(source, source)
    expected = entry.contigs if contigs is None else contigs
    final = Path(destination)
    final.parent.mkdir(parents=True, exist_ok=True)
    part = final.with_name(final.name + ".part")
    _keep_only_part_of(entry.url, part)
    resumed = part.exists()
    try:
        _get(entry, part, retries, sha256, expected)
    except _WrongContentError:
        if not resumed:
            raise
        # The part of an earlier call may be of an older version of the file: once more from the start.
        _get(entry, part, retries, sha256, expected)
    if final.suffix == ".gz" and not is_gzip(part):
        _compress(part)
    os.replace(part, final)
    _origin(part).unlink()


class _WrongContentError(DownloadError):
    """What came is not what was expected; trying to go on from it is of no use."""


def _get(entry: CatalogueEntry, part: Path, retries: int, sha256: str | None, contigs: Mapping[str, int]) -> None:
    _origin(part).write_text(entry.url, encoding="utf-8")
    _transfer(entry.url, part, retries)
    try:
        _verify(part, entry, sha256, contigs)
    except _WrongContentError:
        part.unlink()
        _origin(part).unlink()
        raise


def _origin(part: Path) -> Path:
    return part.with_name(part.name + ".url")


def _keep_only_part_of(url: str, part: Path) -> None:
    """Remove a part that came from another URL: it would be joined to this one."""
    origin = _origin(part)
    if not (origin.exists() and origin.read_text(encoding="utf-8") == url):
        part.unlink(missing_ok=True)


def _transfer(url: str, part: Path, retries: int) -> None:
    """Run curl until the file is whole; each try goes on where the one before stopped."""
    curl = shutil.which("curl")
    if curl is None:
        raise DownloadError(
            f"{url}: downloads need the program curl, which is not installed; install it and run again."
        )
    command = [
        *(curl, "--fail", "--location", "--silent", "--show-error", "--globoff", "--continue-at", "-"),
        *("--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", str(_STALL_SECONDS)),
        *("--output", str(part), "--write-out", "%{http_code}", "--", url),
    ]
    size, patient_until = 0, time.monotonic() + _PATIENCE_SECONDS
    # Not curl's --retry: it waits as long as a busy server says, be it weeks, and after a connection that broke it
    # starts again from where its first try began, and loses what came.
    for attempt in range(retries + 1):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        code, status = done.returncode, done.stdout[-3:]
        # 416: the server has nothing to add, the part was whole; verifying tells whether that is so.
        if (code == 0 or (code == 22 and status == "416")) and part.exists():
            return
        if code in _CANNOT_RESUME:
            part.unlink(missing_ok=True)
        elif code not in _WORTH_ANOTHER_TRY and not (code == 22 and status in _BUSY):
            break
        if (came := _size(part)) > size:
            size, patient_until = came, time.monotonic() + _PATIENCE_SECONDS
        if time.monotonic() > patient_until:
            break
        if attempt < retries:
            time.sleep(min(_FIRST_WAIT_SECONDS * 2**attempt, 60))
    reason = _CURL_REASONS.get(code, f"curl ended with code {code}")
    if code == 22:
        reason += f" with HTTP status {status}"
    kept = " (what has come so far is kept)" if _size(part) else ""
    if not kept:
        part.unlink(missing_ok=True)
        _origin(part).unlink(missing_ok=True)
    raise DownloadError(
        f"{url}: the download failed: {reason}; check the address and the network, then run again{kept}."
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _verify(part: Path, entry: CatalogueEntry, sha256: str | None, contigs: Mapping[str, int]) -> None:
    if sha256 is not None and (found := sha256_file(part)) != sha256.lower():
        raise _WrongContentError(
            f"{entry.url}: the downloaded file has SHA-256 {found} but {sha256.lower()} was expected; "
            "check both, then run again."
        )
    seen: dict[str, int] = {}
    try:
        for name, length in _contig_lengths(part):
            seen[name] = seen.get(name, 0) + length
    except InputError as error:
        reason = str(error).replace(str(part), "the downloaded file", 1)
        raise _WrongContentError(f"{entry.url}: {reason}") from None
    advice = "the archive has changed: give another URL or correct the catalogue."
    for name, length in contigs.items():
        if name not in seen:
            first = next(iter(seen))
            raise _WrongContentError(
                f"{entry.url}: the downloaded file has no contig {name!r} (its first is {first!r}); {advice}"
            )
        if seen[name] != length:
            raise _WrongContentError(
                f"{entry.url}: contig {name!r} of the downloaded file has {seen[name]} bases but {length} "
                f"were expected; {advice}"
            )
    others = [name for name in seen if name not in contigs]
    if contigs and others and not entry.other_contigs:
        raise _WrongContentError(
            f"{entry.url}: the downloaded file has a contig {others[0]!r} that was not expected; {advice}"
        )


def _contig_lengths(path: Path) -> Iterator[tuple[str, int]]:
    """Yield names and lengths of a FASTA file's contigs; reads all of it, which also checks the gzip data."""
    from warpseed.sequences.queries import iter_queries, sequence_format

    if sequence_format(path) != "FASTA":
        raise InputError(f"{path}: this is a FASTQ file; a reference must be a FASTA file.")
    for batch in iter_queries(path):
        for i, length in enumerate(batch.lengths):
            yield batch.name(i), int(length)


def _compress(path: Path) -> None:
    packed = path.with_name(path.name + ".gz")
    with open(path, "rb") as source, open_for_writing(packed) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    os.replace(packed, path)
