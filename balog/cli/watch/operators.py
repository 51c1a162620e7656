"""The options of ``balog watch silence`` and ``acknowledge``: why, and where the event goes."""

from __future__ import annotations

from typing import NamedTuple

import click

from balog.cli.shared import options
from balog.common.errors import ConfigError
from balog.event import Event, encode
from balog.topics import Message, open_topics

why = click.option("--why", required=True, metavar="TEXT", help="Why, for people.")


class OperatorPlace(NamedTuple):
    """A topic of a backend."""

    url: str
    topic: str

    def put(self, event: Event) -> None:
        """Publish the event; it is durable then.

        Raises:
            ConfigError: the URL or the topic's name is invalid, or there is no such topic.
            TopicError: the topic cannot be written.
        """
        with open_topics(self.url) as topics:
            topic = topics.topic(self.topic)
            if not topic.exists():
                raise ConfigError(f"there is no topic {self.topic} yet, so no watcher reads it", self.url)
            topic.publish([Message(event.header.id, encode(event), None)])


target_options = options.bundle(
    "target",
    OperatorPlace,
    options.topics,
    click.option("--topic", required=True, metavar="NAME", help="Topic that the watchers read."),
)
