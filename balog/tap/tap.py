"""``Tap``: streams, client, schemas and metadata declared in one place, run as a Singer tap."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from balog.tap.bookmarks import EveryN, EverySeconds
from balog.tap.config import make_spec
from balog.tap.errors import TapError
from balog.tap.streams import Stream

__all__ = ["Tap"]


class Tap:
    """A Singer tap.

    Args:
        name: the program's name, ``tap-cool``.
        config_spec: what its config must hold; see ``balog.tap.config.make_spec``.
    """

    every_n = EveryN
    every_seconds = EverySeconds

    def __init__(self, name: str, config_spec: Any = None) -> None:
        self.name = name
        self.spec = make_spec(config_spec)
        self.streams: dict[str, Stream] = {}
        self.make_client: Callable[[Any], Any] | None = None

    def client(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Declare the function that makes the client of a config; called once in a run, when it is needed."""
        self.make_client = function
        return function

    def stream(self, name: str, **settings: Any) -> Callable[[Callable[..., Any]], Stream]:
        """Declare a stream by the function that gives its records; ``settings`` are the attributes of ``Stream``."""

        def declare(function: Callable[..., Any]) -> Stream:
            stream = _Function(name, function, **settings)
            if name in self.streams:
                raise TapError(f"there are two streams {name!r}")
            self.streams[name] = stream
            return stream

        return declare

    def schema(self, name: str, source: Any) -> None:
        """Say where a stream's schema comes from."""
        self.streams[name].schema = source

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Run as the program that ``arguments`` (those of the process when None) ask for; ends the process."""
        from balog.tap.command import run

        run(self, arguments)


class _Function(Stream):
    def __init__(self, name: str, function: Callable[..., Any], **settings: Any) -> None:
        super().__init__(name, **settings)
        self.function = function
        self._wants = list(inspect.signature(function).parameters)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def records(self, client: Any, context: Any) -> Any:
        has = {"client": client, "context": context}
        return self.function(**{name: has[name] for name in self._wants})
