# Tables, figures and the page.
#
# Needs: the records of this run, resources/measurements/<machine>/*.tsv, resources/published/*.tsv.
# Makes: results/tables/kmer_seeds/*.tsv, results/figures/kmer_seeds/*.{svg,pdf,png,tsv}, results/report.html.
# Steps: records into tables; records into figures; both into one self-contained page.


rule make_tables:
    """Write the tables of paper 000, published and measured values side by side."""
    input:
        records=MEASUREMENTS,
        reference_records=REFERENCE_MEASUREMENTS,
        published=str(SOURCE / "resources" / "published" / "kmer_seeds.tsv"),
        lib=library("make_tables.py"),
    output:
        tables=TABLES,
    log:
        "logs/tables/kmer_seeds.log",
    benchmark:
        "benchmarks/tables/kmer_seeds.tsv"
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/make_tables.py"


rule draw_figures:
    """Draw the figures as SVG, PDF and PNG, with the plotted values as TSV."""
    input:
        records=MEASUREMENTS,
        reference_records=REFERENCE_MEASUREMENTS,
        published=str(SOURCE / "resources" / "published" / "kmer_seeds.tsv"),
        lib=library("draw_figures.py"),
    output:
        figures=FIGURES,
    log:
        "logs/figures/kmer_seeds.log",
    benchmark:
        "benchmarks/figures/kmer_seeds.tsv"
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/draw_figures.py"


rule write_report:
    """Write one self-contained page: summary, tables, figures, differences from the paper, machine and versions."""
    input:
        records=MEASUREMENTS,
        reference_records=REFERENCE_MEASUREMENTS,
        published=str(SOURCE / "resources" / "published" / "kmer_seeds.tsv"),
        reference_provenance=REFERENCE_PROVENANCE,
        tables=TABLES,
        figures=FIGURES,
        lib=library("write_report.py"),
    output:
        html=report(
            "results/report.html",
            caption="../report/report.rst",
            category="Report",
        ),
        provenance="results/provenance.json",
    log:
        "logs/report.log",
    benchmark:
        "benchmarks/report.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        config=config,
    script:
        "../scripts/write_report.py"
