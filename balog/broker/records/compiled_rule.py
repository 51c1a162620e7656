"""The parts of a record rule, compiled once for every stream that the rule applies to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Raw, Struct

from balog.broker.records.config import RecordRule
from balog.broker.records.json_members import Members, read_value, write
from balog.broker.records.masks import Mask, build_mask
from balog.broker.records.paths import Steps, parse_path
from balog.broker.records.schemas import Node, nullable
from balog.common.errors import ConfigError
from balog.filters import Expression

_NULL = Raw(b"null")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEMAS: dict[str, Node] = {
    "bool": {"type": ["boolean", "null"]},
    "number": {"type": ["number", "null"]},
    "string": {"type": ["string", "null"]},
    "timestamp": {"type": ["string", "null"], "format": "date-time"},
    "null": {"type": ["string", "null"]},
}


class RecordRow(dict[str, Any]):
    """A record for expressions; its properties are decoded on demand."""

    def __init__(self, record: Members) -> None:
        self._record = record

    def get(self, name: Any, default: Any = None) -> Any:
        """Return a property's value.

        Raises:
            UnreadableError: it cannot be read.
        """
        raw = self._record.get(name)
        return default if raw is None else read_value(raw)


class Setting(Struct, frozen=True):
    """The new value of a property.

    Attributes:
        give: the value for a record.
        schema: returns the property's schema from the records' schema before any setting.
        is_constant: whether it is the same for all records.
    """

    give: Callable[[Members, RecordRow], Raw]
    schema: Callable[[Node], Any]
    is_constant: bool


def build_setting(value: Any) -> Setting:
    """Make a setting of a constant, or of ``{"expr": "…"}``.

    Raises:
        ConfigError: the expression was refused.
    """
    if not (isinstance(value, dict) and value.keys() == {"expr"}):
        constant, schema = Raw(write(value)), _schema_of(value)
        return Setting(lambda record, row: constant, lambda root: schema, True)
    text = value["expr"]
    if not isinstance(text, str):
        raise ConfigError('expected {"expr": "…"} with an expression as text')
    expression = Expression(text, names="row", gives="any")
    name = text.strip()
    if expression.kind == "any" and _WORD.fullmatch(name):  # a copy of another property, with its schema
        return Setting(lambda record, row: record.get(name, _NULL), lambda root: _copied(root, name), False)
    evaluate = expression.evaluate
    known = _SCHEMAS.get("string" if expression.kind == "level" else expression.kind, {})
    return Setting(lambda record, row: Raw(write(evaluate(row))), lambda root: known, False)


def _schema_of(value: Any) -> Node:
    if isinstance(value, bool):
        return {"type": "boolean"}
    if value is None:
        return {"type": ["string", "null"]}
    for kind, name in ((int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return {"type": name}
    return {"type": "object"}


def _copied(root: Node, name: str) -> Any:
    properties = root.get("properties")
    return nullable(properties[name]) if isinstance(properties, dict) and name in properties else {}


class CompiledRule:
    """A rule's compiled parts, shared by all of its streams.

    Args:
        config: the rule.
        path: its path in the config, ``$.records[0]``.
        refused: collects all errors of the rule instead of raising the first.

    Raises:
        ConfigError: an expression or a key is invalid.
    """

    def __init__(self, config: RecordRule, path: str, refused: list[ConfigError] | None = None) -> None:
        self.config = config
        self.path = path
        self.filter: Expression | None = None
        if config.filter is not None:
            with _at(f"{path}.filter", refused):
                self.filter = Expression(config.filter, names="row")
        self.settings: dict[str, Setting] = {}
        for name, value in config.set.items():
            with _at(f"{path}.set.{name}", refused):
                self.settings[name] = build_setting(value)
        self.masks: list[tuple[str, Steps, Mask]] = []
        for name, how in config.mask.items():
            with _at(f"{path}.mask.{name}", refused):
                self.masks.append((name, parse_path(name), build_mask(how)))
        self.drops = [(name, parse_path(name)) for name in config.drop]
        self.renames: dict[Steps, dict[str, str]] = {}
        for name, new in config.rename.items():
            *parent, old = parse_path(name)
            self.renames.setdefault(tuple(parent), {})[old] = new

    @property
    def rewrites(self) -> bool:
        """Whether a kept record is rewritten."""
        return bool(self.settings or self.masks or self.drops or self.renames)


def refused_parts(rules: Sequence[RecordRule]) -> list[ConfigError]:
    """Return all errors of the rules, each with its path in the config."""
    refused: list[ConfigError] = []
    for number, rule in enumerate(rules):
        CompiledRule(rule, f"$.records[{number}]", refused)
    return refused


@contextmanager
def _at(path: str, refused: list[ConfigError] | None) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        placed = ConfigError(error.reason, error.source, path)
        if refused is None:
            raise placed from None
        refused.append(placed)
