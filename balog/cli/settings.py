"""``--set KEY=VALUE``: the settings of handlers."""

from __future__ import annotations

from collections.abc import Sequence

from balog.errors import ConfigError

__all__ = ["read_settings"]


def read_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Read what was given; the last one of a key counts.

    Raises:
        ConfigError: one of another form.
    """
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {pair!r}: want KEY=VALUE")
        settings[key] = value
    return settings
