# Read sets: simulated on a reference. A file of the user's is used where it lies and needs no rule.
#
# Needs: a reference; the configuration's `reads`.
# Makes: results/reads/<reference>/<read set>.fq for reads with qualities, .fa for those without.

READ_FILES = {read_set_file(name, wanted): wanted for name, wanted in config["reads"].items()}
SIMULATE_READS = needs.Request(
    lambda wildcards: needs.simulate_reads(bases_of(wildcards.reference), READ_FILES[wildcards.read_file])
)


wildcard_constraints:
    read_file=any_of(READ_FILES),


rule simulate_reads:
    """Draw reads with substitutions, insertions and deletions from both strands of a reference."""
    input:
        fasta=reference_path,
        lib=library("simulate_reads.py"),
    output:
        reads="results/reads/{reference}/{read_file}",
    log:
        "logs/reads/{reference}/{read_file}.log",
    benchmark:
        "benchmarks/reads/{reference}/{read_file}.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=SIMULATE_READS.mem_mb,
        runtime=SIMULATE_READS.runtime,
    params:
        number=entry(READ_FILES, "read_file", "count"),
        length=entry(READ_FILES, "read_file", "length"),
        error_rate=entry(READ_FILES, "read_file", "error_rate"),
        insertion_rate=entry(READ_FILES, "read_file", "insertion_rate"),
        deletion_rate=entry(READ_FILES, "read_file", "deletion_rate"),
        qualities=entry(READ_FILES, "read_file", "qualities"),
        seed=entry(READ_FILES, "read_file", "seed"),
    script:
        "../scripts/simulate_reads.py"
