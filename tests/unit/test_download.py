"""Downloads against a server on this machine that breaks, refuses, and sends the wrong thing."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from warpseed.errors import ConfigError, DownloadError
from warpseed.sequences.reference import read_reference
from warpseed.workflow import download
from warpseed.workflow.download import CatalogueEntry, fetch_reference, load_catalogue

CATALOGUE = Path(__file__).resolve().parents[2] / "resources" / "genomes.yaml"
FASTA = b">a one\n" + b"ACGTTGCATG\n" * 2000 + b">b\nACGT\n"
LENGTHS = {"a": 20_000, "b": 4}


class Server(ThreadingHTTPServer):
    """Serves `content`; breaks the connection after `cut_after` bytes, `cuts` times; notes each Range it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = gzip.compress(FASTA, 0)
        self.cuts = 0
        self.cut_after = 5000
        self.status = 0
        self.refusals = 0
        self.silent: threading.Event | None = None
        self.has_ranges = True
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/genome.fa.gz"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:  # noqa: N802 (the name is http.server's)
        server, wanted = self.server, self.headers["Range"]
        server.ranges.append(wanted)
        if server.silent:
            server.silent.wait(20)
            return
        if server.refusals > 0:
            server.refusals -= 1
            self.send_error(503)
            return
        start = int(wanted.split("=")[1].split("-")[0]) if wanted and server.has_ranges else 0
        if server.status or start >= len(server.content):
            self.send_response(server.status or 416)
            self.send_header("Content-Length", "0")
            self.send_header("Retry-After", "1000000")
            self.end_headers()
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.end_headers()
        if server.cuts > 0:
            server.cuts -= 1
            body = body[: server.cut_after]
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download, "_FIRST_WAIT_SECONDS", 0.01)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_download(server: Server, tmp_path: Path) -> None:
    digest = hashlib.sha256(server.content).hexdigest()
    entry = CatalogueEntry("x", server.url, contigs=LENGTHS, other_contigs=False)
    fetch_reference(entry, tmp_path / "new" / "g.fa.gz", sha256=digest.upper())
    assert (tmp_path / "new" / "g.fa.gz").read_bytes() == server.content
    assert names(tmp_path / "new") == ["g.fa.gz"] and server.ranges == [None]


def test_a_broken_connection_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.cuts = 2
    fetch_reference(server.url, tmp_path / "g.fa.gz", contigs=LENGTHS)
    assert (tmp_path / "g.fa.gz").read_bytes() == server.content and names(tmp_path) == ["g.fa.gz"]
    assert server.ranges == [None, "bytes=5000-", "bytes=10000-"]


def test_a_later_run_goes_on_where_the_first_stopped(server: Server, tmp_path: Path) -> None:
    server.cuts = 2
    with pytest.raises(DownloadError, match="the download failed: the connection broke .*what has come so far is kept"):
        fetch_reference(server.url, tmp_path / "g.fa.gz", retries=1)
    assert (tmp_path / "g.fa.gz.part").read_bytes() == server.content[:10_000]
    assert not (tmp_path / "g.fa.gz").exists()
    fetch_reference(server.url, tmp_path / "g.fa.gz", retries=0)
    assert (tmp_path / "g.fa.gz").read_bytes() == server.content
    assert server.ranges[-1] == "bytes=10000-" and names(tmp_path) == ["g.fa.gz"]


def test_a_part_that_was_whole_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "g.fa.gz.part").write_bytes(server.content)
    (tmp_path / "g.fa.gz.part.url").write_text(server.url)
    fetch_reference(server.url, tmp_path / "g.fa.gz", retries=0, contigs=LENGTHS)
    assert (tmp_path / "g.fa.gz").read_bytes() == server.content and len(server.ranges) == 1


