# Paper 000: k-mers with up to three mismatches against the index: timed, beside bowtie, and cut for the user's samples.
#
# Needs: an index that has been verified, reads; the configuration's `kmer_seeds`, `measure`, `peers` and `samples`;
#        bowtie 1.3 on PATH, or --use-conda, for the rows beside ours, bwa and libdivsufsort for those beside our index.
# Makes: results/kmers/<reference>/<dataset>.fa; results/measurements/<reference>/kmer_seeds/<dataset>.tsv,
#        gpu-limits.tsv, index-builds.tsv and peers/bowtie.tsv; results/seeds/<sample>.kmers.fa of a sample with a count.
# Steps: cut k-mers from reads; time their search, and bowtie with the same k-mers; time how the index is built.

from warpseed.workflow.kmer_seeds_cases import (
    beside_bowtie,
    build_devices,
    index_parts,
    is_tagged,
    sample_searches,
    timed_builds,
    timed_datasets,
)

KMER_SEEDS = config["kmer_seeds"]
DATASETS = checked(timed_datasets, KMER_SEEDS, config["measure"], DEVICES)
BOWTIE_ITEM, BOWTIE_DATASETS = beside_bowtie(DATASETS)
INDEX_BUILDS = KMER_SEEDS["index_builds"]["threads"]
BUILT_ON = build_devices(KMER_SEEDS["index_builds"], DEVICES)
GPU_LIMITS = KMER_SEEDS["gpu_limits"] if GPUS_A_JOB else []
INDEX_PARTS |= set(index_parts(config["measure"]["tiers"], GPU_LIMITS))
# The index that a GPU makes, and all devices search, has none: searches there read no tags.
INDEX_PARTS |= {"default"} if config["index"]["tags"] and not GPUS_A_JOB and is_tagged(DATASETS) else set()
SEARCHES |= checked(sample_searches, SAMPLES, PLACES)
BOWTIE = BOWTIE_DATASETS and is_peer_measured(
    config["peers"],
    ["bowtie-build", "bowtie-align-s"],
    by_conda=conda_in_use(),
)
# A GPU's environment has no peers: there bwa is measured where it is found.
BWA = "cpu" in BUILT_ON and is_peer_measured(config["peers"], ["bwa"], by_conda=conda_in_use() and not GPUS_A_JOB)
BUILT_BESIDE = [*(["bwa"] if BWA else []), *(["libdivsufsort"] if config["peers"] else [])]

INDEXED |= {"kmer_seeds"}
MEASUREMENTS["kmer_seeds"] = [
    f"results/measurements/{REFERENCE}/kmer_seeds/{name}.tsv"
    for name in (
        *DATASETS,
        *(["peers/bowtie"] if BOWTIE else []),
        *(["gpu-limits"] if GPU_LIMITS else []),
        *(["index-builds"] if BUILT_ON else []),
    )
]

# The reads that the timed k-mers are cut from: asked for when they are needed, as what is not timed needs none.
timed_reads = lambda wildcards: read_file_of(KMER_SEEDS["reads"], "kmer_seeds.reads")
CUT_KMERS = needs.Request(lambda wildcards: needs.cut_kmers(needs.read_bases(timed_reads(wildcards), config["reads"])))
CUT_SAMPLE_KMERS = needs.Request(
    lambda wildcards: needs.cut_kmers(needs.read_bases(SAMPLES[wildcards.sample]["reads"], config["reads"]))
)

TIME_DATASET = needs.Request(
    lambda wildcards: needs.time_searches(
        index_size(wildcards.reference),
        DATASETS[wildcards.dataset]["count"],
        needs.timed_runs(DATASETS[wildcards.dataset], REPEATS),
    )
)
TIME_GPU_LIMITS = needs.Request(
    lambda wildcards: needs.time_gpu_limits(
        index_size(wildcards.reference),
        max(case["count"] for case in GPU_LIMITS),
        # The fast tier is timed to columns, too.
        (1 + REPEATS) * sum(len(case["tiers"]) + ("fast" in case["tiers"]) for case in GPU_LIMITS),
    )
)
TIME_BOWTIE = needs.Request(
    lambda wildcards: needs.time_peers(
        index_size(wildcards.reference),
        sum(DATASETS[name]["count"] for name in BOWTIE_DATASETS),
        (1 + REPEATS) * len(config["measure"]["threads"]),
    )
)
TIME_INDEX = needs.Request(
    lambda wildcards: needs.time_builds(
        index_size(wildcards.reference),
        timed_builds(KMER_SEEDS["index_builds"], BUILT_ON, BUILT_BESIDE, REPEATS),
    )
)


wildcard_constraints:
    dataset=any_of(DATASETS),


rule cut_kmers:
    """Cut the k-mers of a timed data set from the reads, each window as likely as any other."""
    input:
        reads=timed_reads,
        lib=library("cut_kmers.py"),
    output:
        kmers="results/kmers/{reference}/{dataset}.fa",
    log:
        "logs/kmers/{reference}/{dataset}.log",
    benchmark:
        "benchmarks/kmers/{reference}/{dataset}.tsv"
    wildcard_constraints:
        reference=re.escape(REFERENCE),
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=CUT_KMERS.mem_mb,
        runtime=CUT_KMERS.runtime,
    params:
        k=entry(DATASETS, "dataset", "k"),
        number=entry(DATASETS, "dataset", "count"),
        seed=KMER_SEEDS["seed"],
        deduplicate=KMER_SEEDS["deduplicate"],
        traced=False,
    script:
        "../scripts/cut_kmers.py"


