"""Schema: changes of the SCHEMA of a stream, by the registry's rules of compatibility."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from balog.common.errors import BalogError
from balog.watch.config.monitors import MonitorConfig, SchemaChanges
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import SchemaObserved

MAX_BYTES = 256 * 1024
"""A larger SCHEMA is not compared, and counts as a breaking change when it differs in length."""

_SHOWN = 3


class SchemaState(Struct, SeriesMemory):
    """The last SCHEMA of a stream, in canonical form, and its keys."""

    schema: bytes = b""
    keys: list[str] = []

    def judge(self, evaluator: SchemaEvaluator, value: tuple[bytes, list[str]], now: float) -> Verdict | None:
        """Compare a schema and its keys with the last ones."""
        schema, keys = _canonical(value[0]), value[1]
        before, self.schema = self.schema, schema
        keys_before, self.keys = self.keys, keys
        if not before or (before, keys_before) == (schema, keys):
            return Verdict("ok", "The schema has not changed.")
        is_breaking, reason = compare_schemas(before, schema) if before != schema else (False, "")
        if keys != keys_before:  # a target would update other rows
            moved = f"its key was {_listed(keys_before)} and is {_listed(keys)}"
            is_breaking, reason = True, f"{moved}; {reason}" if reason else moved
        severity = evaluator.options.breaking if is_breaking else evaluator.options.additive
        if severity == "ignore":
            return Verdict("ok", "The schema has changed in a way that is ignored.")
        kind = "breaking" if is_breaking else "additive"
        return Verdict("bad", f"The schema has changed ({kind}): {reason}.", kind, severity=severity, is_repeated=True)


class SchemaEvaluator(Evaluator):
    """Judges each SCHEMA against the one before it, which it replaces."""

    wants = (SchemaObserved,)
    state_type = SchemaState

    def __init__(self, options: SchemaChanges, monitor: MonitorConfig) -> None:
        self.options = options

    def samples(self, observation: SchemaObserved) -> Iterator[SeriesSample]:
        """Yield a stream's schema and keys."""
        value = (observation.schema, sorted(observation.keys))
        yield SeriesSample(observation.pipeline, observation.stream, value, observation.run)


def compare_schemas(before: bytes, after: bytes) -> tuple[bool, str]:
    """Return whether readers of a schema cannot read records of a later one, and what has changed."""
    if max(len(before), len(after)) > MAX_BYTES:
        return True, f"it has more than {MAX_BYTES} bytes and is not compared"
    removed = _paths(before) - _paths(after)
    added = _paths(after) - _paths(before)
    try:
        from balog.registry.comparing import compare
        from balog.registry.schema import Schema

        old, new = Schema("stream", "1.0.0", "json", before), Schema("stream", "1.0.1", "json", after)
        findings = [finding for finding in compare(old, new, "forward").findings if finding.layer == "json"]
    except BalogError as error:
        return True, f"it cannot be compared: {error}"
    breaks = [f"{finding.path}: {finding.reason}" for finding in findings if finding.breaks]
    breaks += [f"{path} is gone" for path in sorted(removed)]
    shown = (
        breaks
        or [f"{path} is new" for path in sorted(added)]
        or [f"{finding.path}: {finding.reason}" for finding in findings]
    )
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return bool(breaks), "; ".join(shown[:_SHOWN])[:500] + more or "its annotations differ"


def _listed(keys: list[str]) -> str:
    return ", ".join(keys)[:200] or "none"


def _canonical(schema: bytes) -> bytes:
    """Return a schema with sorted keys, types and required properties.

    One that is too large or deep stands for itself by its length.
    """
    try:
        if len(schema) > MAX_BYTES:
            return b'{"$comment":"' + str(len(schema)).encode() + b' bytes"}' + b" " * MAX_BYTES
        return msgspec.json.encode(_normalized(msgspec.json.decode(schema)), order="deterministic")
    except (msgspec.DecodeError, RecursionError):
        return b"{}"


def _normalized(node: Any) -> Any:
    """Return a schema whose types and required properties are sorted lists.

    The schemas of properties that redaction replaced by a text accept any value.
    """
    if isinstance(node, list):
        return [_normalized(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {key: _normalized(value) for key, value in node.items()}
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"]]
    for name in ("type", "required"):
        if isinstance(schema.get(name), list) and all(isinstance(item, str) for item in schema[name]):
            schema[name] = sorted(set(schema[name]))
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["properties"] = {
            name: below if isinstance(below, dict | bool) else True for name, below in properties.items()
        }
    return schema


def _paths(schema: bytes) -> set[str]:
    paths: set[str] = set()

    def walk(node: Any, path: str, depth: int) -> None:
        if not isinstance(node, dict) or depth > 50:
            return
        properties = node.get("properties")
        for name, below in properties.items() if isinstance(properties, dict) else ():
            paths.add(f"{path}.{name}")
            walk(below, f"{path}.{name}", depth + 1)
        walk(node.get("items"), f"{path}[*]", depth + 1)

    walk(msgspec.json.decode(schema.strip()), "$", 0)
    return paths
