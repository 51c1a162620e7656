"""Parse YAML as its core schema has it, with the place of each value, and with bounds.

PyYAML composes nodes, which become data here. So ``no`` and ``22:00`` are texts (YAML 1.2.2, section 10.3), a document
cannot create objects, and depth and size are bounded while aliases are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from balog.common.config.contents import decode_text, place
from balog.common.config.document import MAX_DEPTH, MAX_TWICE, TOO_DEEP, TWICE, Document, key_path
from balog.common.config.variables import Substitute
from balog.common.errors import ConfigError, MissingExtraError

_MAX_VALUES = 200_000
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"  # the tag of a text without quotes and without a tag
_MERGE = "<<"
_CORE: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?[0-9]{1,300}"), int),
    (re.compile(r"0o[0-7]{1,300}"), lambda text: int(text, 8)),
    (re.compile(r"0x[0-9a-fA-F]{1,300}"), lambda text: int(text, 16)),
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def parse_yaml(
    data: bytes, source: str, float_hook: Callable[[str], Any] | None, substitute: Substitute | None
) -> Document:
    """Parse a YAML file with one document.

    Args:
        data: UTF-8, with or without a byte order mark.
        source: the file, for errors.
        float_hook: converts the text of each number with a fraction or an exponent; None for floats.
        substitute: replaces the variables in a text; None leaves texts as they are.

    Raises:
        ConfigError: it is not YAML (with line and column), or uses a part of YAML that configs do not have.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("a YAML config", "config") from None

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            is_plain = kind is yaml.ScalarNode and implicit[0]
            return _PLAIN if is_plain else super().resolve(kind, value, (False, False))

    text = decode_text(data, source)
    reader = _Reader(source, float_hook or float, substitute)
    try:
        root = yaml.compose(text, Loader=Loader)
        content = None if root is None else reader.value(root, "$", 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = place(source, mark.line + 1, mark.column + 1) if mark else source
        raise ConfigError(f"not YAML: {error.problem or error.context}", where) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {' '.join(str(error).split())}", source) from None
    except RecursionError:
        raise ConfigError(TOO_DEEP, source) from None
    return Document(content, reader.problems, lambda: reader.places)


class _Reader:
    """Makes plain data of nodes. An alias is the node of its anchor, which is read again."""

    def __init__(self, source: str, number: Callable[[str], Any], substitute: Substitute | None) -> None:
        self._source, self._number, self._substitute = source, number, substitute
        self._values = 0
        self.places: dict[str, tuple[int, int]] = {}
        self.problems: list[tuple[str, str]] = []

    def value(self, node: Any, path: str, depth: int) -> Any:
        self._values += 1
        if self._values > _MAX_VALUES:
            raise self._error(f"more than {_MAX_VALUES} values, with those of aliases", node)
        if depth > MAX_DEPTH:
            raise self._error(TOO_DEEP, node)
        if node.tag not in (_PLAIN, f"{_TAG}str", f"{_TAG}seq", f"{_TAG}map"):
            raise self._error(f"the tag {node.tag:.80} is not allowed here", node)
        self.places.setdefault(path, _place_of(node))
        if node.id == "scalar":
            return self._scalar(node, path)
        if node.id == "sequence":
            return [self.value(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(node.value)]
        return self._object(node, path, depth + 1)

    def _object(self, node: Any, path: str, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        bases: list[dict[str, Any]] = []
        for key, inner in node.value:
            if key.id != "scalar":
                raise self._error("a key is a list or an object; expected a text", key)
            self._values += 1
            inside = key_path(path, key.value)
            self.places[inside] = _place_of(key)
            value = self.value(inner, inside, depth)
            if key.value == _MERGE:
                bases += self._bases(value, inside)
                continue
            if key.value in members and len(self.problems) < MAX_TWICE:
                self.problems.append((TWICE, inside))
            members[key.value] = value
        for base in bases:
            members = {**base, **members}
        return members

    def _bases(self, value: Any, path: str) -> list[dict[str, Any]]:
        bases = value if isinstance(value, list) else [value]
        if all(isinstance(base, dict) for base in bases):
            return bases
        self.problems.append(("expected an object, or a list of objects, to merge", path))
        return []

    def _scalar(self, node: Any, path: str) -> Any:
        text = node.value
        if self._substitute is not None and "$" in text:
            text, reason = self._substitute(text)
            if reason:
                self.problems.append((reason, path))
        if node.tag != _PLAIN:
            return text
        for pattern, convert in _CORE:
            if pattern.fullmatch(text):
                return convert(text)
        if _FLOAT.fullmatch(text):
            value = self._number(text)
            if isinstance(value, float) and value - value != 0:
                raise self._error("the number is too large", node)
            return value
        if _NOT_FINITE.fullmatch(text):
            raise self._error(f"{text} is not a number of JSON; expected a finite number, or quotes for a text", node)
        return text

    def _error(self, reason: str, node: Any) -> ConfigError:
        return ConfigError(reason, place(self._source, *_place_of(node)))


def _place_of(node: Any) -> tuple[int, int]:
    """Return the line and the column where a node begins, from 1."""
    return node.start_mark.line + 1, node.start_mark.column + 1
