"""The operator: resolves the topic of a consumer and calls its handler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from balog.common.errors import ConfigError
from balog.consumers.consumer import Consumer
from balog.event import Event


class Operator(Protocol):
    """The interface of an operator. Any object with these two methods will do."""

    def get_topic(self, consumer: Consumer) -> str:
        """Return the name of the topic that a consumer reads."""

    def process_event(self, consumer: Consumer, event: Event) -> object:
        """Call a consumer's handler with an event; an exception means failure."""


class ConsumerOperator:
    """The default operator: settings fill in topic names, and handlers with two arguments get them with the event."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = dict(settings or {})

    def get_topic(self, consumer: Consumer) -> str:
        """Fill the placeholders of the consumer's topic from the settings.

        Raises:
            ConfigError: a placeholder without a setting.
        """
        try:
            return consumer.topic.format(**self.settings)
        except KeyError as error:
            raise ConfigError(
                f"consumer {consumer.name}: topic {consumer.topic!r} needs the setting {error.args[0]!r}"
            ) from None
        except (IndexError, ValueError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"consumer {consumer.name}: topic {consumer.topic!r} can't be filled in: {error}"
            ) from None

    def process_event(self, consumer: Consumer, event: Event) -> object:
        """Call the handler with settings and event; one that takes a single argument with the event alone."""
        return consumer.func(self.settings, event) if consumer.takes_settings else consumer.func(event)
