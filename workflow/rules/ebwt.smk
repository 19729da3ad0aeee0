# Paper 004: weighted sequences, the conjugates of their solid sequences in order, and distances: timed; and collections.
# The records of the user's samples compared.
#
# Needs: reads; the configuration's `ebwt`, `measure` and `samples`.
# Makes: results/measurements/<reference>/ebwt/<dataset>.tsv; results/seeds/<sample>.ebwt.txt and .words.tsv (the transform),
#        .distances.tsv and .phylip, .newick, .heatmap.svg and .dendrogram.svg, and <sample>.summary.tsv.
# Steps: time each data set, which draws its weighted sequences itself; compare the records of each sample.

from warpseed.workflow.ebwt_cases import sizes_of as sizes_of_weighted
from warpseed.workflow.ebwt_cases import timed_collections
from warpseed.workflow.ebwt_cases import timed_datasets as timed_weighted_sets
from warpseed.workflow.ebwt_samples import compared_samples

WEIGHTED_SETS = checked(timed_weighted_sets, config["ebwt"], config["measure"], DEVICES)

COLLECTIONS = checked(timed_collections, config["ebwt"], config["measure"], DEVICES)

MEASUREMENTS["ebwt"] = [f"results/measurements/{REFERENCE}/ebwt/{name}.tsv" for name in [*WEIGHTED_SETS, *COLLECTIONS]]

TIME_WEIGHTED = needs.Request(
    lambda wildcards: needs.time_weighted(
        sizes_of_weighted(WEIGHTED_SETS[wildcards.weighted_set]),
        needs.timed_runs(WEIGHTED_SETS[wildcards.weighted_set], REPEATS),
    )
)

TIME_COLLECTIONS = needs.Request(
    lambda wildcards: needs.time_collections(
        COLLECTIONS[wildcards.collection]["words"],
        needs.timed_runs(COLLECTIONS[wildcards.collection], REPEATS),
    )
)

COMPARED = checked(compared_samples, SAMPLES, PLACES)
COUNTS |= dict.fromkeys(COMPARED, ["distances.tsv", "phylip", "newick", "heatmap.svg", "dendrogram.svg"])

COMPARE_RECORDS = needs.Request(
    lambda wildcards: needs.compare_records(
        needs.read_bases(COMPARED[wildcards.compared]["reads"], config["reads"]),
        needs.read_count(COMPARED[wildcards.compared]["reads"], config["reads"]),
    )
)


wildcard_constraints:
    compared=any_of(COMPARED),
    weighted_set=any_of(WEIGHTED_SETS),
    collection=any_of(COLLECTIONS),


rule compare_records:
    """Compare the records of a sample with each other: transform, distances, tree and figures."""
    input:
        reads=lambda wildcards: placed(COMPARED[wildcards.compared]["reads"]),
        lib=library("compare_records.py"),
    output:
        transform="results/seeds/{compared}.ebwt.txt",
        words="results/seeds/{compared}.words.tsv",
        distances="results/seeds/{compared}.distances.tsv",
        phylip="results/seeds/{compared}.phylip",
        newick="results/seeds/{compared}.newick",
        heatmap="results/seeds/{compared}.heatmap.svg",
        dendrogram="results/seeds/{compared}.dendrogram.svg",
        summary="results/seeds/{compared}.summary.tsv",
    log:
        "logs/seeds/samples/{compared}/compared.log",
    benchmark:
        "benchmarks/seeds/samples/{compared}/compared.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: min(CORES, 8)
    resources:
        mem_mb=COMPARE_RECORDS.mem_mb,
        runtime=COMPARE_RECORDS.runtime,
    params:
        tree=entry(COMPARED, "compared", "tree"),
        normalise=entry(COMPARED, "compared", "normalise"),
        facts=entry(COMPARED, "compared", "facts"),
    script:
        "../scripts/compare_records.py"


rule time_ebwt:
    """Time both tiers on every device and number of threads with one data set of weighted sequences, alone on the machine."""
    input:
        lib=library("time_ebwt.py"),
    output:
        records="results/measurements/{reference}/ebwt/{weighted_set}.tsv",
    log:
        "logs/measurements/{reference}/ebwt/{weighted_set}.log",
    benchmark:
        "benchmarks/measurements/{reference}/ebwt/{weighted_set}.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_WEIGHTED.mem_mb,
        runtime=TIME_WEIGHTED.runtime,
    params:
        case=lambda wildcards: WEIGHTED_SETS[wildcards.weighted_set],
        repeats=REPEATS,
    script:
        "../scripts/time_ebwt.py"


rule time_collections:
    """Time the fast tier on every device and number of threads with collections of words, alone on the machine."""
    input:
        # The process that is timed runs the command line.
        lib=library("time_collections.py", "warpseed.cli", "warpseed.ebwt.collection"),
    output:
        records="results/measurements/{reference}/ebwt/{collection}.tsv",
    log:
        "logs/measurements/{reference}/ebwt/{collection}.log",
    benchmark:
        "benchmarks/measurements/{reference}/ebwt/{collection}.tsv"
    conda:
        DEVICE_ENV
    threads: CORES
    resources:
        bench=1,
        gpu=GPUS_A_JOB,
        mem_mb=TIME_COLLECTIONS.mem_mb,
        runtime=TIME_COLLECTIONS.runtime,
    params:
        case=lambda wildcards: COLLECTIONS[wildcards.collection],
        repeats=REPEATS,
    script:
        "../scripts/time_collections.py"
