"""Time an engine on a Kafka topic beside a bare confluent-kafka loop that commits after each batch.

    python -m benchmarks.acting_kafka

Both read a topic of one partition with the same events on the same server, each round in groups of their own: the Kafka
that the tests start (Java, and Maven's repository once), or the one at ``--servers``. The clock runs from the first
message that came to the last commit, so that it leaves out how long a group takes to form.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import confluent_kafka

from balog.consumers import Consumer, ConsumerHub
from balog.consumers.kafka import KafkaEngine
from balog.consumers.ledgers.factory import open_ledger
from balog.topics import open_topics
from benchmarks.acting_work import Stopwatch, Took, UntilAcked, Way, alternate, messages, publish, rates
from benchmarks.history import show_ratio
from benchmarks.measure import machine

BATCH = 1000

_groups = (f"bench-{number}" for number in itertools.count())


def nothing(settings: object, event: object) -> None:
    """Handle an event, or a list of them."""


def with_engine(servers: str, topic: str, number: int, ledger: str, batch: int | None = None) -> Way:
    def way() -> Took:
        hub = ConsumerHub()
        hub.add(Consumer(nothing, topic, "metric", ">=0.1", name="bench", batch=batch))
        hook = UntilAcked(number)
        with tempfile.TemporaryDirectory() as folder:
            opened = open_ledger(ledger.format(folder=folder))
            options: dict[str, Any] = {"batch": BATCH, "ledger": opened, "hooks": [hook]}
            try:
                return hook.run(KafkaEngine(hub, servers, next(_groups), **options))
            finally:
                opened.close()

    return way


def bare(servers: str, topic: str, number: int) -> Way:
    def way() -> Took:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": next(_groups),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        watch: Stopwatch | None = None
        handled = 0
        while handled < number:
            found = consumer.consume(BATCH, timeout=0.1)
            if not found:
                continue
            watch = watch or Stopwatch()
            for one in found:
                assert one.error() is None, one.error()
                nothing(None, json.loads(one.value()))
            consumer.commit(asynchronous=False)
            handled += len(found)
        assert watch is not None
        took = watch.read()
        consumer.close()
        return took

    return way


@click.command()
@click.option("--events", default=100_000)
@click.option("--rounds", default=5)
@click.option("--servers", help="HOST:PORT of a Kafka; one is started when omitted.")
@click.option("--quick", is_flag=True, help="A little of the work.")
def main(events: int, rounds: int, servers: str | None, quick: bool) -> None:
    """Time the engine on Kafka beside a bare confluent-kafka loop."""
    if quick:
        events, rounds = 500, 1
    click.echo(machine("balog", "confluent-kafka", "msgspec"))
    topic = f"bench-{os.getpid()}"
    with ExitStack() as stack:
        if servers is None:
            from tests.services.servers.kafka import running_kafka

            folder = stack.enter_context(tempfile.TemporaryDirectory())
            servers = stack.enter_context(running_kafka(Path(folder))).servers
        with open_topics(f"kafka:{servers}?partitions=1") as home:
            publish(home.topic(topic), messages(events))
        found = alternate(
            {
                "balog": with_engine(servers, topic, events, "sqlite:{folder}/ledger.sqlite"),
                "balog, no ledger": with_engine(servers, topic, events, "none:"),
                "balog, handler of batches": with_engine(servers, topic, events, "sqlite:{folder}/ledger.sqlite", 100),
                "bare confluent-kafka loop": bare(servers, topic, events),
            },
            rounds,
        )
        click.echo(f"\n{events:,} events of one partition, {BATCH} at once, medians of {rounds} rounds\n")
        click.echo("\n".join(rates(found, events, "bare confluent-kafka loop")))
        click.echo()
        show_ratio("the bare loop's speed", found["bare confluent-kafka loop"].rounds, found["balog"].rounds, "≥ 0.5")


if __name__ == "__main__":
    main()
