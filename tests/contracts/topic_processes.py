"""What the processes of the topics' contract do: apart from it, so that none of them has to import the tests."""

import time
from typing import Any

from balog.topics import Message, open_topics


def publish_in_process(url: str, name: str, wanted: list[str]) -> None:
    with open_topics(url) as home:
        for i in range(0, len(wanted), 20):
            home.topic(name).publish([Message(id, f"body of {id}".encode()) for id in wanted[i : i + 20]])


def consume_in_process(url: str, name: str, over: Any, handled: Any) -> None:
    with open_topics(url) as home:
        topic = home.topic(name)
        while not topic.exists() and not over.is_set():
            time.sleep(0.01)
        while not over.is_set():
            received = topic.receive("g", limit=7, wait=0.05, lease=60)
            topic.ack("g", received)
            handled.put([message.id for message in received])
