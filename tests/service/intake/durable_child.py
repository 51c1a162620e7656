"""A process that takes events until it is killed at one step of the durable path; it writes each acked id.

    python durable_child.py FOLDER STEP COUNT FIRST

The topics in FOLDER/topics fail after the first 100 events until 300 more are in FOLDER/fallback, so that all of the
path is walked. At the COUNT-th time that STEP is reached the process kills itself.
"""

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from balog.common.errors import TopicError
from balog.event import Event, encode
from balog.service.intake import drain, topic_writer
from balog.service.intake.batch import AcceptedEvent
from balog.service.intake.fallback import open_fallback
from balog.service.intake.intake import EventIntake
from balog.topics import open_topics
from balog.topics.local import LocalTopic

CLIENTS = 3

folder, step, count, first = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
drain._LEASE = 0.5
topic_writer._FIRST_RETRY = 0.05
topic_writer._LONGEST_RETRY = 0.1
reached = 0
taken = 0


def reach(name: str) -> None:
    global reached
    if name == step:
        reached += 1
        if reached == count:
            os.kill(os.getpid(), signal.SIGKILL)


def around(method: str, store: str) -> None:
    real: Callable[..., Any] = getattr(LocalTopic, method)

    def patched(topic: LocalTopic, *given: Any, **named: Any) -> Any:
        is_fallback = topic.name.startswith("fallback--")
        if is_fallback != (store == "fallback"):
            return real(topic, *given, **named)
        if method == "publish_new" and not is_fallback and 100 <= taken < 400:
            raise TopicError("down")
        reach(f"before {method} {store}")
        result = real(topic, *given, **named)
        reach(f"after {method} {store}")
        return result

    setattr(LocalTopic, method, patched)


for patched_method, patched_store in [
    ("publish_new", "topics"),
    ("publish_new", "fallback"),
    ("receive", "fallback"),
    ("ack", "fallback"),
    ("trim", "fallback"),
]:
    around(patched_method, patched_store)


async def send(intake: EventIntake, client: int, numbers: "itertools.count[int]") -> None:
    global taken
    while True:
        batch = []
        for _ in range(client * 4 + 1):
            event = Event.new("tests", {"cls_type": f"type{client}", "version": "1.0.0", "n": next(numbers)})
            batch.append(AcceptedEvent(event, encode(event)))
        placed = await intake.put(batch)
        taken += len(batch)
        acked = [one.event.header.id for one, at in zip(batch, placed) if at.status == 202]
        os.write(1, "".join(id + "\n" for id in acked).encode())
        reach("told")


async def main() -> None:
    home = open_topics(f"local:{folder}/topics")
    intake = EventIntake(home, fallback=open_fallback(f"local:{folder}/fallback", home.url))
    await intake.start()
    await asyncio.gather(*[send(intake, client, itertools.count(first)) for client in range(CLIENTS)])


asyncio.run(main())
