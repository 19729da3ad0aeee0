# Every function that the rules use, and what the configuration says once it is checked.
#
# Needs: config (config/*.yaml), workflow/schemas/config.schema.yaml, resources/genomes.yaml.
# Makes: REFERENCES, DATASETS and SAMPLES, the tables that rules and wildcards are built from.

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import yaml
from snakemake.logging import logger
from snakemake.utils import validate

SOURCE = Path(os.path.relpath(workflow.basedir))
"""The checkout, as seen from the working directory: a run stays valid when both are moved together."""
SCRIPTS = SOURCE / "workflow" / "scripts"

sys.path.insert(0, str(SCRIPTS.resolve()))
from warpseed.workflow.dependencies import library_files

CORES = os.cpu_count() or 1
"""At least as many as --cores ever gives, so a job with this many threads has the machine to itself."""


# ------------------------------------------------------------------------------------------- configuration


def key_name(parts):
    """Return a configuration key as its user would write it, e.g. kmer_seeds.datasets.S20.k."""
    return ".".join(str(part) for part in parts)


def unknown_key_sentence(error):
    """Say which key is not known, and which one was perhaps meant."""
    known = list(error.schema.get("properties", {}))
    unknown = sorted(str(key) for key in error.instance if key not in known)[0]
    guesses = difflib.get_close_matches(unknown, known, n=1)
    hint = f"did you mean '{guesses[0]}'" if guesses else f"known here are {', '.join(known)}"
    return f"The configuration key '{key_name([*error.absolute_path, unknown])}' is not known: {hint}? config/README.md lists every key."


def config_sentence(error):
    """Turn one finding of jsonschema into one sentence: what was found, where, and what was expected."""
    if error.validator == "additionalProperties":
        return unknown_key_sentence(error)
    path = list(error.absolute_path)
    # An item of a list has no description of its own; its list has.
    while path and isinstance(path[-1], int):
        path.pop()
    where = f"The configuration key '{key_name(path)}'" if path else "The configuration"
    if "propertyNames" in error.absolute_schema_path:
        return f"{where} holds the name {error.instance!r}, but a name must match {error.validator_value}: rename it."
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{where} lacks '{missing}': add it (config/README.md lists every key)."
    value, node = config, CONFIG_SCHEMA
    for part in path:
        value = value[part]
        node = node.get("properties", {}).get(part) or node.get("items") or node["additionalProperties"]
    if "properties" in node or "additionalProperties" in node:
        return f"{where} is {value!r}, but it should hold further keys: {node['description']}."
    return f"{where} is {value!r}, but it should be: {node['description']}."


def plain_values(value):
    """Return `value` with its numbers, true, false and null as such: inside braces, --config gives them as text."""
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_values(item) for item in value]
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null|~", value):
        return yaml.safe_load(value)
    return value


def check_configuration(config):
    """Stop with one sentence at the first mistake in `config`, then fill in every default."""
    for key, value in config.items():
        if isinstance(value, dict):
            config[key] = plain_values(value)
    validator = jsonschema.Draft202012Validator(CONFIG_SCHEMA)
    errors = list(validator.iter_errors(config))
    # A misspelt key is the likeliest cause of whatever else is wrong, so it is named first.
    errors.sort(key=lambda error: (error.validator != "additionalProperties", list(map(str, error.path))))
    if errors:
        fail(config_sentence(errors[0]))
    # A data set that a file laid over another one sets to null is left out.
    datasets = config.get("kmer_seeds", {}).get("datasets", {})
    for name in [name for name, wanted in datasets.items() if wanted is None]:
        del datasets[name]
    validate(config, "../schemas/config.schema.yaml")


def fail(sentence):
    """Stop the workflow with one sentence, and without the stack that an exception would show."""
    logger.error(sentence)
    sys.exit(1)


def fail_unless(good, sentence):
    """Stop the workflow with one sentence unless `good` holds."""
    if not good:
        fail(sentence)


# ----------------------------------------------------------------------------------------------- references


def is_url(source):
    """Whether a reference is given as the address of a file."""
    return re.match(r"(https?|ftp|file)://", source) is not None


def reference_name(source):
    """Return the short name that a reference has in file names: letters, digits, '_', '-' and '.'."""
    if source == "simulated" or source in GENOMES:
        return source
    stem = re.sub(r"(\.(fa|fasta|fna|fas))?(\.gz)?$", "", Path(source).name, flags=re.IGNORECASE)
    return re.sub(r"[^A-Za-z0-9_.-]", "_", stem) or "reference"


