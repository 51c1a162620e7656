"""A home of topics with callbacks that run on it, and the keys of those who verify."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from balog.event import Event, encode
from balog.service.document import Callback
from balog.service.jobs.callbacks import CallbackJob
from balog.sinks.base import Retrying
from balog.topics import DeadLetter, GroupState, Message, open_topics

__all__ = ["KEYS", "SOON", "House"]

KEYS = ["whsec_" + base64.b64encode(bytes([n]) * 32).decode() for n in range(3)]
SOON = Retrying(first=0.02, longest=0.1)


class House:
    """A home of topics, and the callbacks that run on it."""

    def __init__(self, path: Path) -> None:
        self.url = f"local:{path}"
        self.home = open_topics(self.url)
        self.said: list[str] = []
        self.jobs: list[CallbackJob] = []

    def publish(self, payloads: Sequence[dict[str, Any]], topic: str = "orders") -> list[str]:
        events = [Event.new("shop.order", payload) for payload in payloads]
        self.home.topic(topic).publish([Message(event.header.id, encode(event)) for event in events])
        return [event.header.id for event in events]

    def numbered(self, count: int) -> list[str]:
        return self.publish([{"cls_type": "order", "n": n} for n in range(count)])

    def start(self, url: str, **options: Any) -> CallbackJob:
        config = {"name": "partner", "source": "orders", "private": True, "retry": SOON, **options}
        job = CallbackJob(Callback(url=url, **config), self.url, self.said.append)
        job.start()
        self.jobs.append(job)
        return job

    def group(self, name: str = "partner", topic: str = "orders") -> GroupState:
        return self.home.topic(topic).group_state(f"callback.{name}")

    def dead(self, name: str = "partner") -> list[DeadLetter]:
        return self.home.topic("orders").dead_letters(f"callback.{name}")

    def close(self) -> None:
        for job in self.jobs:
            job.stop(5)
        self.home.close()
