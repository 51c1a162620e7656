"""Secrets in a tap's config: which settings are secret, where one is kept elsewhere, and texts without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from balog.errors import ConfigError
from balog.tap.config.json_types import kinds_of, target_of

__all__ = ["HIDDEN", "hide", "is_secret", "marked", "reveal", "secret_texts", "typed"]

HIDDEN = "****"
_SHORTEST = 4
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}


@cache
def _names() -> Any:
    from balog.redaction import default_names

    return default_names()


def is_secret(name: str, schema: Any = None) -> bool:
    """Tell whether a setting is secret: by its name, as in events, or because its schema says so.

    A schema says so with ``"secret": true`` (the Meltano SDK's way), ``"writeOnly": true`` or ``"format": "password"``,
    and the other way round with ``"secret": false``.
    """
    if isinstance(schema, Mapping):
        if isinstance(schema.get("secret"), bool):
            return bool(schema["secret"])
        if schema.get("writeOnly") is True or schema.get("format") == "password":
            return True
    return name in _names()


def secret_texts(config: Any, schema: Any = None, root: Any = None) -> Iterator[str]:
    """Give the secrets that a config holds, as texts of at least four characters."""
    root = schema if root is None else root
    inner = target_of(schema, root)
    if isinstance(config, Mapping):
        for name, value in config.items():
            said = _property(inner, name)
            if is_secret(str(name), said) and not _has_settings(str(name), value, said):
                yield from _texts(value)
            else:
                yield from secret_texts(value, said, root)
    elif isinstance(config, list):
        items = inner.get("items") if isinstance(inner, Mapping) else None
        for value in config:
            yield from secret_texts(value, items, root)


def _has_settings(name: str, value: Any, schema: Any) -> bool:
    """Return whether a value is an object such as ``auth``, in which each setting's own name decides."""
    rule = _names().rule_of(name) if isinstance(value, Mapping) and not is_secret("", schema) else None
    return rule is not None and rule.kind == "name"


def hide(text: str, secrets: Iterable[str]) -> str:
    """Give the text with ``****`` for each secret in it."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def reveal(config: Any, schema: Any, root: Any, path: str, found: set[str], problems: list[ConfigError]) -> Any:
    """Give a copy of a config with the secrets that it refers to: ``{"env": "NAME"}`` or ``{"file": "PATH"}``.

    It is a reference where the schema does not want an object; its text becomes what the schema wants, as that of an
    environment variable does.

    Args:
        config: as it was read.
        schema: of this part of the config; ``root`` is the whole one.
        path: of this part, as a JSONPath.
        found: the secrets are put there.
        problems: and there why one cannot be had.
    """
    inner = target_of(schema, root)
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
            return typed(text, inner, root)
        return {
            name: reveal(value, _property(inner, name), root, f"{path}.{name}", found, problems)
            for name, value in config.items()
        }
    if isinstance(config, list):
        items = inner.get("items") if isinstance(inner, Mapping) else None
        return [reveal(value, items, root, f"{path}[{number}]", found, problems) for number, value in enumerate(config)]
    return config


def typed(text: str, schema: Any, root: Any) -> Any:
    """Give what a text stands for where only texts can be said: by JSON, but for what the schema wants as a text.

    ``true``, ``yes``, ``on`` and ``1`` are true where that is wanted, in any case. A text that is nothing of what is
    wanted stays what it is: the check tells of it.
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


def marked(schema: Any, root: Any = None, name: str = "", depth: int = 0) -> Any:
    """Give a copy of a config's schema with ``"secret": true`` at what is secret, its defaults and examples hidden."""
    if not isinstance(schema, Mapping) or depth > 60:
        return schema
    made: dict[str, Any] = dict(schema)
    if name and is_secret(name, schema):
        made |= {"secret": True, "writeOnly": True}
        for said in ("default", "const"):
            if said in made:
                made[said] = HIDDEN
        made.pop("examples", None)
    for keyword in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(made.get(keyword), Mapping):
            is_named = keyword == "properties"
            made[keyword] = {
                key: marked(inner, root, key if is_named else "", depth + 1) for key, inner in made[keyword].items()
            }
    for keyword in ("items", "additionalProperties"):
        if keyword in made:
            made[keyword] = marked(made[keyword], root, "", depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if isinstance(made.get(keyword), list):
            made[keyword] = [marked(inner, root, "", depth + 1) for inner in made[keyword]]
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
    return len(config) == 1 and all(key in ("env", "file") and isinstance(said, str) for key, said in config.items())


def _wants_object(schema: Any, root: Any) -> bool:
    return "object" in _all_kinds(schema, root) or (isinstance(schema, Mapping) and "properties" in schema)


def _all_kinds(schema: Any, root: Any, depth: int = 0) -> set[str]:
    """Give the types that a schema names, also those of the forms that it lets choose from."""
    schema = target_of(schema, root)
    kinds = set(kinds_of(schema))
    if isinstance(schema, Mapping) and depth < 10:
        for keyword in ("anyOf", "oneOf", "allOf"):
            for inner in schema.get(keyword, ()):
                kinds |= _all_kinds(inner, root, depth + 1)
        if not kinds:
            values = schema.get("enum", [schema["const"]] if "const" in schema else [])
            kinds |= {"string" if isinstance(value, str) else "other" for value in values}
    return kinds
