"""Queries of GraphQL: built from a path of fields, the selected properties of a schema, and variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from balog.tap.catalog.entry import properties_of

_NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]*", re.ASCII)
_FIELD = re.compile(r"\s*(?:([_A-Za-z]\w*)\s*:\s*)?([_A-Za-z]\w*)\s*(?:\((.*)\))?\s*", re.ASCII | re.DOTALL)
_VARIABLE = re.compile(r"\s*\$?([_A-Za-z]\w*)\s*:\s*([\w!\[\]\s]+?)\s*", re.ASCII)
_USED = re.compile(r"\$([_A-Za-z]\w*)", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


@dataclass(frozen=True)
class FieldStep:
    """A field of a path: its name in the response, its name in the query, and the text of its arguments."""

    key: str
    name: str
    arguments: str = ""

    def text(self, more: str = "") -> str:
        """Return the field as a query has it, with more arguments."""
        arguments = ", ".join(part for part in (self.arguments, more) if part)
        alias = f"{self.key}: " if self.key != self.name else ""
        return f"{alias}{self.name}{f'({arguments})' if arguments else ''}"


@dataclass(frozen=True)
class Variable:
    """A variable's name and its GraphQL type, such as ``[String!]!``."""

    name: str
    type: str


def parse_path(text: str) -> list[FieldStep]:
    """Return the fields of a path, ``repository(owner: $owner).issues``.

    Raises:
        ValueError: it is not a path of fields.
    """
    return [parse_field(part) for part in _split(text)]


def parse_field(text: str) -> FieldStep:
    """Return a field, ``name``, ``alias: name`` or ``name(argument: 1)``.

    Raises:
        ValueError: it is not a field.
    """
    match = _FIELD.fullmatch(text)
    if match is None or (match[3] is not None and not match[3].strip()):
        raise ValueError(f"{text.strip()!r} is not a field; expected a name, with its arguments in parentheses")
    return FieldStep(match[1] or match[2], match[2], (match[3] or "").strip())


def parse_variable(text: str) -> Variable:
    """Return the variable of a declaration, ``owner: String!``.

    Raises:
        ValueError: it has no name or no type.
    """
    match = _VARIABLE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a variable; expected a name and a type, as in 'since: DateTime'")
    return Variable(match[1], "".join(match[2].split()))


def variables_in(text: str) -> set[str]:
    """Return the names of the variables that arguments use."""
    return set(_USED.findall(_STRING.sub("", text)))


def selection_of(
    schema: Any, fields: Mapping[str, str | None], left_out: Collection[str] = (), prefix: str = ""
) -> str:
    """Return the selection set of a schema: ``{ id author { login } }``.

    Args:
        schema: the schema of an object, with only the selected properties.
        fields: by path of a property (``author.name``), the field that it comes from: ``fullName``,
            ``labels(first: 10)``; None asks for no field.
        left_out: properties that come from elsewhere.
        prefix: the path of the object.

    Raises:
        ValueError: the name of a property is not a name of GraphQL.
    """
    names = []
    for name, inner in properties_of(schema).items():
        path = f"{prefix}{name}"
        if name in left_out or fields.get(path, "") is None:
            continue
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"the property {path!r} has no name of GraphQL; set fields={{{path!r}: …}} and another name"
            )
        step = parse_field(fields.get(path) or name)
        names.append(FieldStep(name, step.name, step.arguments).text())
        if (below := _object_of(inner)) is not None:
            names.append(selection_of(below, fields, (), f"{path}."))
    return f"{{ {' '.join(names) or '__typename'} }}"


def nested(paths: Collection[str]) -> str:
    """Return the selection of paths: ``pageInfo { hasNextPage endCursor }`` for two paths below ``pageInfo``."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition(".")
        groups.setdefault(name, []).extend([rest] if rest else [])
    return " ".join(f"{name} {{ {nested(rest)} }}" if rest else name for name, rest in groups.items())


def build_query(
    name: str,
    variables: Collection[Variable],
    path: list[FieldStep],
    arguments: str,
    selection: str,
) -> str:
    """Return the document of a query.

    Args:
        name: the name of the operation.
        variables: those that it declares.
        path: the fields that lead to the records.
        arguments: further arguments of the last field.
        selection: the selection set of the last field, with its braces.
    """
    declared = ", ".join(f"${each.name}: {each.type}" for each in variables)
    text = f"{path[-1].text(arguments)} {selection}"
    for step in reversed(path[:-1]):
        text = f"{step.text()} {{ {text} }}"
    operation = re.sub(r"\W", "_", name, flags=re.ASCII)
    operation = operation if _NAME.match(operation) else f"_{operation}"
    return f"query {operation}{f'({declared})' if declared else ''} {{ {text} }}"


def _object_of(schema: Any) -> Any:
    """Return the part of a property's schema that is an object with properties; None for a leaf."""
    for _ in range(20):
        if not isinstance(schema, Mapping):
            return None
        if properties_of(schema):
            return schema
        schema = schema.get("items")
    return None


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a path between dots that are outside parentheses and texts."""
    depth, start, position = 0, 0, 0
    while position < len(text):
        char = text[position]
        if char == '"' and (match := _STRING.match(text, position)):
            position = match.end()
            continue
        depth += (char in "([{") - (char in ")]}")
        if char == "." and depth == 0:
            yield text[start:position]
            start = position + 1
        position += 1
    if depth:
        raise ValueError(f"{text!r} has a bracket without its partner")
    yield text[start:]
