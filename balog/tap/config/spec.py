"""Config specifications: names of settings, and JSON Schemas; one validator."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from balog.common.errors import ConfigError
from balog.common.text import suggest
from balog.tap.config.secrets import mark_secrets, reveal, secret_texts
from balog.tap.config.validation import compile_schema, mismatches
from balog.tap.errors import TapConfigProblems, TapError
from balog.tap.json_schema.keywords import MAX_DEPTH, types_of
from balog.tap.json_schema.references import resolve_reference

TOOLKIT_SETTINGS: dict[str, dict[str, Any]] = {
    "start_date": {"type": "string", "format": "instant", "description": "where streams without a bookmark begin"},
    "quarantine_file": {"type": "string", "minLength": 1, "description": "where records go that break their schema"},
}
"""Settings that every tap of the toolkit supports, whether its spec declares them or not."""

_OPEN = {"type": "object"}
_DEFINITIONS = ("$defs", "definitions")
_MAX_PROBLEMS = 100


class ConfigSpec:
    """The specification of a config.

    Args:
        schema: a JSON Schema of an object.

    Raises:
        TapError: a reference at its top has no target. ``check`` raises it if this is not a schema.
    """

    def __init__(self, schema: Mapping[str, Any] | None = None) -> None:
        root = _with_lists(schema or _OPEN)
        self.schema: dict[str, Any] = {**root, **resolve_reference(root, root)}
        self.schema.pop("$ref", None)
        self._is_strict = schema is not None

    @property
    def settings(self) -> dict[str, Any]:
        """The schemas of the top-level settings by name, those of the toolkit last."""
        own = self.schema.get("properties", {})
        return {**own, **{name: declared for name, declared in TOOLKIT_SETTINGS.items() if name not in own}}

    def check(
        self, config: Mapping[str, Any], source: str = "", sources: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the config as the tap's functions receive it.

        Defaults are filled in, and references to secrets (``{"env": …}``, ``{"file": …}``) resolved.

        Args:
            config: decoded JSON; it is not changed.
            source: the file or files of the config, for error messages.
            sources: by top-level setting, its source where that differs.

        Raises:
            TapConfigProblems: one line per problem, without any value of the config.
            TapError: a default does not fit the schema.
        """
        problems: list[ConfigError] = []
        revealed = reveal(config, self.schema, self.schema, "$", set(), problems)
        if not problems:
            defaults: list[tuple[Any, Any]] = []
            filled: dict[str, Any] = _filled(revealed, self.schema, self.schema, defaults)
            if not (faults := list(mismatches(self._validator, filled))):
                return filled
            given = set(map(str, mismatches(self._validator, revealed)))
            problems = [fault for fault in faults if str(fault) in given]
            if not problems and any(self._refuses(declared, default) for declared, default in defaults):
                raise TapError(f"config schema: a default is refused by its own schema: {faults[0]}")
            problems = problems or faults
        raise TapConfigProblems([_placed(problem, source, sources or {}) for problem in problems[:_MAX_PROBLEMS]])

    def _refuses(self, declared: Any, value: Any) -> bool:
        """Return whether the schema of one setting refuses a value. Its references lead into the whole schema."""
        root = {name: self.schema[name] for name in ("$schema", "$id", *_DEFINITIONS) if name in self.schema}
        schema = {**root, "properties": {**self.schema.get("properties", {}), "": declared}}
        return not compile_schema(schema).is_valid({"": value})

    def warnings(self, config: Mapping[str, Any]) -> list[str]:
        """Return a line for each unknown setting that the schema does not forbid."""
        if not self._is_strict:
            return []
        return [
            f"{path}: the tap does not know this setting{suggest(name, known)}"
            for path, name, known in _unknown(config, self.schema, self.schema, "$", TOOLKIT_SETTINGS)
        ]

    def secrets(self, config: Mapping[str, Any]) -> set[str]:
        """Return the secrets of a config, including those that it references."""
        texts: set[str] = set()
        revealed = reveal(config, self.schema, self.schema, "$", texts, [])
        return texts.union(secret_texts(revealed, self.schema))

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a config for ``--about``, with secrets marked and their defaults hidden.

        It includes the settings of the toolkit.
        """
        shown: dict[str, Any] = mark_secrets({**self.schema, "properties": self.settings})
        return shown

    def toolkit(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the toolkit by name, of a result of ``check``; None for a missing one."""
        return {name: config.get(name) for name in TOOLKIT_SETTINGS}

    @cached_property
    def _validator(self) -> Any:
        return compile_schema({**self.schema, "properties": self.settings})


def make_spec(declaration: Any) -> ConfigSpec:
    """Return the specification that a tap declares for its config.

    Args:
        declaration: a list of required names; a JSON Schema of an object; None to allow any config.

    Raises:
        TapError: the declaration is none of these.
    """
    if declaration is None or isinstance(declaration, ConfigSpec):
        return declaration or ConfigSpec()
    if isinstance(declaration, Mapping):
        is_schema = not {"$ref", "$schema", "properties", "type"}.isdisjoint(declaration)
        if is_schema and "object" in (types_of(declaration) or ("object",)):
            return ConfigSpec({**declaration, "type": "object"})
    elif isinstance(declaration, (list, tuple)) and all(isinstance(name, str) and name for name in declaration):
        return ConfigSpec({**_OPEN, "properties": {name: {} for name in declaration}, "required": list(declaration)})
    raise TapError(f"config_spec={declaration!r:.100}: expected a list of names, or a JSON Schema of an object")


def _with_lists(value: Any) -> Any:
    """Copy a schema, with lists for tuples."""
    if isinstance(value, Mapping):
        return {name: _with_lists(inner) for name, inner in value.items()}
    return [_with_lists(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _placed(problem: ConfigError, source: str, sources: Mapping[str, str]) -> ConfigError:
    top = problem.path.removeprefix("$.").split(".")[0].split("[")[0]
    return ConfigError(problem.reason, problem.source or sources.get(top, source), problem.path)


def _filled(value: Any, schema: Any, root: Any, defaults: list[tuple[Any, Any]], depth: int = 0) -> Any:
    """Return a copy of a value with missing settings set to their defaults, which are added to a list.

    Args:
        defaults: gets the schema of each such setting, and its default.
    """
    schema = resolve_reference(schema, root)
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        settings = dict(value)
        for name, inner in schema.get("properties", {}).items():
            declared = resolve_reference(inner, root)
            if name in settings:
                settings[name] = _filled(settings[name], declared, root, defaults, depth + 1)
            elif isinstance(declared, Mapping) and "default" in declared:
                settings[name] = copy.deepcopy(declared["default"])
                defaults.append((declared, declared["default"]))
        return settings
    if isinstance(value, list) and "items" in schema:
        return [_filled(item, schema["items"], root, defaults, depth + 1) for item in value]
    return value


def _unknown(
    config: Any, schema: Any, root: Any, path: str, besides: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the path and name of each setting that a schema does not declare, with the declared names."""
    schema = resolve_reference(schema, root)
    if not isinstance(config, Mapping) or not isinstance(schema, Mapping):
        return
    named = schema.get("properties", {})
    forms = any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf", "patternProperties"))
    for name, value in config.items():
        if name in named:
            yield from _unknown(value, named[name], root, f"{path}.{name}", {})
        elif named and "additionalProperties" not in schema and not forms and name not in besides:
            yield f"{path}.{name}", name, sorted(named)
