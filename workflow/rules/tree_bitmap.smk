# Paper 003: k-mers in a stream: counted for the user's samples.
#
# Needs: reads; the configuration's `samples`.
# Makes: results/seeds/<sample>.kmers.tsv.gz (each k-mer with its first place and its count) and <sample>.summary.tsv.
# Steps: count the k-mers of each sample's reads.

from warpseed.workflow.tree_bitmap_samples import counted_samples

COUNTED = checked(counted_samples, SAMPLES, PLACES)
OTHER_SAMPLE_FILES += [
    f"results/seeds/{name}.{ending}" for name in COUNTED for ending in ("kmers.tsv.gz", "summary.tsv")
]

COUNT_KMERS = needs.Request(
    lambda wildcards: needs.count_kmers(needs.read_bases(COUNTED[wildcards.counted]["reads"], config["reads"]))
)


wildcard_constraints:
    counted="|".join(map(re.escape, COUNTED)) or "(?!)",


rule count_kmers:
    """Count the k-mers of a sample's reads."""
    input:
        reads=lambda wildcards: placed(COUNTED[wildcards.counted]["reads"]),
        lib=library("count_kmers.py"),
    output:
        kmers="results/seeds/{counted}.kmers.tsv.gz",
        summary="results/seeds/{counted}.summary.tsv",
    log:
        "logs/seeds/samples/{counted}/counted.log",
    benchmark:
        "benchmarks/seeds/samples/{counted}/counted.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: min(CORES, 8)
    resources:
        mem_mb=COUNT_KMERS.mem_mb,
        runtime=COUNT_KMERS.runtime,
    params:
        k=entry(COUNTED, "counted", "k"),
        facts=entry(COUNTED, "counted", "facts"),
    script:
        "../scripts/count_kmers.py"
