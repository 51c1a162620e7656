"""Functions that run in a forked child."""

import os
import signal
from collections.abc import Callable
from typing import Any


def forked(work: Callable[..., object], *arguments: Any) -> int:
    """Call a function in a child process and return its process id; the child exits with 1 if the function raises."""
    if child := os.fork():
        return child
    try:
        signal.alarm(60)
        work(*arguments)
        os._exit(0)
    finally:
        os._exit(1)


def in_child(work: Callable[..., object], *arguments: Any) -> int:
    """Call a function in a child process and return the child's exit status, 0 if the function returned."""
    return os.waitpid(forked(work, *arguments), 0)[1]
