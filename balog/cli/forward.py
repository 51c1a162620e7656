"""``balog forward``: the events of a topic go to sinks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from balog import config as configs
from balog.broker.config import BrokerConfig
from balog.broker.config_check import complete_errors
from balog.cli.engines import engine_options, open_engine, set_up_logging
from balog.consumers.forwarding import Forwarding
from balog.topics import open_topics

__all__ = ["command"]

MAX_ATTEMPTS = 100
"""A sink's trouble is no attempt; only a process that dies with an event in hand counts, and seldom is it the event's
fault.
"""

_OF_A_BROKER = ("strip", "metrics", "spool", "records", "schemas", "batch", "state", "quarantine")


@click.command(
    "forward",
    epilog="\b\nExit codes:\n0      done, or stopped when asked\n1      failed, or an event was dead-lettered\n"
    "2      wrong use\n128+n  ended at once by a second signal n",
)
@click.option("--topic", required=True, metavar="NAME", help="The topic whose events are sent.")
@click.option("--config", "path", required=True, metavar="FILE", help="A broker's config; its sinks are what counts.")
@click.option(
    "--group",
    default="forward",
    show_default=True,
    metavar="NAME",
    help="Who shares the events: another group gets them all again.",
)
@click.option(
    "--drain",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    help="Batches in hand have so long to finish when a stop is asked for.  [default: the config's drain]",
)
@engine_options
def command(
    topic: str,
    path: str,
    group: str,
    drain: float | None,
    url: str,
    until_empty: bool,
    pollers: int,
    lease: float,
    ledger: str | None,
    listen: str | None,
) -> None:
    """Send the events of a topic to the sinks of a broker's config.

    An event is acked once every sink that wants it (its "where") has it. What a sink does not take stays in the topic,
    which is the spool; what a sink refuses for good becomes a dead letter of the topic.

    \b
    balog forward --topics local:topics --topic singer-events --config broker.json
    balog forward --topics kafka:localhost:9092 --topic singer-events --config broker.json --listen :9464

    The first SIGTERM or Ctrl-C finishes the batches in hand, the second ends at once.
    """
    with complete_errors(path):
        config = configs.load(path, BrokerConfig)
    for line in _notes(config):
        _say(f"{path}: {line}")
    with open_topics(url) as home:
        home.topic(topic)  # says what is wrong with the URL or the name before a sink is asked
    with complete_errors(path):
        forwarding = Forwarding(config.sinks, url, topic, _say)
    hooks = set_up_logging("forward", tells_retries=False)  # the sinks tell when they fail and when they recover
    options: dict[str, Any] = {
        "concurrency": len(forwarding.sinks),  # so that none waits for another
        "pollers": pollers,
        "lease": lease,
        "max_attempts": MAX_ATTEMPTS,
        "drain": config.drain if drain is None else drain,
    }
    with forwarding, open_engine(forwarding.hub, url, None, group, ledger, listen, hooks, **options) as engine:
        try:
            engine.run(until_empty)
        finally:
            for sink in forwarding.sinks:
                counts = sink.outlet.counts
                _say(f"{sink.name}: {counts.delivered} delivered, {counts.refused} refused, {counts.retries} retries")
    if engine.counts.dead:
        sys.exit(1)


def _notes(config: BrokerConfig) -> Iterator[str]:
    """Say what of a broker's config has no meaning here: there is no stream, and the topic is the spool."""
    plain = BrokerConfig(sinks=[])
    parts = [name for name in _OF_A_BROKER if getattr(config, name) != getattr(plain, name)]
    if "spool" in parts:
        yield "the spool is not used: what waits for a sink waits in the topic"
        parts.remove("spool")
    if parts:
        yield f"without effect on a topic, and left alone: {', '.join(parts)}"


def _say(line: str) -> None:
    click.echo(f"balog forward: {line}", err=True)
