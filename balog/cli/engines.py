"""What the commands that run an engine share: their options, what they show, and how they end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import click

from balog.consumers import ConsumerHub, Counts, Engine
from balog.consumers.failures import FailureEvents
from balog.consumers.hooks import Hook
from balog.consumers.operator import Operator
from balog.errors import ConfigError
from balog.recording.configuration import configure, peek
from balog.topics import open_topics

__all__ = [
    "TOPICS_HELP",
    "absolute_home",
    "engine_options",
    "existing_topics",
    "open_engine",
    "set_up_logging",
    "summary",
]

Command = TypeVar("Command", bound=Callable[..., Any])

TOPICS_HELP = "Where the topics are: local:PATH, sqs:REGION or kafka:HOST:PORT."

_OPTIONS = (
    click.option("--topics", "url", required=True, metavar="URL", help=TOPICS_HELP),
    click.option("--until-empty", is_flag=True, help="End when the group has nothing left, not when told to."),
    click.option(
        "--pollers",
        type=click.IntRange(1, 100),
        default=1,
        show_default=True,
        metavar="N",
        help="Threads that receive, for each SQS queue; other topics keep an order and have one.",
    ),
    click.option(
        "--lease",
        type=click.FloatRange(min=0.1, max=12 * 3600),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long events stay with a consumer that was killed.",
    ),
    click.option(
        "--ledger",
        metavar="URL",
        help="Where it is noted who is through with what: sqlite:PATH, redis://HOST or none:. "
        "A file beside local topics, or in this user's state folder, if not given.",
    ),
    click.option("--listen", metavar="HOST:PORT", help="Serve /metrics, /health and /ready there, or at unix:PATH."),
)


def engine_options(command: Command) -> Command:
    """Give a command the options that all of them have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def open_engine(
    hub: ConsumerHub,
    url: str,
    operator: Operator | None,
    group: str,
    ledger: str | None,
    listen: str | None,
    hooks: Sequence[Hook],
    **options: Any,
) -> Iterator[Engine]:
    """Give an engine for these topics with what the options ask for, all of it closed at the end.

    Raises:
        ConfigError: a URL, a name or an address that can't be.
        BalogError: the address of ``--listen`` is not to be had.
        MissingExtraError: packages for that kind of topics, or for ``--listen``, are not installed.
    """
    with ExitStack() as stack:
        topics = stack.enter_context(open_topics(url))
        if ledger is not None:
            from balog.consumers.ledgers import open_ledger

            options["ledger"] = open_ledger(ledger)
            stack.callback(options["ledger"].close)
        if listen is not None:
            from balog.consumers.health import Watch

            hooks = (*hooks, *stack.enter_context(Watch(listen)).hooks)
        yield Engine(hub, topics, operator, group, hooks=hooks, **options)


def set_up_logging(command: str, *, tells_retries: bool = True) -> list[Hook]:
    """Let what is logged be seen, and give the hooks that an engine needs for it.

    Where the environment or the handlers' package has configured balog's logging, each failure is an event there.
    Where nobody has, what handlers log are lines on stderr, and so are failures.

    Args:
        command: its name, in front of the engine's own lines.
        tells_retries: False where somebody else tells that events wait to be tried again.
    """
    is_configured = peek() is not None or bool(os.environ.get("BALOG_CONFIG") or os.environ.get("BALOG_OUTPUT"))
    if not is_configured:
        configure("console")

    log = logging.getLogger("balog.consumers")
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(f"balog {command}: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        failures = log.getChild("failures")
        failures.disabled = is_configured
        if not tells_retries:
            failures.setLevel(logging.ERROR)
    if not is_configured:
        return []
    return [FailureEvents() if tells_retries else _DeadLetters()]


class _DeadLetters(FailureEvents):
    """Events of what was given up alone."""

    retried = Hook.retried


def summary(counts: Counts) -> str:
    """Say in one line what a run did."""
    return (
        f"{counts.received} received, {counts.succeeded} succeeded, {counts.duplicates} duplicates, "
        f"{counts.unwanted} unwanted, {counts.failed} failed attempts, {counts.dead} dead-lettered"
    )


def existing_topics(command: str, sources: Sequence[str], url: str) -> list[str]:
    """Give the URLs of the sources that exist, and say which do not: a topic is made when something is published to it.

    Args:
        url: the home; the URLs that are given name a folder on this machine as workers in another one find it.

    Raises:
        ConfigError: none exists.
    """
    with open_topics(url) as home:
        found = [topic for topic in sources if home.topic(topic).exists()]
    if missing := [topic for topic in sources if topic not in found]:
        click.echo(f"{command}: nothing in {', '.join(missing)} yet", err=True)
    if not found:
        raise ConfigError(f"none of the sources is there: {', '.join(sources):.300}; is it the right home?", url)
    return [f"{absolute_home(url)}#{topic}" for topic in found]


def absolute_home(url: str) -> str:
    """Give a home of topics as workers in another folder find it."""
    scheme, _, path = url.partition(":")
    return f"{scheme}:{os.path.abspath(os.path.expanduser(path))}" if scheme == "local" and path else url
