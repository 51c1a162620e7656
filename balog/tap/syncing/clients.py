"""The clients of a run: each is made once, when the first stream asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.tap.streams import Stream

__all__ = ["Clients"]


class Clients:
    """Makes the tap's client, and those that streams have for themselves.

    Args:
        config: what they are made of.
        make: makes the tap's; None for a tap that needs none.
        made: the tap's, when it was made already.
    """

    def __init__(self, config: Any, make: Callable[[Any], Any] | None, made: Any = None) -> None:
        self._config, self._make = config, make
        self._made: dict[Any, tuple[Any, BaseException | None]] = {}
        if make is not None and made is not None:
            self._made[make] = made, None

    def of(self, stream: Stream) -> Any:
        """Give the stream's own client, else the tap's; one that failed is not tried again: its error is raised."""
        make = stream.client or self._make
        if make is None:
            return None
        if make not in self._made:
            try:
                self._made[make] = make(self._config), None
            except (Exception, SystemExit) as error:  # a wrong password, asked for each stream, locks an account
                self._made[make] = None, error
        client, failed = self._made[make]
        if failed is not None:
            raise failed
        return client
