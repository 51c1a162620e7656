"""A stream: its name, how it is replicated, and the function that gives its records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from balog.tap.bookmarks import BookmarkStrategy, make_strategy
from balog.tap.catalog import Method
from balog.tap.errors import TapError
from balog.tap.records import EpochUnit, Policy
from balog.tap.streams.calling import Givers, by_names
from balog.tap.streams.settings import check_settings

if TYPE_CHECKING:
    from balog.tap.schema import SchemaSource

__all__ = ["Records", "Stream", "place_of_caller"]

Records = Iterable[Any]
"""Records as dicts, one by one or in lists (pages, the quick path); or ``Emitted``, made by ``context.to``."""

_NAMES = ("client", "config", "context")


class Stream:
    """One stream of a tap. ``tap.stream`` makes one of a function or of a class; ``records`` gives its records.

    Each setting is an attribute: a subclass sets it in its body, a decorator by name. Their types are checked.

    Attributes:
        name: its ``tap_stream_id``, and its name in messages.
        key_properties: what identifies a record; [] when nothing does.
        replication_key: the property whose largest value is the bookmark; None replicates the full table.
        replication_method: told by the key when None.
        bookmark_strategy: when the bookmark is written in the middle; at the end of the stream when not said.
        is_sorted: the source gives records in ascending order of the replication key: only then is a bookmark in the
            middle right, and a strategy that writes one is refused otherwise.
        lookback: subtracted from the bookmark when the source is asked: seconds for times, a number for numbers.
        policy: see ``balog.tap.records.Policy``.
        epoch: what numbers are where the schema wants a ``date-time``: "seconds" or "milliseconds" since 1970.
        has_time: each record says when it was written, ``time_extracted``.
        retry_on: exceptions after which the stream is begun again from its original bookmark.
        retries: how often.
        before_retry: called before that by the names of its parameters, any of ``context`` and ``error``: to wait, to
            reset a client.
        schema: a JSON Schema, or what gives it; see ``balog.tap.schema``.
        metadata: of the catalog, by breadcrumb, beside what is written by default.
        after: called with each record that is about to be written; gives the one that is, or None to leave it out.
        bookmark_of: called by the names of its parameters, any of ``record`` and ``state`` (what the state says of this
            stream, a dict); gives the value that is held against the bookmark instead of the replication key's.
        created_key: the property with the time at which a record was made: those made after the bookmark count as new,
            the others as updated.
        client: makes a client for this stream alone, as ``tap.client`` does for all.
        select: whether the stream is synced where no catalog says so.
        buffer_seconds: how long the records of one parent may take before what was written is handed on and the
            parents' bookmarks are looked at; see ``balog.tap.syncing``.
        parent: the stream, or its name, for each of whose records this one is asked; None at the top.
        given_by: the stream, or its name, whose function emits this one's records beside its own; this one has no
            function then.
        children: the streams whose parent this is.
        given: the streams that this one gives.
        place: where it was declared, ``file:line``.
    """

    name: str = ""
    key_properties: list[str] = []  # noqa: RUF012  # a default that subclasses replace
    replication_key: str | None = None
    replication_method: Method | None = None
    bookmark_strategy: BookmarkStrategy | str | Callable[..., bool] | None = None
    is_sorted: bool = True
    lookback: float = 0
    policy: Policy = "coerce"
    epoch: EpochUnit | None = None
    has_time: bool = False
    retry_on: tuple[type[Exception], ...] = ()
    retries: int = 0
    before_retry: Callable[..., Any] | None = None
    schema: dict[str, Any] | SchemaSource | None = None
    metadata: dict[tuple[str, ...], dict[str, Any]] = {}  # noqa: RUF012
    after: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None
    bookmark_of: Callable[..., Any] | None = None
    created_key: str | None = None
    client: Callable[[Any], Any] | None = None
    select: bool = True
    buffer_seconds: float = 5.0
    parent: Stream | str | None = None
    given_by: Stream | str | None = None

    def __init__(self, name: str = "", *, place: str = "", **settings: Any) -> None:
        self.name = name or self.name
        self.place = place or place_of_caller()
        self.children: list[Stream] = []
        self.given: list[Stream] = []
        self.family: dict[str, Stream] = {}
        """All the streams it was declared with, by name."""
        for key, value in check_settings(type(self), settings, self.title).items():
            setattr(self, key, value)
        if not self.name:
            raise TapError(f"{self.title}: a stream needs a name")
        if not self.is_sorted and self.bookmark_strategy not in (None, "end_of_stream"):
            raise TapError(
                f"{self.title}: is_sorted=False leaves bookmark_strategy='end_of_stream' alone: a bookmark in the "
                "middle would leave out the records that come late"
            )
        if self.replication_method == "INCREMENTAL" and not self.replication_key:
            raise TapError(f"{self.title}: replication_method='INCREMENTAL' needs a replication_key")
        if self.parent is not None and self.given_by is not None:
            raise TapError(f"{self.title}: has a parent, and is given by another stream; want one of them")
        if bool(self.retry_on) != bool(self.retries):
            raise TapError(f"{self.title}: retry_on= and retries= are of use together alone")
        try:
            make_strategy(self.bookmark_strategy)
        except TapError as error:
            raise TapError(f"{self.title}: {error}") from None
        if self.before_retry is not None:
            by_names(self.before_retry, ("context", "error"), f"{self.title}: before_retry")
        if self.bookmark_of is not None:
            by_names(self.bookmark_of, ("record", "state"), f"{self.title}: bookmark_of")
        names = (*_NAMES, "parent") if self.parent is not None else _NAMES
        self._ask = by_names(self.records, names, self.title)

    def records(self, *args: Any, **kwargs: Any) -> Records:
        """Give the records. Written by subclasses, with any of the parameters client, context, config and parent."""
        raise TapError(f"{self.title}: has no function that gives records")

    def ask(self, has: Givers) -> Records:
        """Call ``records`` with what it wants of ``has``: client, context, config and, below another stream, parent."""
        found: Records | None = self._ask(has)
        return () if found is None else found

    def __call__(self, *args: Any, **kwargs: Any) -> Records:
        """Call the function that gives the records as it is written, as a test does."""
        return self.records(*args, **kwargs)

    def substream(self, name: str, **settings: Any) -> Callable[[Any], Any]:
        """Declare a stream that is asked for once for each record of this one; see ``Tap.stream``.

        Its function may ask for ``parent``, the record as this stream's source gave it.
        """
        from balog.tap.streams.declaring import declare

        return declare(self.family, (name,), {**settings, "parent": self}, place_of_caller())

    @property
    def title(self) -> str:
        """Its name and where it was declared, for errors."""
        return f"stream {self.name!r} ({self.place})"

    @property
    def method(self) -> Method:
        """How it is replicated."""
        return self.replication_method or ("INCREMENTAL" if self.replication_key else "FULL_TABLE")

    @property
    def strategy(self) -> BookmarkStrategy:
        """Give a strategy for one sync."""
        return make_strategy(self.bookmark_strategy).fresh()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def place_of_caller() -> str:
    """Give ``file:line`` of what called into this toolkit."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("balog.tap."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
