"""Validation of configs against JSON Schema, by jsonschema-rs. No message has a value of the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from balog.common.errors import ConfigError
from balog.tap.errors import TapError
from balog.tap.json_schema.formats import is_instant
from balog.tap.json_schema.mismatch import TYPE_WORDS, json_path, type_name

_NOT_RESTRICTING = ("password", "binary", "byte", "int32", "int64", "float", "double")
_FORMATS = {"instant": is_instant, **dict.fromkeys(_NOT_RESTRICTING, lambda text: True)}
_FORMAT_WORDS = {
    "date": "a date as 2026-01-31",
    "date-time": "a date and time as 2026-01-31T00:00:00Z",
    "instant": "a date as 2026-01-31, or a date and time as 2026-01-31T00:00:00Z",
}


def compile_schema(schema: dict[str, Any]) -> Any:
    """Return the validator of a JSON Schema; formats are checked, and nothing is fetched.

    Raises:
        TapError: it is not a JSON Schema, or it has an unknown format, an unknown reference, or a pattern that is not
            one of Rust's regex crate, which takes linear time.
    """
    import jsonschema_rs  # imported when a tap reads its config

    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            ignore_unknown_formats=False,
            formats=_FORMATS,
            pattern_options=jsonschema_rs.RegexOptions(),
            offline=True,
            mask="…",
        )
    except ValueError as error:
        path = json_path(getattr(error, "instance_path", ()))
        raise TapError(f"config schema: {path}: {str(error).splitlines()[0]}") from None


def mismatches(validator: Any, config: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Yield an error for each place where a config breaks its schema.

    Args:
        validator: the result of ``compile_schema``.
        config: decoded JSON.
    """
    for error in validator.iter_errors(config):
        yield ConfigError(_reason(error), path=json_path(error.instance_path))


def _reason(error: Any) -> str:
    kind = error.kind
    if kind.name == "required":
        return f"the field {kind.property!r} is missing"
    if kind.name == "additionalProperties":
        return " and ".join(f"there is no field {name!r}" for name in kind.unexpected[:5])
    if kind.name == "type":
        words = (TYPE_WORDS[name] for name in sorted(kind.types, key="null".__eq__))
        return f"expected {' or '.join(words)}, got {type_name(error.instance)}"
    if kind.name == "format" and kind.format in _FORMAT_WORDS:
        return f"expected {_FORMAT_WORDS[kind.format]}"
    from balog.registry.reasons import describe_error  # imported only for errors: the registry is slow to import

    return describe_error(error)
