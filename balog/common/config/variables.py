"""Values of a config from elsewhere: ``${NAME}`` in texts, and references ``{"env": …}`` and ``{"file": …}``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from balog.common.config.document import MAX_DEPTH, key_path
from balog.common.config.problems import problems
from balog.common.errors import ConfigError
from balog.common.secrets import Secret

Substitute = Callable[[str], tuple[str, str]]
"""Returns a text with its variables replaced, and what is wrong with them; "" for nothing."""

_VARIABLE = re.compile(r"\$\$\{|\$\{([^}\n]*)\}?")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_MAX_TEXT = 1024 * 1024


def substitute_environment(text: str) -> tuple[str, str]:
    """Replace ``${NAME}`` and ``${NAME:-default}`` by variables of the environment, and ``$${`` by ``${``.

    A default is used for a variable that is not set or empty. What a variable holds is not searched for others.

    Returns:
        The text, and the reason why a variable cannot be replaced; "" if all were.
    """
    reasons: list[str] = []

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return "${"
        name = _NAME.fullmatch(match[1]) if match[0].endswith("}") else None
        if name is None:
            reasons.append(f"{match[0]:.80} is not a variable; expected ${{NAME}}, ${{NAME:-default}}, or $${{ for ${{")
            return ""
        value = os.environ.get(name[1], "")
        if not value and name[2] is not None:
            return name[2]
        if name[1] not in os.environ:
            reasons.append(f"the environment variable {name[1]} is not set; set it, or write ${{{name[1]}:-default}}")
        return value

    result = _VARIABLE.sub(replace, text)
    if len(result) > _MAX_TEXT:
        return "", f"the text is longer than {_MAX_TEXT} characters with its variables"
    return result, reasons[0] if reasons else ""


class _Reference(NamedTuple):
    container: Any
    key: Any
    reference: dict[str, str]

    @property
    def origin(self) -> str:
        """The variable or the file that holds the value."""
        name, value = next(iter(self.reference.items()))
        return f"the environment variable {value}" if name == "env" else f"the file {value}"


def fill_references(document: Any, kind: Any, source: str) -> list[ConfigError]:
    """Replace each ``{"env": NAME}`` and ``{"file": PATH}`` that stands for a text, a number or a boolean.

    Where ``kind`` has an object, such as the reference to a secret that is looked up later, the object stays.

    Returns:
        A problem for each value that is missing or does not fit. No problem has a part of the value.
    """
    references = dict(_references(document, "$", 0))
    if not references:
        return []
    errors: list[ConfigError] = []
    texts: dict[str, str] = {}
    for path in _mismatches(document, kind, references, "got `object`"):
        reference = references[path]
        try:
            texts[path] = Secret(**reference.reference).reveal(path)
        except ConfigError as error:
            errors.append(ConfigError(error.reason, source, path))
            reference.container[reference.key] = None
        else:
            reference.container[reference.key] = texts[path]
    for path in _mismatches(document, kind, texts, "got `str`"):
        try:
            value = msgspec.json.decode(texts[path])
        except msgspec.DecodeError:
            continue
        reference = references[path]
        reference.container[reference.key] = value if isinstance(value, bool | int | float) else texts[path]
    wrong = [error for error in problems(document, kind, source) if error.path in texts]
    for path in dict.fromkeys(error.path for error in wrong):
        errors.append(ConfigError(f"the value in {references[path].origin} does not fit here", source, path))
        references[path].container[references[path].key] = None
    return errors


def _mismatches(document: Any, kind: Any, paths: Any, ending: str) -> list[str]:
    return [error.path for error in problems(document, kind) if error.path in paths and error.reason.endswith(ending)]


def _references(value: Any, path: str, depth: int) -> Iterator[tuple[str, _Reference]]:
    if depth > MAX_DEPTH:
        return
    members: Any = ()
    if isinstance(value, dict):
        members = ((key, item, key_path(path, key)) for key, item in value.items())
    elif isinstance(value, list):
        members = ((number, item, f"{path}[{number}]") for number, item in enumerate(value))
    for key, item, item_path in members:
        if isinstance(item, dict) and len(item) == 1 and isinstance(item.get("env", item.get("file")), str):
            yield item_path, _Reference(value, key, item)
        else:
            yield from _references(item, item_path, depth + 1)
