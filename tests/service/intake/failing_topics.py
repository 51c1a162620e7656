"""A home of topics in memory that fails, hangs or refuses as a test says, and remembers what it was given."""

import threading
from collections.abc import Sequence

from balog.common.errors import MessageError, TopicError
from balog.topics import Message
from balog.topics.memory import MemoryTopic, MemoryTopics


class FailingTopics(MemoryTopics):
    """Fails while ``down`` is set, waits while ``hang`` is, refuses ``refused`` ids.

    Args:
        keeps_ids: False: like a queue, it stores an id again, and ``stored`` tells.
    """

    def __init__(self, keeps_ids: bool = True) -> None:
        super().__init__()
        self.down = ""
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.refused: set[str] = set()
        self.stored: list[str] = []
        self.batches: list[int] = []
        self._keeps_ids = keeps_ids
        self._switched: set[str] = set()

    def topic(self, name: str) -> MemoryTopic:
        topic = super().topic(name)
        if name not in self._switched:
            self._switched.add(name)
            publish = topic.publish_new
            topic.keeps_ids = self._keeps_ids

            def publish_new(messages: Sequence[Message]) -> set[str] | None:
                self.may_go_on.wait(30)
                if self.down:
                    raise TopicError(self.down)
                for message in messages:
                    if message.id in self.refused:
                        raise MessageError(f"{message.id} is too large")
                new = publish(messages)
                self.batches.append(len(messages))
                sent = [one.id for one in messages]
                self.stored += [id for id in dict.fromkeys(sent) if id in new] if self._keeps_ids else sent
                return new if self._keeps_ids else None

            topic.publish_new = publish_new
        return topic