def add_reference(source, key):
    """Check a reference that the configuration names under `key`, register it, and return its name."""
    source = os.path.expanduser(source)
    known = source == "simulated" or source in GENOMES or is_url(source)
    fail_unless(
        known or Path(source).is_file(),
        f"The reference '{source}' (configuration key '{key}') is not a file, a URL, 'simulated' or a genome of "
        f"resources/genomes.yaml ({', '.join(GENOMES)}): correct it, or put the file there.",
    )
    name = reference_name(source)
    fail_unless(
        REFERENCES.get(name, source) == source,
        f"The references '{REFERENCES.get(name)}' and '{source}' would both be called '{name}' in results/: "
        "rename one of the files.",
    )
    REFERENCES[name] = source
    return name


def reference_path(wildcards):
    """Return the FASTA file of a reference: the user's own where it lies, or the one that a rule makes."""
    source = REFERENCES[wildcards.reference]
    if source == "simulated":
        return f"results/reference/{wildcards.reference}.fa"
    if source in GENOMES or is_url(source):
        return f"results/reference/{wildcards.reference}.fa.gz"
    return source


def downloaded_genome(wildcards):
    """Return what `get_reference` needs to know of a reference; its description is no reason to download it again."""
    source = REFERENCES[wildcards.reference]
    entry = GENOMES.get(source, {"url": source})
    return {
        "name": source,
        "url": entry["url"],
        "contigs": entry.get("contigs", {}),
        "other_contigs": entry.get("other_contigs", True),
    }


def reference_sha256(wildcards):
    """Return the SHA-256 that a download must have, or None where the configuration states none."""
    return config["reference_sha256"] if wildcards.reference == REFERENCE else None


# ----------------------------------------------------------------------------------------- reads and k-mers


def reads_source(source, key):
    """Check a read file that the configuration names under `key`, and return it."""
    source = os.path.expanduser(source)
    fail_unless(
        source == "simulated" or Path(source).is_file(),
        f"The read file '{source}' (configuration key '{key}') does not exist: give a FASTA or FASTQ file, or 'simulated'.",
    )
    return source


def reads_path(source, reference):
    """Return the file that k-mers are cut from."""
    return f"results/reads/{reference}.fa" if source == "simulated" else source


def all_datasets():
    """Return every timed data set: its k-mers, the allowed mismatches, its case and the items it gives rows for."""
    chosen = config["kmer_seeds"]
    datasets = {}
    for name, wanted in chosen["datasets"].items():
        datasets[name] = {
            "k": wanted["k"],
            "mismatches": wanted["mismatches"],
            "count": wanted["count"] or chosen["count"],
            "case": name,
            "parameters": f"k={wanted['k']}; mismatches={wanted['mismatches']}",
            "items": ["whole", "search", "locate_on_cpu"],
            "threads": config["measure"]["threads"],
        }
    throughput = chosen["throughput"]
    for k in throughput["k"]:
        datasets[f"throughput-k{k}"] = {
            "k": k,
            "mismatches": throughput["mismatches"],
            "count": throughput["count"] or chosen["count"],
            "case": f"k={k}",
            "parameters": f"k={k}; mismatches={throughput['mismatches']}",
            "items": ["throughput"],
            "threads": config["measure"]["threads"],
        }
    scaled = chosen["scaling"]["dataset"]
    if scaled is not None:
        fail_unless(
            scaled in datasets,
            f"The configuration key 'kmer_seeds.scaling.dataset' is '{scaled}', but kmer_seeds.datasets has "
            f"{', '.join(chosen['datasets']) or 'none'}: name one of these, or null.",
        )
        threads = chosen["scaling"]["threads"]
        datasets[f"scaling-{scaled}"] = {
            **datasets[scaled],
            "items": ["scaling"],
            "threads": threads,
        }
    return datasets


def dataset(key):
    """Return an input or params function that gives `key` of the job's data set."""
    return lambda wildcards: DATASETS[wildcards.dataset][key]


def sample(key):
    """Return an input or params function that gives `key` of the job's sample."""
    return lambda wildcards: SAMPLES[wildcards.sample][key]


