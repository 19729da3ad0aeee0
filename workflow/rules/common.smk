# What all rules share: the configuration once it is checked, references, read sets, samples, devices.
#
# Needs: config (config/*.yaml, a sample sheet), workflow/schemas/*.schema.yaml, resources/genomes.yaml.
# Makes: the names in capitals below; the rule file of each system adds to those of the last part. What a job asks of a
#        scheduler is a Request beside its rule; LIGHT is that of the small ones.
# Steps: check and complete the configuration; look at what it names; decisions are Python in warpseed/workflow/.

import os
import re
import sys
from pathlib import Path

from snakemake.logging import logger

SOURCE = Path(os.path.relpath(Path(str(workflow.current_basedir)).parents[1]))
"""The checkout, as seen from the working directory: a run stays valid when both are moved together."""
SCRIPTS = SOURCE / "workflow" / "scripts"
CORES = os.cpu_count() or 1
"""At least as many as --cores ever gives, so a job with this many threads has the machine to itself. On a cluster it is
the submitting machine's number and says nothing: there the profile gives every timed job its CPUs (set-threads)."""

# The library of this checkout, not one that is installed; once it is imported, its folder is off the path again.
sys.path.insert(0, str(SCRIPTS.resolve()))
from warpseed.errors import ConfigError
from warpseed.workflow import resources as needs
from warpseed.workflow.available import devices_to_measure, is_package_measured, is_peer_measured
from warpseed.workflow.configuration import check_configuration, check_files, load_schema
from warpseed.workflow.dependencies import library_files, take_library_of
from warpseed.workflow.download import load_catalogue
from warpseed.workflow.sources import SIMULATED, OwnFile, References, read_set_file, reads_of, samples_of

sys.path.remove(str(SCRIPTS.resolve()))


def fail(sentence):
    """Stop the workflow with one sentence, and without the stack that an exception would show."""
    logger.error(sentence)
    sys.exit(1)


def checked(function, *arguments):
    """Return what `function` does, or stop with the sentence that it raises."""
    try:
        return function(*arguments)
    except ConfigError as error:
        fail(str(error))


def library(script, *modules):
    """Return what finds the library files that a rule's script uses, and those of the modules that run in a process it
    starts: when a job is planned, so that a Snakemake of one job reads the imports of one script."""
    return lambda wildcards: of_checkout(library_files(script, *modules, scripts=SCRIPTS))


def of_checkout(paths):
    """Return files of the checkout as `local`: the prefix of a workflow that uses this one as a module is not theirs."""
    return [local(str(path)) for path in paths]


def placed(path):
    """Return an input as it is, or as `local` where it is a file of the user's own: no module's prefix is before it."""
    return local(str(path)) if isinstance(path, OwnFile) else path


def conda_in_use():
    """Whether this run deploys the environments of envs/ (--use-conda)."""
    methods = workflow.deployment_settings.deployment_method
    return any(getattr(method, "name", "").upper() == "CONDA" for method in methods)


def any_of(names):
    """Return a pattern of just these names; one that nothing fits where there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def read_file_of(read_set, key):
    """Return the file that a timed data set takes its reads from; `key` is that of the configuration which names it."""
    return placed(checked(reads_of, config["reads"], read_set, REFERENCE, key))


def entry(table, wildcard, key):
    """Return an input or params function: `key` of that entry of a table which the job's `wildcard` names."""
    return lambda wildcards: table[getattr(wildcards, wildcard)][key]


# -------------------------------------------------------------------------- references, read sets and samples

# Jobs take this checkout's library as well: Snakemake would put the folder of a script behind what is installed.
checked(take_library_of, SCRIPTS)
checked(check_files, [SOURCE / "config" / "config.yaml", *workflow.overwrite_configfiles])
PLACES = checked(check_configuration, config, load_schema(SOURCE / "workflow" / "schemas"))

ALL_REFERENCES = References(checked(load_catalogue, SOURCE / "resources" / "genomes.yaml"))
REFERENCE = checked(ALL_REFERENCES.add, config["reference"], "configuration key 'reference'")
SAMPLES = checked(samples_of, config, ALL_REFERENCES, REFERENCE, PLACES)
REFERENCES = list(ALL_REFERENCES.sources)


def reference_path(wildcards):
    """Return the FASTA file of a reference: the user's own where it lies, or the one that a rule makes."""
    return placed(ALL_REFERENCES.path(wildcards.reference))


def reference_download(wildcards):
    """Return what `get_reference` needs to know of a reference."""
    return ALL_REFERENCES.download(wildcards.reference)


def reference_sha256(wildcards):
    """Return the SHA-256 that a download must have, or None where the configuration states none."""
    return config["reference_sha256"] if wildcards.reference == REFERENCE else None