use rule cut_kmers as cut_sample_kmers with:
    input:
        reads=lambda wildcards: placed(SAMPLES[wildcards.sample]["reads"]),
        lib=library("cut_kmers.py"),
    output:
        kmers="results/seeds/{sample}.kmers.fa",
    log:
        "logs/seeds/samples/{sample}/kmers.log",
    benchmark:
        "benchmarks/seeds/samples/{sample}/kmers.tsv"
    resources:
        mem_mb=CUT_SAMPLE_KMERS.mem_mb,
        runtime=CUT_SAMPLE_KMERS.runtime,
    params:
        k=entry(SAMPLES, "sample", "k"),
        number=entry(SAMPLES, "sample", "count"),
        seed=KMER_SEEDS["seed"],
        deduplicate=KMER_SEEDS["deduplicate"],
        traced=True,


rule time_kmer_seeds:
    """Time both tiers on every device and number of threads with one data set, alone on the machine."""
    input:
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        kmers="results/kmers/{reference}/{dataset}.fa",
        lib=library("time_kmer_seeds.py"),
    output:
        records="results/measurements/{reference}/kmer_seeds/{dataset}.tsv",
    log:
        "logs/measurements/{reference}/kmer_seeds/{dataset}.log",
    benchmark:
        "benchmarks/measurements/{reference}/kmer_seeds/{dataset}.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_DATASET.mem_mb,
        runtime=TIME_DATASET.runtime,
    params:
        case=entry(DATASETS, "dataset", "case"),
        parameters=entry(DATASETS, "dataset", "parameters"),
        mismatches=entry(DATASETS, "dataset", "mismatches"),
        table_items=entry(DATASETS, "dataset", "items"),
        threads=entry(DATASETS, "dataset", "threads"),
        tiers=entry(DATASETS, "dataset", "tiers"),
        devices=entry(DATASETS, "dataset", "devices"),
        repeats=REPEATS,
        max_hits=KMER_SEEDS["max_hits"],
    script:
        "../scripts/time_kmer_seeds.py"


rule time_gpu_limits:
    """Time the GPU kernels alone, with k-mers on the device, beside their limit, alone on the machine."""
    input:
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        lib=library("time_gpu_limits.py"),
    output:
        records="results/measurements/{reference}/kmer_seeds/gpu-limits.tsv",
    log:
        "logs/measurements/{reference}/kmer_seeds/gpu-limits.log",
    benchmark:
        "benchmarks/measurements/{reference}/kmer_seeds/gpu-limits.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_GPU_LIMITS.mem_mb,
        runtime=TIME_GPU_LIMITS.runtime,
    params:
        cases=GPU_LIMITS,
        repeats=REPEATS,
        seed=KMER_SEEDS["seed"],
        max_hits=KMER_SEEDS["max_hits"],
    script:
        "../scripts/time_gpu_limits.py"


rule time_bowtie:
    """Time bowtie and our command line in turns with every data set of the tables, alone on the machine."""
    input:
        reference=reference_path,
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        kmers=expand("results/kmers/{{reference}}/{dataset}.fa", dataset=BOWTIE_DATASETS),
        # The process that is timed runs the command line, and writes BED.
        lib=library("time_bowtie.py", "warpseed.cli", "warpseed.output.lines"),
    output:
        records="results/measurements/{reference}/kmer_seeds/peers/bowtie.tsv",
    log:
        "logs/measurements/{reference}/kmer_seeds/peers/bowtie.log",
    benchmark:
        "benchmarks/measurements/{reference}/kmer_seeds/peers/bowtie.tsv"
    conda:
        "../../envs/peers.yaml"
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_BOWTIE.mem_mb,
        runtime=TIME_BOWTIE.runtime,
    params:
        cases=[
            {
                "case": DATASETS[name]["case"],
                "parameters": DATASETS[name]["parameters"],
                "max_mismatches": DATASETS[name]["mismatches"],
            }
            for name in BOWTIE_DATASETS
        ],
        item=BOWTIE_ITEM,
        threads=config["measure"]["threads"],
        repeats=REPEATS,
        max_hits=KMER_SEEDS["max_hits"],
    script:
        "../scripts/time_bowtie.py"


rule time_index:
    """Build the index that the fast tier needs again and again, the CPU's beside bwa's, and record time and memory."""
    input:
        fasta=reference_path,
        # The process that is timed runs the command line.
        lib=library("time_index.py", "warpseed.cli", "warpseed.fm_index.make"),
    output:
        records="results/measurements/{reference}/kmer_seeds/index-builds.tsv",
    log:
        "logs/measurements/{reference}/kmer_seeds/index-builds.log",
    benchmark:
        "benchmarks/measurements/{reference}/kmer_seeds/index-builds.tsv"
    conda:
        DEVICE_ENV if GPUS_A_JOB else "../../envs/peers.yaml"
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_INDEX.mem_mb,
        runtime=TIME_INDEX.runtime,
    params:
        system="kmer_seeds",
        threads=INDEX_BUILDS,
        repeats=REPEATS,
        beside=BUILT_BESIDE,
        devices=BUILT_ON,
        first_bases=KMER_SEEDS["index_builds"]["first_bases"],
    script:
        "../scripts/time_index.py"
