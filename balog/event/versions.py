"""Parse versions of events and conditions on them, for consumers and the event service."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from balog.common.errors import ConfigError

if TYPE_CHECKING:
    from semantic_version import SimpleSpec, Version

_LONGEST = 256  # no sane version is longer
_LARGEST = 10**9
_PARTS = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?", re.ASCII)


def parse_condition(text: str) -> SimpleSpec:
    """Return a condition such as ``<1.0`` or ``>=1.0.1,<2``, as semantic-version's ``SimpleSpec`` reads it.

    Raises:
        ConfigError: the text is not a condition.
    """
    from semantic_version import SimpleSpec  # this import takes longer than all of balog's

    try:
        return SimpleSpec(text)
    except ValueError:
        raise ConfigError(f"{text!r:.60} is not a condition; expected something like '>=1.0.1,<2'") from None


def version_text(value: object) -> str | None:
    """Return an event's version as text, also if it is a number; None for other values."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST:
        return None
    return str(value) if math.isfinite(value) else None


def parse_version(text: str) -> Version | None:
    """Parse a version; missing parts count as 0, so ``1`` and ``1.0`` are 1.0.0. Return None for other texts."""
    return _parse(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _parse(text: str) -> Version | None:
    from semantic_version import Version

    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    major, minor, patch, rest = match.groups("")
    try:
        return Version(f"{major}.{minor or 0}.{patch or 0}{rest}")
    except ValueError:  # such as 1.0.0-01
        return None
