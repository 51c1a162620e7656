"""Reads topics as inputs, without a consumer group.

``local:FOLDER#TOPIC`` and ``kafka:HOST:PORT?…#TOPIC``. A part of a topic is a ``Slice`` whose path is such a URL, with
``/PARTITION`` appended for Kafka. Its bounds are the topic's sequence numbers or offsets.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from balog.analytics.reading.forms.converter import EventLines
from balog.analytics.reading.tasks import Slice
from balog.common.errors import ConfigError, TopicError
from balog.topics import local_folder, open_topics

if TYPE_CHECKING:
    from balog.topics.kafka import KafkaTopic


Bounds = dict[str, tuple[int, int]]
"""By partition (a local topic has one, ""): the number of the first message, and the number after the last."""

_KIND = re.compile(r"(?:local|kafka|sqs):(?!//)")
_URL = re.compile(r"((local|kafka):.+)#([^#/]+)(?:/(\d+))?", re.DOTALL)
_MESSAGES = 20_000  # messages of a local topic that are worth a task
_ROWS = 2000
_WAIT = 30.0


def is_topic(path: str) -> bool:
    """Return whether a path is the URL of a topic."""
    return bool(_KIND.match(path))


def bounds(url: str) -> Bounds:
    """Return the bounds of a topic.

    Raises:
        ConfigError: the URL is not that of a topic that can be read, or the topic does not exist.
        TopicError: the topic can't be reached.
        MissingExtraError: the packages of this kind of topics are not installed.
    """
    home, kind, topic, _ = _split(url)
    if kind == "local":
        file = _file(home, topic)
        if not file.exists():
            raise ConfigError("no such topic; it is made when something is first published to it", url)
        with closing(_connect(file, url)) as connection:
            first, last = _ask(connection, url, "SELECT MIN(seq), MAX(seq) FROM messages").fetchone()
            counted = _ask(connection, url, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        end = max(last or 0, counted[0] if counted else 0) + 1
        return {"": (first if first is not None else end, end)}
    with closing(open_topics(home)) as topics:
        log = cast("KafkaTopic", topics.topic(topic))
        if not log.exists():
            raise ConfigError("no such topic", _shown(url))
        return {str(number): ends for number, ends in log.bounds().items()}


def split_bounds(url: str, bounds: Bounds, parallel: int) -> list[Slice]:
    """Split bounds into slices: a partition of Kafka, or a part of a local topic."""
    _, kind, _, _ = _split(url)
    slices = []
    for partition, (start, end) in sorted(bounds.items()):
        if start >= end:
            continue
        if kind == "kafka":
            slices.append(Slice(f"{url}/{partition}", start, end))
            continue
        count = min(2 * parallel, -(-(end - start) // _MESSAGES))
        cuts = [start + (end - start) * number // count for number in range(count)]
        slices += [Slice(url, first, last) for first, last in zip(cuts, [*cuts[1:], end])]
    return slices


def read_topic(piece: Slice) -> Iterator[EventLines]:
    """Yield the messages of a slice, with their numbers as offsets.

    Messages that retention has removed are skipped.

    Raises:
        TopicError: the topic can't be read. Unlike a damaged file, it can be read later.
    """
    home, kind, topic, partition = _split(piece.path)
    end = piece.start if piece.end is None else piece.end
    lines = EventLines()
    for number, body in (
        _local(_file(home, topic), piece.path, piece.start, end)
        if kind == "local"
        else _records(home, topic, int(partition), piece.start, end)
    ):
        if body.strip():
            lines.add(body.replace(b"\n", b" "), number, body)  # in JSON, a newline is only white space
        if lines.is_full:
            yield lines
            lines = EventLines()
    if lines:
        yield lines


def _split(url: str) -> tuple[str, str, str, str]:
    match = _URL.fullmatch(url)
    if match is None:
        if url.startswith("sqs:"):
            raise ConfigError("a queue can't be read without taking its messages; read a dump of it", _shown(url))
        raise ConfigError("names no topic; expected local:FOLDER#TOPIC or kafka:HOST:PORT#TOPIC", _shown(url))
    home, kind, topic, partition = match.groups()
    return home, kind, topic, partition or ""


def _file(home: str, topic: str) -> Path:
    open_topics(home).topic(topic)  # rejects invalid names, such as one that leaves the folder
    return cast(Path, local_folder(home)) / f"{topic}.sqlite"


def _connect(file: Path, url: str) -> sqlite3.Connection:
    """Open the file read-only, without blocking writers."""
    uri = f"file:{quote(str(file.absolute()))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
        try:
            connection.execute("SELECT 1 FROM messages LIMIT 1")
        except sqlite3.OperationalError:
            connection.close()
            if file.with_name(f"{file.name}-wal").exists() or not file.exists():
                raise
            # No process has it open, and we can't create the shared files of readers, so this file has all messages.
            connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise TopicError(f"{url}: can't be read: {error}") from None
    return connection


def _ask(connection: sqlite3.Connection, url: str, question: str, values: tuple[int, ...] = ()) -> sqlite3.Cursor:
    try:
        return connection.execute(question, values)
    except sqlite3.Error as error:
        raise TopicError(f"{url}: can't be read: {error}") from None


def _local(file: Path, url: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Read rows in small pages: a long read would keep the writers' log from being checkpointed."""
    with closing(_connect(file, url)) as connection:
        while start < end:
            question = "SELECT seq, body FROM messages WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?"
            rows = _ask(connection, url, question, (start, end, _ROWS)).fetchall()
            if not rows:
                return
            yield from ((seq, bytes(body)) for seq, body in rows)
            start = rows[-1][0] + 1


def _records(home: str, topic: str, partition: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    with closing(open_topics(home)) as topics:
        yield from cast("KafkaTopic", topics.topic(topic)).read(partition, start, end)


def _shown(url: str) -> str:
    """Return the URL without a cluster's options, which do not identify the topic."""
    return re.sub(r"\?[^#]*", "", url, count=1)
