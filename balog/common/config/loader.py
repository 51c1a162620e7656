"""Load configs strictly into msgspec structs, from JSON or YAML, each error with its path in the file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from balog.common.config.contents import MAX_CONFIG_BYTES, read_bytes
from balog.common.config.document import Document, Places
from balog.common.config.json_text import parse_json
from balog.common.config.problems import UNKNOWN_FIELD, problems
from balog.common.config.tagged_config import convert
from balog.common.errors import ConfigError, ConfigProblems, split_refusal

_PLACE = re.compile(r"(.*):([0-9]+):([0-9]+)", re.DOTALL)

T = TypeVar("T")


def load(
    path: str | os.PathLike[str], type: type[T], max_bytes: int = MAX_CONFIG_BYTES, *, variables: bool = True
) -> T:
    """Load a config file of at most ``max_bytes``. A top-level ``$schema``, for editors, is ignored.

    The name's ending decides the format: ``.yaml`` or ``.yml``; any other is JSON. ``variables`` is that of
    ``read``.

    Raises:
        ConfigError: the file cannot be read, or is not of its format (with line and column).
        ConfigProblems: it has duplicate keys, or does not match ``type`` (each with its path in the file).
    """
    document, found = read(path, max_bytes, variables=variables)
    try:
        if not found:
            return _convert(document, type)
    except msgspec.ValidationError:
        pass
    found = add_problems(found, (find_problems if variables else problems)(document, type, str(path)))
    if not found:
        try:
            return _convert(document, type)
        except msgspec.ValidationError as error:
            reason, where = split_refusal(error)
            found = [ConfigError(reason, str(path), where)]
    raise ConfigProblems(found)


def _convert(document: Any, type: type[T]) -> T:
    config: T = convert(document, type)
    return config


def add_problems(found: list[ConfigError], more: Iterable[ConfigError]) -> list[ConfigError]:
    """Return problems of ``read``, and others at other places: a value that is missing has no wrong type besides."""
    known = {error.path for error in found}
    return [*found, *(error for error in more if error.path not in known)]


def find_problems(document: Any, type: Any, source: str) -> list[ConfigError]:
    """Fill in the values that a document refers to, and return the problems that it has as a ``type``.

    Args:
        document: plain data, as ``read`` returns it. A reference that stands for a text, a number or a boolean is
            replaced by the value.
        type: a msgspec struct, or any type that msgspec knows.
        source: the file, for the errors.
    """
    from balog.common.config.variables import fill_references

    found = fill_references(document, type, source)
    known = {error.path for error in found}
    return found + [error for error in problems(document, type, source) if error.path not in known]


def read(
    path: str | os.PathLike[str],
    max_bytes: int = MAX_CONFIG_BYTES,
    float_hook: Callable[[str], Any] | None = None,
    *,
    variables: bool = True,
) -> tuple[Any, list[ConfigError]]:
    """Read a config file as plain data, without a top-level ``$schema``.

    Args:
        path: the file.
        max_bytes: the largest size of the file.
        float_hook: converts the text of each number with a fraction or an exponent; None for floats.
        variables: False leaves ``${NAME}`` and references as they are, for documents that go to another machine.

    Returns:
        The data, and a problem for each duplicate key, missing variable and wrong ``$schema``.

    Raises:
        ConfigError: the file cannot be read, is too large, or is not of its format (with line and column).
    """
    source = str(path)
    document = _parse(read_bytes(path, max_bytes), source, float_hook, variables)
    if isinstance(document.data, dict) and not isinstance(schema := document.data.pop("$schema", ""), str):
        document.problems.append((f"expected the address of a schema, not {type(schema).__name__}", "$.$schema"))
    return document.data, [ConfigError(reason, source, place) for reason, place in document.problems]


def _parse(data: bytes, source: str, float_hook: Callable[[str], Any] | None, variables: bool) -> Document:
    if os.path.splitext(source)[1].lower() not in (".yaml", ".yml"):
        return parse_json(data, source, float_hook)
    from balog.common.config.variables import substitute_environment
    from balog.common.config.yaml_text import parse_yaml

    return parse_yaml(data, source, float_hook, substitute_environment if variables else None)


class Locator:
    """Finds the line and column of a part of a config file.

    Args:
        path: the file, which is read again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = str(path)
        self._places: Places | None = None

    def locate(self, path: str) -> str:
        """Return ``FILE:LINE:COLUMN`` of a JSONPath, or of the innermost part around it; the file without a place."""
        if self._places is None:
            try:
                self._places = _parse(read_bytes(self._path), self._path, None, True).find_places()
            except ConfigError:
                self._places = {}
        while path not in ("", "$"):
            if path in self._places:
                line, column = self._places[path]
                return f"{self._path}:{line}:{column}"
            path = path[: max(path.rfind("."), path.rfind("["))]
        return self._path


def locate(problems: Iterable[ConfigError]) -> list[ConfigError]:
    """Return problems with their lines and columns, as far as their files can be read, in the order of the lines."""
    locators: dict[str, Locator] = {}
    found, order = list[ConfigError](), dict[str, int]()
    for problem in problems:
        where = problem.source
        if problem.path.startswith("$") and os.path.isfile(where):
            unknown = UNKNOWN_FIELD.match(problem.reason)
            path = f"{problem.path}.{unknown[1]}" if unknown else problem.path
            where = locators.setdefault(where, Locator(where)).locate(path)
        found.append(ConfigError(problem.reason, where, problem.path))

    def place(problem: ConfigError) -> tuple[int, int, int]:
        parts = _PLACE.fullmatch(problem.source)
        file, line, column = parts.groups() if parts else (problem.source, "0", "0")
        return order.setdefault(file, len(order)), int(line), int(column)

    return sorted(found, key=place)
