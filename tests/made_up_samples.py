"""Summaries and densities of samples that nobody searched, for tests of what is shown of them."""

from warpseed.report.samples import COUNTS
from warpseed.report.systems import SAMPLE_TABLES

WIDTH = 500
"""Bins along a reference."""


def write_counted(folder, name, **counts):
    """Write the summary of a sample whose k-mers are counted; return its path."""
    own = {"system": "tree_bitmap", "parameters": "k=21", "seeds": f"{name}.kmers.tsv.gz"}
    return _write_unsearched(folder, name, own | dict.fromkeys(SAMPLE_TABLES["tree_bitmap"].columns, 0) | counts)


def write_compared(folder, name, **counts):
    """Write the summary of a sample whose records are compared; return its path."""
    own = {"system": "ebwt", "parameters": "tree=nj", "seeds": f"{name}.distances.tsv"}
    return _write_unsearched(folder, name, own | dict.fromkeys(SAMPLE_TABLES["ebwt"].columns, 0) | counts)


def _write_unsearched(folder, name, own):
    folder.mkdir(parents=True, exist_ok=True)
    row = {"sample": name, "reads": "reads.fq.gz"} | own
    path = folder / f"{name}.summary.tsv"
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in (row, row.values())))
    return path


def write_sample(folder, name, contigs, seeds=None, **facts):
    """Write the two files of a sample; return their paths.

    `contigs` is a list of (name, length), `seeds` a function of a bin's (contig, start) to its hits of both strands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    width = max(1, sum(length for _, length in contigs) // WIDTH)
    bins = [
        (contig, start, min(start + width, length), *(seeds(contig, start) if seeds else (0, 0)))
        for contig, length in contigs
        for start in range(0, length, width)
    ]
    hits = sum(plus + minus for *_, plus, minus in bins)
    text = {"sample": name, "reference": "genome.fa.gz", "reads": "reads.fq.gz", "system": "kmers"}
    text |= {"parameters": "k=20; step=20; mismatches=1"}
    counts = dict.fromkeys(COUNTS, 0) | {"queries": hits + 1000, "found": hits, "unique": hits, "hits": hits}
    row = text | counts | {"not_found": 0, "dropped_hits": 0} | facts
    summary, density = folder / f"{name}.summary.tsv", folder / f"{name}.density.tsv"
    summary.write_text("".join("\t".join(map(str, line)) + "\n" for line in (row, row.values())))
    lines = [("contig", "start", "end", "plus", "minus"), *bins]
    density.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return summary, density
