# Paper 000: k-mers with up to three mismatches against the index, timed, and found for the user's own samples.
#
# Needs: an index that has been verified, k-mers; the configuration's `kmer_seeds`, `measure` and `samples`.
# Makes: results/measurements/<reference>/kmer_seeds/<dataset>.tsv and gpu_limits.tsv, results/seeds/<sample>.bed.


rule time_kmer_seeds:
    """Time both tiers on every device and number of threads with one data set, alone on the machine."""
    input:
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        kmers="results/kmers/{reference}/{dataset}.fa",
        # The process that is timed runs the command line, and writes BED.
        lib=library("time_kmer_seeds.py", "warpseed.cli", "warpseed.output.lines"),
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
        gpu=GPU_JOBS,
    params:
        case=dataset("case"),
        parameters=dataset("parameters"),
        mismatches=dataset("mismatches"),
        table_items=dataset("items"),
        threads=dataset("threads"),
        tiers=config["measure"]["tiers"],
        devices=DEVICES,
        repeats=config["measure"]["repeats"],
        max_hits=config["measure"]["max_hits"],
    script:
        "../scripts/time_kmer_seeds.py"


rule time_gpu_limits:
    """Time the GPU kernels alone, with k-mers on the device, beside their limit, alone on the machine."""
    input:
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        lib=library("time_gpu_limits.py"),
    output:
        records="results/measurements/{reference}/kmer_seeds/gpu_limits.tsv",
    log:
        "logs/measurements/{reference}/kmer_seeds/gpu_limits.log",
    benchmark:
        "benchmarks/measurements/{reference}/kmer_seeds/gpu_limits.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=1,
    params:
        cases=GPU_LIMITS,
        repeats=config["measure"]["repeats"],
        seed=config["kmer_seeds"]["seed"],
        max_hits=config["measure"]["max_hits"],
    script:
        "../scripts/time_gpu_limits.py"


rule find_seeds:
    """Write the seeds of one of the user's samples as BED."""
    input:
        index=sample_index,
        kmers=sample("kmers"),
        lib=library("write_seeds.py"),
    output:
        bed="results/seeds/{sample}.bed",
    log:
        "logs/seeds/{sample}.log",
    benchmark:
        "benchmarks/seeds/{sample}.tsv"
    conda:
        DEVICE_ENV
    threads: 8
    resources:
        gpu=GPU_JOBS,
    params:
        mismatches=sample("mismatches"),
        max_hits=sample("max_hits"),
        device="gpu" if GPU_JOBS else "cpu",
    script:
        "../scripts/write_seeds.py"
