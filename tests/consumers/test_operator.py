"""The usual operator fills in topics and calls handlers."""

import pytest

from balog.common.errors import ConfigError
from balog.consumers import Consumer, ConsumerOperator
from balog.event import Event


def handler(settings: object, event: object) -> tuple[object, object]:
    return settings, event


def test_settings_fill_the_topic() -> None:
    operator = ConsumerOperator({"env": "prod", "team": "data", "more": 1})
    assert operator.get_topic(Consumer(handler, "{team}-events-{env}")) == "data-events-prod"
    assert ConsumerOperator().get_topic(Consumer(handler, "plain")) == "plain"


def test_a_missing_setting_is_named_with_consumer_and_topic() -> None:
    with pytest.raises(ConfigError, match=r"consumer x: topic 'events-\{env\}' needs the setting 'env'"):
        ConsumerOperator({"other": "1"}).get_topic(Consumer(handler, "events-{env}", name="x"))


@pytest.mark.parametrize("topic", ["{", "}", "{}", "{0}", "{env.x}", "{env[x]}", "{env:d}"])
def test_a_topic_that_cannot_be_filled_in_is_one_clear_error(topic: str) -> None:
    with pytest.raises(ConfigError, match="consumer x: topic "):
        ConsumerOperator({"env": "prod"}).get_topic(Consumer(handler, topic, name="x"))


@pytest.mark.parametrize("misdeclared", [lambda: None, lambda settings, event, more: None])
def test_a_handler_that_fits_neither_way_is_called_with_settings_and_event(misdeclared: object) -> None:
    """The error then counts the two arguments that handlers have."""
    with pytest.raises(TypeError, match=r"2 were given|missing 1 required"):
        ConsumerOperator({}).process_event(Consumer(misdeclared, "t"), Event.new("c", {}))


def test_the_handler_gets_settings_and_event() -> None:
    event = Event.new("c", {})
    assert ConsumerOperator({"a": "b"}).process_event(Consumer(handler, "t"), event) == ({"a": "b"}, event)
