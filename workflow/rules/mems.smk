# Paper 002: maximal exact matches of long reads: timed, beside other tools, and found for the user's samples.
#
# Needs: an index that has been verified, reads; the configuration's `mems`, `measure`, `peers` and `samples`; the tools
#        that the data sets name on PATH, or --use-conda, for the rows beside ours.
# Makes: results/measurements/<reference>/mems/<dataset>.tsv and peers/<dataset>.tsv.
# Steps: draw the reads (reads.smk); time their search, and the tools with the same reads.

from warpseed.workflow.mems_cases import paper_settings
from warpseed.workflow.mems_cases import timed_datasets as timed_long_sets
from warpseed.workflow.mems_samples import sample_mem_searches

MEMS = config["mems"]
LONG_SETS = checked(
    timed_long_sets,
    MEMS,
    config["measure"],
    DEVICES,
    lambda programs: is_peer_measured(config["peers"], programs, by_conda=conda_in_use()),
)
# The paper tier makes its index of the fast tier's, in memory.
INDEX_PARTS |= {"fast"} if LONG_SETS else set()
SEARCHES |= sample_mem_searches(SAMPLES)

INDEXED |= {"mems"} if LONG_SETS else set()
MEASUREMENTS["mems"] = [
    f"results/measurements/{REFERENCE}/mems/{name}.tsv"
    for name, wanted in LONG_SETS.items()
    for name in (name, *([f"peers/{name}"] if wanted["peers"] else []))
]


# The reads of a timed data set: asked for when they are needed, as what is not timed needs none.
timed_long_file = lambda wildcards: read_file_of(
    LONG_SETS[wildcards.long_set]["reads"], f"mems.datasets.{wildcards.long_set}.reads"
)
timed_long_bases = lambda wildcards: needs.read_bases(timed_long_file(wildcards), config["reads"])

TIME_MEMS = needs.Request(
    lambda wildcards: needs.time_matches(
        index_size(wildcards.reference),
        timed_long_bases(wildcards),
        needs.timed_runs(LONG_SETS[wildcards.long_set], REPEATS)
        * len(LONG_SETS[wildcards.long_set]["min_lengths"])
        * (1 + len(paper_settings(MEMS)) * ("settings" in LONG_SETS[wildcards.long_set]["items"])),
    )
)

TIME_MEM_PEERS = needs.Request(
    lambda wildcards: needs.time_match_peers(
        index_size(wildcards.reference),
        timed_long_bases(wildcards),
        (1 + REPEATS) * len(LONG_SETS[wildcards.long_set]["min_lengths"]) * len(LONG_SETS[wildcards.long_set]["peers"]),
    )
)


wildcard_constraints:
    long_set=any_of(LONG_SETS),


rule time_mems:
    """Time both tiers on every device and number of threads with one data set of long reads, alone on the machine."""
    input:
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        reads=timed_long_file,
        lib=library("time_mems.py"),
    output:
        records="results/measurements/{reference}/mems/{long_set}.tsv",
    log:
        "logs/measurements/{reference}/mems/{long_set}.log",
    benchmark:
        "benchmarks/measurements/{reference}/mems/{long_set}.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_MEMS.mem_mb,
        runtime=TIME_MEMS.runtime,
    params:
        name="{long_set}",
        case=lambda wildcards: LONG_SETS[wildcards.long_set],
        both_strands=MEMS["both_strands"],
        settings=paper_settings(MEMS),
        repeats=REPEATS,
    script:
        "../scripts/time_mems.py"


rule time_mems_peers:
    """Time other tools and our command line in turns with one data set of long reads, alone on the machine."""
    input:
        reference=reference_path,
        index="results/index/{reference}",
        verified="results/index/{reference}.verified",
        reads=timed_long_file,
        # The process that is timed runs the command line.
        lib=library("time_mems_peers.py", "warpseed.cli"),
    output:
        records="results/measurements/{reference}/mems/peers/{long_set}.tsv",
    log:
        "logs/measurements/{reference}/mems/peers/{long_set}.log",
    benchmark:
        "benchmarks/measurements/{reference}/mems/peers/{long_set}.tsv"
    conda:
        "../../envs/peers.yaml"
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_MEM_PEERS.mem_mb,
        runtime=TIME_MEM_PEERS.runtime,
    params:
        name="{long_set}",
        case=lambda wildcards: LONG_SETS[wildcards.long_set],
        repeats=REPEATS,
    script:
        "../scripts/time_mems_peers.py"
