"""The result of a call for each of its events: succeeded, failed, postponed or dead."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from balog.common.errors import redact_error
from balog.consumers.error_text import error_line, format_traceback
from balog.consumers.outcomes import Halt, PartialFailure, Reject, Requeue, Retry
from balog.consumers.queueing.delivery import HandlerCall, HandlerTask


class Disposition(Enum):
    """What happens to a task next."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """Retried after a delay; counts as an attempt."""
    POSTPONED = "postponed"
    """Retried after a delay because the other side is not ready; does not count."""
    REQUEUED = "requeued"
    """Released to the topic, which delivers it again after a delay; does not count."""
    LEFT = "left"
    """Not called: the message is no longer this process's."""
    KNOWN = "known"
    """Not called: the event was handled elsewhere meanwhile."""
    DEAD = "dead"
    """Never retried."""


class TaskResult(NamedTuple):
    """The result of a call for one task.

    Attributes:
        delay: seconds until the retry.
        reason: of a dead task, for its dead letter.
        attempt: the number of the attempt that failed.
        counts: a requeued message's delivery counts in the topic.
    """

    task: HandlerTask
    disposition: Disposition
    delay: float = 0.0
    reason: str = ""
    error: BaseException | None = None
    attempt: int = 1
    counts: bool = False


def find_halt(error: BaseException) -> BaseException | None:
    """Return the ``Halt`` that a handler raised, also inside a ``PartialFailure``; None when it raised none.

    Any other error is a failed attempt, also one that is not an ``Exception``: a handler never runs in the main thread,
    and only that thread gets a signal's ``KeyboardInterrupt``.
    """
    if isinstance(error, PartialFailure):
        return next((why for why in error.failed.values() if isinstance(why, Halt)), None)
    return error if isinstance(error, Halt) else None


def results_of(call: HandlerCall, error: BaseException | None) -> list[TaskResult]:
    """Return the result for each task of a call, and then for each one that was dropped.

    Args:
        error: what the handler raised.
    """
    if error is None:
        results = [TaskResult(task, Disposition.SUCCEEDED) for task in call.tasks]
    elif isinstance(error, PartialFailure):
        results = _results_of_partial_failure(call, error)
    else:
        results = [_result_of_error(task, error) for task in call.tasks]
    for task, is_known in call.dropped.items():
        results.append(TaskResult(task, Disposition.KNOWN if is_known else Disposition.LEFT))
    return results


def _results_of_partial_failure(call: HandlerCall, error: PartialFailure) -> list[TaskResult]:
    ids = {task.delivery.id for task in call.tasks}
    unknown = [id for id in error.failed if id not in ids]
    if unknown:  # so the events that it means are unknown, too
        wrong = ValueError(f"PartialFailure names {unknown[0]!r:.100}, which is not in the batch")
        wrong.__cause__ = error
        return [_result_of_error(task, wrong) for task in call.tasks]
    results = []
    failed_keys: set[str] = set()
    for task in call.tasks:
        result = _result_in_batch(task, error.failed, error)
        if task.key is not None:
            if result.disposition is not Disposition.SUCCEEDED:
                failed_keys.add(task.key)
            elif task.key in failed_keys:  # the handler may have stopped at the failed one, so it comes again behind it
                result = TaskResult(task, Disposition.POSTPONED)
        results.append(result)
    return results


def _result_in_batch(task: HandlerTask, failed: Mapping[str, str | BaseException], whole: PartialFailure) -> TaskResult:
    if task.delivery.id not in failed:
        return TaskResult(task, Disposition.SUCCEEDED)
    why = failed[task.delivery.id]
    if isinstance(why, BaseException):
        return _result_of_error(task, why)
    error = PartialFailure({task.delivery.id: why})
    error.args = (why,)
    error.__traceback__ = whole.__traceback__
    return _result_of_error(task, error)


def _result_of_error(task: HandlerTask, error: BaseException) -> TaskResult:
    handler, attempt = task.handler, task.attempt
    if find_halt(error) is not None:
        return TaskResult(task, Disposition.POSTPONED)
    if isinstance(error, Retry):
        delay = handler.backoff.delay(task.postponements + 1) if error.after is None else max(0.0, error.after)
        return TaskResult(task, Disposition.POSTPONED, delay, error=error)
    if isinstance(error, Requeue):
        return TaskResult(task, Disposition.REQUEUED, error.after, error=error, counts=error.counts)
    if isinstance(error, Reject) and handler.takes_messages:
        return TaskResult(task, Disposition.DEAD, reason=redact_error(str(error)), error=error, attempt=attempt)
    if isinstance(error, Reject) or attempt >= handler.max_attempts:
        reason = f"{handler.name}: {error_line(error)}\n{format_traceback(error)}"
        return TaskResult(task, Disposition.DEAD, reason=reason, error=error, attempt=attempt)
    return TaskResult(task, Disposition.FAILED, handler.backoff.delay(attempt), error=error, attempt=attempt)
