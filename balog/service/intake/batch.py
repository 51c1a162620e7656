"""Messages of one request that are stored together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from balog.service.intake.publisher import PublishResult
from balog.topics import Message

Store = Literal["topics", "fallback"]


class PendingBatch:
    """Messages of one request that wait for one topic.

    Args:
        settled: called once, when the messages are durable or have failed; also if no client waits any more.

    Attributes:
        store: where the messages are durable; None before, and after a failure.
        refused: reasons by id for messages that the topic can never store.
        duplicates: the indices of messages that were stored already.
        error: why the messages could not be stored.
    """

    __slots__ = ("_is_settled", "_settled", "duplicates", "error", "messages", "refused", "size", "store")

    def __init__(self, messages: Sequence[Message], size: int, settled: Callable[[PendingBatch], object]) -> None:
        self.messages = messages
        self.size = size
        self.store: Store | None = None
        self.refused: dict[str, str] = {}
        self.duplicates: set[int] = set()
        self.error = ""
        self._settled = settled
        self._is_settled = asyncio.Event()

    async def wait(self) -> None:
        """Wait until the batch is settled. Any number of tasks may wait, and may be cancelled."""
        await self._is_settled.wait()

    def succeed(self, store: Store, written: PublishResult) -> None:
        """Settle the batch as stored. Call it in order for batches written together: of equal ids, the first is new."""
        self.store, self.refused = store, written.refused
        if written.new is not None:
            for index, message in enumerate(self.messages):
                if message.id in written.new:
                    written.new.discard(message.id)
                else:
                    self.duplicates.add(index)
        self._notify()

    def fail(self, error: str) -> None:
        """Settle the batch as failed: none of its messages is known to be stored."""
        self.error = error
        self._notify()

    def _notify(self) -> None:
        self._settled(self)
        self._is_settled.set()
