# Paper 001: reads with a few edits against the index: timed, beside other tools, and placed for the user's samples.
#
# Needs: an index that has been verified, reads; the configuration's `one_error`, `measure`, `peers` and `samples`; the
#        tools that the data sets name on PATH, or --use-conda, for the rows beside ours.
# Makes: results/measurements/<reference>/one_error/<dataset>.tsv and peers/<dataset>.tsv.
# Steps: draw the reads (reads.smk); time their search, and the tools with the same reads.

from warpseed.workflow.one_error_cases import index_parts as read_index_parts
from warpseed.workflow.one_error_cases import timed_datasets as timed_read_sets
from warpseed.workflow.one_error_samples import sample_read_searches

ONE_ERROR = config["one_error"]
READ_SETS = checked(
    timed_read_sets,
    ONE_ERROR,
    config["measure"],
    DEVICES,
    lambda programs: is_peer_measured(config["peers"], programs, by_conda=conda_in_use()),
)
INDEX_PARTS |= set(read_index_parts(READ_SETS))
SEARCHES |= sample_read_searches(SAMPLES)

INDEXED |= {"one_error"} if READ_SETS else set()
MEASUREMENTS["one_error"] = [
    f"results/measurements/{REFERENCE}/one_error/{name}.tsv"
    for name, wanted in READ_SETS.items()
    for name in (name, *([f"peers/{name}"] if wanted["peers"] else []))
]


# The reads of a timed data set: asked for when they are needed, as what is not timed needs none.
timed_read_file = lambda wildcards: read_file_of(
    READ_SETS[wildcards.read_set]["reads"], f"one_error.datasets.{wildcards.read_set}.reads"
)
timed_read_count = lambda wildcards: READ_SETS[wildcards.read_set]["count"] or needs.read_count(
    timed_read_file(wildcards), config["reads"]
)

TIME_READS = needs.Request(
    lambda wildcards: needs.time_searches(
        index_size(wildcards.reference),
        timed_read_count(wildcards),
        needs.timed_runs(READ_SETS[wildcards.read_set], REPEATS) + REPEATS * len(ONE_ERROR["block_sizes"]),
    )
)

TIME_READ_PEERS = needs.Request(
    lambda wildcards: needs.time_peers(
        index_size(wildcards.reference),
        timed_read_count(wildcards),
        (1 + REPEATS) * len(config["measure"]["threads"]) * (1 + len(READ_SETS[wildcards.read_set]["peers"])),
    )
)


wildcard_constraints:
    read_set=any_of(READ_SETS),


rule time_one_error:
    """Time both tiers on every device and number of threads with one data set of reads, alone on the machine."""
    input:
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        reads=timed_read_file,
        lib=library("time_one_error.py"),
    output:
        records="results/measurements/{reference}/one_error/{read_set}.tsv",
    log:
        "logs/measurements/{reference}/one_error/{read_set}.log",
    benchmark:
        "benchmarks/measurements/{reference}/one_error/{read_set}.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_READS.mem_mb,
        runtime=TIME_READS.runtime,
    params:
        name="{read_set}",
        case=lambda wildcards: READ_SETS[wildcards.read_set],
        both_strands=ONE_ERROR["both_strands"],
        slots=ONE_ERROR["slots"],
        block_sizes=ONE_ERROR["block_sizes"],
        repeats=REPEATS,
    script:
        "../scripts/time_one_error.py"


rule time_one_error_peers:
    """Time other tools and our command line in turns with one data set of reads, alone on the machine."""
    input:
        reference=reference_path,
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        reads=timed_read_file,
        # The process that is timed runs the command line.
        lib=library("time_one_error_peers.py", "warpseed.cli"),
    output:
        records="results/measurements/{reference}/one_error/peers/{read_set}.tsv",
    log:
        "logs/measurements/{reference}/one_error/peers/{read_set}.log",
    benchmark:
        "benchmarks/measurements/{reference}/one_error/peers/{read_set}.tsv"
    conda:
        "../../envs/peers.yaml"
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_READ_PEERS.mem_mb,
        runtime=TIME_READ_PEERS.runtime,
    params:
        name="{read_set}",
        case=lambda wildcards: READ_SETS[wildcards.read_set],
        repeats=REPEATS,
    script:
        "../scripts/time_one_error_peers.py"
