"""Parse YAML as its core schema has it, with the place of each value, and with bounds.

Only the parser of PyYAML is used: its events become data here. So ``no`` and ``22:00`` are texts (YAML 1.2.2, section
10.3), a document cannot create objects, and depth and size are bounded while aliases are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from balog.config.contents import decode_text, place
from balog.config.document import MAX_DEPTH, MAX_TWICE, TOO_DEEP, TWICE, Document, Places, key_path
from balog.config.variables import Substitute
from balog.errors import ConfigError, ConfigProblems, MissingExtraError

_MAX_VALUES = 200_000
_MAX_ERRORS = 20
_KEY = re.compile(r"[A-Za-z_$][\w$.-]{0,100}:(?:\s|$)")
_TAG = "tag:yaml.org,2002:"
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
_TAGS = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "null": type(None),
}


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
        ConfigProblems: the same, several times. After an error of syntax, the search goes on at the next line that
            begins with a key.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("a YAML config", "config") from None

    text = decode_text(data, source)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(source, float_hook or float, substitute)
    add: Callable[[str, Any], None] = builder.add
    begin, lines = 0, text.splitlines(keepends=True)
    while True:
        try:
            for event in yaml.parse("".join(lines[begin:]) if begin else text, Loader=loader):
                add(type(event).__name__, event)
            break
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = begin + mark.line if mark else len(lines)
            where = place(source, line + 1, mark.column + 1) if mark else source
            builder.errors.append(ConfigError(f"not YAML: {error.problem or error.context}", where))
            add = _ignore  # the syntax of the rest has no known place in the document
            begin = next((at for at in range(line + 1, len(lines)) if _KEY.match(lines[at])), 0)
        except yaml.YAMLError as error:
            builder.errors.append(ConfigError(f"not YAML: {' '.join(str(error).split())}", source))
            break
        if not begin or len(builder.errors) >= _MAX_ERRORS:
            break
    return builder.document()


def _ignore(kind: str, event: Any) -> None:
    pass


class _Part:
    """An object or list that is not complete yet."""

    __slots__ = ("anchor", "before", "is_list", "key", "merged", "path", "value")

    def __init__(self, path: str, is_list: bool, anchor: str | None, before: int) -> None:
        self.path, self.is_list, self.anchor = path, is_list, anchor
        self.before = before  # the number of values before it
        self.value: Any = [] if is_list else {}
        self.key: Any = _NO_KEY
        self.merged: list[dict[str, Any]] = []


_NO_KEY = object()
_MERGE = "<<"


class _Builder:
    """Builds plain data of YAML's events."""

    def __init__(self, source: str, number: Callable[[str], Any], substitute: Substitute | None) -> None:
        self._source, self._number, self._substitute = source, number, substitute
        self._open: list[_Part] = []
        self._anchors: dict[str, tuple[Any, int]] = {}  # a value and how many values it has
        self._places: dict[str, tuple[int, int]] = {}
        self._problems: list[tuple[str, str]] = []
        self._values = self._documents = 0
        self._data: Any = None
        self.errors: list[ConfigError] = []

    def document(self) -> Document:
        """Return the document.

        Raises:
            ConfigError: there is an error.
            ConfigProblems: there are several.
        """
        places: Places = self._places
        if self.errors:
            twice = [
                ConfigError(reason, place(self._source, *places[path]) if path in places else self._source, path)
                for reason, path in self._problems
            ]
            raise self.errors[0] if len(self.errors) + len(twice) == 1 else ConfigProblems([*self.errors, *twice])
        return Document(self._data, self._problems, lambda: places)

    def add(self, kind: str, event: Any) -> None:
        mark = event.start_mark
        if kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                raise self._error("there is a second document; want one", mark)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._begin(kind == "SequenceStartEvent", event, mark)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._end()
        elif kind == "ScalarEvent":
            self._scalar(event, mark)
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                self._note(f"the alias *{event.anchor:.80} names no earlier anchor", mark)
            value, size = self._anchors.get(event.anchor, ("", 1))
            self._count(size, mark)
            self._put(value, mark)

    def _begin(self, is_list: bool, event: Any, mark: Any) -> None:
        self._check_tag(event.tag, ("seq",) if is_list else ("map",), mark)
        before = self._values
        self._count(1, mark)
        if len(self._open) >= MAX_DEPTH:
            raise self._error(TOO_DEEP, mark)
        if self._open and not self._open[-1].is_list and self._open[-1].key is _NO_KEY:
            raise self._error("a key is a list or an object; want a text", mark)
        path = self._path()
        self._places.setdefault(path, (mark.line + 1, mark.column + 1))
        self._open.append(_Part(path, is_list, event.anchor, before))

    def _end(self) -> None:
        part = self._open.pop()
        for base in part.merged:
            for key, value in base.items():
                part.value.setdefault(key, value)
        if part.anchor:
            self._anchors[part.anchor] = (part.value, self._values - part.before)
        self._put(part.value, None)

    def _scalar(self, event: Any, mark: Any) -> None:
        self._count(1, mark)
        is_key = bool(self._open) and not self._open[-1].is_list and self._open[-1].key is _NO_KEY
        if is_key:
            self._key(event, mark)
            return
        value = self._value(event, mark)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, mark)

    def _key(self, event: Any, mark: Any) -> None:
        part, key = self._open[-1], event.value
        path = key_path(part.path, key)
        if (key != _MERGE and key in part.value) and len(self._problems) < MAX_TWICE:
            self._problems.append((TWICE, path))
        part.key = key
        if event.anchor:
            self._anchors[event.anchor] = (key, 1)
        self._places[path] = (mark.line + 1, mark.column + 1)

    def _value(self, event: Any, mark: Any) -> Any:
        text, plain = event.value, not event.style  # "" from the C parser
        tag = self._check_tag(event.tag, tuple(_TAGS), mark)
        if self._substitute is not None and "$" in text:
            text, reason = self._substitute(text)
            if reason:
                self._problems.append((reason, self._path()))
        if tag == "str" or (not plain and tag is None):
            return text
        value = self._resolve(text, mark)
        if tag is not None and not isinstance(value, (int, float) if tag == "float" else _TAGS[tag]):
            self._note(f"the text is not of the type !!{tag}", mark)
        return value

    def _resolve(self, text: str, mark: Any) -> Any:
        for pattern, convert in _CORE:
            if pattern.fullmatch(text):
                return convert(text)
        if _FLOAT.fullmatch(text):
            value = self._number(text)
            if isinstance(value, float) and value - value != 0:
                self._note("the number is too large", mark)
            return value
        if _NOT_FINITE.fullmatch(text):
            self._note(f"{text} is not a number of JSON; want a finite number, or quotes for a text", mark)
        return text

    def _put(self, value: Any, mark: Any) -> None:
        if not self._open:
            self._data = value
            if mark is not None:
                self._places.setdefault("$", (mark.line + 1, mark.column + 1))
            return
        part = self._open[-1]
        if part.is_list:
            if mark is not None:
                self._places.setdefault(self._path(), (mark.line + 1, mark.column + 1))
            part.value.append(value)
        elif part.key is _NO_KEY:  # an alias as a key
            if not isinstance(value, str):
                raise self._error("a key is not a text", mark)
            part.key = value
        elif part.key == _MERGE:
            self._merge(part, value)
        else:
            part.value[part.key] = value
            part.key = _NO_KEY

    def _merge(self, part: _Part, value: Any) -> None:
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(base, dict) for base in bases):
            self._problems.append(("want an object, or a list of objects, to merge", key_path(part.path, _MERGE)))
            bases = []
        part.merged += bases
        part.key = _NO_KEY

    def _path(self) -> str:
        if not self._open:
            return "$"
        part = self._open[-1]
        return f"{part.path}[{len(part.value)}]" if part.is_list else key_path(part.path, part.key)

    def _check_tag(self, tag: str | None, allowed: tuple[str, ...], mark: Any) -> str | None:
        if tag is None or tag == "!":
            return "str" if tag == "!" and "str" in allowed else None
        name = tag.removeprefix(_TAG)
        if name not in allowed:
            self._note(f"the tag {tag:.80} is not allowed here", mark)
            return None
        return name

    def _count(self, values: int, mark: Any) -> None:
        self._values += values
        if self._values > _MAX_VALUES:
            raise self._error(f"more than {_MAX_VALUES} values, with those of aliases", mark)

    def _note(self, reason: str, mark: Any) -> None:
        """Add an error that later ones can be found after."""
        if len(self.errors) < _MAX_ERRORS:
            self.errors.append(self._error(reason, mark))

    def _error(self, reason: str, mark: Any) -> ConfigError:
        return ConfigError(reason, place(self._source, mark.line + 1, mark.column + 1))
