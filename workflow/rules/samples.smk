# The seeds of the user's samples, whatever system finds them. Nothing here is timed.
#
# Needs: the configuration's `samples` and `seeds`; of each system SEARCHES, and scripts/find_<system>.py, or COUNTS.
# Makes: results/seeds/index/<reference>/ (the index: the fast tier's part, and tags of it where the
#        CPU makes it and `index.tags` is true) and <reference>.verified;
#        results/seeds/<sample>.bed.gz and .bed.gz.tbi, .bam and .bam.bai, or .paf.gz and .paf.gz.tbi (the seeds by
#        coordinates), <sample>.summary.tsv (what they add up to), <sample>.density.tsv (where they lie);
#        results/seeds/samples.tsv, the summaries of all, also of those that search no index.
# Steps: index the samples' references and verify the indexes; find the seeds of each chunk of each sample; merge them.

SAMPLE_INDEXES = [
    f"results/seeds/index/{name}.verified" for name in {SAMPLES[name]["reference"]: None for name in SEARCHES}
]
SAMPLE_SUMMARIES = [f"results/seeds/{name}.summary.tsv" for name in SEARCHES]
SAMPLE_DENSITIES = [f"results/seeds/{name}.density.tsv" for name in SEARCHES]
COUNT_FILES = [f"results/seeds/{name}.{ending}" for name, endings in COUNTS.items() for ending in endings]
COUNT_SUMMARIES = [f"results/seeds/{name}.summary.tsv" for name in COUNTS]
SEEDS = [f"results/seeds/{name}.{ending}" for name in SEARCHES for ending in SEARCHES[name]["seeds"]]
SAMPLE_FILES = [
    *SEEDS,
    *SAMPLE_SUMMARIES,
    *SAMPLE_DENSITIES,
    *COUNT_FILES,
    *COUNT_SUMMARIES,
    *(["results/seeds/samples.tsv"] if SAMPLES else []),
]

