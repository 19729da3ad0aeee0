# The index that is timed, with the parts of every tier.
#
# Needs: a reference; the configuration's `index`.
# Makes: results/index/<reference>/ (the index), results/index/<reference>.verified,
#        results/measurements/<reference>/index.tsv (seconds a stage, bytes a part).
# Steps: build, then compare every file with its SHA-256 once.

BUILD_INDEX = needs.Request(lambda wildcards: needs.build_index(index_size(wildcards.reference)))


rule build_fm_index:
    """Build the index with the parts that the tiers of this run need, and record its time and the size of each part."""
    input:
        fasta=reference_path,
        lib=library("build_fm_index.py"),
    output:
        index=directory("results/index/{reference}"),
        records="results/measurements/{reference}/index.tsv",
    log:
        "logs/measurements/{reference}/index.log",
    benchmark:
        "benchmarks/measurements/{reference}/index.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=BUILD_INDEX.mem_mb,
        runtime=BUILD_INDEX.runtime,
    params:
        parts=lambda wildcards: sorted(INDEX_PARTS),
        device="gpu" if GPUS_A_JOB else "cpu",
        occ_interval=config["index"]["occ_interval"],
        sa_interval=config["index"]["sa_interval"],
        table_length=config["index"]["table_length"],
    script:
        "../scripts/build_fm_index.py"


rule verify_index:
    """Compare every file of an index with the SHA-256 that the index holds for it."""
    input:
        index="results/index/{reference}",
        lib=library("verify_index.py"),
    output:
        verified="results/index/{reference}.verified",
    log:
        "logs/index/{reference}.verified.log",
    benchmark:
        "benchmarks/index/{reference}.verified.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    script:
        "../scripts/verify_index.py"
