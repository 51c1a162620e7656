"""Compiles JSON Schemas with jsonschema-rs, with bounded patterns and without fetching other documents."""

from __future__ import annotations

from typing import Any

MAX_PATTERN_BYTES = 4 << 20
"""Size of one compiled pattern."""


def compile_schema(document: Any, *, formats: bool = True, pattern_bytes: int = MAX_PATTERN_BYTES) -> Any:
    """Return the validator of jsonschema-rs for a schema. The messages of its errors hold no value of a payload.

    Args:
        formats: check ``format``.
        pattern_bytes: the size that a compiled pattern may have.

    Raises:
        ImportError: jsonschema-rs is not installed.
        ValueError: not a JSON Schema, or a pattern is too large.
    """
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=pattern_bytes)
    return jsonschema_rs.validator_for(
        document, validate_formats=formats, offline=True, pattern_options=options, mask="…"
    )
