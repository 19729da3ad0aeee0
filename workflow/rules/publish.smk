# What a machine measured, kept in the repository for machines that cannot measure it, such as those without a GPU.
#
# Needs: the records of this run; the configuration's `machine`.
# Makes: resources/measurements/<machine>/<system>.tsv and provenance.json.


rule publish_measurements:
    """Write the records of each system into one file, and the machine, versions and configuration beside them."""
    input:
        records=all_records,
        lib=library("publish_measurements.py"),
    output:
        records=expand(str(MACHINES / "{{machine}}" / "{system}.tsv"), system=MEASUREMENTS),
        provenance=str(MACHINES / "{machine}" / "provenance.json"),
    log:
        "logs/publish/{machine}.log",
    benchmark:
        "benchmarks/publish/{machine}.tsv"
    conda:
        DEVICE_ENV
    # It refuses records of another machine than its own.
    resources:
        gpu=GPU_JOBS,
    params:
        systems={system: [INDEX_RECORDS, *paths] for system, paths in MEASUREMENTS.items()},
        reference=REFERENCE,
        config=config,
    script:
        "../scripts/publish_measurements.py"
