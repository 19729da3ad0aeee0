"""The configuration of the workflow: read against its schema, said in one sentence where it is wrong, completed.

Each system's block has a schema of its own, <system>.schema.yaml, which may use the `$defs` of config.schema.yaml. Its
`$defs/sample_<name>` are the keys of a sample that says ``system: <name>``, beside those of every sample.
"""

from __future__ import annotations

import copy
import difflib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpseed.errors import ConfigError
from warpseed.workflow.sheets import Places, key_name, plain_value, read_sheet

__all__ = ["check_configuration", "check_files", "load_schema"]

Schema = dict[str, Any]

_LISTED = "config/README.md lists every key"
_SAMPLE = "sample_"


def load_schema(folder: str | os.PathLike[str]) -> Schema:
    """Read config.schema.yaml of a folder, with the other schemas there as its properties, named by their systems."""
    import yaml

    schemas = {
        path.name.removesuffix(".schema.yaml"): yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted(Path(folder).glob("*.schema.yaml"))
    }
    whole = schemas.pop("config")
    sample = whole["$defs"]["sample"]
    for block in schemas.values():
        for name, node in block.pop("$defs", {}).items():
            of_sample = name.startswith(_SAMPLE)
            whole["$defs"][name] = (
                sample | {"properties": sample["properties"] | node["properties"]} if of_sample else node
            )
    whole["properties"] |= schemas
    return whole


def check_files(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse a file in which a key stands twice: YAML keeps the last one and says nothing.

    Raises
    ------
    ConfigError
        Which key, and both lines. A file that is no YAML is left to Snakemake, which says so.
    """
    import yaml

    for path in dict.fromkeys(Path(given) for given in paths):
        try:
            root = yaml.compose(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        for keys, first, second in _repeated_keys(root):
            raise ConfigError(
                f"{path}, line {second}: the configuration key '{key_name(keys)}' stands here and in line {first}, "
                "and only the last would count: rename one, or join them."
            )


def _repeated_keys(root: Any) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Keys that a mapping of a YAML document has twice: their path, and the line of each, counted from 1."""
    seen: set[int] = set()
    queue: list[tuple[Any, tuple[str, ...]]] = [(root, ())]
    while queue:
        node, path = queue.pop(0)
        if node is None or id(node) in seen or isinstance(node.value, str):
            continue
        seen.add(id(node))
        if node.id == "sequence":
            queue += [(item, (*path, str(i))) for i, item in enumerate(node.value)]
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            # "<<" takes over what another mapping has, and may stand more than once.
            if not isinstance(key.value, str) or key.value == "<<":
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                yield (*path, key.value), lines[key.value], line
            lines[key.value] = line
            queue.append((value, (*path, key.value)))


def check_configuration(config: dict[str, Any], schema: Schema) -> Places:
    """Stop at the first mistake in a configuration, then fill in every default.

    Parameters
    ----------
    config : dict
        As Snakemake read it; it is changed in place: what a sample sheet says takes the place of its path.
    schema : dict
        What `load_schema` returned.

    Returns
    -------
    Places
        Where the keys stand, for later sentences.

    Raises
    ------
    ConfigError
        One sentence: which key, what it holds, what was expected.
    """
    import jsonschema

    places = Places()
    if config.get("samples", {}) is None:
        config["samples"] = {}
    if isinstance(config.get("samples"), str):
        config["samples"], places = read_sheet(config["samples"], _columns(schema))
    schema = _with_samples(schema, config.get("samples"))
    for key, value in config.items():
        if isinstance(value, dict) and not (key == "samples" and places.sheet):
            config[key] = _plain_values(value, _child_or_any(schema, key, schema), schema)
    _check_names(config)
    whole_numbers = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=whole_numbers)
    errors = list(validator(schema).iter_errors(config))
    # A misspelt key is the likeliest cause of whatever else is wrong, so it is named first.
    errors.sort(key=lambda error: (error.validator != "additionalProperties", list(map(str, error.absolute_path))))
    if errors:
        raise ConfigError(_sentence(errors[0], config, schema, places))
    _remove_nulls(config, schema, schema)
    _fill_defaults(config, schema, schema)
    return places


