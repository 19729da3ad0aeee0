# Bowtie beside us: the same k-mers, the same machine, processes in turns, hits compared by their digests.
#
# Needs: a reference, our index of it, the k-mers of Table I; bowtie 1.3 on PATH, or --use-conda.
# Makes: results/measurements/<reference>/kmer_seeds/bowtie.tsv.


rule time_bowtie:
    """Build bowtie's index, and time bowtie with every data set of Table I, alone on the machine."""
    input:
        reference=reference_path,
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        kmers=expand("results/kmers/{{reference}}/{dataset}.fa", dataset=TABLE_DATASETS),
        lib=library("time_bowtie.py"),
    output:
        records="results/measurements/{reference}/kmer_seeds/bowtie.tsv",
    log:
        "logs/measurements/{reference}/kmer_seeds/bowtie.log",
    benchmark:
        "benchmarks/measurements/{reference}/kmer_seeds/bowtie.tsv"
    conda:
        "../../envs/peers.yaml"
    threads: CORES
    resources:
        bench=1,
    params:
        cases=[
            {
                "case": DATASETS[name]["case"],
                "parameters": DATASETS[name]["parameters"],
                "max_mismatches": DATASETS[name]["mismatches"],
            }
            for name in TABLE_DATASETS
        ],
        item="whole",
        threads=config["measure"]["threads"],
        repeats=config["measure"]["repeats"],
        max_hits=config["measure"]["max_hits"],
    script:
        "../scripts/time_bowtie.py"
