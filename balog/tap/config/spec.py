"""From what a tap says of its config to one thing that checks configs."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from balog.config import MAX_CONFIG_BYTES
from balog.errors import ConfigError
from balog.problems import problems as struct_problems
from balog.problems import suggest
from balog.tap.beside import beside
from balog.tap.config.json_types import target_of
from balog.tap.config.keywords import refuse_unknown
from balog.tap.config.samples import schema_from_example, with_optional
from balog.tap.config.secrets import hide, marked, reveal, secret_texts
from balog.tap.config.validator import Fault, check
from balog.tap.errors import ConfigProblems, TapError

__all__ = ["TOOLKIT_SETTINGS", "ConfigSpec", "json_path", "make_spec", "sample"]

TOOLKIT_SETTINGS: dict[str, dict[str, Any]] = {
    "start_date": {"type": "string", "format": "instant", "description": "where streams without a bookmark begin"},
    "batch_config": {"type": "object", "description": "records go to files, as BATCH"},
    "quarantine_file": {"type": "string", "minLength": 1, "description": "where records go that break their schema"},
}
"""Settings that every tap of the toolkit understands, whether its spec names them or not."""

_OPEN = {"type": "object"}
_MAX_PROBLEMS = 100


class ConfigSpec:
    """What a config must hold.

    Args:
        schema: a JSON Schema of an object; see ``balog.tap.config.validator`` for its keywords.
        is_strict: tell of settings that the schema does not name. A schema says by ``additionalProperties: false``
            that they are errors; else they are warnings.

    Raises:
        TapError: the schema is none, has a keyword that would not be looked at, or a default that it refuses itself.
    """

    def __init__(self, schema: Mapping[str, Any] | None = None, *, is_strict: bool = True) -> None:
        self.schema: dict[str, Any] = copy.deepcopy(dict(schema or _OPEN))
        self.is_strict = is_strict and schema is not None
        refuse_unknown(self.schema)
        _refuse_wrong_defaults(self.schema, self.schema)

    @property
    def settings(self) -> dict[str, Any]:
        """The schemas of the settings at the top by their names, last those of the toolkit."""
        own = target_of(self.schema, self.schema).get("properties", {})
        return {**own, **{name: said for name, said in TOOLKIT_SETTINGS.items() if name not in own}}

    def check(self, config: Mapping[str, Any], source: str = "", sources: Mapping[str, str] | None = None) -> Any:
        """Give the config as the tap's functions get it: a dict, or the Struct that the tap named.

        Defaults are filled in, and secrets that are kept elsewhere (``{"env": …}``, ``{"file": …}``) put in.

        Args:
            config: as JSON decodes; it is not changed.
            source: the file or files that it came from, for the errors.
            sources: where a setting at the top came from, when that is another place.

        Raises:
            ConfigProblems: each of its lines has a problem; none has a value of the config.
        """
        found: set[str] = set()
        problems: list[ConfigError] = []
        revealed = reveal(config, self.schema, self.schema, "$", found, problems)
        if not problems:
            filled = _filled(revealed, self.schema, self.schema)
            made = self._make(filled, problems)
            problems += self._toolkit_problems(filled)
        if problems:
            secrets = found.union(secret_texts(revealed, self.schema))
            raise ConfigProblems(
                [_placed(problem, source, sources or {}, secrets) for problem in problems[:_MAX_PROBLEMS]]
            )
        return made

    def warnings(self, config: Mapping[str, Any]) -> list[str]:
        """Give a line for each setting that the spec does not know and does not refuse either."""
        if not self.is_strict:
            return []
        return [
            f"{path}: the tap does not know this setting; {suggest(name, known)}"
            for path, name, known in _unknown(config, self.schema, self.schema, "$", TOOLKIT_SETTINGS)
        ]

    def secrets(self, config: Mapping[str, Any]) -> set[str]:
        """Give the texts in a config, its references followed, that must not be seen anywhere."""
        found: set[str] = set()
        revealed = reveal(config, self.schema, self.schema, "$", found, [])
        return found.union(secret_texts(revealed, self.schema))

    def json_schema(self) -> dict[str, Any]:
        """Give the JSON Schema of a config, as ``--about`` shows it: what is secret is marked, its default hidden.

        Settings of the toolkit are in it, too.
        """
        shown: dict[str, Any] = marked({**self.schema, "properties": self.settings})
        return shown

    def toolkit(self, config: Mapping[str, Any], made: Any) -> dict[str, Any]:
        """Give the settings of the toolkit, None for one that is not there.

        Args:
            config: as for ``check``, which has passed it.
            made: what ``check`` made of it: what that says counts, else what was given. So they are there for a tap
                whose Struct, or function, does not know them.
        """
        revealed = reveal(config, self.schema, self.schema, "$", set(), [])
        found = {}
        for name in TOOLKIT_SETTINGS:
            value = made.get(name) if isinstance(made, Mapping) else getattr(made, name, None)
            found[name] = msgspec.to_builtins(revealed.get(name) if value is None else value, enc_hook=str)
        return found

    def _make(self, config: dict[str, Any], problems: list[ConfigError]) -> Any:
        problems += _told(check(self._own(config), self.schema))
        return config

    def _own(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Give a config without what is the toolkit's affair alone, which a strict schema would refuse."""
        toolkits = {name for name, said in self.settings.items() if said is TOOLKIT_SETTINGS.get(name)}
        return {name: said for name, said in config.items() if name not in toolkits}

    def _toolkit_problems(self, config: Mapping[str, Any]) -> Iterator[ConfigError]:
        own = self.settings
        for name, schema in TOOLKIT_SETTINGS.items():
            if name in config and own[name] is schema:
                yield from _told(check(config[name], schema, schema, (name,)))


