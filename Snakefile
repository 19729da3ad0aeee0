# warpseed: `make seeds` or `make run`, or `snakemake --cores 8` with Snakemake 9 on PATH. config/README.md explains every key.

from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.current_basedir}/config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/reference.smk"
include: "workflow/rules/index.smk"
include: "workflow/rules/reads.smk"
include: "workflow/rules/kmer_seeds.smk"
include: "workflow/rules/one_error.smk"
include: "workflow/rules/mems.smk"
include: "workflow/rules/tree_bitmap.smk"
include: "workflow/rules/ebwt.smk"
include: "workflow/rules/samples.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/publish.smk"


rule all:
    """The report, and the seeds of the samples: what `snakemake` makes without a target."""
    input:
        "results/report.html",
        SAMPLE_FILES,


rule kmer_seeds:
    """Paper 000: what is measured for it, its tables and figures."""
    input:
        all_of("kmer_seeds"),


rule one_error:
    """Paper 001: what is measured for it, its tables and figures."""
    input:
        all_of("one_error"),


rule mems:
    """Paper 002: what is measured for it, its tables and figures."""
    input:
        all_of("mems"),


rule tree_bitmap:
    """Paper 003: what is measured for it, its tables and figures."""
    input:
        all_of("tree_bitmap"),


rule ebwt:
    """Paper 004: what is measured for it, its tables and figures."""
    input:
        all_of("ebwt"),


rule index:
    """The index that is timed and those of the samples, verified."""
    input:
        f"results/index/{REFERENCE}.verified",
        SAMPLE_INDEXES,


rule seeds:
    """The seeds of the samples, and nothing that is timed."""
    input:
        sample_seeds,


rule report:
    """The report alone."""
    input:
        "results/report.html",


rule publish:
    """The records of this run as those of a reference machine (--config machine=NAME)."""
    input:
        published_records,
