# Read sets: simulated on a reference. A file of the user's is used where it lies and needs no rule.
#
# Needs: a reference; the configuration's `reads`.
# Makes: results/reads/<reference>/<read set>.fa.


rule simulate_reads:
    """Draw reads with errors from both strands of a reference."""
    input:
        fasta=reference_path,
        lib=library("simulate_reads.py"),
    output:
        reads="results/reads/{reference}/{read_set}.fa",
    log:
        "logs/reads/{reference}/{read_set}.log",
    benchmark:
        "benchmarks/reads/{reference}/{read_set}.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        number=entry(config["reads"], "read_set", "count"),
        length=entry(config["reads"], "read_set", "length"),
        error_rate=entry(config["reads"], "read_set", "error_rate"),
        seed=entry(config["reads"], "read_set", "seed"),
    script:
        "../scripts/simulate_reads.py"
