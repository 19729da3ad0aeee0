# References: simulated or downloaded. A file of the user's is used where it lies and needs no rule.
#
# Needs: the configuration's `reference`, `simulated_reference`, `human_like_reference` and `samples`;
#        resources/genomes.yaml.
# Makes: results/reference/<reference>.fa (simulated) or .fa.gz (downloaded, verified);
#        results/measurements/human_like/simulation.tsv (seconds).

SIMULATE_REFERENCE = needs.Request(lambda wildcards: needs.simulate_reference(bases_of(wildcards.reference)))
SIMULATE_HUMAN_LIKE = needs.Request(lambda wildcards: needs.simulate_human_like(bases_of(wildcards.reference)))
DOWNLOAD = needs.Request(lambda wildcards: needs.download(bases_of(wildcards.reference)))


rule simulate_reference:
    """Write a genome with repeats in both orientations, tandem repeats and runs of N, the same for the same seed."""
    input:
        lib=library("simulate_reference.py"),
    output:
        fasta="results/reference/{reference}.fa",
    log:
        "logs/reference/{reference}.fa.log",
    benchmark:
        "benchmarks/reference/{reference}.fa.tsv"
    wildcard_constraints:
        reference="simulated",
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=SIMULATE_REFERENCE.mem_mb,
        runtime=SIMULATE_REFERENCE.runtime,
    params:
        simulation=config["simulated_reference"],
    script:
        "../scripts/simulate_reference.py"


rule simulate_human_like:
    """Write a genome with families of repeats of all ages, satellites, duplications and gaps as a human one has, timed."""
    input:
        lib=library("simulate_human_like.py"),
    output:
        fasta="results/reference/{reference}.fa",
        records="results/measurements/{reference}/simulation.tsv",
    log:
        "logs/reference/{reference}.fa.log",
    benchmark:
        "benchmarks/reference/{reference}.fa.tsv"
    wildcard_constraints:
        reference="human_like",
    conda:
        "../../envs/cpu.yaml"
    threads: CORES
    resources:
        # It is timed: alone, and on the kind of machine that all other timed jobs run on (docs/cluster.md).
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=SIMULATE_HUMAN_LIKE.mem_mb,
        runtime=SIMULATE_HUMAN_LIKE.runtime,
    params:
        simulation=config["human_like_reference"],
    script:
        "../scripts/simulate_human_like.py"


rule get_reference:
    """Download a genome of the catalogue or of a URL, resuming and retrying, and verify what came."""

    # No library file is an input: however a download is made, what came was verified.
    output:
        fasta="results/reference/{reference}.fa.gz",
    log:
        "logs/reference/{reference}.fa.gz.log",
    benchmark:
        "benchmarks/reference/{reference}.fa.gz.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=DOWNLOAD.mem_mb,
        runtime=DOWNLOAD.runtime,
    params:
        genome=reference_download,
        sha256=reference_sha256,
    script:
        "../scripts/get_reference.py"
