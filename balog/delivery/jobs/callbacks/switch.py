"""Whether a callback is on: an endpoint that answered 410 is asked nothing more until somebody says so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from balog.delivery.document import Callback
from balog.delivery.jobs.callbacks.disabling import Disabled, DisabledCallbacks, digest
from balog.errors import BalogError
from balog.logger import get_logger
from balog.outbound.notices import ThrottledNotices

__all__ = ["Switch"]

LOOK_OFF, LOOK_ON = 2.0, 30.0
"""Seconds between looks for what others did: who enables it is waited for, another service's 410 comes here too."""


class Switch:
    """Turned off by the endpoint, turned on by a changed config or ``balog callbacks enable``. Kept at one place.

    It logs ``disabled`` (ERROR) and ``enabled`` (INFO) to the channel ``balog.delivery.jobs.callbacks``.

    Args:
        config: the callback's.
        place: where it is kept.
        options: of that place.

    Raises:
        ConfigError: a place that can't be.
        MissingExtraError: its packages are not installed.
    """

    def __init__(
        self, config: Callback, place: str, notices: ThrottledNotices, options: Mapping[str, Any] | None = None
    ) -> None:
        self.is_off = False
        self.trouble = ""
        self._name = config.name
        self._digest = digest(config)
        self._kept = DisabledCallbacks(place, options)
        self._notices = notices
        self._unkept: Disabled | None = None
        self._looked_at = float("-inf")
        self._log = get_logger("balog.delivery.jobs.callbacks")

    def turn_off(self, reason: str) -> None:
        """Turn it off, and keep that."""
        if self.is_off:
            return
        self._unkept = Disabled(self._name, self._digest, time.time(), reason)
        self._note_off(reason)
        self._log.error("disabled", callback=self._name, reason=reason)
        self._keep()

    def look(self) -> None:
        """See, if it is time to, whether somebody turned it on or off."""
        now = time.monotonic()
        if now - self._looked_at < (LOOK_OFF if self.is_off else LOOK_ON):
            return
        self._looked_at = now
        if self._unkept is not None:
            self._keep()
            return
        try:
            found = self._kept.get(self._name)
            if found is not None and found.config != self._digest:
                self._kept.remove(self._name)  # it was another config's
                found = None
        except BalogError as error:
            if self._notices.is_due("state"):
                self._notices.send(f"{error}; whether it is disabled can't be told, it stays as it is")
            return
        if found is not None and not self.is_off:
            self._note_off(found.reason)
        elif found is None and self.is_off:
            self.is_off, self.trouble = False, ""
            self._notices.send("is enabled again")
            self._log.info("enabled", callback=self._name)

    def close(self) -> None:
        """Close what is open."""
        self._kept.close()

    def _note_off(self, reason: str) -> None:
        self.is_off = True
        self.trouble = f"{reason}, so it is disabled; see to it, then: balog callbacks enable {self._name}"
        self._notices.send(self.trouble)

    def _keep(self) -> None:
        if self._unkept is None:
            return
        self._looked_at = time.monotonic()
        try:
            self._kept.put(self._unkept)
            self._unkept = None
        except BalogError as error:
            if self._notices.is_due("keeping"):
                self._notices.send(
                    f"{error}; that it is disabled is not kept yet, a restart would ask the endpoint again"
                )
