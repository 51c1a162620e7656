"""Load configs strictly into msgspec structs, from JSON, YAML or TOML, each error with its path in the file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from balog.config.contents import MAX_CONFIG_BYTES, read_bytes
from balog.config.document import Document
from balog.config.json_text import parse_json
from balog.errors import ConfigError, ConfigProblems, split_refusal
from balog.problems import UNKNOWN_FIELD, problems
from balog.tagged_config import convert

_MAX_INCLUDED = 32
_PLACE = re.compile(r"(.*):([0-9]+):([0-9]+)", re.DOTALL)

T = TypeVar("T")


class _Reading(NamedTuple):
    """How files are read; see ``read``."""

    max_bytes: int = MAX_CONFIG_BYTES
    float_hook: Callable[[str], Any] | None = None
    variables: bool = True


_DEFAULT = _Reading()


def load(
    path: str | os.PathLike[str], type: type[T], max_bytes: int = MAX_CONFIG_BYTES, *, variables: bool = True
) -> T:
    """Load a config file of at most ``max_bytes``. A top-level ``$schema``, for editors, is ignored.

    The name's ending decides the format: ``.yaml``, ``.yml`` or ``.toml``; any other is JSON. ``variables`` is that of
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
    from balog.config.variables import fill_references

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
    """Read a config file as plain data, with the files that it includes, without a top-level ``$schema``.

    Args:
        path: the file.
        max_bytes: the largest size of the file.
        float_hook: converts the text of each number with a fraction or an exponent; None for floats.
        variables: False leaves ``${NAME}`` and references as they are, for documents that go to another machine.

    Returns:
        The data, and a problem for each duplicate key, missing variable, wrong ``$include`` and ``$schema``.

    Raises:
        ConfigError: a file cannot be read, is too large, or is not of its format (with line and column).
    """
    data, found = None, list[ConfigError]()
    for number, (source, document) in enumerate(read_all(path, _Reading(max_bytes, float_hook, variables))):
        found += (ConfigError(reason, source, place) for reason, place in document.problems)
        data = document.data if number == 0 else _merged(data, document.data)
    return data, found


class ConfigFile(NamedTuple):
    """A file of a config."""

    path: str
    document: Document


def read_all(path: str | os.PathLike[str], reading: _Reading = _DEFAULT) -> list[ConfigFile]:
    """Read a config file and those that it includes, the included ones first.

    Raises:
        ConfigError: as ``read``.
    """
    found: list[ConfigFile] = []
    _collect(path, reading, (), found)
    return found


def _collect(path: str | os.PathLike[str], reading: _Reading, above: tuple[str, ...], found: list[ConfigFile]) -> None:
    source = str(path)
    document = _parse(read_bytes(path, reading.max_bytes), source, reading)
    if isinstance(document.data, dict):
        schema = document.data.pop("$schema", "")
        if not isinstance(schema, str):
            reason = f"want the address of a schema, not {type(schema).__name__}"
            document.problems.append((reason, "$.$schema"))
        include = document.data.pop("$include", [])
        names = [include] if isinstance(include, str) else include
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            document.problems.append(("want a file, or a list of files", "$.$include"))
            names = []
        chain = (*above, os.path.realpath(path))
        for name in names:
            included = Path(path).parent / name
            if os.path.realpath(included) in chain:
                raise ConfigError(f"{included} includes itself", source, "$.$include")
            if not included.is_file():
                raise ConfigError(f"{included} is not a file", source, "$.$include")
            if len(found) + len(chain) > _MAX_INCLUDED:
                raise ConfigError(f"more than {_MAX_INCLUDED} files in all", source, "$.$include")
            _collect(included, reading, chain, found)
    found.append(ConfigFile(source, document))


def _parse(data: bytes, source: str, reading: _Reading) -> Document:
    ending = os.path.splitext(source)[1].lower()
    if ending not in (".yaml", ".yml", ".toml"):
        return parse_json(data, source, reading.float_hook)
    from balog.config.variables import substitute_environment

    substitute = substitute_environment if reading.variables else None
    if ending == ".toml":
        from balog.config.toml_text import parse_toml

        return parse_toml(data, source, reading.float_hook, substitute)
    from balog.config.yaml_text import parse_yaml

    return parse_yaml(data, source, reading.float_hook, substitute)


def _merged(below: Any, above: Any) -> Any:
    """Return the members of both objects, those of ``above`` before those of ``below``; lists are replaced whole."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{key: _merged(below[key], value) if key in below else value for key, value in above.items()}}


class Locator:
    """Finds the line and column of a part of a config file.

    Args:
        path: the file, which is read again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = str(path)
        self._places: list[tuple[str, Any]] | None = None

    def locate(self, path: str) -> str:
        """Return ``FILE:LINE:COLUMN`` of a JSONPath, or of the innermost part around it; the file without a place."""
        if self._places is None:
            try:
                sources = read_all(self._path)
            except ConfigError:
                sources = []
            self._places = [(source, document.find_places()) for source, document in reversed(sources)]
        while path:
            for source, places in self._places:
                if path in places and path != "$":
                    line, column = places[path]
                    return f"{source}:{line}:{column}"
            path = path[: max(path.rfind("."), path.rfind("["))] if path not in ("", "$") else ""
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
