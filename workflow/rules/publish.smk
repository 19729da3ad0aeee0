# What a machine measured, kept in the repository for machines that cannot measure it, such as those without a GPU.
#
# Needs: the records of this run; the configuration's `machine`.
# Makes: resources/measurements/<machine>/index.tsv, <system>.tsv and provenance.json.

RECORDS = {
    "index": SHARED_RECORDS,
    **{name: paths for name, paths in MEASUREMENTS.items() if paths},
}
"""What each published file is made of, by its name; the index and its genome belong to no system, and one that was not
measured has none."""


rule publish_measurements:
    """Write the records of the index and of each system into a file, and machine, versions, configuration beside them."""
    input:
        records=all_records,
        lib=library("publish_measurements.py"),
    output:
        records=of_checkout(MACHINES / "{machine}" / f"{name}.tsv" for name in RECORDS),
        provenance=local(str(MACHINES / "{machine}" / "provenance.json")),
    log:
        "logs/publish/{machine}.log",
    benchmark:
        "benchmarks/publish/{machine}.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    params:
        published=RECORDS,
        config=config,
    script:
        "../scripts/publish_measurements.py"
