"""Options, logging and summary of the commands that run a consumer engine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import click
from click import option

from balog.cli.shared import options
from balog.common.errors import ConfigError
from balog.common.text import counted
from balog.consumers import ConsumerHub, Engine, EngineStats
from balog.consumers.hooks import Hook
from balog.consumers.monitoring.failures import FailureEvents
from balog.consumers.operator import Operator
from balog.log.configuration import configure, state
from balog.topics import open_topics


@dataclass(frozen=True)
class EngineOptions:
    """The options that these commands share."""

    url: str
    until_empty: bool
    pollers: int
    lease: float
    ledger: str | None
    listen: str | None

    @contextmanager
    def open(
        self, hub: ConsumerHub, operator: Operator | None, group: str, hooks: Sequence[Hook], **options: Any
    ) -> Iterator[Engine]:
        """Open an engine with its topics, ledger and health server; close them at the end.

        Raises:
            ConfigError: a URL, a name or an address is invalid.
            BalogError: the address of ``--listen`` is in use.
            MissingExtraError: the extra for these topics or for ``--listen`` is not installed.
        """
        with ExitStack() as stack:
            topics = stack.enter_context(open_topics(self.url))
            if self.ledger is not None:
                from balog.consumers.ledgers.factory import open_ledger

                options["ledger"] = open_ledger(self.ledger)
                stack.callback(options["ledger"].close)
            if self.listen is not None:
                from balog.consumers.monitoring.health import HealthServer

                hooks = (*hooks, *stack.enter_context(HealthServer(self.listen)).hooks)
            options |= {"pollers": self.pollers, "lease": self.lease}
            yield Engine(hub, topics, operator, group, hooks=hooks, **options)


engine_options = options.bundle(
    "engine_options",
    EngineOptions,
    options.topics,
    option("--until-empty", is_flag=True, help="Exit when the group has no events left, instead of waiting for more."),
    options.integer(
        "--pollers",
        most=100,
        default=1,
        help="Receiving threads for each SQS queue. Other topics are ordered and have one.",
    ),
    options.seconds(
        "--lease",
        least=0.1,
        most=12 * 3600,
        default=30.0,
        help="Lease of received events: after a consumer is killed, others get its events when the lease ends.",
    ),
    option(
        "--ledger",
        metavar="URL",
        help="Store of the handlers that are done with each event: sqlite:PATH, redis://HOST or none:. "
        "By default a file in the folder of local topics, else in your state folder.",
    ),
    option("--listen", metavar="HOST:PORT", help="Serve /metrics, /health and /ready at this address."),
)


def set_up_logging(command: str, *, reports_retries: bool = True) -> list[Hook]:
    """Set up logging for a command and return the engine's hooks for it.

    If the environment or the handlers' package configures balog's logger, each failure is an event. Otherwise the
    handlers' logs and failures are lines on stderr.

    Args:
        command: its name, the prefix of the engine's lines.
        reports_retries: False if another component reports retries.

    Returns:
        Hooks for the engine.
    """
    is_configured = state.recorder is not None or bool(os.environ.get("BALOG_CONFIG") or os.environ.get("BALOG_OUTPUT"))
    if not is_configured:
        configure("console")

    log = logging.getLogger("balog.consumers")
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(f"balog {command}: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        failures = log.getChild("failures")
        if is_configured:
            failures.setLevel(logging.CRITICAL + 1)  # they are events
        elif not reports_retries:
            failures.setLevel(logging.ERROR)
    if not is_configured:
        return []
    return [FailureEvents() if reports_retries else _DeadLetterEvents()]


class _DeadLetterEvents(FailureEvents):
    """Log an event for dead letters only."""

    retried = Hook.retried


def summary(counts: EngineStats) -> str:
    """Return the counts of a run as one line. An event that is retried is delivered several times."""
    deliveries = "1 delivery" if counts.received == 1 else f"{counts.received} deliveries"
    types = ", ".join(f"{number} {name[:100]!r}" for name, number in sorted(counts.unwanted_types.items()))
    unwanted = f"{counts.unwanted} unwanted" + (f" ({types})" if types else "")
    return (
        f"{deliveries}: {counts.succeeded} succeeded, {counted(counts.duplicates, 'duplicate')}, "
        f"{unwanted}, {counted(counts.failed, 'failed attempt')}, {counts.dead} dead-lettered"
    )


def existing_topics(command: str, sources: Sequence[str], url: str) -> list[str]:
    """Return the URLs of the sources that exist, and print those that do not exist yet.

    A topic exists from its first publish on.

    Args:
        url: the backend. A local path becomes absolute, so that workers in other folders find it.

    Raises:
        ConfigError: no source exists.
    """
    with open_topics(url) as topics:
        existing_sources = [topic for topic in sources if topics.topic(topic).exists()]
    if missing := [topic for topic in sources if topic not in existing_sources]:
        click.echo(f"{command}: no events yet in {', '.join(missing)}", err=True)
    if not existing_sources:
        raise ConfigError(f"none of the sources exists: {', '.join(sources):.300}; check the URL of the topics", url)
    return [f"{absolute_url(url)}#{topic}" for topic in existing_sources]


def absolute_url(url: str) -> str:
    """Return the URL of a backend with an absolute path, for workers in another folder."""
    scheme, _, path = url.partition(":")
    return f"{scheme}:{os.path.abspath(os.path.expanduser(path))}" if scheme == "local" and path else url
