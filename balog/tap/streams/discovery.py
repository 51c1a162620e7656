"""Streams that a tap finds in its source when it runs: tables, files, custom objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from balog.common.errors import ConfigError
from balog.tap.catalog import CatalogEntry
from balog.tap.errors import SyncError, TapError
from balog.tap.streams.injection import Providers, inject
from balog.tap.streams.stream import Stream, StreamFamily, add, stream_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_STREAMS = 10_000
"""The maximum number of streams that a tap finds."""
MAX_NAME = 255
"""The maximum number of characters in the name of a stream that a tap finds."""

_SUBJECT = "@tap.discover"


@dataclass(frozen=True)
class DiscoveryContext:
    """The argument ``context`` of a function with ``@tap.discover``.

    Attributes:
        log: the tap's logger.
        wanted: the streams that a sync selects and the tap does not declare; None if all streams are wanted.
        now: the start of the discovery, in UTC.
    """

    log: Any
    wanted: frozenset[str] | None = None
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def wants(self, name: str) -> bool:
        """Return whether a stream is wanted, so that a slow source describes only those."""
        return self.wanted is None or name in self.wanted


class StreamFinder:
    """The function of ``@tap.discover``, and what reads its streams.

    Args:
        function: yields streams, or returns a list of them.
        reader: a class of streams, or a function that yields records, for entries of a catalog; None if only
            ``function`` knows it.
        line: where it was declared, ``file:line``.
    """

    def __init__(self, function: Callable[..., Any], reader: Any, line: str) -> None:
        title = f"{_SUBJECT} ({line})"
        self._call = inject(function, ("client", "config", "context"), title)
        self._kind = None if reader is None else stream_kind(reader, line)
        self._title, self._place = title, line

    def find(self, family: StreamFamily, providers: Providers) -> SyncError | None:
        """Call the function, and add its streams to a family.

        Returns:
            The error of the source, if the function failed; the streams before it are in the family.

        Raises:
            TapError: a name that is taken or invalid, too many streams, or something that is not a stream.
            ConfigError: the config is invalid, and the function needs it.
        """
        try:
            streams: Iterable[Any] = self._call(providers) or ()
            if isinstance(streams, (str, bytes, Stream)):
                raise TapError(
                    f"{self._title}: returned a {type(streams).__name__}: expected streams, yielded or in a list"
                )
            for number, stream in enumerate(streams, 1):
                if number > MAX_STREAMS:
                    raise TapError(f"{self._title}: it finds more than {MAX_STREAMS} streams; let the config name some")
                add(family, self._checked(stream))
        except (TapError, ConfigError):
            raise
        except (Exception, SystemExit) as error:
            from balog.log.values.json_values import safe_str

            text = " ".join(safe_str(error).split())
            return SyncError(_SUBJECT, f"{type(error).__name__}{text and ': '}{text}", error)
        return None

    def stream_of(self, entry: CatalogEntry) -> Stream | None:
        """Return the stream that a catalog's entry describes; None if ``find`` has to."""
        if self._kind is None or not entry.schema:
            return None
        top = {key: value for key, value in entry.metadata.get((), {}).items() if not key.startswith("selected")}
        keys = top.get("valid-replication-keys") or []
        method = top.get("forced-replication-method")
        settings: dict[str, Any] = {"schema": entry.schema, "metadata": {(): top}, "replication_method": method}
        settings["key_properties"] = top.get("table-key-properties") or entry.key_properties
        settings["parent"] = top.get("parent-tap-stream-id")
        if method is None:
            settings["replication_keys"] = keys
            settings["has_log"] = True
        elif method != "FULL_TABLE" and keys:
            settings["replication_key"] = keys[0]
        given = {name: value for name, value in settings.items() if value}
        return self._checked(self._kind(entry.tap_stream_id, place=self._place, **given))

    def _checked(self, stream: Any) -> Stream:
        if not isinstance(stream, Stream):
            raise TapError(
                f"{self._title}: yielded a {type(stream).__name__}: expected Stream(name, records=function, …)"
            )
        name = stream.name
        if not (isinstance(name, str) and len(name) <= MAX_NAME and name.isprintable()):
            raise TapError(
                f"{self._title}: a stream is named {str(name)[:40]!r}: expected a text of at most {MAX_NAME} printable "
                "characters"
            )
        return stream