@pytest.mark.parametrize("origin", ["same", "other"])
def test_a_part_of_something_else_is_dropped(server: Server, tmp_path: Path, origin: str) -> None:
    (tmp_path / "g.fa.gz.part").write_bytes(b"x" * 777)
    (tmp_path / "g.fa.gz.part.url").write_text(server.url if origin == "same" else "http://elsewhere/")
    fetch_reference(server.url, tmp_path / "g.fa.gz", retries=0, contigs=LENGTHS)
    assert (tmp_path / "g.fa.gz").read_bytes() == server.content and names(tmp_path) == ["g.fa.gz"]
    assert server.ranges == (["bytes=777-", None] if origin == "same" else [None])


def test_a_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.cuts, server.has_ranges = 1, False
    fetch_reference(server.url, tmp_path / "g.fa.gz", contigs=LENGTHS)
    assert (tmp_path / "g.fa.gz").read_bytes() == server.content


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_said_and_not_repeated(server: Server, tmp_path: Path, status: int) -> None:
    server.status = status
    with pytest.raises(
        DownloadError, match=f"genome.fa.gz: .* refused it with HTTP status {status}; check the address"
    ):
        fetch_reference(server.url, tmp_path / "g.fa.gz")
    assert len(server.ranges) == 1 and names(tmp_path) == []


def test_a_busy_server_is_asked_again_and_not_waited_for(server: Server, tmp_path: Path) -> None:
    server.refusals = 2
    fetch_reference(server.url, tmp_path / "g.fa.gz", contigs=LENGTHS)
    assert (tmp_path / "g.fa.gz").read_bytes() == server.content and len(server.ranges) == 3
    server.status = 503
    with pytest.raises(DownloadError, match=r"refused it with HTTP status 503; check .* then run again\.$"):
        fetch_reference(server.url, tmp_path / "h.fa.gz", retries=2)
    assert len(server.ranges) == 6 and names(tmp_path) == ["g.fa.gz"]


def test_a_silent_server_is_given_up(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_STALL_SECONDS", 1)
    monkeypatch.setattr(download, "_PATIENCE_SECONDS", 0.5)
    server.silent = threading.Event()
    with pytest.raises(DownloadError, match="the server stopped sending; check"):
        fetch_reference(server.url, tmp_path / "g.fa.gz", retries=5)
    server.silent.set()
    assert len(server.ranges) == 1 and names(tmp_path) == []


@pytest.mark.parametrize("name", ["g[1-3].fa.gz", "{a,b}.fa.gz"])
def test_an_address_is_one_address(server: Server, tmp_path: Path, name: str) -> None:
    fetch_reference(server.url.replace("genome.fa.gz", name), tmp_path / "g.fa.gz", retries=0, contigs=LENGTHS)
    assert len(server.ranges) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("foo://127.0.0.1/g.fa", "curl does not know this kind of address"),
        ("http://127.0.0.1:x/g.fa", "the address is no URL"),
    ],
)
def test_an_address_that_is_none(server: Server, tmp_path: Path, url: str, reason: str) -> None:
    with pytest.raises(DownloadError, match=f"{reason}; check the address and the network, then run again\\.$"):
        fetch_reference(url, tmp_path / "g.fa")
    assert names(tmp_path) == []


def test_a_part_that_cannot_be_gone_on_with_is_not_said_to_be_kept(server: Server, tmp_path: Path) -> None:
    server.has_ranges = False
    (tmp_path / "g.fa.gz.part").write_bytes(server.content[:50])
    (tmp_path / "g.fa.gz.part.url").write_text(server.url)
    with pytest.raises(DownloadError, match=r"does not go on with a transfer that broke; .* run again\.$"):
        fetch_reference(server.url, tmp_path / "g.fa.gz", retries=0)
    assert names(tmp_path) == []


def test_nobody_answers(server: Server, tmp_path: Path) -> None:
    server.server_close()
    with pytest.raises(DownloadError, match="the server does not answer .is there a network"):
        fetch_reference(server.url, tmp_path / "g.fa.gz", retries=1)


