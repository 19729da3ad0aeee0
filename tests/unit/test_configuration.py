"""A configuration is read against its schema, completed, or refused in one sentence that names the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from warpseed.errors import ConfigError
from warpseed.report.systems import SYSTEMS
from warpseed.workflow.configuration import check_configuration, check_files, load_schema

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
README = (ROOT / "config" / "README.md").read_text(encoding="utf-8")


def completed(text: str) -> dict[str, Any]:
    """The configuration that a YAML text gives."""
    config = yaml.safe_load(text) or {}
    check_configuration(config, load_schema(SCHEMAS))
    return config


MISTAKES = {
    "a misspelt key": ("referense: simulated", "'referense' is not known: did you mean 'reference'?"),
    "a misspelt inner key": ("kmer_seeds: {cuont: 3}", "'kmer_seeds.cuont' is not known: did you mean 'count'?"),
    "a misspelt key is named before what follows from it": (
        "kmer_seeds: {count: 0, datasets: {S20: {k: 20, mismatch: 1}}}",
        "'kmer_seeds.datasets.S20.mismatch' is not known: did you mean 'mismatches'?",
    ),
    "a key of an earlier version": ("measure: {max_hits: 5}", "'measure.max_hits' is not known"),
    "a number out of its range": (
        "kmer_seeds: {datasets: {S20: {k: 999, mismatches: 0}}}",
        "'kmer_seeds.datasets.S20.k' is 999, but it should be: length of the k-mers, from 1 to 255.",
    ),
    "a number out of a range of its own beside $ref": (
        "kmer_seeds: {gpu_limits: [{k: 40, mismatches: 0}]}",
        "'kmer_seeds.gpu_limits.0.k' is 40, but it should be: length of the k-mers, from 1 to 32.",
    ),
    "a missing key": ("kmer_seeds: {datasets: {S21: {k: 21}}}", "'kmer_seeds.datasets.S21' lacks 'mismatches'"),
    "a misspelt key in a list": (
        "kmer_seeds: {gpu_limits: [{k: 30, mismatch: 0}]}",
        "'kmer_seeds.gpu_limits.0.mismatch' is not known: did you mean 'mismatches'?",
    ),
    "an item of a list": (
        "kmer_seeds: {throughput: {k: [12, 400]}}",
        "'kmer_seeds.throughput.k' is [12, 400], but it should be: lengths of the k-mers, each from 1 to 255",
    ),
    "a device that is none": (
        "measure: {devices: [cpu, tpu]}",
        "'measure.devices' is ['cpu', 'tpu'], but it should be: [cpu], [gpu]",
    ),
    "a value in place of keys": ("kmer_seeds: 3", "'kmer_seeds' is 3, but it should hold further keys: paper 000"),
    "a path in place of read sets": (
        "reads: reads.fq",
        "'reads' is 'reads.fq', but it should hold further keys: read sets by name (letters, digits, '_', '-'), "
        "e.g. short: {source: reads.fq.gz}",
    ),
    "a name with a space": (
        "kmer_seeds: {datasets: {S 21: {k: 21, mismatches: 0}}}",
        "'kmer_seeds.datasets' holds the name 'S 21', but a name should be: letters, digits and _; rename it.",
    ),
    "a sample's name that ends a line": ('samples: {"a\\n": {reads: r.fq}}', r"'samples' holds the name 'a\n'"),
    "a data set's name that ends a line": (
        'kmer_seeds: {datasets: {"S\\n": {k: 21, mismatches: 0}}}',
        r"'kmer_seeds.datasets' holds the name 'S\n'",
    ),
    "a read set's name that ends a line": ('reads: {"a\\n": {source: r.fq}}', r"'reads' holds the name 'a\n'"),
    "a machine's name that ends a line": ('machine: "a\\n"', r"'machine' is 'a\n', but it should be: name under which"),
    "a machine's name with a slash": ("machine: here/there", "'machine' is 'here/there', but it should be"),
    "a sample called by a number": (
        "samples: {5: {reads: r.fq}}",
        "'samples' holds a name that YAML reads as a number or a date (5), but names are text: write it in quotes",
    ),
    "a sample called yes": ("samples: {yes: {reads: r.fq}}", "'samples' holds a name that YAML reads as true or false"),
    "a data set called by a number": (
        "kmer_seeds: {datasets: {0x1F: {k: 5, mismatches: 0}}}",
        "'kmer_seeds.datasets' holds a name that YAML reads as a number or a date (31)",
    ),
    "a key that is a number": ("5: 6", "The configuration holds a name that YAML reads as a number or a date (5)"),
    "a number with an exponent": (
        "kmer_seeds: {count: 1e6}",
        "'kmer_seeds.count' is '1e6', but it should be: k-mers in a data set, at least 1; '1e6' is read as text: "
        "write 1000000.",
    ),
    "a number with commas": ('samples: {a: {reads: r.fq, count: "100,000"}}', "write 100000."),
    "a share with an exponent": ("reads: {short: {error_rate: 1e-3}}", "'1e-3' is read as text: write 0.001."),
    "a number with commas in braces": (
        "samples: {a: {reads: r.fq, count: 100,000}}",
        "reads as a number or a date (0), but names are text: write it in quotes, e.g. '5' or 'yes' (and a number is "
        "written without commas, e.g. 100000).",
    ),
    "a number with a point": ("kmer_seeds: {count: 20.0}", "k-mers in a data set, at least 1; write 20."),
    "no number": ("kmer_seeds: {count: infinity}", "at least 1; what stands there is text."),
    "a sample of a system that there is not": (
        "samples: {a: {reads: r.fq, system: kmer, min_length: 19}}",
        "'samples.a.system' is 'kmer', but it should be: what is found: kmers (k-mers of the reads), reads",
    ),
    "a path in place of a sample": (
        "samples: {a: r.fq}", "'samples.a' is 'r.fq', but it should hold further keys: a sample, e.g. {reads: "
    ),
    "a word for a number": ("kmer_seeds: {count: many}", "at least 1; what stands there is text."),
    "four lengths": (
        "reads: {short: {length: [1, 2, 3, 4]}}",
        "'reads.short.length' is [1, 2, 3, 4], but it should be: bases of a simulated read, at least 1, or [smallest, ",
    ),
    "two read files": (
        "samples: {a: {reads: [a.fq, b.fq], k: 20}}",
        "'samples.a.reads' is ['a.fq', 'b.fq'], but it should be: a read set of the key reads, or the path of one "
        "FASTA or FASTQ file (plain or gzip); it takes one value, not a list: join several files into one first",
    ),
    **{
        f"no device for {block}": (
            f"{block}: {{datasets: {{mine: {{{own}, devices: []}}}}}}",
            f"'{block}.datasets.mine.devices' is [], but it should be: list of 'cpu' and 'gpu'",
        )
        for block, own in (("kmer_seeds", "k: 20, mismatches: 1"), ("ebwt", "positions: [20]"))
    },
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake: str) -> None:
    text, sentence = MISTAKES[mistake]
    with pytest.raises(ConfigError) as caught:
        completed(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_defaults_are_filled_in_everywhere() -> None:
    """At the top, below a block that is not there, in named entries, in the items of lists, and from a $ref."""
    config = completed(
        "kmer_seeds: {datasets: {S20: {k: 20, mismatches: 1}}, gpu_limits: [{k: 20, mismatches: 0}]}\n"
        "samples: {mine: {reads: r.fq}}\nreads: {short: {}}"
    )
    assert config["reference"] == "simulated"
    assert config["simulated_reference"]["size"] == 2_000_000
    assert config["kmer_seeds"]["datasets"]["S20"] == {
        "k": 20, "mismatches": 1, "count": None, "tiers": ["paper", "fast"], "devices": None, "items": None,
    }  # fmt: skip
    assert config["kmer_seeds"]["gpu_limits"][0]["tiers"] == ["paper", "fast"]
    assert (config["kmer_seeds"]["max_hits"], config["samples"]["mine"]["max_hits"]) == (128, None)
    assert config["reads"]["short"]["source"] == "simulated"
    assert config["measure"]["threads"] == [1, "all"]


def test_defaults_of_two_entries_are_not_one_object() -> None:
    first, second = completed("kmer_seeds: {gpu_limits: [{k: 20, mismatches: 0}, {k: 21, mismatches: 0}]}")[
        "kmer_seeds"
    ]["gpu_limits"]
    first["tiers"].append("?")
    assert second["tiers"] == ["paper", "fast"]


def test_a_length_may_be_two_numbers() -> None:
    assert completed("reads: {long: {length: [1000, 2000]}}")["reads"]["long"]["length"] == [1000, 2000]


def test_null_leaves_out_what_another_file_names() -> None:
    config = completed(
        "kmer_seeds: {datasets: {S20: null, S21: {k: 21, mismatches: 0}}}\nreads: {long: null, short: {}}"
    )
    assert list(config["kmer_seeds"]["datasets"]) == ["S21"]
    assert list(config["reads"]) == ["short"]


def test_samples_left_empty_are_none() -> None:
    assert completed("samples:")["samples"] == {}
    assert completed("samples: {a: {reads: r.fq}, b: null}")["samples"].keys() == {"a"}


def test_numbers_that_the_command_line_gives_as_text_are_numbers() -> None:
    """Inside braces, --config hands everything over as text."""
    config = {"kmer_seeds": {"count": "50", "scaling": {"dataset": "null"}, "deduplicate": "true"}}
    check_configuration(config, load_schema(SCHEMAS))
    block: Any = config["kmer_seeds"]
    assert (block["count"], block["scaling"]["dataset"], block["deduplicate"]) == (50, None, True)


def test_text_that_looks_like_a_number_is_text_where_only_text_can_be() -> None:
    """What is in quotes, in a file or on the command line; and null there where it can be none."""
    config = completed(
        'reads: {a: {source: "17", count: "017"}}\n'
        'samples: {b: {reads: "123", reference: "null", count: "08", k: "020"}, c: {reads: "null", reference: "1.5"}}'
    )
    assert (config["reads"]["a"]["source"], config["reads"]["a"]["count"]) == ("17", 17)
    assert [config["samples"]["b"][key] for key in ("reads", "reference", "count", "k")] == ["123", None, 8, 20]
    assert [config["samples"]["c"][key] for key in ("reads", "reference")] == ["null", "1.5"]


def test_a_number_that_the_command_line_gives_with_commas_is_refused() -> None:
    config = {"samples": {"a": {"reads": "r.fq", "count": "100", "000": ""}}}
    with pytest.raises(
        ConfigError, match="'samples.a.000' is not known: did you write a number with commas, 100,000 for"
    ):
        check_configuration(config, load_schema(SCHEMAS))


# ------------------------------------------------------------------------------------------------ the files


def test_a_key_that_stands_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("reference: simulated\nsamples:\n  a: {reads: x.fq}\n  b: {reads: y.fq}\n  a: {reads: z.fq}\n")
    with pytest.raises(
        ConfigError, match=rf"{path}, line 5: the configuration key 'samples.a' stands here and in line 3"
    ):
        check_files([path])


def test_files_without_such_keys_pass(tmp_path: Path) -> None:
    """Equal keys in different places, anchors, a document that is none, and every configuration of ours."""
    path, broken = tmp_path / "mine.yaml", tmp_path / "broken.yaml"
    path.write_text("a: &x {k: 1}\nb: {k: 1, <<: *x}\nc: [{k: 1}, {k: 2}, *x]\n")
    broken.write_text("a: [1\n")
    check_files([path, broken, tmp_path / "missing.yaml", *(ROOT / "config").glob("*.yaml")])


# ----------------------------------------------------------------------------------- the schema and its readme


def described(node: dict[str, Any], schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Every key of the schema with its path, and the node it has to follow; names that are free are <name>."""
    children = list(node.get("properties", {}).items())
    children += [("<name>", node[key]) for key in ("additionalProperties", "items") if isinstance(node.get(key), dict)]
    for key, child in children:
        shared = schema["$defs"][child["$ref"].split("/")[-1]] if "$ref" in child else {}
        child = shared | child
        yield (*path, key), child
        yield from described(child, schema, (*path, key))
    if not path:
        for name, sample in schema["$defs"].items():
            if name.startswith("sample_"):
                yield from described(sample, schema, ("samples", "<name>"))


