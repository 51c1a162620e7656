"""The declarations of a tap: streams, client, schemas and metadata."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from balog.common.text import suggest
from balog.tap.bookmarks import EveryN, EverySeconds
from balog.tap.catalog import Catalog
from balog.tap.config import make_spec
from balog.tap.config.relative_files import place_of_caller
from balog.tap.errors import SyncError, TapError
from balog.tap.records import MAX_QUARANTINED
from balog.tap.schema import SchemaSource
from balog.tap.streams import (
    DiscoveryContext,
    Providers,
    Stream,
    StreamFamily,
    StreamFinder,
    add,
    declare,
    inject,
    link,
)

_Any = TypeVar("_Any", bound=Callable[..., Any])


class _Declaration(NamedTuple):
    """A setting that was declared under a stream's name; "" stands for all streams."""

    stream: str
    setting: str
    value: Any
    place: str


class TapDefinition:
    """The declarations of a tap. Use ``balog.tap.Tap``, which can also run them.

    A stream's name may be used before the stream itself is declared. ``link`` resolves the names when the tap starts.

    Args:
        name: the program's name, ``tap-cool``.
        config_spec: the settings of its config; see ``balog.tap.config.make_spec``.
        quarantine: the file for records that break their schema; None means one file for each stream, see
            ``balog.tap.records.default_quarantine``.
        max_quarantined: the number of quarantined records after which a stream fails.

    Attributes:
        streams: all declared streams and substreams by name, in order.
        finder: see ``discover``; None for a tap that declares all of its streams.
        make_client: see ``client``; None for a tap without a client.
        place: where the tap was made, ``file:line``.
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
        self.streams = StreamFamily()
        self.finder: StreamFinder | None = None
        self.make_client: Callable[[Any], Any] | None = None
        self._declarations: list[_Declaration] = []

    def client(self, function: _Any) -> _Any:
        """Declare the function that makes the client from the config. It is called once in a run, on first use."""
        self.make_client = function
        return function

    def stream(self, *names: str, **settings: Any) -> Callable[[Any], Any]:
        """Declare streams by a function or a class that yields their records; ``settings`` are ``Stream``'s attributes.

        A function may have the parameters ``client``, ``context``, ``config`` and, if the stream has a parent,
        ``parent``. It yields records (dicts) or lists of them. Under one name it becomes a ``Stream``, whose
        ``.substream(…)`` declares streams below it; it can still be called. A class has a method ``records`` of this
        kind, and its attributes are settings; one object is made for each name, which is its ``self.name``.

        Raises:
            TapError: two streams of one name, an unknown setting, an invalid value or parameter.
        """
        return declare(self.streams, names, settings, place_of_caller())

    def sync(self, name: str, **settings: Any) -> Callable[[_Any], _Any]:
        """Declare the function that yields a stream's records, as ``stream`` does, but it stays a function.

        The stream may be declared already, for example by ``add``; then its own settings count, and its function is
        replaced. With ``for_each=accounts`` the function is called for each account, its parameter ``item``.

        Raises:
            TapError: see ``stream``; settings of a stream that has been declared before.
        """
        line = self._place_of(name, "sync")

        def declare_function(function: _Any) -> _Any:
            known = self.streams.get(name)
            if known is None:
                declare(self.streams, (name,), settings, line)(function)
            elif settings:
                raise TapError(f"{known.title}: is declared already; set {', '.join(settings)} there, not in sync")
            else:
                known.use(function)
            return function

        return declare_function

    def discover(self, function: Any = None, *, reader: Any = None) -> Any:
        """Declare the function that finds streams at run time: ``@tap.discover``, or ``@tap.discover(reader=Table)``.

        It may have the parameters ``client``, ``config`` and ``context`` (see ``DiscoveryContext``), and yields
        ``Stream(name, records=function, schema=…, key_properties=…)``, or objects of a subclass. It is called for
        ``--discover``, for a sync without a catalog, and for one whose catalog selects streams that the tap does not
        declare. With a reader, such a catalog is enough, and the function is not called.

        Args:
            reader: a class of streams, or a function that yields records, which reads the streams that a catalog
                describes; ``context.entry`` has the description.

        Raises:
            TapError: there is such a function already, or an invalid parameter or reader.
        """
        line = self._place_of_declaration("@tap.discover")

        def declare_finder(function: Any) -> Any:
            if self.finder is not None:
                raise TapError(f"@tap.discover ({line}): the tap has one already; yield all streams from one function")
            self.finder = StreamFinder(function, reader, line)
            return function

        return declare_finder if function is None else declare_finder(function)

    def add(self, stream: Stream) -> Stream:
        """Add a ``Stream`` object.

        Raises:
            TapError: there is a stream of this name.
        """
        if not isinstance(stream, Stream):
            raise TapError(f"{self.name}: add({stream!r:.60}): expected a Stream")
        add(self.streams, stream)
        return stream

    def schema(self, name: str = "", source: SchemaSource | dict[str, Any] | type | str | None = None) -> Any:
        """Declare the schema of a stream, and return it; without a name, that of all streams that declare none."""
        line = self._place_of(name, "schema")
        if source is None:
            raise TapError(f"schema ({line}): expected a source of the schema; see balog.tap.schema")
        self._declarations.append(_Declaration(name, "schema", source, line))
        return source

    def bookmark(self, name: str) -> Callable[[_Any], _Any]:
        """Declare the function that returns a record's replication value; see ``Stream.bookmark_of``."""
        return self._setting(name, "bookmark_of", ("record", "state"))

    def after(self, name: str) -> Callable[[_Any], _Any]:
        """Declare the function that changes or drops records before they are written; see ``Stream.after``."""
        return self._setting(name, "after")

    def link(self) -> dict[str, Stream]:
        """Apply all declarations and return the streams. It may be called again after further declarations.

        With ``@tap.discover``, declarations for streams that were not found are ignored.

        Raises:
            TapError: a declaration for an unknown stream, an unknown parent, a stream without function or schema.
        """
        default_schema: Any = None
        for name, setting, value, line in self._declarations:
            if not name:
                default_schema = value if setting == "schema" else default_schema
                continue
            if name not in self.streams:
                if self.finder is not None:
                    continue
                raise TapError(f"there is no stream {name!r} ({line}){suggest(name, self.streams, limit=0)}")
            setattr(self.streams[name], setting, value)
        link(self.streams)
        for stream in self.streams.values():
            stream.need_schema(default_schema)
        settings = self.spec.settings if self.spec.schema.get("properties") else {}
        for stream in self.streams.values():
            stream.check(settings, has_client=self.make_client is not None)
        return self.streams

    def with_found_streams(
        self, providers: Providers, log: Any, given: Catalog | None = None, source: str = ""
    ) -> tuple[TapDefinition, dict[str, SyncError]]:
        """Return the tap of one run, with the streams of ``@tap.discover``: all, or those that a catalog selects.

        Args:
            providers: make the arguments ``client`` and ``config``.
            log: the tap's logger.
            given: the user's catalog; None for all streams.
            source: the catalog's file, for errors.

        Returns:
            The tap, and the errors by name: that of the source, and one for each stream that is selected and was not
            found.
        """
        if self.finder is None:
            return self, {}
        tap = copy.copy(self)
        tap.streams = StreamFamily(self.streams)
        wanted: frozenset[str] | None = None
        if given is not None:
            entries = [entry for entry in given if entry.tap_stream_id not in self.streams]
            selected = {entry.tap_stream_id for entry in entries if entry.is_selected}
            described = [stream for entry in entries if (stream := self.finder.stream_of(entry)) is not None]
            if selected <= {stream.name for stream in described}:
                for stream in described if selected else ():
                    tap.add(stream)
                return tap, {}
            wanted = frozenset(selected)
        context = DiscoveryContext(log, wanted)
        failure = self.finder.find(tap.streams, {**providers, "context": lambda: context})
        if failure is not None:
            return tap, {failure.stream: failure}
        if wanted is None:
            for name in sorted({each.stream for each in self._declarations if each.stream} - tap.streams.keys()):
                log.warning(f"There is no stream {name!r}, which a declaration names{suggest(name, tap.streams)}")
            return tap, {}
        reason = f"it is selected in {source}, but @tap.discover does not find it; run --discover again"
        return tap, {name: SyncError(name, reason) for name in sorted(wanted - tap.streams.keys())}

    def _setting(self, name: str, setting: str, parameters: Sequence[str] = ()) -> Callable[[_Any], _Any]:
        line = self._place_of(name, setting)

        def declare_setting(function: _Any) -> _Any:
            if parameters:
                inject(function, parameters, f"{setting} of stream {name!r} ({line})")
            self._declarations.append(_Declaration(name, setting, function, line))
            return function

        return declare_setting

    def _place_of(self, name: Any, decorator: str) -> str:
        line = self._place_of_declaration(decorator)
        if not isinstance(name, str):
            raise TapError(
                f"{decorator} ({line}): expected a stream's name, and parentheses after the decorator also without one"
            )
        return line

    def _place_of_declaration(self, decorator: str) -> str:
        line = place_of_caller()
        self.streams.check_open(f"{decorator} ({line})")
        return line
