"""The options of a reader about forms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from balog.errors import ConfigError

FORMS = ("auto", "events", "sqs", "old", "singer", "stderr")
"""The values of the option ``form``; see ``docs/reading.md``."""


class FormOptions(NamedTuple):
    """The options ``form``, ``timezone`` and ``application`` of the data source.

    Attributes:
        form: one of ``FORMS``; "auto" looks at each file's first bytes.
        timezone: the IANA name of the zone of times without one.
        application: the program whose output was captured; "" uses each file's name.
    """

    form: str = "auto"
    timezone: str = "UTC"
    application: str = ""

    @property
    def zone(self) -> tzinfo:
        """The time zone itself."""
        return timezone.utc if self.timezone == "UTC" else ZoneInfo(self.timezone)

    @classmethod
    def read(cls, options: Mapping[str, str]) -> FormOptions:
        """Read the data source's options.

        Raises:
            ConfigError: the form or zone is unknown.
        """
        found = cls(options.get("form") or "auto", options.get("timezone") or "UTC", options.get("application") or "")
        if found.form not in FORMS:
            raise ConfigError(f"option form is {found.form!r}; there are {', '.join(FORMS)}", "format('balog')")
        try:
            found.zone  # noqa: B018
        except (ValueError, OSError, KeyError):
            raise ConfigError(
                f"option timezone is {found.timezone!r}; give an IANA name such as Europe/Berlin", "format('balog')"
            ) from None
        return found
