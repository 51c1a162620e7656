"""Load configs strictly into msgspec structs, from JSON or YAML, each error with its path in the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from balog.common.config.contents import MAX_CONFIG_BYTES, place, read_bytes
from balog.common.config.document import Document, Places
from balog.common.config.json_text import parse_json
from balog.common.config.problems import UNKNOWN_FIELD, problems
from balog.common.config.tagged_config import convert
from balog.common.errors import ConfigError, ConfigProblems, split_refusal

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
    document, errors = read(path, max_bytes, variables=variables)
    try:
        if not errors:
            return _convert(document, type)
    except msgspec.ValidationError:
        pass
    errors = add_problems(errors, (find_problems if variables else problems)(document, type, str(path)))
    if not errors:
        try:
            return _convert(document, type)
        except msgspec.ValidationError as error:
            reason, where = split_refusal(error)
            errors = [ConfigError(reason, str(path), where)]
    raise ConfigProblems(errors)


def _convert(document: Any, type: type[T]) -> T:
    config: T = convert(document, type)
    return config


def add_problems(errors: list[ConfigError], more: Iterable[ConfigError]) -> list[ConfigError]:
    """Return problems of ``read``, and others at other places: a value that is missing has no wrong type besides."""
    known = {error.path for error in errors}
    return [*errors, *(error for error in more if error.path not in known)]


def find_problems(document: Any, type: Any, source: str) -> list[ConfigError]:
    """Fill in the values that a document refers to, and return the problems that it has as a ``type``.

    Args:
        document: plain data, as ``read`` returns it. A reference that stands for a text, a number or a boolean is
            replaced by the value.
        type: a msgspec struct, or any type that msgspec knows.
        source: the file, for the errors.
    """
    from balog.common.config.variables import fill_references

    errors = fill_references(document, type, source)
    known = {error.path for error in errors}
    return errors + [error for error in problems(document, type, source) if error.path not in known]


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
    return document.data, [ConfigError(reason, source, path) for reason, path in document.problems]


def _parse(data: bytes, source: str, float_hook: Callable[[str], Any] | None, variables: bool) -> Document:
    if os.path.splitext(source)[1].lower() not in (".yaml", ".yml"):
        return parse_json(data, source, float_hook)
    from balog.common.config.variables import substitute_environment
    from balog.common.config.yaml_text import parse_yaml

    return parse_yaml(data, source, float_hook, substitute_environment if variables else None)


def locate(problems: Iterable[ConfigError]) -> list[ConfigError]:
    """Return problems with their lines and columns, as far as their files can be read, in the order of the lines.

    A problem is at its JSONPath, or at the innermost part around it.
    """
    places: dict[str, Places] = {}
    entries: list[tuple[int, tuple[int, int], ConfigError]] = []
    for problem in problems:
        source = problem.source
        if source not in places:
            places[source] = _places_of(source) if os.path.isfile(source) else {}
        unknown = UNKNOWN_FIELD.match(problem.reason)
        path = f"{problem.path}.{unknown[1]}" if unknown else problem.path
        while path not in ("", "$") and path not in places[source]:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        position = places[source][path] if path not in ("", "$") else None
        located = ConfigError(problem.reason, place(source, *position), problem.path) if position else problem
        entries.append((list(places).index(source), position or (0, 0), located))
    return [problem for *_, problem in sorted(entries, key=lambda entry: entry[:2])]


def _places_of(source: str) -> Places:
    try:
        return _parse(read_bytes(source), source, None, True).find_places()
    except ConfigError:
        return {}
