"""Processes of the topic contract, in a module of their own so that they import no tests."""

from __future__ import annotations

import time
from typing import Any

from balog.topics import Message, open_topics


def publish_in_process(url: str, name: str, wanted: list[str]) -> None:
    """Publish messages with these ids."""
    with open_topics(url) as backend:
        for i in range(0, len(wanted), 20):
            backend.topic(name).publish([Message(id, f"body of {id}".encode()) for id in wanted[i : i + 20]])


def consume_in_process(url: str, name: str, over: Any, handled: Any) -> None:
    """Receive and ack messages until ``over`` is set, and put their ids on the queue ``handled``."""
    with open_topics(url) as backend:
        topic = backend.topic(name)
        while not topic.exists() and not over.is_set():
            time.sleep(0.01)
        while not over.is_set():
            received = topic.receive("g", limit=7, wait=0.05, lease=60)
            topic.ack("g", received)
            handled.put([message.id for message in received])
