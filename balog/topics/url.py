"""Open a backend of topics by its URL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

from msgspec import Meta

from balog.common.errors import ConfigError
from balog.common.local_path import local_path
from balog.common.plugins import PluginRegistry
from balog.topics.base import Topics

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORMS = "local:PATH, sqs:REGION, kafka:HOST:PORT"

TopicsUrl = Annotated[
    str, Meta(min_length=1, description="The backend of the topics: local:PATH, sqs:REGION or kafka:HOST:PORT.")
]

BACKENDS = PluginRegistry(
    "balog.topics",
    {
        "local": "balog.topics.local.backend:open_local",
        "sqs": "balog.topics.sqs.backend:open_sqs",
        "kafka": "balog.topics.kafka:open_kafka",
    },
)
"""URL scheme -> a function that opens the backend of a URL."""


def open_topics(url: str) -> Topics:
    """Open a backend of topics. It creates nothing, and contacts no server, before its first use.

    Args:
        url: ``local:PATH``, a folder with one SQLite file a topic; ``sqs:REGION?endpoint=…&claim_check=…``, the queues
            of an AWS region (docs/reference/sqs-topics.md); ``kafka:HOST:PORT,HOST:PORT?…``, the topics of a Kafka
            cluster; or the URL of a backend of another package (docs/reference/plugins.md). Options are
            percent-decoded, each may come once.
            ``local:PATH?retention=14d`` deletes messages and dead letters after that time, handled or not, in ``s``,
            ``m``, ``h`` or ``d``. A local path has no other option.

    Raises:
        ConfigError: not such a URL.
        MissingExtraError: the packages of that kind of topics are not installed.
        BalogError: the package that adds the backend cannot be imported, or opens none.
    """
    scheme, colon, _ = url.partition(":")
    if not colon:
        raise ConfigError(f"{_shown(url)} is not a URL of topics: expected {url_forms()}")
    if scheme not in BACKENDS:
        raise ConfigError(f"{_shown(url)}: no topics of kind {scheme!r:.40}; expected {url_forms()}")
    topics: Topics = BACKENDS.open(scheme, url, ("topic", "names", "close", "__enter__"))
    return topics


def url_forms() -> str:
    """Return the forms of the URLs of all backends, in one line; ``redis:…`` for one of another package."""
    return ", ".join([_FORMS, *(f"{scheme}:…" for scheme in BACKENDS.added())])


def local_folder(url: str) -> Path | None:
    """Return the folder of ``local:PATH``, with ``~`` expanded; None for other backends.

    Raises:
        ConfigError: the retention is not a time, or the path is not one on local disk.
    """
    scheme, _, rest = url.partition(":")
    return Path(local_path(split_local_url(url)[0], url)) if scheme == "local" and rest else None


def split_local_url(url: str) -> tuple[str, float | None]:
    """Split ``local:PATH?retention=14d`` into the path and seconds; any other ``?`` belongs to the path."""
    rest = url.partition(":")[2]
    path, option, value = rest.rpartition("?retention=")
    if not option:
        return rest, None
    match = _DURATION.fullmatch(value)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not path or not seconds:
        raise ConfigError(
            f"{url!r}: retention={value:.40} is not a time; expected a number and s, m, h or d, such as 14d"
        )
    return path, seconds


def split_url(url: str, form: str) -> tuple[str, dict[str, str]]:
    """Split ``SCHEME:PLACE?name=value&…`` into the place and the percent-decoded options, which the backend checks.

    Args:
        form: the form of such URLs for errors, such as ``kafka:HOST:PORT``.

    Raises:
        ConfigError: there is no place, it has a user or password, or an option has no value or is there twice. The
            error shows no value.
    """
    location, _, query = url.partition(":")[2].partition("?")
    if "@" in location:
        raise ConfigError(f"{form.partition(':')[0]}: no user or password in a URL, which others see; expected {form}")
    if not location:
        raise ConfigError(f"{_shown(url)} names no place: expected {form}")
    return location, split_query(query, _shown(url))


def split_query(query: str, where: str) -> dict[str, str]:
    """Return the percent-decoded options of a URL's ``name=value&…``; raises as ``split_url`` does.

    Args:
        where: the URL as errors name it.
    """
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if not (name and equals):
            raise ConfigError(f"{where}: option {unquote(name)!r:.40} has no value: expected ?name=value&name=value")
        if unquote(name) in options:
            raise ConfigError(f"{where}: option {unquote(name)!r:.40} is there twice")
        options[unquote(name)] = unquote(value)
    return options


def _shown(url: str) -> str:
    """Return a URL without the parts that may be a password: option values, and the text before an @."""
    base_url = url.partition("?")[0]
    return repr(base_url if "@" not in base_url else base_url.partition(":")[0] + ":…")
