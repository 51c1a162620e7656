"""The switch of a callback: an endpoint that answered 410 gets no further request until the callback is enabled."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from balog.delivery.document import Callback
from balog.delivery.jobs.callbacks.disabled import Disabled, DisabledCallbacks, digest
from balog.errors import BalogError
from balog.logger import get_logger
from balog.outbound.notices import ThrottledNotices

__all__ = ["Switch"]

CHECK_WHEN_OFF, CHECK_WHEN_ON = 2.0, 30.0
"""Seconds between checks of the stored state, which other services and ``balog callbacks enable`` change."""


class Switch:
    """Turned off by the endpoint, and turned on by a changed config or ``balog callbacks enable``. The state is stored.

    It logs ``disabled`` (ERROR) and ``enabled`` (INFO) to the channel ``balog.delivery.jobs.callbacks``.

    Args:
        config: the callback.
        place: the folder or URL of the stored state.
        options: options of the URL's file system.

    Attributes:
        is_off: whether the callback is disabled.
        error: why it is disabled, and how to enable it; "" otherwise.

    Raises:
        ConfigError: an invalid place.
        MissingExtraError: packages for the place are not installed.
    """

    def __init__(
        self, config: Callback, place: str, notices: ThrottledNotices, options: Mapping[str, Any] | None = None
    ) -> None:
        self.is_off = False
        self.error = ""
        self._name = config.name
        self._digest = digest(config)
        self._stored = DisabledCallbacks(place, options)
        self._notices = notices
        self._unsaved: Disabled | None = None
        self._checked_at = float("-inf")
        self._log = get_logger("balog.delivery.jobs.callbacks")

    def turn_off(self, reason: str) -> None:
        """Turn it off and store that."""
        if self.is_off:
            return
        self._unsaved = Disabled(self._name, self._digest, time.time(), reason)
        self._note_off(reason)
        self._log.error("disabled", callback=self._name, reason=reason)
        self._save()

    def check(self) -> None:
        """Check the stored state if a check is due."""
        now = time.monotonic()
        if now - self._checked_at < (CHECK_WHEN_OFF if self.is_off else CHECK_WHEN_ON):
            return
        self._checked_at = now
        if self._unsaved is not None:
            self._save()
            return
        try:
            found = self._stored.get(self._name)
            if found is not None and found.config != self._digest:
                self._stored.remove(self._name)  # of an earlier config
                found = None
        except BalogError as error:
            if self._notices.is_due("state"):
                self._notices.send(f"{error}; whether it is disabled can't be told, it stays as it is")
            return
        if found is not None and not self.is_off:
            self._note_off(found.reason)
        elif found is None and self.is_off:
            self.is_off, self.error = False, ""
            self._notices.send("is enabled again")
            self._log.info("enabled", callback=self._name)

    def close(self) -> None:
        """Close the connection to the stored state."""
        self._stored.close()

    def _note_off(self, reason: str) -> None:
        self.is_off = True
        self.error = f"{reason}, so it is disabled; see to it, then: balog callbacks enable {self._name}"
        self._notices.send(self.error)

    def _save(self) -> None:
        if self._unsaved is None:
            return
        self._checked_at = time.monotonic()
        try:
            self._stored.put(self._unsaved)
            self._unsaved = None
        except BalogError as error:
            if self._notices.is_due("keeping"):
                self._notices.send(
                    f"{error}; that it is disabled is not kept yet, a restart would ask the endpoint again"
                )
