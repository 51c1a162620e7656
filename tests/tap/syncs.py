"""Runs of taps in this process, their messages in a list."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from balog.tap import Tap
from balog.tap.bookmarks import State
from balog.tap.catalog import Catalog, CatalogEntry, choose
from balog.tap.schema import schema_of
from balog.tap.streams import Stream
from balog.tap.syncing import Observer, Stop, Sync

__all__ = ["SCHEMA", "Messages", "Ran", "sync"]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["string", "null"]},
        "updated": {"type": ["string", "null"], "format": "date-time"},
        "created": {"type": ["string", "null"], "format": "date-time"},
        "parent_id": {"type": ["integer", "null"]},
        "_sdc_deleted_at": {"type": ["string", "null"], "format": "date-time"},
    },
}


def at_day(number: int) -> str:
    """A day in January as a time."""
    return f"2026-01-{number:02}T00:00:00Z"


class Messages:
    """An output that keeps messages, each as it was when it was written."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def schema(self, stream: str, schema: dict[str, Any], keys: list[str], bookmarks: list[str]) -> None:
        self.all.append({"type": "SCHEMA", "stream": stream, "key_properties": keys, "bookmark_properties": bookmarks})

    def records(self, stream: str, version: int | None = None, **_: Any) -> Any:
        def write(record: dict[str, Any]) -> bool:
            message = {"type": "RECORD", "stream": stream, "record": copy.deepcopy(record)}
            self.all.append(message if version is None else {**message, "version": version})
            return True

        write.page = lambda records: sum(map(write, records))  # type: ignore[attr-defined]
        return write

    def activate_version(self, stream: str, version: int) -> None:
        self.all.append({"type": "ACTIVATE_VERSION", "stream": stream, "version": version})

    def state(self, value: dict[str, Any]) -> None:
        self.all.append({"type": "STATE", "value": copy.deepcopy(value)})

    def flush(self) -> None:
        """Nothing is held back."""


class Ran(NamedTuple):
    code: int
    messages: list[dict[str, Any]]
    failures: list[str]

    def records(self, stream: str | None = None) -> list[dict[str, Any]]:
        wanted = [message for message in self.messages if message["type"] == "RECORD"]
        return [message["record"] for message in wanted if stream in (None, message["stream"])]

    def ids(self, stream: str | None = None) -> list[Any]:
        return [record["id"] for record in self.records(stream)]

    def shape(self) -> list[str]:
        """Messages but states, in a word each: ``contacts 1``, ``SCHEMA contacts``."""
        return [
            f"{message['stream']} {message['record']['id']}"
            if message["type"] == "RECORD"
            else f"{message['type']} {message['stream']}"
            for message in self.messages
            if message["type"] != "STATE"
        ]

    @property
    def states(self) -> list[dict[str, Any]]:
        return [message["value"] for message in self.messages if message["type"] == "STATE"]

    @property
    def state(self) -> dict[str, Any]:
        return self.states[-1]


def sync(
    tap: Tap | Iterable[Stream],
    state: dict[str, Any] | None = None,
    *,
    selected: Collection[str] | None = None,
    config: dict[str, Any] | None = None,
    output: Any = None,
    chosen: dict[str, Any] | None = None,
    **options: Any,
) -> Ran:
    """Run a tap; the schemas of its streams are ``SCHEMA`` where they do not say it.

    Args:
        chosen: metadata of streams that the user's catalog sets, by their names.
    """
    made = output or Messages()
    streams = tap.streams.values() if isinstance(tap, Tap) else list(tap)
    for stream in streams:
        stream.schema = stream.schema or SCHEMA
    if isinstance(tap, Tap):
        tap.link()
    given = None
    if chosen is not None:
        given = Catalog()
        for name, metadata in chosen.items():
            given.entries[name] = CatalogEntry(
                tap_stream_id=name, stream=name, schema={}, metadata={(): {"selected": True, **metadata}}
            )
    catalog, _ = choose(list(streams), given, lambda stream: schema_of(stream.schema, lambda: None, stream.name))
    if selected is not None:
        for entry in catalog:
            entry.metadata[()]["selected"] = entry.tap_stream_id in selected
    run = Sync(tap, config or {}, catalog, State(state), made, **options)
    code = run.run()
    return Ran(code, made.all, [str(failure) for failure in run.failures])


def start_tap(folder: Path, *arguments: str, **pipes: Any) -> subprocess.Popen[bytes]:
    """Start the program ``tap.py`` of a folder, without the environment's options."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "tap.py", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, **pipes)


class Watching(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def started(self, stream: Stream, counts: Any) -> None:
        self.told.append(("started", stream.name))

    def ended(self, stream: Stream, counts: Any, error: Any) -> None:
        said = (counts.records, counts.new, counts.updated)
        self.told.append(("ended", stream.name, *said, None if error is None else str(error)))


def stopping(after: int) -> tuple[Stop, Callable[[Any], Any]]:
    """Give a stop, and a hook for ``after`` of a stream that asks for it (SIGTERM) at its n-th record."""
    stop, seen = Stop(), [0]

    def hook(record: Any) -> Any:
        seen[0] += 1
        if seen[0] == after:
            stop.number = 15
        return record

    return stop, hook
