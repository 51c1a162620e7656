"""Make a redactor from a config and from the rules of installed packages."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from balog.common.errors import BalogError, ConfigError, split_refusal
from balog.common.plugins import load_named
from balog.common.redaction.redactor import Redactor
from balog.common.redaction_options import RedactionOptions

_Addition = Literal["extra_keys", "extra_suffixes", "extra_expressions", "extra_patterns", "keep_keys", "keep_suffixes"]


def from_config(config: dict[str, Any] | bool) -> Redactor | None:
    """Return a redactor with the options of a config; True for the default one, False for None.

    Raises:
        ConfigError: an option is unknown, of another type or rejected by ``Redactor``, or a rule of an installed
            package cannot be used.
    """
    if isinstance(config, bool):
        return Redactor() if config else None
    try:
        options = msgspec.structs.asdict(msgspec.convert(config, RedactionOptions))
    except msgspec.ValidationError as error:
        reason, where = split_refusal(error)
        raise ConfigError(reason, path=where) from None
    for number, name in enumerate(options.pop("rules")):
        for option, texts in _rules_of(name, f"$.rules[{number}]").items():
            options[option] = [*options[option], *texts]
    return Redactor(**{name: item for name, item in options.items() if item is not None})


def _rules_of(name: str, path: str) -> dict[str, list[str]]:
    """Return the options that the redaction rule of an installed package adds."""
    try:
        make = load_named("balog.redaction", name, path)
    except ConfigError:
        raise
    except BalogError as error:  # the rest of the rules can do without it
        raise ConfigError(str(error), path=path) from error
    try:
        added: dict[str, list[str]] = msgspec.convert(make(), dict[_Addition, list[str]])
    except Exception as error:  # a plug-in may raise anything
        raise ConfigError(f"the redaction rule {name!r} cannot be used: {error}", path=path) from error
    return added
