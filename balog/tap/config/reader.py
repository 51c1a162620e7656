"""Merging of a tap's config from files and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from balog.common.config import load
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

    ``ENV`` reads the environment at its place among the files; without it, the environment fills in settings that no
    file has. Only names in the spec are read from the environment. Their text is converted to the type of the spec:
    ``true``, numbers, JSON for lists and objects. An empty variable counts as unset.

    Args:
        tap: the tap's name.
        environment: the variables by name; None means ``os.environ``.

    Raises:
        TapConfigProblems: files cannot be read or are not JSON objects; one line per file.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems = []
    for path in paths:
        try:
            settings = _from_variables(spec, tap, environment) if path == ENVIRONMENT else load(path, dict[str, Any])
        except ConfigError as error:
            problems.append(error)
            continue
        values |= settings
        sources |= dict.fromkeys(settings, path)
    if problems:
        raise TapConfigProblems(problems)
    if ENVIRONMENT not in paths:
        variables = _from_variables(spec, tap, environment)
        values = {**variables, **values}
        sources = {**dict.fromkeys(variables, ENVIRONMENT), **sources}
    for name, source in sources.items():
        if source == ENVIRONMENT:
            sources[name] = environment_name(tap, name)
    return Given(values, ", ".join(dict.fromkeys(paths)) or "config", sources)


def _from_variables(spec: ConfigSpec, tap: str, environment: Mapping[str, str]) -> dict[str, Any]:
    settings = {}
    for setting, schema in spec.settings.items():
        text = environment.get(environment_name(tap, setting), "")
        if text:
            settings[setting] = convert_text(text, schema, spec.schema)
    return settings
