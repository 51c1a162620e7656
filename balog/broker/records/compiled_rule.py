"""The parts of a record rule, compiled once for every stream that the rule applies to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from balog.broker.records.assignments import Setting, build_setting
from balog.broker.records.config import RecordRule
from balog.broker.records.masks import Mask, build_mask
from balog.broker.records.paths import Steps, parse_path
from balog.errors import ConfigError
from balog.expressions import Expression


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
        return bool(self.settings or self.masks or self.drops or self.renames or self.config.flatten)


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
