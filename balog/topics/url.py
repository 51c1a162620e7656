"""One way to open a home of topics: by its URL."""

from __future__ import annotations

from urllib.parse import unquote

from balog.errors import ConfigError
from balog.topics.base import Topics

__all__ = ["open_topics"]

_FORMS = "local:PATH, sqs:REGION, kafka:HOST:PORT"


def open_topics(url: str) -> Topics:
    """Open a home of topics; nothing is made, and no server asked, before it is used.

    Args:
        url: ``local:PATH``, a folder with one SQLite file a topic; ``sqs:REGION?endpoint=…&claim_check=…``, the queues
            of an AWS region (docs/sqs.md); ``kafka:HOST:PORT,HOST:PORT?…``, the topics of a Kafka cluster. Options are
            percent-decoded, each may come once; a local path has none.

    Raises:
        ConfigError: not such a URL.
        MissingExtraError: the packages of that kind of topics are not installed.
    """
    scheme, colon, rest = url.partition(":")
    if not colon:
        raise ConfigError(f"{_shown(url)} is not a URL of topics: want {_FORMS}")
    if scheme == "local":
        if not rest:
            raise ConfigError(f"{url!r} names no folder: want local:PATH")
        from balog.topics.local import LocalTopics

        return LocalTopics(rest)
    if scheme == "sqs":
        from balog.topics.sqs import open_sqs

        return open_sqs(*_split(url, rest, "sqs:REGION"))
    if scheme == "kafka":
        from balog.topics.kafka import KafkaTopics

        return KafkaTopics(*_split(url, rest, "kafka:HOST:PORT"))
    raise ConfigError(f"{_shown(url)}: no topics of kind {scheme!r:.40}; want {_FORMS}")


def _split(url: str, rest: str, form: str) -> tuple[str, dict[str, str]]:
    """Split ``PLACE?name=value&…``; what an option means is for the kind of topics to say."""
    place, _, query = rest.partition("?")
    if "@" in place:
        raise ConfigError(f"{form.partition(':')[0]}: no user or password in a URL, which others see; want {form}")
    if not place:
        raise ConfigError(f"{_shown(url)} names no place: want {form}")
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if not (name and equals):
            raise ConfigError(f"{_shown(url)}: option {unquote(name)!r:.40} has no value: want ?name=value&name=value")
        if unquote(name) in options:
            raise ConfigError(f"{_shown(url)}: option {unquote(name)!r:.40} is there twice")
        options[unquote(name)] = unquote(value)
    return place, options


def _shown(url: str) -> str:
    """Give what may be shown of a URL: an option's value, or what is before an @, could be somebody's password."""
    place = url.partition("?")[0]
    return repr(place if "@" not in place else place.partition(":")[0] + ":…")
