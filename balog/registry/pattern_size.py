"""How large a schema's patterns are once compiled, and what they cost at most by byte of text.

A pattern runs in time linear in the text, but a byte may cost as much as the compiled pattern is large:
``[a-z]{1,4000}`` has thousands of states, and all of them can be alive at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from balog.registry.schema import SchemaError

__all__ = ["MAX_PATTERN_BYTES", "byte_ns", "check_patterns", "own_patterns"]

MAX_PATTERN_BYTES = 4 << 20
"""Size of one compiled pattern."""

MAX_PATTERNS_BYTES = 32 << 20
"""Size of all compiled patterns of a schema together, each at least 4 KiB."""

_SIZES = (4 << 10, 16 << 10, 128 << 10, 1 << 20, MAX_PATTERN_BYTES)
_TOO_LARGE = 1 << 40
_REPEAT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_STATE_NS = 20.0  # a byte, for each KiB of the compiled pattern
_DATA = frozenset({"enum", "const", "default", "examples"})
_MAPS = frozenset({"properties", "$defs", "definitions", "dependentSchemas", "dependencies"})


def check_patterns(document: Any, where: str = "") -> None:
    """Look at the size of each pattern of a schema.

    Raises:
        SchemaError: one of them, or all together, are too large; ``path`` says which.
    """
    total = 0
    for path, pattern in _patterns(document, "$"):
        size = _size(pattern)
        if size > MAX_PATTERN_BYTES:
            raise SchemaError(
                f"the pattern compiles to more than {MAX_PATTERN_BYTES >> 20} MiB; want smaller numbers of repeats, "
                "or minLength and maxLength beside it",
                where,
                path,
            )
        total += size
        if total > MAX_PATTERNS_BYTES:
            raise SchemaError(
                f"the schema's patterns compile to more than {MAX_PATTERNS_BYTES >> 20} MiB together", where, path
            )


def own_patterns(node: dict[str, Any]) -> Iterator[str]:
    """Yield the patterns that a sub-schema itself holds a value against."""
    if isinstance(pattern := node.get("pattern"), str):
        yield pattern
    if isinstance(names := node.get("patternProperties"), dict):
        yield from names


def byte_ns(pattern: str) -> float:
    """Return the nanoseconds that a byte of text takes at most."""
    return _STATE_NS * _size(pattern) / 1024


def _patterns(node: Any, path: str) -> Iterator[tuple[str, str]]:
    rest: list[tuple[Any, str, bool]] = [(node, path, True)]
    while rest:
        node, path, is_schema = rest.pop()
        if isinstance(node, dict):
            for pattern in own_patterns(node) if is_schema else ():
                yield f"{path}.pattern" if pattern == node.get("pattern") else f"{path}.patternProperties", pattern
            for name, inner in node.items():
                if isinstance(inner, (dict, list)) and not (is_schema and name in _DATA):
                    is_map = is_schema and (name in _MAPS or name == "patternProperties")
                    rest.append((inner, f"{path}.{name}", not is_map))
        elif isinstance(node, list):
            rest += ((inner, f"{path}[{number}]", True) for number, inner in enumerate(node))


@lru_cache(maxsize=4096)
def _size(pattern: str) -> int:
    """Return a bound of a compiled pattern's bytes; 0 where it is no pattern, which compiling the schema tells."""
    try:
        import jsonschema_rs  # noqa: F401
    except ImportError:  # compiled by Python
        return len(pattern)
    for size in _SIZES:
        if _compiles(pattern, size):
            return size
    # What compiles as soon as its repeats are few is a pattern.
    return _TOO_LARGE if _compiles(_REPEAT.sub("{1}", pattern), MAX_PATTERN_BYTES) else 0


def _compiles(pattern: str, size: int) -> bool:
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=size)
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, offline=True)
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True
