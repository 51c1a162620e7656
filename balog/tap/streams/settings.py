"""The settings of streams and the values that each allows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from balog.common.text import nearest, suggest
from balog.tap.errors import TapError
from balog.tap.json_schema.keywords import is_number


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_key(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_metadata(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(crumb, tuple) and all(isinstance(part, str) for part in crumb) and isinstance(entry, Mapping)
        for crumb, entry in value.items()
    )


def _one_of(*values: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: value in values, " or ".join(values)


_TEXT = (_is_text, "a text")
_NAMES = (_is_key, "a list of different names")
_FUNCTION = (callable, "a function")
BOOL = (lambda value: isinstance(value, bool), "True or False")
_STREAM = (
    lambda value: _is_text(value) or isinstance(value, type) or hasattr(value, "children"),
    "a stream, its class or its name",
)

INFERRED = "inferred"
"""A schema that is inferred from the stream's first records."""

Checks = Mapping[str, tuple[Callable[[Any], bool], str]]
"""For each setting, a check of its value and a description of the allowed values."""

SETTINGS: Checks = {
    **dict.fromkeys(("after", "bookmark_of", "client", "for_each"), _FUNCTION),
    **dict.fromkeys(("created_key", "each_key", "each_name", "replication_key"), _TEXT),
    **dict.fromkeys(("has_log", "is_sorted", "select"), BOOL),
    **dict.fromkeys(("key_properties", "replication_keys"), _NAMES),
    **dict.fromkeys(("parent", "source_stream"), _STREAM),
    "bookmark_strategy": (
        lambda value: value in ("end_of_stream", "end_of_sync") or callable(value),
        "end_of_stream, tap.every_n(…), tap.every_seconds(…) or a function",
    ),
    "epoch": _one_of("seconds", "milliseconds"),
    "lookback": (lambda value: is_number(value) and 0 <= value < float("inf"), "seconds or a number, not below 0"),
    "metadata": (_is_metadata, "a dict of dicts by breadcrumb, a tuple of texts"),
    "policy": _one_of("coerce", "fail", "quarantine"),
    "replication_method": _one_of("FULL_TABLE", "INCREMENTAL", "LOG_BASED"),
    "schema": (
        lambda value: isinstance(value, (dict, type)) or callable(value) or value == INFERRED,
        f"a JSON Schema, a source of one, or {INFERRED!r}",
    ),
}
"""The settings that all streams have."""


def check_settings(kind: type, declared: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Check the settings of a class of streams and of a declaration, and return those that are not defaults.

    Args:
        kind: the class of the stream.
        declared: settings of the declaration, which override those of the class.
        title: the stream's name and place, for errors.

    Raises:
        TapError: an unknown setting, or an invalid value.
    """
    own: Checks = getattr(kind, "own_settings", {})
    checks = {**SETTINGS, **own}
    for name in declared:
        if name not in checks:
            raise TapError(f"{title}: there is no setting {name!r}{suggest(name, checks, limit=0)}")
    if own:
        _reject_misspelled(kind, checks, title)
    settings = {name: _class_value(kind, name) for name in checks if _is_overridden(kind, name)}
    settings.update(declared)
    for name, value in settings.items():
        if value is None and (default := _default(kind, name)) is not None:
            raise TapError(f"{title}: {name}=None: expected {checks[name][1]}; the default is {default!r:.60}")
    for name, value in settings.items():
        is_valid, wanted = checks[name]
        if value is not None and not is_valid(value):
            raise TapError(f"{title}: {name}={value!r}: expected {wanted}")
    for name in ("key_properties", "replication_keys"):
        if settings.get(name) is not None:
            settings[name] = list(settings[name])
    return {name: value for name, value in settings.items() if value is not None or name in declared}


def _own_bases(kind: type) -> list[type]:
    """Return a class and its bases that are not the toolkit's."""
    return [base for base in kind.__mro__ if base is not object and not base.__module__.startswith("balog.tap.")]


def _is_overridden(kind: type, name: str) -> bool:
    return any(name in vars(base) for base in _own_bases(kind))


def _default(kind: type, name: str) -> Any:
    """Return the default of a setting in the class of the toolkit that declares it."""
    toolkits = (base for base in reversed(kind.__mro__) if base.__module__.startswith("balog.tap."))
    return next((vars(base)[name] for base in toolkits if name in vars(base)), None)


def _reject_misspelled(kind: type, checks: Checks, title: str) -> None:
    """Reject an attribute of a class that is like a setting, but is none: nothing would read it."""
    for name in (name for base in _own_bases(kind) for name in vars(base)):
        if not name.startswith("_") and name not in checks:
            near = nearest(name, checks)
            if near is not None and not callable(getattr(kind, name)):
                raise TapError(f"{title}: there is no setting {name!r}; did you mean {near!r}?")


def _class_value(kind: type, name: str) -> Any:
    """Return a class attribute, or None for a method (its first parameter is ``self``), which stays a method.

    Any other function in the body, such as a source of schemas, is a value.
    """
    value = getattr(kind, name)
    if inspect.isfunction(value) and next(iter(inspect.signature(value).parameters), "") == "self":
        return None
    return value
