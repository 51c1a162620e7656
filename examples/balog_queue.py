"""A topic backend: a queue without groups, in the memory of one process. See docs/how-to/write-a-topic-backend.md."""

# ruff: noqa: D102 (the docstrings are those of Topic and Topics)

import threading
import time
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from balog.common.errors import TopicError
from balog.topics import DeadLetter, Generation, GroupState, Message, Received, Topic, Topics, TopicState
from balog.topics.base import check_name

BACKENDS = {}


def open_queues(url):
    """Return the backend of a URL, such as queue:memory."""
    return BACKENDS.setdefault(url, Queues(url))


class Queues(Topics):
    def __init__(self, url):
        self.url = url
        self.queues = {}

    def topic(self, name):
        return self.queues.setdefault(check_name("topic", name), Queue(name))

    def names(self):
        return sorted(name for name, queue in self.queues.items() if queue.exists())

    def close(self):
        pass  # nothing to close; a backend with connections opens them again at the next use


class Row(Struct):
    message: Message
    published: float
    ready_at: float = 0.0
    attempts: int = 0
    receipt: str = ""
    redrive: int = 0
    dead: DeadLetter | None = None


class Queue(Topic):
    keeps_groups = False
    keeps_ids = False

    def __init__(self, name):
        self.name = name
        self.rows = None
        self.lock = threading.RLock()

    def exists(self):
        return self.rows is not None

    def close(self):
        pass

    def publish(self, messages):
        new = [Row(message, time.time()) for message in messages]
        with self.lock:
            self.rows = [*(self.rows or []), *new] if new else self.rows
        return len(new)

    def receive(self, group, limit=100, wait=0.0, lease=30.0):
        check_name("group", group)
        deadline = time.time() + wait
        while not (found := self.deliver(limit, lease)) and time.time() < deadline:
            time.sleep(0.01)
        return found

    def deliver(self, limit, lease):
        with self.lock:
            ready = [row for row in self.rows or [] if row.dead is None and row.ready_at <= time.time()][:limit]
            for row in ready:
                row.receipt, row.ready_at, row.attempts = uuid4().hex, time.time() + lease, row.attempts + 1
            return [self.received(row) for row in ready]

    def received(self, row):
        id, body, key = row.message.id, row.message.body, row.message.key
        return Received(id, body, row.receipt, row.attempts, row.published, key, Generation(0, row.redrive))

    def held(self, received):
        """Return the rows with a valid receipt: the receipt of the last delivery, which was not settled yet."""
        receipts = {message.receipt for message in received}
        return [row for row in self.rows or [] if row.receipt and row.receipt in receipts]

    def ack(self, group, received):
        with self.lock:
            held = self.held(received)
            self.rows = [row for row in self.rows if row not in held] if held else self.rows
            return len(held)

    def release(self, group, received, delay=0.0, *, attempted=True):
        with self.lock:
            held = self.held(received)
            for row in held:
                row.receipt, row.ready_at = "", time.time() + delay
                row.attempts -= not attempted
            return len(held)

    def extend(self, group, received, lease=30.0):
        with self.lock:
            held = self.held(received)
            for row in held:
                row.ready_at = time.time() + lease
            return len(held)

    def dead_letter_each(self, group, given_up):
        with self.lock:
            by_receipt = {one.received.receipt: one for one in given_up}
            held = self.held([one.received for one in given_up])
            for row in held:
                why, id, body = by_receipt[row.receipt], row.message.id, row.message.body
                row.dead = DeadLetter(
                    id, body, group, why.reason, row.attempts, time.time(), why.consumers, why.traceback
                )
                row.receipt = ""
            return len(held)

    def dead_letters(self, group, limit=100):
        return [row.dead for row in self.rows or [] if row.dead is not None][:limit]

    def redrive(self, group, decide, limit=None):
        redriven = 0
        for row in [row for row in self.existing() if row.dead is not None][:limit]:
            body = decide(row.dead)
            if body is not None:
                row.message, row.redrive = replace(row.message, body=body), row.redrive + 1
                row.ready_at, row.attempts, row.dead = 0.0, 0, None
                redriven += 1
        return redriven

    def existing(self):
        if self.rows is None:
            raise TopicError(f"topic {self.name} does not exist; the first message that is published creates it")
        return self.rows

    def peek(self, limit=10, *, newest=False):
        rows = [row for row in self.existing() if row.dead is None]
        return [self.received(row) for row in (rows[-limit:] if newest else rows[:limit])]

    def seek(self, group, to):
        raise TopicError(f"topic {self.name}: a queue has no positions to seek", retryable=False)

    def group_state(self, group):
        with self.lock:
            alive = [row for row in self.existing() if row.dead is None]
            lag = sum(1 for row in alive if not row.attempts)
            in_flight = sum(1 for row in alive if row.receipt and row.ready_at > time.time())
            waiting, dead = len(alive) - lag - in_flight, len(self.rows) - len(alive)
            return GroupState(group, 0, lag, in_flight, waiting, dead)

    def describe(self):
        with self.lock:
            size = sum(len(row.message.body) for row in self.existing())
            oldest = min((row.published for row in self.rows), default=None)
            return TopicState(self.name, len(self.rows), size, oldest, [self.group_state("balog")])