def test_the_schema_is_strict_and_describes_every_key() -> None:
    """No object takes a key that is not listed; every key has a description, and a default where it is not required."""
    schema = load_schema(SCHEMAS)
    assert schema["additionalProperties"] is False
    required = {"reads", "k", "mismatches", "lengths", "positions", "words", "share", "length", "shortest", "<name>"}
    count = 0
    for path, node in described(schema, schema):
        count += 1
        if path[-1] != "<name>" or "properties" in node:
            assert node.get("description"), path
        if "properties" in node:
            assert node["additionalProperties"] is False, path
        if path[-1] not in required or "<name>" not in path:
            assert "default" in node, path
    assert count > 70


def test_every_pattern_refuses_a_line_end() -> None:
    """Python's $ lets one through."""
    text = "".join(path.read_text() for path in sorted(SCHEMAS.glob("*.yaml")))
    patterns = re.findall(r"^ *pattern: (.*)$", text, re.MULTILINE)
    assert len(patterns) >= 5
    assert [pattern for pattern in patterns if not pattern.endswith("(?!\\n)$'")] == []


def test_the_schema_of_each_system_is_a_property() -> None:
    schema = load_schema(SCHEMAS)
    systems = {path.name.split(".")[0] for path in SCHEMAS.glob("*.schema.yaml")} - {"config"}
    assert systems >= set(SYSTEMS)  # one may be of use before it is measured
    assert systems <= set(schema["properties"])


