"""Durations, factors and shares, as people write them in monitors: ``15m``, ``2x``, ``5%``."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

from balog.common.errors import ConfigError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,9})?)([smhdw])")
_SHARE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)%")
_FACTOR = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)x")

LONGEST = 10 * 366 * 86400.0
"""Seconds of the longest duration."""

DurationText = Annotated[
    str, Meta(examples=["15m"], extra_json_schema={"pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?[smhdw]$"})
]
ShareText = Annotated[str, Meta(examples=["5%"], extra_json_schema={"pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?%$"})]
FactorText = Annotated[str, Meta(examples=["2x"], extra_json_schema={"pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?x$"})]


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as ``15m``.

    Raises:
        ConfigError: not a number with a unit, or longer than 10 years.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r:.40} is not a duration; expected a number and s, m, h, d or w, such as 15m")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > LONGEST:
        raise ConfigError(f"{text!r:.40} is longer than 10 years")
    return seconds


def parse_period(text: str) -> float:
    """Return the seconds of a duration that is longer than nothing.

    Raises:
        ConfigError: as ``parse_duration``, or it is 0.
    """
    seconds = parse_duration(text)
    if not seconds:
        raise ConfigError(f"{text!r:.40} is no time; expected a longer duration")
    return seconds


def parse_share(text: str) -> float:
    """Return the share of a percentage, from 0 to 1.

    Raises:
        ConfigError: not a percentage, or more than 100%.
    """
    match = _SHARE.fullmatch(text)
    if match is None or float(match[1]) > 100:
        raise ConfigError(f"{text!r:.40} is not a share; expected a percentage from 0% to 100%, such as 5%")
    return float(match[1]) / 100


def format_share(share: float) -> str:
    """Return a share for people: ``5%`` for 0.05."""
    return f"{share * 100:.3g}%"


def parse_factor(text: str) -> float:
    """Return the number of a factor such as ``2x``.

    Raises:
        ConfigError: not a factor.
    """
    match = _FACTOR.fullmatch(text)
    if match is None or not float(match[1]):
        raise ConfigError(f"{text!r:.40} is not a factor; expected a number and x, such as 2x")
    return float(match[1])


def format_duration(seconds: float) -> str:
    """Return a duration for people, in its two largest units: ``1 h 15 min``; one of less than a second in ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    rest = round(abs(seconds))
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