def _columns(schema: Schema) -> dict[str, bool]:
    """Every key that a sample of some system can have, and whether it holds text alone."""
    columns = {}
    for name, node in schema["$defs"].items():
        if name.startswith(_SAMPLE):
            for key, child in node["properties"].items():
                columns[key] = _is_text(_resolved(child, schema))
    return columns


def _with_samples(schema: Schema, samples: Any) -> Schema:
    """The schema for these samples: each is held to the keys of its own system."""
    named = {}
    for name, sample in samples.items() if isinstance(samples, dict) else ():
        system = sample.get("system", "kmers") if isinstance(sample, dict) else "kmers"
        node = {"$ref": f"#/$defs/{_SAMPLE}{system}"}
        # Of a system that there is not, nothing but its name can be said.
        unknown = schema["$defs"]["sample"] | {"additionalProperties": True}
        named[name] = node if f"{_SAMPLE}{system}" in schema["$defs"] else unknown
    properties = schema["properties"]
    return schema | {"properties": properties | {"samples": properties["samples"] | {"properties": named}}}


def _plain_values(value: Any, node: Schema, schema: Schema) -> Any:
    """`value` with its numbers, true, false and null as such, but for a key that holds text alone.

    Inside braces, --config gives them as text; in a file, what is in quotes is text that was meant.
    """
    if isinstance(value, dict):
        return {key: _plain_values(item, _child_or_any(node, key, schema), schema) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_values(item, _child_or_any(node, 0, schema), schema) for item in value]
    if not isinstance(value, str):
        return value
    plain, types = plain_value(value), _types(node)
    meant = "string" in types and _is_text(node) and not (plain is None and "null" in types)
    return value if meant else plain