@pytest.mark.parametrize(
    ("content", "contigs", "sentence"),
    [
        (gzip.compress(FASTA), {"a": 20_000, "b": 5}, "contig 'b' of the downloaded file has 4 bases but 5 were"),
        (gzip.compress(FASTA), {"chr1": 4}, r"has no contig 'chr1' \(its first is 'a'\); the archive has changed"),
        (gzip.compress(FASTA), {"a": 20_000}, "has a contig 'b' that was not expected"),
        (gzip.compress(FASTA)[:-20], LENGTHS, "the downloaded file: the gzip data end too early"),
        (b"<html>Sign in</html>", LENGTHS, "the downloaded file: this is an HTML or XML file"),
        (b"@r\nA\n+\nI\n", LENGTHS, "this is a FASTQ file"),
        (gzip.compress(b">a\nAC!\n"), {}, r"the downloaded file, record 1 \('a'\), line 2: found '!'"),
    ],
    ids=["length", "name", "one more", "cut", "html", "fastq", "bad base"],
)
def test_the_wrong_thing_is_refused_and_removed(
    server: Server, tmp_path: Path, content: bytes, contigs: dict[str, int], sentence: str
) -> None:
    server.content = content
    entry = CatalogueEntry("x", server.url, contigs=contigs, other_contigs=False)
    with pytest.raises(DownloadError, match=sentence) as caught:
        fetch_reference(entry, tmp_path / "g.fa.gz", retries=0)
    assert str(caught.value).startswith(server.url) and ".part" not in str(caught.value)
    assert not (tmp_path / "g.fa.gz").exists() and not (tmp_path / "g.fa.gz.part").exists()


def test_a_wrong_checksum(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="has SHA-256 [0-9a-f]{64} but 00ff was expected"):
        fetch_reference(server.url, tmp_path / "g.fa.gz", sha256="00FF")
    assert names(tmp_path) == []


def test_a_plain_file_is_compressed_for_a_name_that_says_so(server: Server, tmp_path: Path) -> None:
    server.content = FASTA
    fetch_reference(server.url, tmp_path / "g.fa.gz", contigs=LENGTHS)
    assert gzip.decompress((tmp_path / "g.fa.gz").read_bytes()) == FASTA and names(tmp_path) == ["g.fa.gz"]


def test_a_file_url(tmp_path: Path) -> None:
    (tmp_path / "source.fa").write_bytes(FASTA)
    fetch_reference((tmp_path / "source.fa").as_uri(), tmp_path / "g.fa", retries=0)
    assert read_reference(tmp_path / "g.fa").names == ("a", "b")


def test_without_curl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DownloadError, match="downloads need the program curl, which is not installed; install it"):
        fetch_reference("https://example.org/x.fa.gz", tmp_path / "g.fa.gz")


# ---------------------------------------------------------------------------------------------- the catalogue


def test_the_catalogue_holds_the_genomes_of_the_papers() -> None:
    catalogue = load_catalogue(CATALOGUE)
    assert list(catalogue) == ["phix174", "lambda", "ecoli_k12", "yeast", "celegans", "dm6", "hg19", "hg38"]
    for entry in catalogue.values():
        assert entry.url.startswith("https://") and entry.url.endswith(".gz") and entry.description
        assert entry.contigs and min(entry.contigs.values()) > 0
    # Totals as the archives publish them: a digit mistyped in one contig would show.
    totals = {name: sum(entry.contigs.values()) for name, entry in catalogue.items()}
    assert totals["phix174"] == 5_386 and totals["lambda"] == 48_502 and totals["ecoli_k12"] == 4_641_652
    assert totals["yeast"] == 12_157_105 and totals["celegans"] == 100_286_401
    assert totals["dm6"] - 19_524 == 137_547_960
    assert totals["hg19"] - 16_571 == 3_095_677_412 and totals["hg38"] - 16_569 == 3_088_269_832


@pytest.mark.parametrize("content", ["x: {description: no url}", "- a\n- b", "x: [", "x: {url: u, contigs: {a: b}}"])
def test_a_broken_catalogue(tmp_path: Path, content: str) -> None:
    path = tmp_path / "genomes.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match="genomes.yaml: the catalogue of genomes cannot be used") as caught:
        load_catalogue(path)
    assert "\n" not in str(caught.value)
