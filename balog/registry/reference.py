"""Validates with the package jsonschema: the reference for jsonschema-rs, and the fallback where that is missing.

jsonschema is written in Python, and about a hundred times slower than jsonschema-rs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

from balog.registry.reasons import describe_error, json_path
from balog.registry.schema import InvalidSchemaError, SchemaViolation
from balog.registry.subschemas import copy_schema

_SPACES = "\\t\\n\\x0b\\f\\r \\xa0\\ufeff\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_OUTSIDE = {"d": "[0-9]", "D": "[^0-9]", "w": "[0-9A-Za-z_]", "W": "[^0-9A-Za-z_]",
            "s": f"[{_SPACES}]", "S": f"[^{_SPACES}]"}  # fmt: skip
_INSIDE = {"d": "0-9", "w": "0-9A-Za-z_", "s": _SPACES}
_TOKEN = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|\(\?.?|.", re.DOTALL)
_SAME = frozenset("tnrfvbB")


class ReferenceValidator:
    """A schema compiled by jsonschema; may be used from any thread.

    Args:
        document: the schema; its limits have been checked.
        where: the file or ``TYPE/VERSION``, for errors.
        formats: check ``format`` as far as the installed packages allow.

    Raises:
        InvalidSchemaError: not a JSON Schema, or a pattern that Python reads differently.
        ImportError: jsonschema is not installed.
    """

    def __init__(self, document: Any, where: str = "", formats: bool = True) -> None:
        import jsonschema
        from jsonschema_specifications import REGISTRY

        original = document.get("$schema") if isinstance(document, dict) else None
        kind = jsonschema.validators.validator_for(
            document, default=None if original else jsonschema.Draft202012Validator
        )
        if kind is None:
            raise InvalidSchemaError("$schema is none of the drafts 4, 6, 7, 2019-09 and 2020-12", where, "$.$schema")
        try:
            kind.check_schema(document, format_checker=None)
        except jsonschema.SchemaError as error:
            raise InvalidSchemaError("not a JSON Schema", where, json_path(list(error.absolute_path))) from None
        checker = kind.FORMAT_CHECKER if formats else None
        try:
            self._validator = kind(
                copy_schema(document, _with_python_patterns), format_checker=checker, registry=REGISTRY
            )
            self.is_valid(None)
        except re.error as error:
            raise InvalidSchemaError(f"not a regular expression: {error}", where) from None
        except ValueError as error:
            raise InvalidSchemaError(str(error), where) from None

    def is_valid(self, payload: Any) -> bool:
        """Return whether a decoded payload is valid.

        Raises:
            ValueError: the payload is nested too deep, or a reference leads nowhere.
        """
        return next(self._errors(payload), None) is None

    def violations(self, payload: Any, most: int) -> list[SchemaViolation]:
        """Return up to ``most`` violations of a decoded payload."""
        found = islice((violation for error in self._errors(payload) for violation in _violations(error)), most)
        return list(dict.fromkeys(found))

    def _errors(self, payload: Any) -> Iterator[Any]:
        from referencing.exceptions import Unresolvable

        try:
            yield from self._validator.iter_errors(payload)
        except RecursionError:
            raise ValueError("nested too deep") from None
        except Unresolvable as error:
            raise ValueError(f"$ref {str(error.ref)[:100]!r} leads nowhere") from None


def _violations(error: Any) -> Iterator[SchemaViolation]:
    path = json_path(list(error.absolute_path))
    for original in _error_views(error):
        yield SchemaViolation(path, describe_error(original))


def _error_view(name: str, words: dict[str, Any], schema_path: list[Any]) -> SimpleNamespace:
    """Return an error with the attributes of jsonschema-rs errors, so that both get the same reasons."""
    kind = SimpleNamespace(name=name, **words, __match_args__=tuple(words))
    return SimpleNamespace(kind=kind, schema_path=schema_path)


def _error_views(error: Any) -> Iterator[SimpleNamespace]:
    name, value, schema_path = error.validator, error.validator_value, list(error.absolute_schema_path)
    if name is None:
        name, value = "falseSchema", None
    names = ("limit", "format", "multiple_of", "schema", "expected_value", "options")
    words: dict[str, Any] = dict.fromkeys(names, value)
    words["types"] = value if isinstance(value, list) else [value]
    words["pattern"] = getattr(value, "original", value)
    words["error"] = _error_view("its schema", {}, [])
    if name == "required" and isinstance(value, list):
        for each in value:
            if each not in error.instance:
                yield _error_view(name, {"property": each}, schema_path)
        return
    if name in ("additionalProperties", "unevaluatedProperties"):
        words["unexpected"] = _unexpected(error)
    yield _error_view(str(name), words, schema_path)


def _unexpected(error: Any) -> list[str]:
    schema = error.schema if isinstance(error.schema, dict) else {}
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [
        name for name in error.instance
        if name not in known and not any(re.search(pattern, name) for pattern in patterns)
    ]  # fmt: skip


def _with_python_patterns(schema: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    if isinstance(pattern := original.get("pattern"), str):
        schema["pattern"] = _pattern(pattern)
    if isinstance(patterns := schema.get("patternProperties"), dict):
        schema["patternProperties"] = {_pattern(pattern): inner for pattern, inner in patterns.items()}
    return schema


class _Pattern(str):
    """A pattern for ``re``; ``original`` is the pattern in the schema."""

    original: str


def _pattern(pattern: str) -> str:
    """Translate a pattern of ECMA 262 to Python.

    Raises:
        ValueError: the pattern has a look-around, a back reference, or a class that Python does not know.
    """
    made, is_inside = [], False
    for match in _TOKEN.finditer(pattern):
        part = match[0]
        if part[0] == "\\":
            char = part[1:2]
            table = _INSIDE if is_inside else _OUTSIDE
            if char in table:
                part = table[char]
            elif char == "v":
                part = "\\x0b"
            elif char == "/":
                part = "/"
            elif char.isascii() and char.isalnum() and not (char in _SAME or len(part) > 2):
                raise ValueError(f"{part} in a pattern is read by jsonschema-rs alone")
        elif is_inside:
            is_inside = part != "]"
            part = "\\[" if part == "[" else part
        elif part == "[":
            is_inside = True
        elif part == "$":
            part = "\\Z"
        elif part.startswith("(?") and part != "(?:":
            raise ValueError("a pattern that does not run in linear time: no look-around, no back reference")
        made.append(part)
    found = _Pattern(f"(?a:{''.join(made)})")
    re.compile(found)
    found.original = pattern
    return found
