"""A stream: its name, how it is replicated, and the function that gives its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from balog.tap.bookmarks import BookmarkStrategy, make_strategy
from balog.tap.catalog import Method
from balog.tap.records import Policy

if TYPE_CHECKING:
    from balog.tap.context import Context
    from balog.tap.schema import SchemaSource

__all__ = ["Stream", "Substream"]

Records = Iterable[Any]
"""Records as dicts, one by one or in lists."""


class Stream:
    """One stream of a tap. ``tap.stream`` makes one of a function or of a subclass; ``records`` gives its records.

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
        retry_on: exceptions after which the stream is begun again from its original bookmark.
        retries: how often.
        parent: the stream whose records this one is asked for; None at the top.
    """

    name: str = ""
    key_properties: list[str] = []  # noqa: RUF012  # a default that subclasses replace
    replication_key: str | None = None
    replication_method: Method | None = None
    bookmark_strategy: BookmarkStrategy | str | Callable[..., bool] | None = None
    is_sorted: bool = True
    lookback: float = 0
    policy: Policy = "coerce"
    retry_on: tuple[type[BaseException], ...] = ()
    retries: int = 0
    schema: dict[str, Any] | SchemaSource | None = None
    parent: Stream | None = None

    def __init__(self, name: str = "", **settings: Any) -> None:
        self.name = name or self.name
        for key, value in settings.items():
            setattr(self, key, value)
        self.children: list[Substream] = []

    def records(self, client: Any, context: Context) -> Records:
        """Give the records; the client is the tap's."""
        raise NotImplementedError

    @property
    def method(self) -> Method:
        """How it is replicated."""
        return self.replication_method or ("INCREMENTAL" if self.replication_key else "FULL_TABLE")

    @property
    def strategy(self) -> BookmarkStrategy:
        """Give a strategy for one sync."""
        return make_strategy(self.bookmark_strategy).fresh()


class Substream(Stream):
    """A stream that is asked for once for each record of its parent."""

    def records_of(self, client: Any, context: Context, parent: dict[str, Any]) -> Records:
        """Give the records that belong to one record of the parent."""
        raise NotImplementedError
