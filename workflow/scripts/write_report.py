"""Write the report, one self-contained page, and the provenance of the run: where its records were measured.

Input: `records` and `reference_records` (lists of record TSVs), `published` (TSVs), `papers` (YAML), `tables`,
`figures`; of the samples `seeds`, `summaries`, `densities` (in one order), and `sample_figures`; of those that
search no index `counts` and `count_summaries` (in one order). Params: `config`; `counts`, such a sample to the endings
of its files.
Output: `html`, `provenance`. A reference machine's provenance.json is read where it lies beside its records.
"""

from pathlib import Path
from typing import Any

from warpseed.measure.machines import describe_run
from warpseed.measure.provenance import write_provenance
from warpseed.report.measurements import load_measurements
from warpseed.report.page import write_page
from warpseed.report.samples import read_counted, read_sample, section
from warpseed.report.systems import SAMPLE_TABLES
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Write the provenance, then the page that shows it."""
    given, output = snakemake.input, snakemake.output
    write_provenance(output.provenance, describe_run(given.records), snakemake.params.config)
    samples = list(map(read_sample, given.summaries, given.densities))
    paths = zip(given.seeds, given.summaries, given.densities, strict=True)
    files = [dict(zip(("seeds", "summary", "density"), map(Path, each), strict=True)) for each in paths]
    drawn = [Path(path) for path in given.sample_figures]
    counts, made = [], iter(map(Path, given.counts))
    for endings, summary in zip(snakemake.params.counts.values(), map(Path, given.count_summaries), strict=True):
        # (by the first word of each ending)
        own = {ending.partition(".")[0]: next(made) for ending in endings} | {"summary": summary}
        counts.append((read_counted(summary, SAMPLE_TABLES), own))
    beside = {Path(path).parent / "provenance.json" for path in given.reference_records}
    write_page(
        output.html,
        load_measurements(given.records, given.reference_records, given.published, given.papers),
        output.provenance,
        table_paths=given.tables,
        figure_paths=given.figures,
        reference_provenance=sorted(path for path in beside if path.is_file()),
        samples=section(Path(output.html).resolve().parent, samples, files, drawn, counts, SAMPLE_TABLES),
    )


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)
