"""Apply the rules of one stream to its records and its schema."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from balog.broker.records.compiled_rule import CompiledRule, RecordRow, Setting
from balog.broker.records.json_members import Members, UnreadableError
from balog.broker.records.masks import Mask
from balog.broker.records.paths import Steps, reach
from balog.broker.records.schema_rewriter import SchemaRewriter
from balog.filters import Expression

Step = Callable[[Members], Members | None]
"""One part of a rule: returns the record, which may be changed in place, or None to drop it."""


class StreamRules:
    """The rules of one stream, applied in the order of the config.

    Args:
        stream: the stream's name.
        rules: its rules.

    Attributes:
        rewrites: whether kept records are rewritten; if not, their lines may pass unchanged.
    """

    def __init__(self, stream: str, rules: Sequence[CompiledRule]) -> None:
        self._stream = stream
        self._rules = rules
        self._steps = [step for rule in rules for step in _steps_of(rule)]
        self.rewrites = any(rule.rewrites for rule in rules)

    def apply(self, record: Members) -> Members | None:
        """Return the changed record, or None to drop it; its members may be changed in place.

        Raises:
            UnreadableError: a part can't be parsed, or two properties would have the same name.
        """
        for step in self._steps:
            changed = step(record)
            if changed is None:
                return None
            record = changed
        return record

    def apply_schema(
        self,
        schema: Mapping[str, Any],
        key_properties: Sequence[str] | None = None,
        bookmark_properties: Sequence[str] | None = None,
    ) -> SchemaRewriter:
        """Return the changed SCHEMA, and apply it to the following records; ``schema`` itself stays unchanged.

        Raises:
            PipeError: a key would be lost, or two properties would have the same name; in one line.
        """
        rewriter = SchemaRewriter(
            self._stream,
            copy.deepcopy(dict(schema)),
            None if key_properties is None else list(key_properties),
            None if bookmark_properties is None else list(bookmark_properties),
        )
        for rule in self._rules:
            rewriter.rewrite(rule)
        return rewriter


def _steps_of(rule: CompiledRule) -> list[Step]:
    steps: list[Step] = []
    if rule.filter is not None:
        steps.append(_filtering(rule.filter))
    if rule.settings:
        steps.append(_setting(rule.settings))
    steps += [_masking(path, mask) for _, path, mask in rule.masks]
    steps += [_dropping(path) for _, path in rule.drops]
    steps += [_renaming(parent, names) for parent, names in rule.renames.items()]
    return steps


def _filtering(expression: Expression) -> Step:
    return lambda record: record if expression.matches(RecordRow(record)) else None


def _setting(settings: Mapping[str, Setting]) -> Step:
    def step(record: Members) -> Members:
        row = RecordRow(record)
        record.update([(name, setting.give(record, row)) for name, setting in settings.items()])
        return record

    return step


def _masking(steps: Steps, mask: Mask) -> Step:
    name, apply = steps[-1], mask.apply

    def change(members: Members) -> None:
        raw = members.get(name)
        if raw is not None:
            members[name] = apply(raw)

    return _reaching(steps[:-1], change)


def _dropping(steps: Steps) -> Step:
    return _reaching(steps[:-1], partial(_drop, steps[-1]))


def _drop(name: str, members: Members) -> None:
    members.pop(name, None)


def _renaming(parent: Steps, names: Mapping[str, str]) -> Step:
    def change(members: Members) -> None:
        if names.keys().isdisjoint(members):
            return
        renamed = {names.get(name, name): raw for name, raw in members.items()}
        if len(renamed) < len(members):
            raise UnreadableError("renamed, two of its properties have the same name")
        members.clear()
        members.update(renamed)

    return _reaching(parent, change)


def _reaching(parent: Steps, change: Callable[[Members], None]) -> Step:
    def flat(record: Members) -> Members:
        change(record)
        return record

    def step(record: Members) -> Members:
        reach(record, parent, change)
        return record

    return step if parent else flat
