"""Wait for what another thread or process does."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], seconds: float = 60) -> T:
    """Ask until the answer is true, and return it. The time is a bound of a broken test, never what a test asserts."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"{condition} is not true after {seconds:g} seconds"
        time.sleep(0.01)
    return answer


def run_threads(*acts: Callable[[], object]) -> None:
    """Run each function in a thread of its own, all at once, and wait until they have returned."""
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Clock:
    """A clock in seconds that stands still until a test moves it; also in the place of a module's ``time``."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    monotonic = __call__