def sample_seeds(wildcards):
    """Return what the target `seeds` makes; it is nothing without samples."""
    if not SAMPLE_FILES:
        fail(
            "The target 'seeds' makes the seeds of the samples, but the configuration names none: add the key "
            "'samples' (config/README.md, 'Your own data')."
        )
    return SAMPLE_FILES


def sample_index(wildcards):
    """Return the index of the sample's reference."""
    return f"results/seeds/index/{SAMPLES[wildcards.sample]['reference']}"


def sample_runs(wildcards):
    """Return what was found of each chunk of a sample."""
    chunks = range(1, SAMPLES[wildcards.sample]["chunks"] + 1)
    return [f"results/seeds/chunks/{wildcards.sample}/{chunk}.runs" for chunk in chunks]


# ------------------------------------------------------------------------------------- devices and publishing

DEVICES = devices_to_measure(config["measure"]["devices"])
GPUS_A_JOB = max(config["measure"]["gpus"]) if "gpu" in DEVICES else 0
"""GPUs that each timed job of this run asks for, on the CPU too: so they all run on one kind of machine."""
DEVICE_ENV = "../../envs/gpu.yaml" if GPUS_A_JOB else "../../envs/cpu.yaml"

MACHINES = SOURCE / "resources" / "measurements"
MACHINE = config["machine"]
# A run that publishes a machine's records does not report the ones it is about to replace.
REFERENCE_MEASUREMENTS = of_checkout(sorted(p for p in MACHINES.glob("*/*.tsv") if p.parent.name != MACHINE))
REFERENCE_PROVENANCE = of_checkout(sorted(p for p in MACHINES.glob("*/*.json") if p.parent.name != MACHINE))


def published_records(wildcards):
    """Return what the target `publish` makes; it is nothing without a name for the machine."""
    if MACHINE is None:
        fail(
            "The target 'publish' keeps this run's records under the name of the machine, but the configuration key "
            "'machine' is null: name it, e.g. snakemake publish --config machine=nvidia-h200."
        )
    return [
        *(
            local(str(MACHINES / MACHINE / f"{name}.tsv"))
            for name in ("index", *(name for name, paths in MEASUREMENTS.items() if paths))
        ),
        local(str(MACHINES / MACHINE / "provenance.json")),
    ]


# --------------------------------------------------------------------------------- what the systems add to

SEARCHES = {}
"""Sample to how its system finds its seeds: `queries` (a file), their `count` or `spacing`, `seconds` that one takes,
`seeds` (endings of its files), `parameters` and `facts`."""
COUNTS = {}
"""Sample whose system searches no index, as it counts what is in its reads or compares them, to the endings of the files
with what comes of that."""
SHARED_RECORDS = [
    *(["results/measurements/human_like/simulation.tsv"] if config["reference"] == "human_like" else []),
    f"results/measurements/{REFERENCE}/index.tsv",
]
"""Records of no system: what making the genome took, where it is made to be like a human one, and its index."""
INDEX_PARTS = set()
"""Parts of the index that is timed: those that some system needs. "default" adds tags of rows if it is not too large."""
MEASUREMENTS = {}
"""System to the records that it measures, without those of the index and its genome."""
INDEXED = set()
"""Systems whose tables and figures show something of the index that is timed."""


def records_of(system):
    """Return the record files that the tables and figures of a system are made from."""
    return [*(SHARED_RECORDS if system in INDEXED else []), *MEASUREMENTS[system]]


def all_of(system):
    """Return what the target named as a system makes: its records, tables and figures."""
    return [*records_of(system), *TABLES[system], *FIGURES[system]]


def all_records(wildcards):
    """Return every record file of the run."""
    return [*SHARED_RECORDS, *(path for paths in MEASUREMENTS.values() for path in paths)]


def samples_with(ending):
    """Return a pattern of the samples whose seeds are a file with this ending."""
    return any_of(name for name, search in SEARCHES.items() if search["seeds"][0] == ending)


# ------------------------------------------------------------------------------ what jobs ask of a scheduler

SIMULATED_BASES = {name: config[key]["size"] for name, key in SIMULATED.items()}
LIGHT = needs.Request(lambda wildcards: needs.light())
REPEATS = config["measure"]["repeats"]


def bases_of(reference):
    """Return the bases of a reference, as far as they are known before it is there."""
    return needs.reference_bases(ALL_REFERENCES, reference, SIMULATED_BASES)


def index_size(reference, parts=INDEX_PARTS):
    """Return what the size of a reference's index depends on; without `parts` it is the index that is timed."""
    return needs.IndexSize(bases_of(reference), parts, config["index"])


def sample_queries(name):
    """Return about how many queries a sample has."""
    search = SEARCHES[name]
    return search["count"] or needs.read_bases(SAMPLES[name]["reads"], config["reads"]) // search["spacing"]


wildcard_constraints:
    reference=any_of(REFERENCES),
    sample=any_of(SAMPLES),
    machine=any_of([MACHINE] if MACHINE else []),