class _StructSpec(ConfigSpec):
    """A msgspec Struct: checked and made by msgspec's rules, strictly."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        schema = msgspec.json.schema(kind)
        self.schema = {**target_of(schema, schema), "$defs": schema["$defs"]}
        self.is_strict = True
        self._kind = kind

    def _make(self, config: dict[str, Any], problems: list[ConfigError]) -> Any:
        config = self._own(config)
        found = struct_problems(config, self._kind)
        problems += found
        return None if found else msgspec.convert(config, self._kind)


class _FunctionSpec(ConfigSpec):
    """A function that says what is wrong, or makes something of a config."""

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__()
        self._function = function

    def json_schema(self) -> dict[str, Any]:
        """Give what is known: it is an object, and what the function's docstring says."""
        text = (self._function.__doc__ or "").strip()
        return {**super().json_schema(), **({"description": text} if text else {})}

    def _make(self, config: dict[str, Any], problems: list[ConfigError]) -> Any:
        try:
            made = self._function(config)
            if isinstance(made, str):
                made = [made]
            elif isinstance(made, Iterator):
                made = list(made)
        except ConfigProblems as error:
            problems += error.problems
        except ConfigError as error:
            problems.append(error)
        except Exception as error:
            said = str(error) or "refused"
            kind = "" if isinstance(error, (ValueError, AssertionError)) and str(error) else f"{type(error).__name__}: "
            problems.append(ConfigError(f"{kind}{said}"))
        else:
            if not isinstance(made, (list, tuple)):
                return config if made is None else made
            problems += [one if isinstance(one, ConfigError) else ConfigError(str(one)) for one in made]
        return config


class sample:
    """A sample config file: each of its settings must be there, of the type that the sample shows.

    Args:
        path: relative to the file that declares it, or absolute.
        optional: the names that need not be there, with dots for those inside of others.
    """

    def __init__(self, path: str | os.PathLike[str], optional: Sequence[str] = ()) -> None:
        self.document, self.place = _document(path)
        self.optional = tuple(optional)


def make_spec(said: Any) -> ConfigSpec:
    """Make a spec of what a tap says of its config.

    Args:
        said: one of

            - a list of names that must be there;
            - a dict of names and examples or types, nested as the config is; see ``samples.schema_from_example``
              and ``optional``;
            - a JSON Schema: a dict with ``$schema``, ``properties`` or the type ``object``;
            - the path of a JSON file with a sample or with a JSON Schema, relative to the file that declares it;
              ``sample(path, optional=[…])`` where settings of a sample need not be there;
            - a msgspec Struct: the tap's functions then get one, not a dict;
            - a function, called with the config: what it raises is what is wrong, and so are texts that it gives, one
              or a list of them; anything else that it gives but None is the config that the tap's functions get;
            - None where any config will do.

    Raises:
        TapError: it is none of these, its file cannot be read, or its schema has a keyword that is not looked at.
    """
    if isinstance(said, ConfigSpec):
        return said
    if said is None:
        return ConfigSpec()
    if isinstance(said, type) and issubclass(said, msgspec.Struct):
        return _StructSpec(said)
    if isinstance(said, sample):
        return ConfigSpec(with_optional(_schema_from(said.document, said.place), said.optional))
    if isinstance(said, (str, os.PathLike)):
        return ConfigSpec(_schema_from(*_document(said)))
    if isinstance(said, Mapping):
        return ConfigSpec(_schema_from(said, "config_spec"))
    if isinstance(said, (list, tuple, set, frozenset)):
        names = sorted(said) if isinstance(said, (set, frozenset)) else list(said)
        if not all(isinstance(name, str) and name for name in names):
            raise TapError(f"config_spec={said!r:.100}: want names of settings")
        return ConfigSpec({**_OPEN, "properties": {name: {} for name in names}, "required": names})
    if callable(said) and not isinstance(said, type):
        return _FunctionSpec(said)
    raise TapError(
        f"config_spec={said!r:.100}: want a list of names, a dict, the path of a JSON file, a msgspec Struct or a "
        "function"
    )


