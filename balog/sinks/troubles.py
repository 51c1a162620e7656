"""What went wrong when one batch became several requests, as the one error that a sink raises."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from balog.event import Event
from balog.sinks.base import Delivery, SinkError

__all__ = ["Halves", "Troubles"]

_MOST_HALVES = 20_000


class Troubles:
    """Collects by events' indexes what requests failed, and raises it at the end.

    An event that is in several requests is tried again when any of them is; see ``Halves``.
    """

    def __init__(self) -> None:
        self._rejected: dict[int, str] = {}
        self._remaining: set[int] = set()
        self._errors: list[SinkError] = []
        self._unnamed: list[tuple[int, str]] = []

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Note events that will never be taken."""
        self._rejected.update(reasons)

    def refuse_unnamed(self, count: int, reason: str) -> None:
        """Note that so many events will never be taken where nobody knows which."""
        self._unnamed.append((count, reason))

    def keep(self, indexes: Iterable[int], error: SinkError) -> None:
        """Note events that were not taken because of an error, retryable or not."""
        self._remaining.update(indexes)
        self._errors.append(error)

    @property
    def remaining(self) -> Collection[int]:
        """The events that were not taken whole."""
        return self._remaining

    def finish(self) -> None:
        """Raise what was noted, if anything was.

        Raises:
            SinkError: retryable when any of the errors is; what was asked to wait for is the longest of them.
        """
        errors = [error for error in self._errors if error.retryable] or self._errors
        rejected = {index: why for index, why in self._rejected.items() if index not in self._remaining}
        reasons = [*map(str, errors), *rejected.values(), *(reason for _, reason in self._unnamed)]
        if not reasons:
            return
        waits = [error.retry_after for error in errors if error.retry_after is not None]
        raise SinkError(
            reasons[0],
            retryable=any(error.retryable for error in errors),
            retry_after=max(waits, default=None),
            rejected=rejected,
            remaining=sorted(self._remaining),
            unnamed=sum(count for count, _ in self._unnamed),
        )


class Halves:
    """Remembers events of which one request was taken and another one was not, so that only the other is sent again.

    Without it the counters in a run's event would be added anew with each try of its log.
    """

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}  # by the event's id the requests

    def lacks(self, request: str, event: Event) -> bool:
        """Whether an event is still to be sent in such a request."""
        return not self._taken or request not in self._taken.get(event.header.id, ())

    def settle(
        self, batch: Sequence[Delivery], taken: Mapping[str, Collection[int]], remaining: Collection[int]
    ) -> None:
        """Note how a batch ended.

        Args:
            taken: by request the indexes of the events that were taken in it.
            remaining: indexes of the events that come again.
        """
        if not remaining and not self._taken:
            return
        for index, (event, _) in enumerate(batch):
            name = event.header.id
            if index not in remaining:
                self._taken.pop(name, None)
            elif requests := {request for request, indexes in taken.items() if index in indexes}:
                self._taken[name] = self._taken.get(name, set()) | requests
        while len(self._taken) > _MOST_HALVES:
            del self._taken[next(iter(self._taken))]
