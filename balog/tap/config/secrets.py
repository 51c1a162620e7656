"""Secrets in a tap's config: secret settings, references to secrets stored elsewhere, and redaction of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from balog.errors import ConfigError
from balog.tap.json_schema.keywords import types_of
from balog.tap.json_schema.references import resolve_reference

HIDDEN = "****"
_SHORTEST = 4
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}


@cache
def _names() -> Any:
    from balog.redaction import default_names

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
    inner = resolve_reference(schema, root)
    if isinstance(config, Mapping):
        for name, value in config.items():
            declared = _property(inner, name)
            if is_secret(str(name), declared) and not _has_settings(str(name), value, declared):
                yield from _texts(value)
            else:
                yield from secret_texts(value, declared, root)
    elif isinstance(config, list):
        items = inner.get("items") if isinstance(inner, Mapping) else None
        for value in config:
            yield from secret_texts(value, items, root)


def _has_settings(name: str, value: Any, schema: Any) -> bool:
    """Return whether a value is an object such as ``auth``, where each inner setting's name decides."""
    rule = _names().rule_of(name) if isinstance(value, Mapping) and not is_secret("", schema) else None
    return rule is not None and rule.kind == "name"


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text with each secret replaced by ``****``."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def reveal(config: Any, schema: Any, root: Any, path: str, found: set[str], problems: list[ConfigError]) -> Any:
    """Return a copy of a config with its references to secrets resolved: ``{"env": "NAME"}`` or ``{"file": "PATH"}``.

    Such an object is a reference unless the schema expects an object there. The secret's text is converted to the
    schema's type, as the text of an environment variable is.

    Args:
        config: the decoded config, or a part of it.
        schema: the schema of this part; ``root`` is the whole schema.
        path: the JSONPath of this part.
        found: receives the secrets.
        problems: receives an error for each secret that cannot be read.
    """
    inner = resolve_reference(schema, root)
    if isinstance(config, Mapping):
        if _is_reference(config) and path != "$" and not _wants_object(inner, root):
            from balog.secrets import Secret

            try:
                text = msgspec.convert(dict(config), Secret).reveal(path)
            except ConfigError as error:
                problems.append(error)
                return ""
            except msgspec.ValidationError:
                problems.append(ConfigError("the name of a secret's place is empty", path=path))
                return ""
            found.add(text)
            return convert_text(text, inner, root)
        return {
            name: reveal(value, _property(inner, name), root, f"{path}.{name}", found, problems)
            for name, value in config.items()
        }
    if isinstance(config, list):
        items = inner.get("items") if isinstance(inner, Mapping) else None
        return [reveal(value, items, root, f"{path}[{number}]", found, problems) for number, value in enumerate(config)]
    return config


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
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def mark_secrets(schema: Any, root: Any = None, name: str = "", depth: int = 0) -> Any:
    """Return a copy of a config's schema that marks secrets with ``"secret": true`` and hides their defaults."""
    if not isinstance(schema, Mapping) or depth > 60:
        return schema
    made: dict[str, Any] = dict(schema)
    if name and is_secret(name, schema):
        made |= {"secret": True, "writeOnly": True}
        for declared in ("default", "const"):
            if declared in made:
                made[declared] = HIDDEN
        made.pop("examples", None)
    for keyword in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(made.get(keyword), Mapping):
            is_named = keyword == "properties"
            made[keyword] = {
                key: mark_secrets(inner, root, key if is_named else "", depth + 1)
                for key, inner in made[keyword].items()
            }
    for keyword in ("items", "additionalProperties"):
        if keyword in made:
            made[keyword] = mark_secrets(made[keyword], root, "", depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if isinstance(made.get(keyword), list):
            made[keyword] = [mark_secrets(inner, root, "", depth + 1) for inner in made[keyword]]
    return made


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= _SHORTEST:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and len(str(value)) >= _SHORTEST:
        yield str(value)


def _property(schema: Any, name: str) -> Any:
    if not isinstance(schema, Mapping):
        return None
    found = schema.get("properties", {}).get(name)
    return schema.get("additionalProperties") if found is None else found


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
