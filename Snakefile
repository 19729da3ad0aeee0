# warpseed: `make run`, or `snakemake --cores 8` with Snakemake 9 on PATH. config/README.md explains every key.

from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.basedir}/config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/reference.smk"
include: "workflow/rules/index.smk"
include: "workflow/rules/reads.smk"
include: "workflow/rules/kmer_seeds.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/publish.smk"


rule all:
    """The report, and the seeds of the samples: what `snakemake` makes without a target."""
    default_target: True
    input:
        "results/report.html",
        SEEDS,


rule kmer_seeds:
    """Every measurement of paper 000."""
    input:
        INDEX_RECORDS,
        MEASUREMENTS["kmer_seeds"],


rule index:
    """The index of every reference, verified."""
    input:
        expand("results/index/{reference}.verified", reference=REFERENCES),


rule seeds:
    """The seeds of the samples."""
    input:
        SEEDS,


rule report:
    """The report alone."""
    input:
        "results/report.html",


rule publish:
    """The records of this run as those of a reference machine (--config machine=NAME)."""
    input:
        published_records,
