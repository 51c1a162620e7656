"""The options of ``balog watch silence`` and ``acknowledge``: why, by whom, and where the event goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import click

from balog.cli import options
from balog.errors import ConfigError
from balog.event import Event, encode
from balog.topics import Message, open_topics
from balog.watch.operator_events import append


class OperatorPlace(NamedTuple):
    """A topic of a backend, or a file."""

    url: str | None
    topic: str | None
    file: str | None

    def put(self, event: Event) -> None:
        """Publish the event, or append it to the file; it is durable then.

        Raises:
            ConfigError: the URL or the topic's name is invalid, there is no such topic, or the file cannot be written.
            TopicError: the topic cannot be written.
        """
        if self.file is not None:
            try:
                append(self.file, event)
            except OSError as error:
                raise ConfigError(f"cannot be written: {error.strerror or error}", self.file) from None
            return
        with open_topics(self.url or "") as topics:
            topic = topics.topic(self.topic or "")
            if not topic.exists():
                raise ConfigError(f"there is no topic {self.topic} yet, so no watcher reads it", self.url or "")
            topic.publish([Message(event.header.id, encode(event), None)])


def place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the place; the command gets ``target``."""

    @click.option("--topics", "url", metavar="URL", help=options.TOPICS_HELP)
    @click.option("--topic", metavar="NAME", help="Topic that the watchers read.")
    @click.option("--file", "file", metavar="FILE", help="Append the event to a file of JSON lines instead.")
    @wraps(command)
    def with_place(url: str | None, topic: str | None, file: str | None, **rest: Any) -> Any:
        if (file is None) == (url is None) or (url is None) != (topic is None):
            raise ConfigError("give --topics and --topic, or --file")
        return command(target=OperatorPlace(url, topic, file), **rest)

    return with_place


def why(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--why`` and ``--by``."""
    command = click.option("--by", default="", metavar="NAME", help="Who.  [default: user@machine]")(command)
    return click.option("--why", required=True, metavar="TEXT", help="Why, for people.")(command)
