"""The clients of a run: each is made once, when the first stream asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.tap.streams import Stream


class ClientCache:
    """Makes the tap's client and the streams' own clients, and keeps them.

    Args:
        config: the argument of the functions that make clients.
        make: makes the tap's client; None for a tap without one.
        client: the tap's client, if it exists already.
    """

    def __init__(self, config: Any, make: Callable[[Any], Any] | None, client: Any = None) -> None:
        self._config, self._make = config, make
        self._results: dict[Any, tuple[Any, BaseException | None]] = {}
        if make is not None and client is not None:
            self._results[make] = client, None

    def of(self, stream: Stream) -> Any:
        """Return the stream's own client, or the tap's. One that failed is not made again: its error is raised."""
        make = stream.client or self._make
        if make is None:
            return None
        if make not in self._results:
            try:
                self._results[make] = make(self._config), None
            except (Exception, SystemExit) as error:  # a wrong password, tried for each stream, locks an account
                self._results[make] = None, error
        client, failure = self._results[make]
        if failure is not None:
            raise failure
        return client
