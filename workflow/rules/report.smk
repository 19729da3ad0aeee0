# Tables, figures and the page.
#
# Needs: the records of this run, resources/measurements/<machine>/*.tsv, resources/published/*.tsv and papers/*.yaml;
#        of each sample its summary and its density, or its counts.
# Makes: results/tables/<system>/*.tsv, results/figures/<system>/*.{svg,pdf,png,tsv}, results/figures/samples/*,
#        results/report.html.
# Steps: records into tables; records into figures; samples into figures; all into one self-contained page.

from warpseed.report.systems import SYSTEMS

TABLES = [f"results/tables/{system}/{name}.tsv" for system, module in SYSTEMS.items() for name in module.TABLES]
FIGURES = [
    f"results/figures/{system}/{name}.{ending}"
    for system, module in SYSTEMS.items()
    for name in module.FIGURES
    for ending in ("svg", "pdf", "png", "tsv")
]
SAMPLE_FIGURES = [f"results/figures/samples/{name}.{ending}" for name in SEARCHES for ending in ("svg", "pdf", "png")]
PUBLISHED = of_checkout(SOURCE / "resources" / "published" / f"{system}.tsv" for system in SYSTEMS)
PAPERS = of_checkout(SOURCE / "resources" / "papers" / f"{system}.yaml" for system in SYSTEMS)


rule make_tables:
    """Write the tables of each paper, published and measured values side by side."""
    input:
        records=all_records,
        reference_records=REFERENCE_MEASUREMENTS,
        published=PUBLISHED,
        papers=PAPERS,
        lib=library("make_tables.py"),
    output:
        tables=TABLES,
    log:
        "logs/tables.log",
    benchmark:
        "benchmarks/tables.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    script:
        "../scripts/make_tables.py"


rule draw_figures:
    """Draw the figures as SVG, PDF and PNG, with the plotted values as TSV."""
    input:
        records=all_records,
        reference_records=REFERENCE_MEASUREMENTS,
        published=PUBLISHED,
        papers=PAPERS,
        lib=library("draw_figures.py"),
    output:
        figures=FIGURES,
    log:
        "logs/figures.log",
    benchmark:
        "benchmarks/figures.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    script:
        "../scripts/draw_figures.py"


rule draw_samples:
    """Draw where along the reference the seeds of each sample begin."""
    input:
        summaries=SAMPLE_SUMMARIES,
        densities=SAMPLE_DENSITIES,
        lib=library("draw_samples.py"),
    output:
        figures=SAMPLE_FIGURES,
    log:
        "logs/sample_figures.log",
    benchmark:
        "benchmarks/sample_figures.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    script:
        "../scripts/draw_samples.py"


rule write_report:
    """Write one self-contained page: samples, summary, tables, figures, differences from the paper, machine and versions."""
    input:
        records=all_records,
        reference_records=REFERENCE_MEASUREMENTS,
        published=PUBLISHED,
        papers=PAPERS,
        reference_provenance=REFERENCE_PROVENANCE,
        tables=TABLES,
        figures=FIGURES,
        seeds=[f"results/seeds/{name}.{SEARCHES[name]['seeds'][0]}" for name in SEARCHES],
        summaries=SAMPLE_SUMMARIES,
        densities=SAMPLE_DENSITIES,
        sample_figures=SAMPLE_FIGURES,
        counts=COUNT_FILES,
        count_summaries=COUNT_SUMMARIES,
        templates=of_checkout(SCRIPTS / "warpseed" / "report" / name for name in ("page.html.j2", "page.css")),
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
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    params:
        config=config,
    script:
        "../scripts/write_report.py"
