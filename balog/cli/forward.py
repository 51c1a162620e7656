"""``balog forward``: send the events of a topic to sinks."""

from __future__ import annotations

import sys

import click

from balog.broker.config import BrokerConfig
from balog.broker.config_check import complete_errors
from balog.cli.shared import options
from balog.cli.shared.engines import EngineOptions, engine_options, set_up_logging
from balog.cli.shared.output import reporter
from balog.common import config as configs
from balog.consumers.forwarder import Forwarder
from balog.topics import open_topics

_report = reporter("balog forward")

MAX_ATTEMPTS = 100
"""A failed delivery is no attempt. Only a process that dies with an event in flight counts."""


@click.command(
    "forward",
    epilog="\b\nExit codes:\n0      done, or stopped when asked\n1      failed, or an event was dead-lettered\n"
    "2      wrong use\n128+n  ended at once by a second signal n",
)
@click.option("--topic", required=True, metavar="NAME", help="The topic whose events are sent.")
@options.config("A broker's config; `forward` uses its sinks only: the topic is the spool.", required=True)
@options.group("Consumer group; each group gets all of the events.", "forward")
@engine_options
def command(topic: str, path: str, group: str, engine_options: EngineOptions) -> None:
    """Send the events of a topic to the sinks of a broker's config.

    An event is acked once every sink whose "where" matches has accepted it. Until then it stays in the topic, so no
    spool is needed. An event that a sink rejects becomes a dead letter of the topic.

    \b
    balog forward --topics local:topics --topic singer-events --config broker.json
    balog forward --topics kafka:localhost:9092 --topic singer-events --config broker.json --listen :9464

    The first SIGTERM or Ctrl-C finishes the batches in flight; the second ends at once.
    """
    with complete_errors(path):
        config = configs.load(path, BrokerConfig)
    with open_topics(engine_options.url) as topics:
        topics.topic(topic)  # raises for a wrong URL or name before the sinks are opened
    with complete_errors(path):
        forwarding = Forwarder(config.sinks, engine_options.url, topic, _report)
    hooks = set_up_logging("forward", reports_retries=False)  # the sinks report when they fail and recover
    options = {
        "concurrency": len(forwarding.sinks),  # so that none waits for another
        "max_attempts": MAX_ATTEMPTS,
        "drain": config.drain,
    }
    with forwarding, engine_options.open(forwarding.hub, None, group, hooks, **options) as engine:
        try:
            engine.run(engine_options.until_empty)
        finally:
            if sys.exc_info()[0] is None or engine.counts.received:
                for sink in forwarding.sinks:
                    stats = sink.adapter.stats
                    _report(f"{sink.name}: {stats.delivered} delivered, {stats.dead} refused, {stats.retries} retries")
    if engine.counts.dead:
        sys.exit(1)
