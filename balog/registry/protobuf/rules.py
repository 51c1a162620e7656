"""Checks protovalidate's rules on a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import protovalidate
from google.protobuf import message_factory

from balog.registry.json_compiler import byte_ns
from balog.registry.protobuf.descriptors import Steps, is_map, reachable_messages, walk
from balog.registry.schema import InvalidSchemaError

_LOOPS = re.compile(r"\b(?:all|exists|exists_one|existsOne|filter|map|transformList|transformMap)\s*\(")
_GROWING = re.compile(r"\+|%s|\b(?:replace|join)\s*\(")
_MATCHES = re.compile(r"\bmatches\s*\(")
_LITERAL = re.compile(r"\bmatches\s*\(\s*r?(['\"])(.*?)\1\s*\)")
_MOST_LOOPS = 3
_IGNORE_ALWAYS = 3  # of buf.validate.Ignore
_MOST_GROWTH = 1000
_MOST_STEPS = 10_000  # of an evaluation; protovalidate ends it then
_STEP_NS = 2000.0  # of a loop
_RULE_NS = 3000.0  # a value that a rule compares with
_COMPUTED_NS = 2.5  # a byte of a text for each byte of a pattern that is computed


class Rules:
    """The rules of a message and its nested messages. Thread-safe.

    Raises:
        InvalidSchemaError: a rule's CEL expression does not compile, names an unknown field, or may take too long.
    """

    def __init__(self, message: Any, pool: Any) -> None:
        self._message = message
        self._validator = protovalidate.Validator()
        own = list(_own_rules(message, pool))
        self._own = {id: text for id, text, _ in own}
        annotations = {
            here.full_name: message_rules
            for here in reachable_messages(message)
            if (message_rules := [rules for _, rules in annotated_rules(here, pool)])
        }
        self.any = bool(annotations)
        self._costs = {name: _Cost(message_rules) for name, message_rules in annotations.items()}
        for here in reachable_messages(message) if self.any else ():
            for tried in (message_factory.GetMessageClass(here)(), _filled(here)):
                try:
                    self._validator.collect_violations(tried)
                except protovalidate.CompilationError as error:
                    raise InvalidSchemaError(_describe(here, error)) from None
                except protovalidate.EvaluationError as error:
                    if "no_such_field" in str(error):  # other errors depend on the values
                        raise InvalidSchemaError(_describe(here, error)) from None

    def worst_seconds(self, size: int) -> float:
        """Return an estimated upper bound of the time that ``violations`` takes for ``size`` bytes, in seconds."""
        return max((cost.seconds(size, size / 2) for cost in self._costs.values()), default=0.0)

    def seconds(self, message: Any) -> float:
        """Return an estimated upper bound of the time that ``violations`` takes for a message, in seconds."""
        total = 0.0
        for _, here in walk(message):
            if (cost := self._costs.get(here.DESCRIPTOR.full_name)) is not None:
                total += cost.seconds(here.ByteSize(), 1)
        return total

    def violations(self, message: Any) -> list[tuple[Steps, str]]:
        """Return every rule that a message breaks, with its place.

        The reason of a custom CEL rule is its declared message, never a computed one, which might contain a value.
        """
        if not self.any:
            return []
        try:
            violations = self._validator.collect_violations(message)
        except protovalidate.EvaluationError:
            return [((), "a rule of it cannot be evaluated for these values")]
        return [self._violation(violation.proto) for violation in violations]

    def broken_when_empty(self, message: Any) -> set[str]:
        """Return the names of the fields and oneofs whose rules a message without any value breaks."""
        try:
            violations = self._validator.collect_violations(message_factory.GetMessageClass(message)())
        except protovalidate.EvaluationError:
            return set()
        paths = (violation.proto.field for violation in violations)
        return {path.elements[0].field_name for path in paths if path is not None and path.elements}

    def _violation(self, violation: Any) -> tuple[Steps, str]:
        steps, oneof = self._steps(violation.field)
        rule = violation.rule_id
        reason = self._own[rule] or f"breaks the rule {rule[:100]}" if rule in self._own else violation.message or rule
        return steps, " ".join(part for part in (oneof, "key" if violation.for_key else "", reason) if part)

    def _steps(self, path: Any) -> tuple[Steps, str]:
        steps: list[str | int] = []
        here = self._message
        for element in path.elements if path is not None else ():
            field = here.fields_by_name.get(element.field_name) if here is not None else None
            if field is None:  # a oneof, which has no place in JSON
                return tuple(steps), f"{element.field_name}:"
            steps.append(field.json_name)
            subscript = element.subscript
            if subscript is not None:
                value = subscript.value
                text = ("true" if value else "false") if isinstance(value, bool) else str(value)
                steps.append(int(value) if subscript.field == "index" else text)
            here = field.message_type.fields_by_name["value"].message_type if is_map(field) else field.message_type
        return tuple(steps), ""


def _describe(message: Any, error: Exception) -> str:
    return f"{message.full_name}: {' '.join(str(error).split())[:300]}"


def _filled(message: Any) -> Any:
    """Return a message with an empty message in each message field, so that rules on nested fields run."""
    filled = message_factory.GetMessageClass(message)()
    for field in message.fields:
        held = getattr(filled, field.name)
        if is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            if value.message_type is not None:
                held[key.default_value].SetInParent()
        elif field.message_type is not None:
            (held.add() if field.is_repeated else held).SetInParent()
    return filled


def annotated_rules(message: Any, pool: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rules of a message (""), of its fields and of its oneofs, each with its name."""
    for kind, name, described in [
        ("message", "", message),
        *(("field", field.name, field) for field in message.fields),
        *(("oneof", oneof.name, oneof) for oneof in message.oneofs),
    ]:
        if described.has_options:
            rules = _extension(pool, kind, described.GetOptions())
            if rules is not None:
                yield name, rules