def json_path(fault: Fault) -> str:
    """Give the place of a fault as a JSONPath."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault.path)


def _told(faults: Iterator[Fault]) -> Iterator[ConfigError]:
    for fault in faults:
        yield ConfigError(fault.reason, path=json_path(fault))


def _document(path: str | os.PathLike[str]) -> tuple[Any, str]:
    read, place = beside(path)
    try:
        data = read(place)
    except (OSError, ValueError) as error:
        raise TapError(f"{place}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise TapError(f"{place}: larger than {MAX_CONFIG_BYTES} bytes; is this the right file?")
    try:
        return msgspec.json.decode(data.decode("utf-8-sig")), place
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TapError(f"config_spec: {place}: not JSON: {error}") from None


def _schema_from(document: Any, place: str) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise TapError(f"{place}: want an object: a sample config, or a JSON Schema of one")
    wanted = document.get("type")
    is_typed = wanted == "object" or (isinstance(wanted, list) and "object" in wanted)
    if not (is_typed or "$schema" in document or isinstance(document.get("properties"), Mapping)):
        return schema_from_example(document)
    if wanted is not None and not is_typed:
        raise TapError(f"{place}: the schema's type is {wanted!r}; a config is an object")
    return {**document, "type": "object"}


def _placed(problem: ConfigError, source: str, sources: Mapping[str, str], secrets: set[str]) -> ConfigError:
    top = problem.path.removeprefix("$.").split(".")[0].split("[")[0]
    return ConfigError(hide(problem.reason, secrets), problem.source or sources.get(top, source), problem.path)


def _refuse_wrong_defaults(schema: Any, root: Any, path: str = "$", depth: int = 0) -> None:
    if not isinstance(schema, Mapping) or depth > 60:
        return
    if "default" in schema:
        for fault in check(schema["default"], schema, root):
            raise TapError(f"config schema: {path}.default: {fault.reason}")
    for name, inner in schema.get("properties", {}).items():
        _refuse_wrong_defaults(inner, root, f"{path}.properties.{name}", depth + 1)


def _filled(value: Any, schema: Any, root: Any, depth: int = 0) -> Any:
    """Give a copy of a value with the defaults of what is not there."""
    schema = target_of(schema, root)
    if not isinstance(schema, Mapping) or depth > 60:
        return value
    if isinstance(value, Mapping):
        made = dict(value)
        for name, inner in schema.get("properties", {}).items():
            said = target_of(inner, root)
            if name in made:
                made[name] = _filled(made[name], said, root, depth + 1)
            elif isinstance(said, Mapping) and "default" in said:
                made[name] = copy.deepcopy(said["default"])
        return made
    if isinstance(value, list) and "items" in schema:
        return [_filled(item, schema["items"], root, depth + 1) for item in value]
    return value


def _unknown(
    config: Any, schema: Any, root: Any, path: str, besides: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[str]]]:
    """Give settings that a schema with names does not name, with the names that there are."""
    schema = target_of(schema, root)
    if not isinstance(config, Mapping) or not isinstance(schema, Mapping):
        return
    named = schema.get("properties", {})
    forms = any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf", "patternProperties"))
    for name, value in config.items():
        if name in named:
            yield from _unknown(value, named[name], root, f"{path}.{name}", {})
        elif named and "additionalProperties" not in schema and not forms and name not in besides:
            yield f"{path}.{name}", name, sorted(named)
