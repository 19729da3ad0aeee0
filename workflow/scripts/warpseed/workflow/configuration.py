"""The configuration of the workflow: read against its schema, said in one sentence where it is wrong, completed.

Each system's block has a schema of its own, <system>.schema.yaml, which may use the `$defs` of config.schema.yaml.
"""

from __future__ import annotations

import copy
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from warpseed.errors import ConfigError

__all__ = ["check_configuration", "check_files", "load_schema"]

Schema = dict[str, Any]

_LISTED = "config/README.md lists every key"


def load_schema(folder: str | os.PathLike[str]) -> Schema:
    """Read config.schema.yaml of a folder, with the other schemas there as its properties, named by their systems."""
    import yaml

    schemas = {
        path.name.removesuffix(".schema.yaml"): yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted(Path(folder).glob("*.schema.yaml"))
    }
    whole = schemas.pop("config")
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
                f"{path}, line {second}: the configuration key '{_key_name(keys)}' stands here and in line {first}, "
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


def check_configuration(config: dict[str, Any], schema: Schema) -> None:
    """Stop at the first mistake in a configuration, then fill in every default.

    Parameters
    ----------
    config : dict
        As Snakemake read it; it is changed in place.
    schema : dict
        What `load_schema` returned.

    Raises
    ------
    ConfigError
        One sentence: which key, what it holds, what was expected.
    """
    import jsonschema

    if config.get("samples", {}) is None:
        config["samples"] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            config[key] = _plain_values(value)
    _check_names(config)
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(config))
    # A misspelt key is the likeliest cause of whatever else is wrong, so it is named first.
    errors.sort(key=lambda error: (error.validator != "additionalProperties", list(map(str, error.absolute_path))))
    if errors:
        raise ConfigError(_sentence(errors[0], config, schema))
    _remove_nulls(config, schema, schema)
    _fill_defaults(config, schema, schema)


def _plain_values(value: Any) -> Any:
    """`value` with its numbers, true, false and null as such: inside braces, --config gives them as text."""
    import yaml

    if isinstance(value, dict):
        return {key: _plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_values(item) for item in value]
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null|~", value):
        return yaml.safe_load(value)
    return value


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
                where = f"The configuration key '{_key_name(path)}'" if path else "The configuration"
                raise ConfigError(
                    f"{where} holds a name that YAML reads as {kind} ({name}), but names are text: write it in quotes, "
                    "e.g. '5' or 'yes'."
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


def _key_name(parts: Iterable[Any]) -> str:
    """A configuration key as its user would write it, e.g. kmer_seeds.datasets.S20.k."""
    return ".".join(str(part) for part in parts)


def _sentence(error: Any, config: Mapping[str, Any], schema: Schema) -> str:
    """One finding of jsonschema as one sentence: what was found, where, and what was expected."""
    if error.validator == "additionalProperties":
        return _unknown_key(error)
    path = list(error.absolute_path)
    where = f"The configuration key '{_key_name(path)}'" if path else "The configuration"
    if "propertyNames" in error.absolute_schema_path:
        names = _resolved(_node_at(schema, path)["propertyNames"], schema)
        return f"{where} holds the name {error.instance!r}, but a name should be: {names['description']}; rename it."
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{where} lacks '{missing}': add it ({_LISTED})."
    # An item of a list has no description of its own; its list has.
    while path and isinstance(path[-1], int):
        path.pop()
    value, node = _value_at(config, path), _node_at(schema, path)
    where = f"The configuration key '{_key_name(path)}'" if path else "The configuration"
    if "properties" in node or "additionalProperties" in node:
        return f"{where} is {value!r}, but it should hold further keys: {node['description']}."
    return f"{where} is {value!r}, but it should be: {node['description']}{_hint(value, node)}."


def _unknown_key(error: Any) -> str:
    """Say which key is not known, and which one was perhaps meant."""
    known = list(error.schema.get("properties", {}))
    unknown = sorted(str(key) for key in error.instance if key not in known)[0]
    guesses = difflib.get_close_matches(unknown, known, n=1)
    hint = f"did you mean '{guesses[0]}'" if guesses else f"known here are {', '.join(known)}"
    return f"The configuration key '{_key_name([*error.absolute_path, unknown])}' is not known: {hint}? {_LISTED}."


def _value_at(config: Any, path: Iterable[Any]) -> Any:
    for part in path:
        config = config[part]
    return config


def _node_at(schema: Schema, path: Iterable[Any]) -> Schema:
    node = schema
    for part in path:
        node = _child(node, part, schema)
    return node


def _hint(value: Any, node: Schema) -> str:
    """What to do about the two likeliest mistakes: a number that is text, several files where one is wanted."""
    types = node.get("type", [])
    types = [types] if isinstance(types, str) else types
    if isinstance(value, list) and "string" in types:
        return "; it takes one value, not a list: join several files into one first (cat a.fq.gz b.fq.gz > all.fq.gz)"
    if isinstance(value, str) and {"integer", "number"} & set(types):
        number = _number(value)
        return f"; '{value}' is text for YAML: write {number}" if number else "; what stands there is text"
    return ""


def _number(text: str) -> str:
    """A number that was written for people (1e6, 100,000) as YAML reads it; empty where it is none."""
    try:
        number = float(re.sub(r"[,_ ']", "", text))
    except ValueError:
        return ""
    return str(int(number)) if number.is_integer() else repr(number) if number == number else ""
