"""A stream: its name, how it is replicated, and the function that yields its records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from balog.tap.bookmarks import BookmarkStrategy, make_strategy
from balog.tap.bookmarks.strategies import END_OF_STREAM
from balog.tap.catalog import Method
from balog.tap.config.relative_files import place_of_caller
from balog.tap.errors import LateDeclarationError, TapError
from balog.tap.records import EpochUnit, Policy
from balog.tap.streams.injection import Providers, inject
from balog.tap.streams.partitioned import ItemSource
from balog.tap.streams.settings import Checks, check_settings

if TYPE_CHECKING:
    from balog.tap.schema import SchemaSource

Records = Iterable[Any]
"""Records as dicts, one by one or in lists (pages, which are faster); or ``Emitted``, made by ``context.to``."""

_PARAMETERS = ("client", "config", "context")


class Stream:
    """One stream of a tap. ``tap.stream`` makes one of a function or a class; ``records`` yields its records.

    Each setting is an attribute: a subclass sets it in its body, a decorator by name. Their types are checked. A
    function can be given as the argument ``records``.

    Attributes:
        name: its ``tap_stream_id``, and its name in messages.
        key_properties: the properties that identify a record; may be empty.
        replication_key: the property whose largest value is the bookmark; None replicates the full table.
        replication_method: None derives it from the replication key.
        replication_keys: properties of which users may choose the replication key, and so the method, in the catalog;
            without a choice it is the full table.
        has_log: users may also choose LOG_BASED.
        bookmark_strategy: when the bookmark is written before the end of the stream; by default it is not.
        is_sorted: the source returns records in ascending order of the replication key. A strategy that writes
            bookmarks before the end requires this.
        lookback: subtracted from the bookmark before the source is queried: seconds for times, a number for numbers.
        policy: see ``balog.tap.records.Policy``.
        epoch: the unit of integers where the schema has a ``date-time``: "seconds" or "milliseconds" since 1970.
        schema: a JSON Schema, or a source of one; see ``balog.tap.schema``. ``"inferred"`` reads the first records.
        metadata: catalog metadata by breadcrumb, in addition to the defaults.
        after: called with each record before it is written; returns the record to write, or None to drop it.
        bookmark_of: returns a record's replication value: a time, another text, or a number. It makes the stream
            incremental without a replication key; the state then has the value under ``bookmark``. It may have the
            parameters ``record`` (as the source returned it) and ``state`` (the stream's entry in the state, a dict).
        created_key: the property with a record's creation time: records created after the bookmark count as new, the
            others as updated.
        client: makes a client for this stream alone, as ``tap.client`` does for all.
        select: the stream is synced when there is no catalog.
        for_each: a function that returns items, such as accounts: the stream's function is called for each, which is
            its parameter ``item``. With a replication key each item has a bookmark of its own. It may have the
            parameters of the stream's function.
        each_key: the name of an item's identity if items are dicts; otherwise the item itself is the identity.
        each_name: the name of the items' bookmarks in the state; None means the stream's name.
        parent: the stream, its class or its name, whose records this one is synced for; None at the top level.
        source_stream: the stream, or its name, whose function also emits this stream's records; this one then has no
            function.
        children: the streams whose parent this is.
        emitted_streams: the streams whose ``source_stream`` this is.
        place: where it was declared, ``file:line``.
    """

    name: str = ""
    key_properties: list[str] = []  # noqa: RUF012  # a default that subclasses replace
    replication_key: str | None = None
    replication_method: Method | None = None
    replication_keys: list[str] = []  # noqa: RUF012
    has_log: bool = False
    bookmark_strategy: BookmarkStrategy | str | None = None
    is_sorted: bool = True
    lookback: float = 0
    policy: Policy = "coerce"
    epoch: EpochUnit | None = None
    schema: dict[str, Any] | SchemaSource | str | None = None
    metadata: dict[tuple[str, ...], dict[str, Any]] = {}  # noqa: RUF012
    after: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None
    bookmark_of: Callable[..., Any] | None = None
    created_key: str | None = None
    client: Callable[[Any], Any] | None = None
    select: bool = True
    for_each: Callable[..., Iterable[Any]] | None = None
    each_key: str | None = None
    each_name: str | None = None
    parent: Stream | type | str | None = None
    source_stream: Stream | type | str | None = None
    own_settings: ClassVar[Checks] = {}

    def __init__(
        self, name: str = "", *, place: str = "", records: Callable[..., Records] | None = None, **settings: Any
    ) -> None:
        self.name = name or self.name
        if records is not None:
            self.records = records  # type: ignore[method-assign]
        self.place = place or place_of_caller()
        self.children: list[Stream] = []
        self.emitted_streams: list[Stream] = []
        self.family: dict[str, Stream] = {}
        """All streams of the same tap, by name."""
        self._declared = check_settings(type(self), settings, self.title)
        for key, value in self._declared.items():
            setattr(self, key, value)
        if not self.name:
            raise TapError(f"{self.title}: a stream needs a name")
        if not self.is_sorted and self.bookmark_strategy not in (None, *END_OF_STREAM):
            raise TapError(
                f"{self.title}: is_sorted=False requires bookmark_strategy='end_of_stream': a bookmark in the middle "
                "would skip records that come later"
            )
        if self.replication_method == "INCREMENTAL" and not (self.replication_key or self.bookmark_of):
            raise TapError(f"{self.title}: replication_method='INCREMENTAL' needs a replication_key")
        if self.replication_keys and self.replication_key:
            raise TapError(f"{self.title}: has a replication_key and replication_keys; set one of them")
        if self.parent is not None and self.source_stream is not None:
            raise TapError(f"{self.title}: has a parent and a source_stream; set one of them")
        try:
            make_strategy(self.bookmark_strategy)
        except TapError as error:
            raise TapError(f"{self.title}: {error}") from None
        if self.bookmark_of is not None:
            inject(self.bookmark_of, ("record", "state"), f"{self.title}: bookmark_of")
        self._items = self._item_source()
        self._call = inject(self.records, self._parameters, self.title)

    @property
    def _parameters(self) -> tuple[str, ...]:
        if self.for_each is not None:
            return (*_PARAMETERS, "item")
        return (*_PARAMETERS, "parent") if self.parent is not None else _PARAMETERS

    def _item_source(self) -> ItemSource | None:
        if self.for_each is None:
            return None
        for name in ("parent", "source_stream", "bookmark_strategy"):
            if getattr(self, name) is not None:
                raise TapError(f"{self.title}: for_each= and {name}= exclude each other")
        self.is_sorted = False  # over all items
        call = inject(self.for_each, _PARAMETERS, f"{self.title}: for_each")
        return ItemSource(call, self.each_key, self.each_name or self.name, self.lookback)

    def records(self, *args: Any, **kwargs: Any) -> Records:
        """Yield the records. Subclasses define it with any of the parameters client, context, config and parent."""
        raise TapError(f"{self.title}: has no function that yields records")

    def call(self, providers: Providers) -> Records:
        """Call ``records`` with the arguments that it asks for, and return its records."""
        if self._items is not None:
            return self._items.records(self._call, providers)
        records: Records | None = self._call(providers)
        return () if records is None else records

    def use(self, function: Callable[..., Records]) -> None:
        """Set the function that yields the records.

        Raises:
            TapError: it has an unknown parameter.
        """
        self.records = function  # type: ignore[method-assign]
        self._call = inject(function, self._parameters, self.title)

    def check(self, settings: Mapping[str, Any], has_client: bool) -> None:
        """Check the settings that depend on the tap, before anything runs; subclasses extend it.

        Args:
            settings: the settings of the tap's config by name; empty if it declares none.
            has_client: the tap makes a client.

        Raises:
            TapError: a setting that does not fit the tap.
        """

    def need_schema(self, default: Any) -> None:
        """Use the default of the tap if the stream declares no schema; raise if there is none."""
        if self.schema is None:
            if default is None:
                raise TapError(f"{self.title}: has no schema; call tap.schema({self.name!r}, …)")
            self.schema = default

    def check_effects(self) -> None:
        """Check that each setting has an effect, when all declarations were made.

        Raises:
            TapError: one has none.
        """
        if self.for_each is not None and self.bookmark_of is not None:
            raise TapError(f"{self.title}: for_each= and bookmark_of= exclude each other")
        has_choice = "replication_keys" in self._declared or "valid-replication-keys" in self.metadata.get((), {})
        has_key = bool(self.replication_key or has_choice)
        needed = {
            "bookmark_of": (self.method == "INCREMENTAL", "replication_method='INCREMENTAL'"),
            **dict.fromkeys(("created_key", "lookback"), (has_key or self.bookmark_of, "replication_key=")),
            **dict.fromkeys(("each_key", "each_name"), (self.for_each and has_key, "for_each= and replication_key=")),
            "is_sorted": (has_key or self.bookmark_of or self.for_each, "replication_key="),
        }
        for name, (has_effect, other) in needed.items():
            declared = self.bookmark_of if name == "bookmark_of" else self._declared.get(name)
            if not has_effect and declared not in (None, getattr(Stream, name)):
                raise TapError(f"{self.title}: {name}= does nothing without {other}")

    def __call__(self, *args: Any, **kwargs: Any) -> Records:
        """Call the declared function with these arguments, as a test does."""
        return self.records(*args, **kwargs)

    def substream(self, name: str, **settings: Any) -> Callable[[Any], Any]:
        """Declare a stream that is synced once for each record of this one; see ``Tap.stream``.

        Its function may have the parameter ``parent``: the record as this stream's source returned it.
        """
        return declare(self.family, (name,), {**settings, "parent": self}, place_of_caller())

    @property
    def has_function(self) -> bool:
        """Whether it has a function of its own that yields records."""
        return "records" in vars(self) or type(self).records is not Stream.records

    @property
    def title(self) -> str:
        """Its name and the place of its declaration, for errors."""
        return f"stream {self.name!r} ({self.place})"

    @property
    def method(self) -> Method:
        """The replication method."""
        is_incremental = self.replication_key is not None or self.bookmark_of is not None
        return self.replication_method or ("INCREMENTAL" if is_incremental else "FULL_TABLE")

    @property
    def strategy(self) -> BookmarkStrategy | None:
        """The bookmark strategy for one sync; None writes the bookmark only at the end."""
        return make_strategy(self.bookmark_strategy)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def declare(
    family: dict[str, Stream], names: Sequence[str], settings: Mapping[str, Any], line: str
) -> Callable[[Any], Any]:
    """Return a decorator that makes a stream for each name and adds it to ``family``.

    A function under one name becomes its ``Stream``, which can still be called; otherwise the decorated object stays
    what it is. For a subclass of ``Stream``, one object is made for each name, which is its ``self.name``.

    Raises:
        TapError: a name is taken, or a setting is invalid.
    """
    if not all(isinstance(name, str) for name in names):
        raise TapError(f"a stream ({line}): expected names, and parentheses after the decorator also without any")

    def decorate(subject: Any) -> Any:
        if isinstance(subject, type):
            kind = stream_kind(subject, line)
            for name in names or (getattr(subject, "name", "") or _snake_case(subject.__name__),):
                add(family, kind(name, place=line, **settings))
            return subject
        if not callable(subject):
            raise TapError(f"stream {', '.join(names)!r} ({line}): expected a function or a class")
        streams = [Stream(name, place=line, records=subject, **settings) for name in names or (subject.__name__,)]
        for stream in streams:
            add(family, stream)
        return streams[0] if len(streams) == 1 else subject

    return decorate


class StreamFamily(dict[str, Stream]):
    """All streams of a tap, by name.

    Attributes:
        is_closed: the tap runs, so that a stream that is declared now would not be read.
    """

    is_closed = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Refuse declarations inside the ``with`` body, because no run would see them."""
        self.is_closed = True
        try:
            yield
        finally:
            self.is_closed = False

    def check_open(self, title: str) -> None:
        """Raise ``LateDeclarationError`` for the declaration with this title if the tap runs."""
        if self.is_closed:
            raise LateDeclarationError(
                f"{title}: it is declared while the tap runs; find streams at run time in a function with @tap.discover"
            )


def add(family: dict[str, Stream], stream: Stream) -> None:
    """Add a stream to a family.

    Raises:
        TapError: the family has a stream of this name, or the tap runs.
    """
    if isinstance(family, StreamFamily):
        family.check_open(stream.title)
    other = family.get(stream.name)
    if other is not None:
        raise TapError(f"{stream.title}: there is a stream of this name already ({other.place})")
    stream.family = family
    family[stream.name] = stream


def stream_kind(subject: Any, line: str) -> Callable[..., Stream]:
    """Return what makes streams of a class, or of a function that yields records: ``kind(name, **settings)``.

    Raises:
        TapError: it is neither, or a class without a method ``records``.
    """
    if isinstance(subject, type):
        if not issubclass(subject, Stream):
            raise TapError(f"class {subject.__name__} ({line}): expected a subclass of balog.tap.Stream")
        return subject
    if not callable(subject):
        raise TapError(f"({line}): expected a function or a class that reads streams")
    return partial(Stream, records=subject)


def _snake_case(name: str) -> str:
    """Return ``order_lines`` for ``OrderLines``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
