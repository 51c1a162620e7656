"""Count what a reader follows: the files and functions of one event to a sink, and of one message to its ack.

    python -m benchmarks.route

Each is done once before, so that imports and connections are not counted. Then a profiler notes each function of balog
that any thread enters: a logged counter until statsd has its datagram, and a message of an SQS queue (moto, in this
process) until the queue is empty. Lambdas and comprehensions belong to the function that has them.
"""

from __future__ import annotations

import logging
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import boto3.session
import click
from moto.server import ThreadedMotoServer

import balog
from balog.consumers import Consumer, ConsumerHub
from balog.consumers.ledgers.factory import open_ledger
from balog.consumers.sqs import SQSEngine
from balog.event import Event, encode

ROOT = str(Path(balog.__file__).parent)
COUNTER = {"cls_type": "metric", "version": "1.0.0", "type": "counter", "metric": "record_count", "value": 1}
REGION, KEY = "eu-central-1", "none"
COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
SETTLED = 0.5  # seconds in which the queue notes what was delivered


class Route:
    """The functions of balog that ran while it was on, in the order of their first calls."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, None] = {}
        self._is_on = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Be able to note what this thread does, and those that begin in here."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Note what runs in here."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def print(self, title: str) -> None:
        """Print the counts, then each file with its functions."""
        files: dict[str, list[str]] = {}
        for code in self.functions:
            files.setdefault(code.co_filename, []).append(
                code.co_qualname if sys.version_info >= (3, 11) else code.co_name
            )
        click.echo(f"{title}: {len(files)} files, {len(self.functions)} functions")
        for file, names in files.items():
            click.echo(f"  {Path(file).relative_to(ROOT)}: {', '.join(names)}")

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self._is_on and event == "call" and code.co_filename.startswith(ROOT) and not code.co_name.startswith("<"):
            self.functions.setdefault(code)


def logged_event() -> Route:
    """Log a counter to statsd twice, and return the route of the second."""
    route = Route()
    with route.watched(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        balog.configure({"type": "statsd", "host": "127.0.0.1", "port": server.getsockname()[1]}, application="route")
        log = balog.get_logger("route")
        log.info("done", payload=COUNTER)
        server.recv(1024)
        time.sleep(SETTLED)
        with route.on():
            log.info("done", payload=COUNTER)
            server.recv(1024)
            time.sleep(SETTLED)
    return route


def handled_message() -> Route:
    """Send two messages to a queue with a consumer, and return the route of the second until it is deleted."""
    route = Route()
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    session = boto3.session.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY)
    sqs = session.client("sqs", region_name=REGION, endpoint_url=endpoint)
    queue = sqs.create_queue(QueueName="route")["QueueUrl"]
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: None, "route", "metric", ">=0.1", name="route"))

    bodies = [encode(Event.new("route", COUNTER)).decode() for _ in range(2)]

    def send_and_wait() -> None:
        sqs.send_message(QueueUrl=queue, MessageBody=bodies.pop())
        while any(map(int, sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=COUNTS)["Attributes"].values())):
            time.sleep(0.05)

    def send_two() -> None:
        try:
            send_and_wait()
            with route.on():
                send_and_wait()
        finally:
            engine.stop()

    with tempfile.TemporaryDirectory() as folder, route.watched():
        ledger = open_ledger(f"sqlite:{folder}/ledger")
        engine = SQSEngine(hub, REGION, KEY, KEY, endpoint=endpoint, ledger=ledger, pollers=1)
        sender = threading.Thread(target=send_two)
        sender.start()
        engine.run()
        sender.join()
        ledger.close()
    server.stop()
    return route


def main() -> None:
    """Print both routes."""
    logged_event().print("a logged counter until its datagram to statsd")
    handled_message().print("a message of an SQS queue until it is deleted")


if __name__ == "__main__":
    main()
