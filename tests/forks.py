"""Functions that run in a forked child."""

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any


def forked(work: Callable[..., object], *arguments: Any) -> BaseProcess:
    """Start a child process that calls a function."""
    child = get_context("fork").Process(target=work, args=arguments, daemon=True)
    child.start()
    return child


def exit_code(child: BaseProcess) -> int | None:
    """Wait for the end of a child, and return its exit code: 1 if its function raised, None after a minute."""
    child.join(60)
    return child.exitcode


def in_child(work: Callable[..., object], *arguments: Any) -> int | None:
    """Call a function in a child process and return the child's exit code."""
    return exit_code(forked(work, *arguments))
