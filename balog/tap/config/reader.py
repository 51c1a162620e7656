"""A tap's config from files and the environment, merged."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from balog.config import load, load_env
from balog.errors import ConfigError
from balog.tap.config.secrets import typed
from balog.tap.config.spec import ConfigSpec
from balog.tap.errors import ConfigProblems

__all__ = ["ENVIRONMENT", "Given", "environment_name", "read_config"]

ENVIRONMENT = "ENV"
"""What stands for the environment among the files, as in the Meltano SDK: ``--config ENV``."""


class Given(NamedTuple):
    """What was given: ``values`` by name, ``source`` of all, ``sources`` of each."""

    values: dict[str, Any]
    source: str
    sources: dict[str, str]


def environment_name(tap: str, setting: str) -> str:
    """Give the variable that holds a setting: ``base_url`` of ``tap-cool`` is in ``TAP_COOL_BASE_URL``."""
    return re.sub(r"[^A-Z0-9]+", "_", f"{tap}_{setting}".upper())


def read_config(
    spec: ConfigSpec, tap: str, paths: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Given:
    """Merge files from left to right; a setting of a later one replaces that of an earlier one whole.

    A path that ends in ``.env`` is of lines ``TAP_COOL_BASE_URL=…``; ``ENV`` is the environment, at its place among
    them. Where it is not named the environment fills what none of them has. Only names that the spec knows are taken
    from it, made what the spec wants (``true``, numbers; JSON for lists and objects); an empty one is none.

    Args:
        tap: the tap's name.
        environment: that of the process when None.

    Raises:
        ConfigProblems: a line for each file that cannot be read, or is not a JSON object.
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
        raise ConfigProblems(problems)
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
            found[setting] = typed(text, schema, spec.schema)
    return found
