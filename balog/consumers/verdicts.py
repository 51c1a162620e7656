"""What a call came to, event by event: through, again, later, or given up."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from balog.consumers.delivery import Call, Task
from balog.consumers.outcomes import Halt, PartialFailure, Reject, Retry
from balog.consumers.tracebacks import format_traceback

__all__ = ["Kind", "Verdict", "describe", "ends_run", "judge"]

_LINE_LIMIT = 300


class Kind(Enum):
    """What becomes of a task."""

    DONE = "done"
    AGAIN = "again"
    """It failed and is tried again after a delay; counted as an attempt."""
    LATER = "later"
    """The other side is not ready; tried again after a delay, not counted."""
    DEAD = "dead"
    """It is given up."""


class Verdict(NamedTuple):
    """What became of a task, the seconds until it is tried again, and for one that is given up the reason.

    ``attempt`` is the number of the attempt that failed.
    """

    task: Task
    kind: Kind
    delay: float = 0.0
    reason: str = ""
    error: BaseException | None = None
    attempt: int = 1


def ends_run(error: BaseException) -> BaseException | None:
    """Return the ``Halt`` that a handler raised, by itself or in a ``PartialFailure``; None where it raised none.

    Any other error is a failed attempt, also one that is no ``Exception``: a handler never runs in the main thread,
    which alone gets a signal's ``KeyboardInterrupt``.
    """
    if isinstance(error, PartialFailure):
        return next((why for why in error.failed.values() if isinstance(why, Halt)), None)
    return error if isinstance(error, Halt) else None


def judge(call: Call, error: BaseException | None) -> list[Verdict]:
    """Tell what a call's end means for each of its tasks.

    Args:
        error: what the handler raised.
    """
    if error is None:
        return [Verdict(task, Kind.DONE) for task in call.tasks]
    if isinstance(error, PartialFailure):
        return _judge_each(call, error)
    return [_judge(task, error) for task in call.tasks]


def _judge_each(call: Call, error: PartialFailure) -> list[Verdict]:
    ids = {task.delivery.id for task in call.tasks}
    strangers = [id for id in error.failed if id not in ids]
    if strangers:  # so nobody can tell which ones it means
        wrong = ValueError(f"PartialFailure names {strangers[0]!r:.100}, which is not in the batch")
        wrong.__cause__ = error
        return [_judge(task, wrong) for task in call.tasks]
    verdicts = []
    ended: set[str] = set()
    for task in call.tasks:
        verdict = _judge_one(task, error.failed, error)
        if task.key is not None:
            if verdict.kind is not Kind.DONE:
                ended.add(task.key)
            elif task.key in ended:  # it comes behind the failed one: again, or not at all where the handler stopped
                verdict = Verdict(task, Kind.LATER)
        verdicts.append(verdict)
    return verdicts


def _judge_one(task: Task, failed: Mapping[str, str | BaseException], whole: PartialFailure) -> Verdict:
    if task.delivery.id not in failed:
        return Verdict(task, Kind.DONE)
    why = failed[task.delivery.id]
    if isinstance(why, BaseException):
        return _judge(task, why)
    error = PartialFailure({task.delivery.id: why})
    error.args = (why,)
    error.__traceback__ = whole.__traceback__
    return _judge(task, error)


def _judge(task: Task, error: BaseException) -> Verdict:
    desk = task.desk
    attempt = task.attempt
    if ends_run(error) is not None:
        return Verdict(task, Kind.LATER)
    if isinstance(error, Retry):
        delay = desk.delay(task.waits + 1) if error.after is None else max(0.0, error.after)
        return Verdict(task, Kind.LATER, delay, error=error)
    if isinstance(error, Reject) or attempt >= desk.limit:
        reason = f"{desk.name}: {describe(error)}\n{format_traceback(error)}"
        return Verdict(task, Kind.DEAD, reason=reason, error=error, attempt=attempt)
    return Verdict(task, Kind.AGAIN, desk.delay(attempt), error=error, attempt=attempt)


def describe(error: BaseException) -> str:
    """Give an error in one line of bounded length: its class, with the module unless it is built in, and its text."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        text = str(error)[: 2 * _LINE_LIMIT]
    except BaseException:  # its own __str__ raises
        text = ""
    return " ".join(f"{name}: {text}".split())[:_LINE_LIMIT] if text else name
