"""Time an engine on an SQS queue beside a bare boto3 loop with as many pollers and batch deletes.

    python -m benchmarks.acting_sqs

Both empty a standard queue of the same events on the same server: ElasticMQ, which the tests start (Java, and Maven's
repository once), or the one at ``--endpoint``. The clock runs from the first message that came to the last delete.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3.session
import botocore.config
import click

from balog.consumers import Consumer, ConsumerHub
from balog.consumers.ledgers.factory import open_ledger
from balog.consumers.sqs import SQSEngine
from balog.topics import Message
from balog.topics.sqs import SqsTopics
from benchmarks.acting_work import Stopwatch, Took, UntilAcked, Way, alternate, messages, rates
from benchmarks.history import show_ratio
from benchmarks.measure import machine

REGION = "eu-central-1"
KEY = "none"  # a server on loopback takes any
FILLERS = 8


class Queues:
    """Fresh queues with the same messages in them."""

    def __init__(self, endpoint: str, some: list[Message]) -> None:
        self.endpoint = endpoint
        self._some = some
        self._names = (f"bench-{os.getpid()}-{number}" for number in itertools.count())

    def home(self) -> SqsTopics:
        return SqsTopics(REGION, KEY, KEY, endpoint=self.endpoint)

    def client(self, connections: int) -> Any:
        session = boto3.session.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY)
        config = botocore.config.Config(max_pool_connections=connections)
        return session.client("sqs", region_name=REGION, endpoint_url=self.endpoint, config=config)

    def filled(self) -> str:
        """Make a queue, fill it with several threads, and give its name."""
        name = next(self._names)
        with self.home() as home:
            topic = home.topic(name)
            topic.publish(self._some[:1])
            threads = [
                threading.Thread(target=topic.publish, args=(self._some[1 + part :: FILLERS],))
                for part in range(FILLERS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert topic.group_state("balog").lag == len(self._some)
        return name

    def drop(self, name: str) -> None:
        client = self.client(1)
        client.delete_queue(QueueUrl=client.get_queue_url(QueueName=name)["QueueUrl"])


def nothing(settings: object, event: object) -> None:
    """Handle an event."""


def with_engine(queues: Queues, number: int, pollers: int, ledger: str) -> Way:
    def way() -> Took:
        name = queues.filled()
        hub = ConsumerHub()
        hub.add(Consumer(nothing, name, "metric", ">=0.1", name="bench"))
        hook = UntilAcked(number)
        with tempfile.TemporaryDirectory() as folder:
            opened = open_ledger(ledger.format(folder=folder))
            options: dict[str, Any] = {"pollers": pollers, "ledger": opened, "hooks": [hook]}
            try:
                took = hook.run(SQSEngine(hub, REGION, KEY, KEY, endpoint=queues.endpoint, **options))
            finally:
                opened.close()
        queues.drop(name)
        return took

    return way


def bare(queues: Queues, number: int, pollers: int) -> Way:
    def way() -> Took:
        name = queues.filled()
        client = queues.client(pollers)
        url = client.get_queue_url(QueueName=name)["QueueUrl"]
        lock = threading.Lock()
        watch: list[Stopwatch] = []
        end: list[Took] = []
        deleted = 0

        def poll() -> None:
            nonlocal deleted
            while not end:
                answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
                found = answer.get("Messages", [])
                if not found:
                    continue
                with lock:
                    if not watch:
                        watch.append(Stopwatch())
                for one in found:
                    nothing(None, json.loads(one["Body"]))
                entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(found)]
                done = client.delete_message_batch(QueueUrl=url, Entries=entries)
                with lock:
                    deleted += len(done["Successful"])
                    if deleted >= number and not end:
                        end.append(watch[0].read())

        threads = [threading.Thread(target=poll) for _ in range(pollers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        queues.drop(name)
        return end[0]

    return way


@click.command()
@click.option("--events", default=10_000)
@click.option("--rounds", default=5)
@click.option("--pollers", default="1,4", help="Numbers of pollers, one table each.")
@click.option("--endpoint", help="A server that speaks SQS; ElasticMQ is started when omitted.")
@click.option("--quick", is_flag=True, help="A little of the work.")
def main(events: int, rounds: int, pollers: str, endpoint: str | None, quick: bool) -> None:
    """Time the engine on SQS beside a bare boto3 loop."""
    if quick:
        events, rounds, pollers = 100, 1, "2"
    click.echo(machine("balog", "boto3", "msgspec"))
    with ExitStack() as stack:
        if endpoint is None:
            from tests.services.servers.elasticmq import running_sqs

            folder = stack.enter_context(tempfile.TemporaryDirectory())
            endpoint = stack.enter_context(running_sqs(Path(folder))).endpoint
        queues = Queues(endpoint, messages(events))
        for number in map(int, pollers.split(",")):
            found = alternate(
                {
                    "balog": with_engine(queues, events, number, "sqlite:{folder}/ledger.sqlite"),
                    "bare boto3 loop": bare(queues, events, number),
                },
                rounds,
            )
            click.echo(f"\n{events:,} events, pollers: {number}, medians of {rounds} rounds\n")
            click.echo("\n".join(rates(found, events, "bare boto3 loop")))
            click.echo()
            loop, ours = found["bare boto3 loop"].rounds, found["balog"].rounds
            show_ratio(f"the bare loop's speed, {number} pollers", loop, ours, "≥ 0.9")


if __name__ == "__main__":
    main()