def _check_names(value: Any, path: tuple[Any, ...] = ()) -> None:
    """Refuse a name that YAML does not read as text: 5, 0x1F, 2024-01-01, yes, null."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
        for name in value:
            if not isinstance(name, str):
                kind = (
                    "true or false" if isinstance(name, bool) else "nothing" if name is None else "a number or a date"
                )
                where = f"The configuration key '{key_name(path)}'" if path else "The configuration"
                advice = "write it in quotes, e.g. '5' or 'yes'"
                if isinstance(name, int) and value[name] is None:
                    advice += " (and a number is written without commas, e.g. 100000)"
                raise ConfigError(
                    f"{where} holds a name that YAML reads as {kind} ({name}), but names are text: {advice}."
                )
    elif isinstance(value, list):
        items = enumerate(value)
    for name, item in items:
        _check_names(item, (*path, name))


# ----------------------------------------------------------------------------------------------- the schema


def _resolved(node: Schema, schema: Schema) -> Schema:
    """A node with what its `$ref` (#/$defs/NAME) stands for; what the node says itself wins."""
    while "$ref" in node:
        kept = {key: value for key, value in node.items() if key != "$ref"}
        node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")] | kept
    return node


def _child(node: Schema, part: Any, schema: Schema) -> Schema:
    """The node that a key or the items of a list have to follow."""
    if isinstance(part, int):
        return _resolved(node["items"], schema)
    return _resolved(node.get("properties", {}).get(part) or node["additionalProperties"], schema)


def _child_or_any(node: Schema, part: Any, schema: Schema) -> Schema:
    """The same, and of what the schema does not know, a node that takes anything."""
    child = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
    child = child or node.get("additionalProperties")
    return _resolved(child, schema) if isinstance(child, dict) else {}


def _remove_nulls(value: dict[str, Any], node: Schema, schema: Schema) -> None:
    """Leave out what a file laid over another one sets to null where names are free, e.g. a data set."""
    named = isinstance(node.get("additionalProperties"), dict)
    for name in list(value):
        child = _child(node, name, schema)
        if named and value[name] is None:
            del value[name]
        elif isinstance(value[name], dict):
            _remove_nulls(value[name], child, schema)


def _fill_defaults(value: Any, node: Schema, schema: Schema) -> None:
    """Add every key that has a default and is not there, in place."""
    if isinstance(value, list):
        for item in value:
            _fill_defaults(item, _resolved(node.get("items", {}), schema), schema)
    if not isinstance(value, dict):
        return
    for key, property_node in node.get("properties", {}).items():
        known = _resolved(property_node, schema)
        if key not in value and "default" in known:
            value[key] = copy.deepcopy(known["default"])
    for key, item in value.items():
        _fill_defaults(item, _child(node, key, schema), schema)


# -------------------------------------------------------------------------------------------- the sentences


def _sentence(error: Any, config: Mapping[str, Any], schema: Schema, places: Places) -> str:
    """One finding of jsonschema as one sentence: what was found, where, and what was expected."""
    path = list(error.absolute_path)
    if error.validator == "additionalProperties":
        return _unknown_key(error, schema, places)
    if "propertyNames" in error.absolute_schema_path:
        where = places.subject([*path, error.instance] if places.sheet and path == ["samples"] else path)
        names = _resolved(_node_at(schema, path)["propertyNames"], schema)
        return f"{where} holds the name {error.instance!r}, but a name should be: {names['description']}; rename it."
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{places.subject(path)} lacks '{missing}': add it ({_LISTED})."
    # An item of a list has no description of its own; its list has.
    while path and isinstance(path[-1], int):
        path.pop()
    value, node, where = _value_at(config, path), _node_at(schema, path), places.subject(path)
    if "properties" in node or "additionalProperties" in node:
        return f"{where} is {value!r}, but it should hold further keys: {node['description']}."
    return f"{where} is {value!r}, but it should be: {node['description']}{_hint(value, node)}."


def _unknown_key(error: Any, schema: Schema, places: Places) -> str:
    """Say which key is not known, and which one was perhaps meant."""
    known = list(error.schema.get("properties", {}))
    unknown = sorted(str(key) for key in error.instance if key not in known)[0]
    guesses = difflib.get_close_matches(unknown, known, n=1)
    hint = f"did you mean '{guesses[0]}'" if guesses else f"known here are {', '.join(known)}"
    owner = _owner(unknown, error.absolute_path, schema)
    if owner:
        return (
            f"{places.subject([*error.absolute_path, unknown])} is a setting of samples with 'system: {owner}', which "
            f"this one has not: remove it, or write that. {_LISTED}."
        )
    if unknown.isdecimal():
        hint = "did you write a number with commas, 100,000 for 100000"
    return f"{places.subject([*error.absolute_path, unknown])} is not known: {hint}? {_LISTED}."


def _owner(key: str, path: Sequence[Any], schema: Schema) -> str | None:
    """The system whose samples have a key that another sample, at `path`, was given."""
    if len(path) != 2 or path[0] != "samples":
        return None
    systems = {name.removeprefix(_SAMPLE): node for name, node in schema["$defs"].items() if name.startswith(_SAMPLE)}
    return next((system for system, node in systems.items() if key in node["properties"]), None)


def _value_at(config: Any, path: Iterable[Any]) -> Any:
    for part in path:
        config = config[part]
    return config


def _node_at(schema: Schema, path: Iterable[Any]) -> Schema:
    node = schema
    for part in path:
        node = _child(node, part, schema)
    return node


def _types(node: Schema) -> set[str]:
    """The types that a value may have."""
    types = node.get("type", [])
    named = {types} if isinstance(types, str) else set(types)
    return named.union(*(_types(other) for other in node.get("anyOf", ())))


def _is_text(node: Schema) -> bool:
    """Whether a value is text, or null, and never a number, true or false."""
    return not {"integer", "number", "boolean"} & _types(node)


def _hint(value: Any, node: Schema) -> str:
    """What to do about the likeliest mistakes: a number that is text or broken, several files where one is wanted."""
    types = _types(node)
    if isinstance(value, list) and "string" in types:
        return "; it takes one value, not a list: join several files into one first (cat a.fq.gz b.fq.gz > all.fq.gz)"
    if isinstance(value, float) and "integer" in types and value.is_integer():
        return f"; write {int(value)}"
    if isinstance(value, str) and {"integer", "number"} & types:
        number = _number(value)
        return f"; '{value}' is read as text: write {number}" if number else "; what stands there is text"
    return ""


def _number(text: str) -> str:
    """A number that was written for people (1e6, 100,000) as YAML reads it; empty where it is none."""
    try:
        number = float(re.sub(r"[,_ ']", "", text))
    except ValueError:
        return ""
    if not math.isfinite(number):
        return ""
    return str(int(number)) if number.is_integer() else repr(number)