def rule_lines(rules: Any, before: str = "") -> Iterator[str]:
    """Yield each rule of an annotation as a line of text, such as ``string.min_len: 2``."""
    ignore = getattr(rules, "ignore", 0)
    for field, value in rules.ListFields():
        name = f"{before}{field.name}"
        if field.name in ("ignore", "example") or ignore == _IGNORE_ALWAYS:
            continue
        if field.message_type is not None and not field.is_repeated:
            lines = rule_lines(value, f"{name}.")
        else:
            values = value if field.message_type is not None else [value]
            lines = (f"{name}: {' '.join(str(item).split())}" for item in values)
        yield from (f"{line} unless zero" if ignore else line for line in lines)


_OPTIONS = {"message": "MessageOptions", "field": "FieldOptions", "oneof": "OneofOptions", "predefined": "FieldOptions"}


def _extension(pool: Any, kind: str, options: Any) -> Any:
    try:
        extension = pool.FindExtensionByName(f"buf.validate.{kind}")
        options_type = pool.FindMessageTypeByName(f"google.protobuf.{_OPTIONS[kind]}")
    except KeyError:
        return None  # the file does not import them
    # Options have the type of the default pool, which does not know extensions of other pools.
    read = message_factory.GetMessageClass(options_type).FromString(options.SerializeToString())
    return read.Extensions[extension] if read.HasExtension(extension) else None


def _own_rules(message: Any, pool: Any) -> Iterator[tuple[str, str, str]]:
    """Yield id, declared message ("" if none) and expression of all custom CEL rules."""
    for here in reachable_messages(message):
        for _, rules in annotated_rules(here, pool):
            yield from _cel(rules)
    for file in {here.file.name: here.file for here in reachable_messages(message)}.values():
        for extension in file.extensions_by_name.values():
            if extension.has_options:
                rules = _extension(pool, "predefined", extension.GetOptions())
                if rules is not None:
                    yield from _cel(rules)


def _leaves(rules: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the set fields of an annotation and of the messages in it, such as ``repeated.items``."""
    for field, value in rules.ListFields():
        if field.message_type is not None and not field.is_repeated:
            yield from _leaves(value)
        else:
            yield field, value


def _cel(rules: Any) -> Iterator[tuple[str, str, str]]:
    for field, value in _leaves(rules):
        if field.name == "cel":
            for rule in value:
                yield rule.id, rule.message, rule.expression
        elif field.name == "cel_expression":
            for expression in value:
                yield expression, "", expression


class _Cost:
    """The worst cost of the rules of a message and its fields.

    Raises:
        InvalidSchemaError: an expression loops more than 3 times, or builds texts that grow with each loop.
    """

    def __init__(self, annotations: list[Any]) -> None:
        own = [expression for rules in annotations for _, _, expression in _cel(rules)]
        loops = [len(_LOOPS.findall(expression)) for expression in own]
        for expression, count in zip(own, loops):
            if count > _MOST_LOOPS or (1 + len(_GROWING.findall(expression))) ** count > _MOST_GROWTH:
                raise InvalidSchemaError(f"a rule may take too long: {' '.join(expression.split())[:200]}")
        self._loops = [count for count in loops if count]
        leaves = [leaf for rules in annotations for leaf in _leaves(rules)]
        self._each_ns = _RULE_NS * sum(len(value) if field.is_repeated else 1 for field, value in leaves)
        patterns = [value for field, value in leaves if field.name == "pattern" and isinstance(value, str)]
        patterns += [match[2] for expression in own for match in _LITERAL.finditer(expression)]
        self._byte_ns = sum(map(byte_ns, patterns)) + self._each_ns / 2
        matches = sum(len(_MATCHES.findall(expression)) - len(_LITERAL.findall(expression)) for expression in own)
        self._square_ns = _COMPUTED_NS * matches

    def seconds(self, size: int, count: float) -> float:
        """Return the cost of ``count`` messages of ``size`` bytes together."""
        looped = sum(min(size**loops, _MOST_STEPS * count) for loops in self._loops) * _STEP_NS
        nanoseconds: float = count * self._each_ns + size * self._byte_ns + size**2 * self._square_ns + looped
        return nanoseconds * 1e-9
