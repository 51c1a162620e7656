"""Secrets in a tap's config: secret settings, and references to secrets stored elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from balog.common.errors import ConfigError
from balog.tap.json_schema.keywords import MAX_DEPTH, Steps, is_number, rebuilt, types_of
from balog.tap.json_schema.references import resolve_reference

HIDDEN = "****"
_SHORTEST = 4
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}


@cache
def _names() -> Any:
    from balog.common.redaction import default_names

    return default_names()


def is_secret(name: str, schema: Any = None) -> bool:
    """Return whether a setting is secret according to its schema, else according to its name, as in events.

    A schema marks a secret with ``"secret": true`` (the Meltano SDK's form), ``"writeOnly": true`` or
    ``"format": "password"``. ``"secret": false`` means that the setting is not secret.
    """
    if isinstance(schema, Mapping):
        if isinstance(schema.get("secret"), bool):
            return bool(schema["secret"])
        if schema.get("writeOnly") is True or schema.get("format") == "password":
            return True
    return name in _names()


def secret_texts(config: Any, schema: Any = None, root: Any = None) -> Iterator[str]:
    """Yield the secrets of a config, as strings of at least four characters."""
    root = schema if root is None else root
    for name, value, declared in _parts(config, schema, root):
        if isinstance(name, str) and is_secret(name, declared) and not _has_settings(name, value, declared):
            yield from _texts(value)
        else:
            yield from secret_texts(value, declared, root)


def _parts(config: Any, schema: Any = None, root: Any = None) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield the names or indexes in a config with their values and the values' schemas."""
    inner = resolve_reference(schema, root)
    if isinstance(config, Mapping):
        for name, value in config.items():
            yield name, value, _property(inner, name)
    elif isinstance(config, list):
        items = inner.get("items") if isinstance(inner, Mapping) else None
        for number, value in enumerate(config):
            yield number, value, items


def _has_settings(name: str, value: Any, schema: Any) -> bool:
    """Return whether a value is an object such as ``auth``, where each inner setting's name decides."""
    rule = _names().rule_of(name) if isinstance(value, Mapping) and not is_secret("", schema) else None
    return rule is not None and rule.kind == "name"


def reveal(config: Any, schema: Any, root: Any, path: str, texts: set[str], problems: list[ConfigError]) -> Any:
    """Return a copy of a config with its references to secrets resolved: ``{"env": "NAME"}`` or ``{"file": "PATH"}``.

    Such an object is a reference unless the schema expects an object there. The secret's text is converted to the
    schema's type, as the text of an environment variable is.

    Args:
        config: the decoded config, or a part of it.
        schema: the schema of this part; ``root`` is the whole schema.
        path: the JSONPath of this part.
        texts: receives the secrets.
        problems: receives an error for each secret that cannot be read.
    """
    inner = resolve_reference(schema, root)
    if isinstance(config, Mapping) and _is_reference(config) and path != "$" and not _wants_object(inner, root):
        from balog.common.secrets import Secret

        try:
            text = msgspec.convert(dict(config), Secret).reveal(path)
        except ConfigError as error:
            problems.append(error)
            return ""
        except msgspec.ValidationError:
            problems.append(ConfigError("the name of a secret's place is empty", path=path))
            return ""
        texts.add(text)
        return convert_text(text, inner, root)
    revealed: dict[str | int, Any] = {}
    for name, value, declared in _parts(config, schema, root):
        inner_path = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}"
        revealed[name] = reveal(value, declared, root, inner_path, texts, problems)
    if isinstance(config, Mapping):
        return revealed
    return list(revealed.values()) if isinstance(config, list) else config


def convert_text(text: str, schema: Any, root: Any) -> Any:
    """Convert a text to the type of its schema, as JSON unless the schema expects a string.

    Where the schema expects a boolean, ``true``, ``yes``, ``on`` and ``1`` are true, in upper or lower case. A
    text that cannot be converted stays unchanged, so that validation reports it.
    """
    kinds = _all_kinds(schema, root)
    if not kinds or "string" in kinds:
        return text
    if "boolean" in kinds and not kinds & {"integer", "number"} and text.strip().lower() in _BOOLEANS:
        return _BOOLEANS[text.strip().lower()]
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    is_whole = isinstance(value, float) and value.is_integer() and "number" not in kinds
    return int(value) if is_whole else value


def mark_secrets(schema: Any, name: str = "", depth: int = 0) -> Any:
    """Return a copy of a config's schema that marks secrets with ``"secret": true`` and hides their defaults."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return schema

    def mark(inner: Any, steps: Steps) -> Any:
        return mark_secrets(inner, str(steps[1]) if steps[0] == "properties" else "", depth + 1)

    marked_schema = rebuilt(schema, mark)
    if name and is_secret(name, schema):
        marked_schema |= {"secret": True, "writeOnly": True}
        marked_schema |= {declared: HIDDEN for declared in ("default", "const") if declared in marked_schema}
        marked_schema.pop("examples", None)
    return marked_schema


def _texts(value: Any) -> Iterator[str]:
    for _, inner, _ in _parts(value):
        yield from _texts(inner)
    is_text = isinstance(value, str) or is_number(value)
    if is_text and len(str(value)) >= _SHORTEST:
        yield str(value)


def _property(schema: Any, name: str) -> Any:
    if not isinstance(schema, Mapping):
        return None
    subschema = schema.get("properties", {}).get(name)
    return schema.get("additionalProperties") if subschema is None else subschema


def _is_reference(config: Mapping[str, Any]) -> bool:
    return len(config) == 1 and all(
        key in ("env", "file") and isinstance(declared, str) for key, declared in config.items()
    )


def _wants_object(schema: Any, root: Any) -> bool:
    return "object" in _all_kinds(schema, root) or (isinstance(schema, Mapping) and "properties" in schema)


def _all_kinds(schema: Any, root: Any, depth: int = 0) -> set[str]:
    """Return the types that a schema declares, including those of its alternatives."""
    schema = resolve_reference(schema, root)
    kinds = set(types_of(schema))
    if isinstance(schema, Mapping) and depth < 10:
        for keyword in ("anyOf", "oneOf", "allOf"):
            for inner in schema.get(keyword, ()):
                kinds |= _all_kinds(inner, root, depth + 1)
        if not kinds:
            values = schema.get("enum", [schema["const"]] if "const" in schema else [])
            kinds |= {"string" if isinstance(value, str) else "other" for value in values}
    return kinds
