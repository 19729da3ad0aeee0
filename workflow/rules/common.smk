# What all rules share: the configuration once it is checked, references, read sets, samples, devices.
#
# Needs: config (config/*.yaml), workflow/schemas/*.schema.yaml, resources/genomes.yaml.
# Makes: the names in capitals below; the rule file of each system adds to those of the last part. What a job asks of a
#        scheduler is a Request beside its rule; LIGHT is that of the small ones.
# Steps: check and complete the configuration; look at what it names; decisions are Python in warpseed/workflow/.

import os
import re
import sys
from pathlib import Path

from snakemake.logging import logger

SOURCE = Path(os.path.relpath(workflow.basedir))
"""The checkout, as seen from the working directory: a run stays valid when both are moved together."""
SCRIPTS = SOURCE / "workflow" / "scripts"
CORES = os.cpu_count() or 1
"""At least as many as --cores ever gives, so a job with this many threads has the machine to itself. On a cluster it is
the submitting machine's number and says nothing: there the profile gives every timed job its CPUs (set-threads)."""

sys.path.insert(0, str(SCRIPTS.resolve()))
from warpseed.errors import ConfigError
from warpseed.workflow import resources as needs
from warpseed.workflow.available import devices_to_measure, is_peer_measured
from warpseed.workflow.configuration import check_configuration, check_files, load_schema
from warpseed.workflow.dependencies import library_files
from warpseed.workflow.download import load_catalogue
from warpseed.workflow.sources import References, read_set_file, reads_of, samples_of


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
    """Return the library files that a rule's script uses, and what the modules use that run in a process it starts."""
    return [str(path) for path in library_files(script, *modules, scripts=SCRIPTS)]


def conda_in_use():
    """Whether this run deploys the environments of envs/ (--use-conda)."""
    methods = workflow.deployment_settings.deployment_method
    return any(getattr(method, "name", "").upper() == "CONDA" for method in methods)


def entry(table, wildcard, key):
    """Return an input or params function: `key` of that entry of a table which the job's `wildcard` names."""
    return lambda wildcards: table[getattr(wildcards, wildcard)][key]


# -------------------------------------------------------------------------- references, read sets and samples

checked(check_files, [SOURCE / "config" / "config.yaml", *workflow.overwrite_configfiles])
checked(check_configuration, config, load_schema(SOURCE / "workflow" / "schemas"))

ALL_REFERENCES = References(checked(load_catalogue, SOURCE / "resources" / "genomes.yaml"))
REFERENCE = checked(ALL_REFERENCES.add, config["reference"], "reference")
SAMPLES = checked(samples_of, config, ALL_REFERENCES, REFERENCE)
REFERENCES = list(ALL_REFERENCES.sources)


def reference_path(wildcards):
    """Return the FASTA file of a reference: the user's own where it lies, or the one that a rule makes."""
    return ALL_REFERENCES.path(wildcards.reference)


def reference_download(wildcards):
    """Return what `get_reference` needs to know of a reference."""
    return ALL_REFERENCES.download(wildcards.reference)


def reference_sha256(wildcards):
    """Return the SHA-256 that a download must have, or None where the configuration states none."""
    return config["reference_sha256"] if wildcards.reference == REFERENCE else None


def sample_index(wildcards):
    """Return the index of the sample's reference."""
    return f"results/index/{SAMPLES[wildcards.sample]['reference']}"


def sample_index_verified(wildcards):
    """Return the mark that the index of the sample's reference was compared with its checksums."""
    return f"results/index/{SAMPLES[wildcards.sample]['reference']}.verified"


# ------------------------------------------------------------------------------------- devices and publishing

DEVICES = devices_to_measure(config["measure"]["devices"])
GPU_JOBS = 1 if "gpu" in DEVICES else 0
"""GPUs that each timed job of this run asks for, on the CPU too: so they all run on one kind of machine."""
DEVICE_ENV = "../../envs/gpu.yaml" if GPU_JOBS else "../../envs/cpu.yaml"

MACHINES = SOURCE / "resources" / "measurements"
MACHINE = config["machine"]
# A run that publishes a machine's records does not report the ones it is about to replace.
REFERENCE_MEASUREMENTS = sorted(str(path) for path in MACHINES.glob("*/*.tsv") if path.parent.name != MACHINE)
REFERENCE_PROVENANCE = sorted(str(path) for path in MACHINES.glob("*/*.json") if path.parent.name != MACHINE)


def published_records(wildcards):
    """Return what the target `publish` makes; it is nothing without a name for the machine."""
    if MACHINE is None:
        fail(
            "The target 'publish' keeps this run's records under the name of the machine, but the configuration key "
            "'machine' is null: name it, e.g. snakemake publish --config machine=nvidia-h200."
        )
    return [
        *(str(MACHINES / MACHINE / f"{name}.tsv") for name in ("index", *MEASUREMENTS)),
        str(MACHINES / MACHINE / "provenance.json"),
    ]


# --------------------------------------------------------------------------------- what the systems add to

SEEDS = []
"""Seeds of the samples."""
INDEX_RECORDS = f"results/measurements/{REFERENCE}/index.tsv"
INDEX_PARTS = set()
"""Parts of an index that some system needs."""
MEASUREMENTS = {}
"""System to the records that it measures, without those of the index."""


def all_records(wildcards):
    """Return every record file of the run."""
    return [INDEX_RECORDS, *(path for paths in MEASUREMENTS.values() for path in paths)]


# ------------------------------------------------------------------------------ what jobs ask of a scheduler

LIGHT = needs.Request(lambda wildcards: needs.light())
REPEATS = config["measure"]["repeats"]


def bases_of(reference):
    """Return the bases of a reference, as far as they are known before it is there."""
    return needs.reference_bases(ALL_REFERENCES, reference, config["simulated_reference"]["size"])


def index_size(reference):
    """Return what the size of a reference's index depends on."""
    return needs.IndexSize(bases_of(reference), INDEX_PARTS, config["index"])


wildcard_constraints:
    reference="|".join(map(re.escape, REFERENCES)),
    sample="|".join(map(re.escape, SAMPLES)) or "none",
    machine=re.escape(MACHINE or "none"),
