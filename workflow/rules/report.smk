# Tables, figures and the page.
#
# Needs: the records of this run, resources/measurements/<machine>/*.tsv, resources/published/*.tsv and papers/*.yaml;
#        of each sample its summary and its density, or its counts.
# Makes: results/tables/<system>/*.tsv, results/figures/<system>/*.{svg,pdf,png,tsv}, results/figures/samples/*,
#        results/report.html.
# Steps: records into tables and figures, a job a system; samples into figures; all into one self-contained page.

from warpseed.report.systems import SYSTEMS

TABLES = {
    system: [f"results/tables/{system}/{name}.tsv" for name in module.TABLES] for system, module in SYSTEMS.items()
}
FIGURES = {
    system: [
        f"results/figures/{system}/{name}.{ending}"
        for name in module.FIGURES
        for ending in ("svg", "pdf", "png", "tsv")
    ]
    for system, module in SYSTEMS.items()
}
SAMPLE_FIGURES = [f"results/figures/samples/{name}.{ending}" for name in SEARCHES for ending in ("svg", "pdf", "png")]
PUBLISHED = {system: of_checkout([SOURCE / "resources" / "published" / f"{system}.tsv"]) for system in SYSTEMS}
PAPERS = {system: of_checkout([SOURCE / "resources" / "papers" / f"{system}.yaml"]) for system in SYSTEMS}


for system in SYSTEMS:

    rule:
        """Write the tables and draw the figures of one paper, published and measured values side by side."""
        name:
            f"draw_{system}"
        input:
            records=records_of(system),
            reference_records=[path for path in REFERENCE_MEASUREMENTS if Path(path).stem in ("index", system)],
            published=PUBLISHED[system],
            papers=PAPERS[system],
            lib=library("draw_system.py"),
        output:
            tables=TABLES[system],
            figures=FIGURES[system],
        log:
            f"logs/draw/{system}.log",
        benchmark:
            f"benchmarks/draw/{system}.tsv"
        conda:
            "../../envs/cpu.yaml"
        resources:
            mem_mb=LIGHT.mem_mb,
            runtime=LIGHT.runtime,
        script:
            "../scripts/draw_system.py"


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
        published=sum(PUBLISHED.values(), []),
        papers=sum(PAPERS.values(), []),
        reference_provenance=REFERENCE_PROVENANCE,
        tables=sum(TABLES.values(), []),
        figures=sum(FIGURES.values(), []),
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
        counts=COUNTS,
    script:
        "../scripts/write_report.py"
