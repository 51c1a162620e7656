"""Config specifications: names of settings, and JSON Schemas; one validator, jsonschema-rs.

No message has a value of the config.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from balog.common.errors import ConfigError
from balog.common.text import suggest
from balog.tap.config.secrets import mark_secrets, reveal, secret_texts
from balog.tap.errors import TapConfigProblems, TapError
from balog.tap.json_schema.formats import is_instant
from balog.tap.json_schema.keywords import MAX_DEPTH, types_of
from balog.tap.json_schema.mismatch import TYPE_WORDS, json_path, type_name
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
    ) -> tuple[dict[str, Any], set[str]]:
        """Return the config as the tap's functions receive it, and its secrets, including those that it references.

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
        secrets: set[str] = set()
        revealed = reveal(config, self.schema, self.schema, "$", secrets, problems)
        if not problems:
            defaults: list[tuple[Any, Any]] = []
            filled: dict[str, Any] = _filled(revealed, self.schema, self.schema, defaults)
            if not (faults := list(mismatches(self._validator, filled))):
                return filled, secrets.union(secret_texts(revealed, self.schema))
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

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a config for ``--about``, with secrets marked and their defaults hidden.

        It includes the settings of the toolkit.
        """
        shown: dict[str, Any] = mark_secrets({**self.schema, "properties": self.settings})
        return shown

    def toolkit(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the toolkit by name, of a checked config; None for a missing one."""
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


_NOT_RESTRICTING = ("password", "binary", "byte", "int32", "int64", "float", "double")
_FORMATS = {"instant": is_instant, **dict.fromkeys(_NOT_RESTRICTING, lambda text: True)}
_FORMAT_WORDS = {
    "date": "a date as 2026-01-31",
    "date-time": "a date and time as 2026-01-31T00:00:00Z",
    "instant": "a date as 2026-01-31, or a date and time as 2026-01-31T00:00:00Z",
}


def compile_schema(schema: dict[str, Any]) -> Any:
    """Return the validator of a JSON Schema; formats are checked, and nothing is fetched.

    Raises:
        TapError: it is not a JSON Schema, or it has an unknown format, an unknown reference, or a pattern that is not
            one of Rust's regex crate, which takes linear time.
    """
    import jsonschema_rs  # imported when a tap reads its config

    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            ignore_unknown_formats=False,
            formats=_FORMATS,
            pattern_options=jsonschema_rs.RegexOptions(),
            offline=True,
            mask="…",
        )
    except ValueError as error:
        path = json_path(getattr(error, "instance_path", ()))
        raise TapError(f"config schema: {path}: {str(error).splitlines()[0]}") from None


def mismatches(validator: Any, config: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Yield an error for each place where a config breaks its schema.

    Args:
        validator: the result of ``compile_schema``.
        config: decoded JSON.
    """
    for error in validator.iter_errors(config):
        yield ConfigError(_reason(error), path=json_path(error.instance_path))


def _reason(error: Any) -> str:
    kind = error.kind
    if kind.name == "required":
        return f"the field {kind.property!r} is missing"
    if kind.name == "additionalProperties":
        return " and ".join(f"there is no field {name!r}" for name in kind.unexpected[:5])
    if kind.name == "type":
        words = (TYPE_WORDS[name] for name in sorted(kind.types, key="null".__eq__))
        return f"expected {' or '.join(words)}, got {type_name(error.instance)}"
    if kind.name == "format" and kind.format in _FORMAT_WORDS:
        return f"expected {_FORMAT_WORDS[kind.format]}"
    from balog.registry.reasons import describe_error  # imported only for errors: the registry is slow to import

    return describe_error(error)
