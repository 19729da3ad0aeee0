# The seeds of the user's samples, whatever system finds them. Nothing here is timed.
#
# Needs: the configuration's `samples` and `seeds`; of each system SEARCHES, which says what is searched and how.
# Makes: results/seeds/index/<reference>/ (the index, the fast tier's part alone) and <reference>.verified;
#        results/seeds/<sample>.bed.
# Steps: index the samples' references and verify the indexes; find the seeds of each sample.

SAMPLE_INDEXES = [f"results/seeds/index/{name}.verified" for name in {s["reference"]: None for s in SAMPLES.values()}]
SEEDS = [f"results/seeds/{name}.bed" for name in SAMPLES]
SEEDS_ON_GPU = config["seeds"]["device"] == "gpu" or (config["seeds"]["device"] == "auto" and "gpu" in DEVICES)
# One sample takes the whole machine; several share it.
SEARCH_THREADS = min(CORES, max(8, CORES // max(1, len(SAMPLES))))

BUILD_SAMPLE_INDEX = needs.Request(lambda wildcards: needs.build_index(index_size(wildcards.reference, ["fast"])))
FIND_SEEDS = needs.Request(
    lambda wildcards: needs.find_seeds(
        index_size(SAMPLES[wildcards.sample]["reference"], ["fast"]),
        sample_queries(wildcards.sample),
        SAMPLES[wildcards.sample]["mismatches"],
    )
)


rule build_sample_index:
    """Build the index of a sample's reference with the part that the fast tier needs."""
    input:
        fasta=reference_path,
        lib=library("build_sample_index.py"),
    output:
        index=directory("results/seeds/index/{reference}"),
    log:
        "logs/seeds/index/{reference}.log",
    benchmark:
        "benchmarks/seeds/index/{reference}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: CORES
    resources:
        mem_mb=BUILD_SAMPLE_INDEX.mem_mb,
        runtime=BUILD_SAMPLE_INDEX.runtime,
    params:
        occ_interval=config["index"]["occ_interval"],
        sa_interval=config["index"]["sa_interval"],
        table_length=config["index"]["table_length"],
    script:
        "../scripts/build_sample_index.py"


use rule verify_index as verify_sample_index with:
    input:
        index="results/seeds/index/{reference}",
        lib=library("verify_index.py"),
    output:
        verified="results/seeds/index/{reference}.verified",
    log:
        "logs/seeds/index/{reference}.verified.log",
    benchmark:
        "benchmarks/seeds/index/{reference}.verified.tsv"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,


rule find_seeds:
    """Write the seeds of a sample as BED."""
    input:
        index=lambda wildcards: f"results/seeds/index/{SAMPLES[wildcards.sample]['reference']}",
        verified=lambda wildcards: f"results/seeds/index/{SAMPLES[wildcards.sample]['reference']}.verified",
        queries=lambda wildcards: placed(SEARCHES[wildcards.sample]["queries"]),
        lib=library("write_seeds.py"),
    output:
        bed="results/seeds/{sample}.bed",
    log:
        "logs/seeds/{sample}.log",
    benchmark:
        "benchmarks/seeds/{sample}.tsv"
    conda:
        "../../envs/gpu.yaml" if SEEDS_ON_GPU else "../../envs/cpu.yaml"
    threads: SEARCH_THREADS
    resources:
        gpu=int(SEEDS_ON_GPU),
        mem_mb=FIND_SEEDS.mem_mb,
        runtime=FIND_SEEDS.runtime,
    params:
        parameters=entry(SEARCHES, "sample", "parameters"),
        device="gpu" if SEEDS_ON_GPU else "cpu",
    script:
        "../scripts/write_seeds.py"
