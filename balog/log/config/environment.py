"""Configuration from the environment at the first event, by as much of it as is valid."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from balog.common import config as configs
from balog.common.errors import BalogError, ConfigError, complain
from balog.log.outputs import default_output


def apply_environment(apply: Callable[..., None]) -> None:
    """Configure without arguments. A wrong variable leads to one line on stderr, and never stops the application.

    Args:
        apply: configures; receives settings, no file, and the names of variables to ignore as ``ignored``.
    """
    ignored: list[str] = []
    kept: dict[str, Any] = {}
    while True:
        try:
            return apply(kept, None, ignored=ignored)
        except BalogError as error:
            source = error.source if isinstance(error, ConfigError) else "BALOG_OUTPUT"
            wrong = source if source in _INSTEAD else "BALOG_CONFIG"
            if wrong in ignored:
                raise
            ignored.append(wrong)
            instead = _INSTEAD[wrong]()
            if wrong == "BALOG_CONFIG" and (rules := _redaction_rules(os.environ["BALOG_CONFIG"])):
                kept = {"redact": rules}
                instead = "with its valid redaction rules alone"
            complain(f"{error}; going on {instead}")


_INSTEAD: dict[str, Callable[[], str]] = {
    "BALOG_OUTPUT": lambda: f"with {default_output()}",
    "BALOG_LEVEL": lambda: "from INFO on",
    "BALOG_CONFIG": lambda: "without it",
}


def _redaction_rules(path: str) -> dict[str, Any] | None:
    """Return the valid redaction rules of a config file even if all else in it is invalid; None without one."""
    try:
        declared = configs.load(path, dict[str, Any]).get("redact")
    except BalogError:
        return None
    rules: dict[str, Any] = {}
    for option, value in declared.items() if isinstance(declared, dict) else ():
        if _is_redaction({option: value}):
            rules[option] = value
        elif isinstance(value, list) and (option == "rules" or option.startswith("extra_")):
            rules[option] = [item for item in value if _is_redaction({option: [item]})]
    return rules or None


def _is_redaction(rules: dict[str, Any]) -> bool:
    from balog.common.redaction import from_config

    try:
        return from_config(rules) is not None
    except BalogError:
        return False
