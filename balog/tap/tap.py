"""``Tap``: streams, client, schemas and metadata declared in one place, run as a Singer tap."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from balog.tap.bookmarks import EveryN, EverySeconds
from balog.tap.config import make_spec
from balog.tap.errors import TapError
from balog.tap.records import MAX_QUARANTINED
from balog.tap.schema import SchemaSource, generated
from balog.tap.streams import Stream, add, by_names, declare, did_you_mean, link, place_of_caller

__all__ = ["Tap"]

_Any = TypeVar("_Any", bound=Callable[..., Any])


class Tap:
    """A Singer tap.

    What is declared of a stream by its name may come before the stream itself; ``link`` puts it together when the tap
    starts, and says what does not fit.

    Args:
        name: the program's name, ``tap-cool``.
        config_spec: what its config must hold; see ``balog.tap.config.make_spec``.
        quarantine: the file in which records are set aside that break their schema; one for each stream when None, see
            ``balog.tap.records.default_quarantine``.
        max_quarantined: how many of a stream, before it fails.

    Attributes:
        streams: all that were declared, substreams too, by name and in order.
        make_client: see ``client``; None for a tap that needs none.
        visitors: what ``metadata`` declared: the stream's name, "" for all, and the function.
        place: where it was made, ``file:line``.
    """

    every_n = EveryN
    every_seconds = EverySeconds

    def __init__(
        self,
        name: str,
        config_spec: Any = None,
        *,
        quarantine: str | None = None,
        max_quarantined: int = MAX_QUARANTINED,
    ) -> None:
        self.name = name
        self.quarantine = quarantine
        self.max_quarantined = max_quarantined
        self.place = place_of_caller()
        self.spec = make_spec(config_spec)
        self.streams: dict[str, Stream] = {}
        self.make_client: Callable[[Any], Any] | None = None
        self.visitors: list[tuple[str, Callable[..., Any]]] = []
        self._said: list[tuple[str, str, Any, str]] = []

    def client(self, function: _Any) -> _Any:
        """Declare the function that makes the client of a config; called once in a run, when a stream asks for it."""
        self.make_client = function
        return function

    def stream(self, *names: str, **settings: Any) -> Callable[[Any], Any]:
        """Declare streams by a function or a class that gives their records; ``settings`` are ``Stream``'s attributes.

        A function may ask by the names of its parameters for ``client``, ``context``, ``config`` and, of a stream that
        has a parent, ``parent``; it yields records (dicts) or lists of them. Under one name it becomes a ``Stream``,
        for whose records ``.substream(…)`` declares further ones; it can be called as before. A class has a method
        ``records`` of this kind, and its attributes are settings; one object is made for each name, ``self.name``.

        Raises:
            TapError: two streams of one name, an unknown setting, a value or a parameter that cannot be.
        """
        return declare(self.streams, names, settings, place_of_caller())

    def add(self, stream: Stream) -> Stream:
        """Add a stream that is one already.

        Raises:
            TapError: there is one of its name.
        """
        add(self.streams, stream)
        return stream

    def schema(self, name: str = "", source: SchemaSource | dict[str, Any] | type | None = None) -> Any:
        """Say where a stream's schema comes from; without a name, those of all streams that do not say it themselves.

        Without a source it is a decorator of a function that may ask for ``client`` and ``stream`` (the name) and gives
        the schema; ``@tap.schema()`` without parameter ``stream`` gives all of them by name, and is asked once.
        """
        place = _place_of(name, "schema")
        if source is not None:
            self._said.append((name, "schema", source, place))
            return source

        def declare_source(function: _Any) -> _Any:
            call = by_names(function, ("client", "stream"), f"schema of {name or 'all streams'} ({place})")
            is_each = bool(name) or "stream" in inspect.signature(function).parameters
            made: SchemaSource = (
                (lambda client, stream: call({"client": client, "stream": lambda: stream}))
                if is_each
                else generated(lambda client: call({"client": lambda: client}))
            )
            self._said.append((name, "schema", made, place))
            return function

        return declare_source

    def metadata(self, name: str = "") -> Callable[[_Any], _Any]:
        """Declare a function that is called with each node of a stream's schema, or of all, when the catalog is made.

        It is given the node (``name``, ``path``, ``level``, 0 for the stream itself; ``set(key, value)`` writes
        metadata) and the node's schema; what is written by default is there already.
        """
        place = _place_of(name, "metadata")

        def declare_visitor(function: _Any) -> _Any:
            self.visitors.append((name, function))
            self._said.append((name, "", None, place))
            return function

        return declare_visitor

    def bookmark(self, name: str) -> Callable[[_Any], _Any]:
        """Declare the function that tells the value that is held against the bookmark; see ``Stream.bookmark_of``."""
        return self._setting(name, "bookmark_of", ("record", "state"))

    def after(self, name: str) -> Callable[[_Any], _Any]:
        """Declare the function that changes records, or leaves them out, before they are written; ``Stream.after``."""
        return self._setting(name, "after")

    def link(self) -> dict[str, Stream]:
        """Put together what was declared, and give the streams; asked again, it takes in what was declared since.

        Raises:
            TapError: a stream that was spoken of and is none, an unknown parent, a stream without function or schema.
        """
        of_all: Any = None
        for name, setting, value, place in self._said:
            if not name:
                of_all = value if setting == "schema" else of_all
                continue
            if name not in self.streams:
                raise TapError(f"there is no stream {name!r} ({place}){did_you_mean(name, self.streams)}")
            if setting:
                setattr(self.streams[name], setting, value)
        link(self.streams)
        for stream in self.streams.values():
            if stream.schema is None:
                if of_all is None:
                    raise TapError(f"{stream.title}: has no schema; say tap.schema({stream.name!r}, …)")
                stream.schema = of_all
        return self.streams

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Run as the program that ``arguments`` (those of the process when None) ask for; ends the process."""
        from balog.tap.command import run

        run(self, arguments)

    def _setting(self, name: str, setting: str, parameters: Sequence[str] = ()) -> Callable[[_Any], _Any]:
        place = _place_of(name, setting)

        def declare_setting(function: _Any) -> _Any:
            if parameters:
                by_names(function, parameters, f"{setting} of stream {name!r} ({place})")
            self._said.append((name, setting, function, place))
            return function

        return declare_setting


def _place_of(name: Any, what: str) -> str:
    place = place_of_caller()
    if not isinstance(name, str):
        raise TapError(f"{what} ({place}): want a stream's name, and parentheses after the decorator also without one")
    return place
