"""Merging of a tap's config from files and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from balog.common.config import load, load_env
from balog.common.errors import ConfigError
from balog.tap.config.secrets import convert_text
from balog.tap.config.spec import ConfigSpec
from balog.tap.errors import TapConfigProblems

ENVIRONMENT = "ENV"
"""The file name that stands for the environment, as in the Meltano SDK: ``--config ENV``."""


class Given(NamedTuple):
    """A merged config: ``values`` by name, the ``source`` of all, and ``sources`` by name."""

    values: dict[str, Any]
    source: str
    sources: dict[str, str]


def environment_name(tap: str, setting: str) -> str:
    """Return the environment variable of a setting: ``TAP_COOL_BASE_URL`` for ``base_url`` of ``tap-cool``."""
    return re.sub(r"[^A-Z0-9]+", "_", f"{tap}_{setting}".upper())


def read_config(
    spec: ConfigSpec, tap: str, paths: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Given:
    """Merge files from left to right. A setting of a later file replaces the whole setting of an earlier one.

    A file ``*.env`` has lines ``TAP_COOL_BASE_URL=…``. ``ENV`` reads the environment at its place among the files;
    without it, the environment fills in settings that no file has. Only names in the spec are read from the
    environment. Their text is converted to the type of the spec: ``true``, numbers, JSON for lists and objects. An
    empty variable counts as unset.

    Args:
        tap: the tap's name.
        environment: the variables by name; None means ``os.environ``.

    Raises:
        TapConfigProblems: files cannot be read or are not JSON objects; one line per file.
    """
    environment = os.environ if environment is None else environment
    given = Given({}, ", ".join(dict.fromkeys(paths)) or "config", {})
    problems = []
    for path in paths:
        try:
            if path == ENVIRONMENT:
                _take(given, _from_variables(spec, tap, environment), {})
            elif path.endswith(".env"):
                names = [environment_name(tap, setting) for setting in spec.settings]
                _take(given, _from_variables(spec, tap, load_env(path, names)), {}, path)
            else:
                _take(given, load(path, dict[str, Any]), {}, path)
        except ConfigError as error:
            problems.append(error)
    if problems:
        raise TapConfigProblems(problems)
    if ENVIRONMENT not in paths:
        _take(given, _from_variables(spec, tap, environment), given.values)
    for name in given.values:
        if given.sources[name] == ENVIRONMENT:
            given.sources[name] = environment_name(tap, name)
    return given


def _take(given: Given, values: Mapping[str, Any], but: Mapping[str, Any], source: str = ENVIRONMENT) -> None:
    for name, value in values.items():
        if name not in but:
            given.values[name] = value
            given.sources[name] = source


def _from_variables(spec: ConfigSpec, tap: str, environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for setting, schema in spec.settings.items():
        text = environment.get(environment_name(tap, setting), "")
        if text:
            found[setting] = convert_text(text, schema, spec.schema)
    return found
