"""What the tests of archives share: events of a day, and writers that are killed."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from balog.sinks import Delivery
from tests.stand_ins.batches import batch_of


def deliveries(count: int, day: int = 20) -> list[Delivery]:
    start = datetime(2026, 11, day, tzinfo=timezone.utc)
    times = [start + timedelta(minutes=n % 60) for n in range(count)]
    return [batch_of({"n": n, "pad": os.urandom(50).hex()}, timestamp=time)[0] for n, time in enumerate(times)]


def killed(work: Callable[[], object]) -> None:
    """Run a function in a process that is killed when it ends."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