def all_samples():
    """Return the user's samples with the files they stand on."""
    samples = {}
    for name, wanted in config["samples"].items():
        key = f"samples.{name}"
        reference = add_reference(wanted["reference"], f"{key}.reference") if wanted["reference"] else REFERENCE
        source = reads_source(wanted["reads"], f"{key}.reads")
        fail_unless(
            source != "simulated" or wanted["k"] is not None,
            f"The sample '{name}' has simulated reads but no k: add the length of its k-mers (configuration key '{key}.k').",
        )
        reads = reads_path(source, reference)
        kmers = reads if wanted["k"] is None else f"results/seeds/{name}.kmers.fa"
        samples[name] = {
            **wanted,
            "reference": reference,
            "reads": reads,
            "kmers": kmers,
        }
    return samples


def sample_index(wildcards):
    """Return the index of the sample's reference."""
    return f"results/index/{SAMPLES[wildcards.sample]['reference']}"


# -------------------------------------------------------------------------------------- library and machine


def library(script, *modules):
    """Return the library files that a rule's script uses, and what the modules use that run in a process it starts."""
    return [str(path) for path in library_files(script, *modules, scripts=SCRIPTS)]


def gpu_answers():
    """Whether nvidia-smi lists a GPU on this machine."""
    if shutil.which("nvidia-smi") is None:
        return False
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "GPU" in done.stdout


def devices_to_measure():
    """Return the devices of the configuration, 'auto' resolved on the machine where the workflow starts."""
    if config["measure"]["devices"] != "auto":
        return config["measure"]["devices"]
    return ["cpu", "gpu"] if gpu_answers() else ["cpu"]


def conda_in_use():
    """Whether this run deploys the environments of envs/ (--use-conda)."""
    methods = workflow.deployment_settings.deployment_method
    return any(getattr(method, "name", "").upper() == "CONDA" for method in methods)


def published_records(wildcards):
    """Return what the target `publish` makes; it is nothing without a name for the machine."""
    fail_unless(
        MACHINE is not None,
        "The target 'publish' keeps this run's records under the name of the machine, but the configuration key "
        "'machine' is null: name it, e.g. snakemake publish --config machine=nvidia-h200.",
    )
    return [
        str(MACHINES / MACHINE / "kmer_seeds.tsv"),
        str(MACHINES / MACHINE / "provenance.json"),
    ]


def peers_wanted():
    """Return whether bowtie is measured beside us."""
    if config["peers"] != "auto":
        return config["peers"]
    installed = all(shutil.which(tool) is not None for tool in ("bowtie-build", "bowtie-align-s"))
    return installed or conda_in_use()


# -------------------------------------------------------------------------------------------- what there is

with open(SOURCE / "workflow" / "schemas" / "config.schema.yaml") as handle:
    CONFIG_SCHEMA = yaml.safe_load(handle)
with open(SOURCE / "resources" / "genomes.yaml") as handle:
    GENOMES = yaml.safe_load(handle)

check_configuration(config)

REFERENCES = {}
REFERENCE = add_reference(config["reference"], "reference")
READS = reads_path(reads_source(config["reads"], "reads"), REFERENCE)
DATASETS = all_datasets()
TABLE_DATASETS = [name for name, wanted in DATASETS.items() if "whole" in wanted["items"]]
SAMPLES = all_samples()
DEVICES = devices_to_measure()
GPU_JOBS = 1 if "gpu" in DEVICES else 0
DEVICE_ENV = "../../envs/gpu.yaml" if GPU_JOBS else "../../envs/cpu.yaml"
PEERS = peers_wanted()

GPU_LIMITS = config["kmer_seeds"]["gpu_limits"] if GPU_JOBS else []
TIMED = [
    *DATASETS,
    *(["bowtie"] if PEERS and TABLE_DATASETS else []),
    *(["gpu_limits"] if GPU_LIMITS else []),
]
MEASUREMENTS = [
    f"results/measurements/{REFERENCE}/index.tsv",
    *(f"results/measurements/{REFERENCE}/kmer_seeds/{name}.tsv" for name in TIMED),
]
SEEDS = [f"results/seeds/{name}.bed" for name in SAMPLES]
MACHINES = SOURCE / "resources" / "measurements"
MACHINE = config["machine"]
# A run that publishes a machine's records does not report the ones it is about to replace.
REFERENCE_MEASUREMENTS = sorted(str(path) for path in MACHINES.glob("*/*.tsv") if path.parent.name != MACHINE)
REFERENCE_PROVENANCE = sorted(str(path) for path in MACHINES.glob("*/*.json") if path.parent.name != MACHINE)


wildcard_constraints:
    reference="|".join(map(re.escape, REFERENCES)),
    dataset="|".join(map(re.escape, DATASETS)) or "none",
    sample="|".join(map(re.escape, SAMPLES)) or "none",
    machine=re.escape(MACHINE or "none"),