def names_of(path: tuple[str, ...]) -> set[str]:
    """What a table may call a key: its own name, or with one or two before it."""
    return {".".join(path[-length:]) for length in (1, 2, 3)}


def test_the_readme_of_the_configuration_names_every_key() -> None:
    """A key that the schema knows and config/README.md does not is a key that nobody finds."""
    schema = load_schema(SCHEMAS)
    for path, node in described(schema, schema):
        if path[-1] != "<name>" and "properties" not in node:
            names = names_of(path)
            assert any(re.search(rf"^(\| `{name}` \||#+ .*`{name}`)", README, re.MULTILINE) for name in names), path


def test_the_readme_of_the_configuration_names_no_other_key() -> None:
    schema = load_schema(SCHEMAS)
    known = {name for path, _ in described(schema, schema) for name in names_of(path)}
    named = set(re.findall(r"^\| `([a-z_.]+)` \|", README, re.MULTILINE))
    assert len(named) > 30
    assert named <= known


def test_the_defaults_that_the_readme_states_are_those_of_a_default_run() -> None:
    """config.yaml laid over the schema's defaults, key by key where the table states a plain value."""
    config = completed((ROOT / "config" / "config.yaml").read_text())
    parts = {f"`{key}`": value for key, value in config.items() if isinstance(value, dict)}
    checked = 0
    for section in README.split("\n### ")[1:]:
        block = next((value for key, value in parts.items() if section.startswith(key)), {})
        stated = re.findall(r"^\| `([a-z_.]+)` \| [^|]* \| ([\d.]+|true|false|null) \|", section, re.MULTILINE)
        # The first table of a section is about the block itself, those after it about its entries.
        for key, default in dict(reversed(stated)).items():
            value: Any = block
            for part in key.split("."):
                value = value.get(part, "?") if isinstance(value, dict) else "?"
            if value != "?":
                assert value == yaml.safe_load(default), (section.split("\n")[0], key)
                checked += 1
    assert checked > 15