SEEDS_ON_GPU = config["seeds"]["device"] == "gpu" or (config["seeds"]["device"] == "auto" and "gpu" in DEVICES)
SEEDS_ENV = "../../envs/gpu.yaml" if SEEDS_ON_GPU else "../../envs/cpu.yaml"
# The same whatever is searched there, so that no sample that is added or left out makes an index anew.
SAMPLE_PARTS = ["default"] if config["index"]["tags"] and not SEEDS_ON_GPU else ["fast"]
# A single job takes the whole machine; several share it.
SEARCH_THREADS = min(CORES, max(8, CORES // max(1, sum(SAMPLES[name]["chunks"] for name in SEARCHES))))

BUILD_SAMPLE_INDEX = needs.Request(lambda wildcards: needs.build_index(index_size(wildcards.reference, SAMPLE_PARTS)))
FIND_SEEDS = needs.Request(
    lambda wildcards: needs.find_seeds(
        index_size(SAMPLES[wildcards.sample]["reference"], SAMPLE_PARTS),
        sample_queries(wildcards.sample) // SAMPLES[wildcards.sample]["chunks"],
        SEARCHES[wildcards.sample]["seconds"],
    )
)
MERGE_SEEDS = needs.Request(lambda wildcards: needs.merge_seeds(sample_queries(wildcards.sample)))


wildcard_constraints:
    chunk="[1-9][0-9]*",


rule build_sample_index:
    """Make the index of a sample's reference with what the fast tier reads."""
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
        SEEDS_ENV
    threads: CORES
    resources:
        gpu=int(SEEDS_ON_GPU),
        mem_mb=BUILD_SAMPLE_INDEX.mem_mb,
        runtime=BUILD_SAMPLE_INDEX.runtime,
    params:
        parts=SAMPLE_PARTS,
        occ_interval=config["index"]["occ_interval"],
        sa_interval=config["index"]["sa_interval"],
        table_length=config["index"]["table_length"],
        device="gpu" if SEEDS_ON_GPU else "cpu",
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
    """Find the seeds of one of the chunks that a sample's reads are shared between."""
    input:
        index=sample_index,
        verified=lambda wildcards: f"{sample_index(wildcards)}.verified",
        queries=lambda wildcards: placed(SEARCHES[wildcards.sample]["queries"]),
        lib=lambda wildcards: library(f"find_{SAMPLES[wildcards.sample]['system']}.py")(wildcards),
    output:
        runs=temp("results/seeds/chunks/{sample}/{chunk}.runs"),
    log:
        "logs/seeds/samples/{sample}/{chunk}.log",
    benchmark:
        "benchmarks/seeds/samples/{sample}/{chunk}.tsv"
    conda:
        SEEDS_ENV
    threads: SEARCH_THREADS
    resources:
        gpu=int(SEEDS_ON_GPU),
        mem_mb=FIND_SEEDS.mem_mb,
        runtime=FIND_SEEDS.runtime,
    params:
        system=entry(SAMPLES, "sample", "system"),
        parameters=entry(SEARCHES, "sample", "parameters"),
        share=lambda wildcards: [int(wildcards.chunk) - 1, SAMPLES[wildcards.sample]["chunks"]],
        device="gpu" if SEEDS_ON_GPU else "cpu",
    script:
        "../scripts/find_{params.system}.py"


rule merge_seeds:
    """Merge the seeds of a sample's chunks, sorted and indexed, and count them: the same bytes for any number of chunks."""
    input:
        runs=sample_runs,
        index=sample_index,
        lib=library("merge_seeds.py"),
    output:
        seeds="results/seeds/{sample}.bed.gz",
        seeds_index="results/seeds/{sample}.bed.gz.tbi",
        summary="results/seeds/{sample}.summary.tsv",
        density="results/seeds/{sample}.density.tsv",
    log:
        "logs/seeds/samples/{sample}/merged.log",
    benchmark:
        "benchmarks/seeds/samples/{sample}/merged.tsv"
    wildcard_constraints:
        sample=samples_with("bed.gz"),
    conda:
        "../../envs/cpu.yaml"
    threads: SEARCH_THREADS
    resources:
        mem_mb=MERGE_SEEDS.mem_mb,
        runtime=MERGE_SEEDS.runtime,
    params:
        facts=entry(SEARCHES, "sample", "facts"),
    script:
        "../scripts/merge_seeds.py"


use rule merge_seeds as merge_bam with:
    output:
        seeds="results/seeds/{sample}.bam",
        seeds_index="results/seeds/{sample}.bam.bai",
        summary="results/seeds/{sample}.summary.tsv",
        density="results/seeds/{sample}.density.tsv",
    wildcard_constraints:
        sample=samples_with("bam"),
    resources:
        mem_mb=MERGE_SEEDS.mem_mb,
        runtime=MERGE_SEEDS.runtime,


use rule merge_seeds as merge_paf with:
    output:
        seeds="results/seeds/{sample}.paf.gz",
        seeds_index="results/seeds/{sample}.paf.gz.tbi",
        summary="results/seeds/{sample}.summary.tsv",
        density="results/seeds/{sample}.density.tsv",
    wildcard_constraints:
        sample=samples_with("paf.gz"),
    resources:
        mem_mb=MERGE_SEEDS.mem_mb,
        runtime=MERGE_SEEDS.runtime,


rule list_samples:
    """Write one table of all samples."""
    input:
        summaries=[f"results/seeds/{name}.summary.tsv" for name in SAMPLES],
        lib=library("list_samples.py"),
    output:
        table="results/seeds/samples.tsv",
    log:
        "logs/seeds/samples.tsv.log",
    benchmark:
        "benchmarks/seeds/samples.tsv.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=LIGHT.mem_mb,
        runtime=LIGHT.runtime,
    script:
        "../scripts/list_samples.py"
