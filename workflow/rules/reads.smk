# Reads, and the k-mers cut from them.
#
# Needs: a reference or the user's own reads; the configuration's `reads`, `simulated_reads`, `kmer_seeds`, `samples`.
# Makes: results/reads/<reference>.fa, results/kmers/<reference>/<dataset>.fa, results/seeds/<sample>.kmers.fa.


rule simulate_reads:
    """Draw reads with substitution errors from both strands of a reference."""
    input:
        fasta=reference_path,
        lib=library("simulate_reads.py"),
    output:
        reads="results/reads/{reference}.fa",
    log:
        "logs/reads/{reference}.log",
    benchmark:
        "benchmarks/reads/{reference}.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        number=config["simulated_reads"]["count"],
        length=config["simulated_reads"]["length"],
        error_rate=config["simulated_reads"]["error_rate"],
        seed=config["simulated_reads"]["seed"],
    script:
        "../scripts/simulate_reads.py"


rule cut_kmers:
    """Cut the k-mers of a timed data set from the reads, each window as likely as any other."""
    input:
        reads=READS,
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
    params:
        k=dataset("k"),
        number=dataset("count"),
        seed=config["kmer_seeds"]["seed"],
        deduplicate=config["kmer_seeds"]["deduplicate"],
    script:
        "../scripts/cut_kmers.py"


use rule cut_kmers as cut_sample_kmers with:
    input:
        reads=sample("reads"),
        lib=library("cut_kmers.py"),
    output:
        kmers="results/seeds/{sample}.kmers.fa",
    log:
        "logs/seeds/{sample}.kmers.log",
    benchmark:
        "benchmarks/seeds/{sample}.kmers.tsv"
    params:
        k=sample("k"),
        number=sample("count"),
        seed=config["kmer_seeds"]["seed"],
        deduplicate=config["kmer_seeds"]["deduplicate"],
