# What a machine measured, kept in the repository for machines that cannot measure it, such as those without a GPU.
#
# Needs: the records of this run; the configuration's `machine`.
# Makes: resources/measurements/<machine>/kmer_seeds.tsv and provenance.json.


rule publish_measurements:
    """Write every record of this run into one file, and the machine, versions and configuration beside it."""
    input:
        records=MEASUREMENTS,
        lib=library("publish_measurements.py"),
    output:
        records=str(MACHINES / "{machine}" / "kmer_seeds.tsv"),
        provenance=str(MACHINES / "{machine}" / "provenance.json"),
    log:
        "logs/publish/{machine}.log",
    benchmark:
        "benchmarks/publish/{machine}.tsv"
    conda:
        DEVICE_ENV
    params:
        reference=REFERENCE,
        config=config,
    script:
        "../scripts/publish_measurements.py"
