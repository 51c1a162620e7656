"""Runs of engines: a handler that fails by script, and a run in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from balog.common.errors import TopicError
from balog.consumers import Engine, ReceivedEvent


class Scripted:
    """Records each call, and raises the next error.

    Args:
        errors: those of the first calls; None for a call that succeeds.
        then: the error of all later calls.

    Attributes:
        calls: the number ``n`` in the payload of each call's event, or the list of them for a batch.
        ids: of all events, in the order of the calls.
    """

    def __init__(self, *errors: BaseException | None, then: BaseException | None = None) -> None:
        self.calls: list[Any] = []
        self.ids: list[str] = []
        self._errors = iter(errors)
        self._then = then

    def __call__(self, given: Any) -> None:
        several = given if isinstance(given, list) else [given]
        events = [one.event if isinstance(one, ReceivedEvent) else one for one in several]
        numbers = [event.payload.get("n") for event in events]
        self.ids += [event.header.id for event in events]
        self.calls.append(numbers if isinstance(given, list) else numbers[0])
        error = next(self._errors, self._then)
        if error is not None:
            raise error


class Blocking:
    """A handler whose calls last until they are released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, event: Any) -> None:
        self.begun.set()
        assert self.released.wait(30)


@contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    """Run in a thread until the block ends; what ended the run is raised there."""
    errors: list[BaseException] = []

    def target() -> None:
        try:
            engine.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield engine
    finally:
        engine.stop()
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def fail_once(target: Any, name: str) -> list[TopicError]:
    """Have the next call of a method fail; give the errors that are still to be raised."""
    errors = [TopicError(f"{name} is out of order")]
    method = getattr(target, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if errors:
            raise errors.pop()
        return method(*arguments, **options)

    setattr(target, name, call)
    return errors
