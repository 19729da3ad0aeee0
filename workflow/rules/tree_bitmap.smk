# Paper 003: k-mers in a stream, matched with a dictionary that grows on the way: timed, and counted for the user's samples.
#
# Needs: reads; the reference, for the streams that are one; the configuration's `tree_bitmap`, `measure`, `peers`
#        and `samples`.
# Makes: results/measurements/<reference>/tree_bitmap/<dataset>.tsv; results/seeds/<sample>.kmers.tsv.gz (each k-mer with its
#        first place and its count) and <sample>.summary.tsv.
# Steps: time each data set, which draws its streams itself; count the k-mers of each sample's reads.

from warpseed.workflow.tree_bitmap_cases import timed_datasets as timed_stream_sets
from warpseed.workflow.tree_bitmap_samples import counted_samples

STREAM_SETS = checked(
    timed_stream_sets,
    config["tree_bitmap"],
    config["measure"],
    DEVICES,
    lambda packages: is_package_measured(config["peers"], packages, by_conda=conda_in_use()),
)

MEASUREMENTS["tree_bitmap"] = [f"results/measurements/{REFERENCE}/tree_bitmap/{name}.tsv" for name in STREAM_SETS]


# Random streams need no reference.
is_drawn = lambda wildcards: STREAM_SETS[wildcards.stream_set]["stream"] == "random"
stream_reference = lambda wildcards: [] if is_drawn(wildcards) else reference_path(wildcards)

TIME_STREAMS = needs.Request(
    lambda wildcards: needs.time_streams(
        STREAM_SETS[wildcards.stream_set],
        0 if is_drawn(wildcards) else bases_of(wildcards.reference),
        needs.timed_runs(STREAM_SETS[wildcards.stream_set], REPEATS),
    )
)

COUNTED = checked(counted_samples, SAMPLES, PLACES)
COUNTS |= dict.fromkeys(COUNTED, ["kmers.tsv.gz"])

COUNT_KMERS = needs.Request(
    lambda wildcards: needs.count_kmers(needs.read_bases(COUNTED[wildcards.counted]["reads"], config["reads"]))
)


wildcard_constraints:
    stream_set=any_of(STREAM_SETS),
    counted=any_of(COUNTED),


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


rule time_tree_bitmap:
    """Time both tiers on every device and number of threads with one data set of streams, alone on the machine."""
    input:
        reference=stream_reference,
        lib=library("time_tree_bitmap.py"),
    output:
        records="results/measurements/{reference}/tree_bitmap/{stream_set}.tsv",
    log:
        "logs/measurements/{reference}/tree_bitmap/{stream_set}.log",
    benchmark:
        "benchmarks/measurements/{reference}/tree_bitmap/{stream_set}.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_STREAMS.mem_mb,
        runtime=TIME_STREAMS.runtime,
    params:
        name="{stream_set}",
        case=lambda wildcards: STREAM_SETS[wildcards.stream_set],
        repeats=REPEATS,
    script:
        "../scripts/time_tree_bitmap.py"
