"""Compiles JSON Schemas with jsonschema-rs, without fetching other documents, and bounds their patterns.

A pattern runs in linear time, but the cost of a byte of text grows with the size of the compiled pattern:
``[a-z]{1,4000}`` has thousands of states, and all of them can be active at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from balog.registry.reasons import MASK
from balog.registry.schema import InvalidSchemaError
from balog.registry.subschemas import subschemas

MAX_PATTERN_BYTES = 4 << 20
"""Size of one compiled pattern."""

MAX_PATTERNS_BYTES = 32 << 20
"""Size of all compiled patterns of a schema together, each at least 4 KiB."""

_SIZES = (4 << 10, 16 << 10, 128 << 10, 1 << 20, MAX_PATTERN_BYTES)
_TOO_LARGE = 1 << 40
_REPEAT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_STATE_NS = 20.0  # a byte, for each KiB of the compiled pattern


def compile_schema(document: Any, *, formats: bool = True, pattern_bytes: int = MAX_PATTERN_BYTES) -> Any:
    """Return the validator of jsonschema-rs for a schema. The messages of its errors hold no value of a payload.

    Args:
        formats: check ``format``.
        pattern_bytes: the size that a compiled pattern may have.

    Raises:
        ValueError: not a JSON Schema, or a pattern is too large.
    """
    import jsonschema_rs  # imported when a schema is used

    options = jsonschema_rs.RegexOptions(size_limit=pattern_bytes)
    return jsonschema_rs.validator_for(
        document, validate_formats=formats, offline=True, pattern_options=options, mask=MASK
    )


def check_patterns(document: Any, where: str = "") -> None:
    """Check the size of a schema's patterns.

    Raises:
        InvalidSchemaError: a pattern, or all patterns together, are too large; ``path`` names the pattern.
    """
    total = 0
    for path, pattern in _patterns(document):
        size = _size(pattern)
        if size > MAX_PATTERN_BYTES:
            raise InvalidSchemaError(
                f"the pattern compiles to more than {MAX_PATTERN_BYTES >> 20} MiB; use smaller numbers of "
                "repeats, or minLength and maxLength beside it",
                where,
                path,
            )
        total += size
        if total > MAX_PATTERNS_BYTES:
            raise InvalidSchemaError(
                f"the schema's patterns compile to more than {MAX_PATTERNS_BYTES >> 20} MiB together", where, path
            )


def own_patterns(node: dict[str, Any]) -> Iterator[str]:
    """Yield the patterns of a subschema itself, without those of nested subschemas."""
    if isinstance(pattern := node.get("pattern"), str):
        yield pattern
    if isinstance(names := node.get("patternProperties"), dict):
        yield from names


def byte_ns(pattern: str) -> float:
    """Return the worst cost of a byte of text, in nanoseconds."""
    return _STATE_NS * _size(pattern) / 1024


def _patterns(document: Any) -> Iterator[tuple[str, str]]:
    for path, node in subschemas(document):
        for pattern in own_patterns(node):
            yield f"{path}.pattern" if pattern == node.get("pattern") else f"{path}.patternProperties", pattern


@lru_cache(maxsize=4096)
def _size(pattern: str) -> int:
    """Return an upper bound of a compiled pattern's size in bytes; 0 if it is not a valid pattern."""
    for size in _SIZES:
        if _compiles(pattern, size):
            return size
    # A text that compiles with fewer repeats is a valid pattern that is too large.
    return _TOO_LARGE if _compiles(_REPEAT.sub("{1}", pattern), MAX_PATTERN_BYTES) else 0


def _compiles(pattern: str, size: int) -> bool:
    try:
        compile_schema({"pattern": pattern}, pattern_bytes=size)
    except ValueError:
        return False
    return True
