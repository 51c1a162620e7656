"""How a command ends on SIGINT and SIGTERM: with one line, code 130 or 143, and no child left."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import click

from balog.common.signals import SignalHandlers

if TYPE_CHECKING:
    from typing_extensions import Self

_NUMBERS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_GRACE = 5.0  # seconds that children have between SIGTERM and SIGKILL
_LOOK = 0.05


class Interruption(SignalHandlers):
    """A context in which SIGINT and SIGTERM raise ``KeyboardInterrupt``; a second one ends the process at once.

    A command that handles these signals itself, as those do that drain, is left alone.

    Args:
        kills: whether children are killed before the exception is raised. Java is: a call that waits for it would
            keep the exception waiting, too.

    Attributes:
        number: the signal that came; None as long as none did.
    """

    def __init__(self, kills: Callable[[], bool]) -> None:
        super().__init__(dict.fromkeys(_NUMBERS, self._handle))
        self.number: int | None = None
        self._kills = kills

    def __enter__(self) -> Self:
        return super().__enter__() if threading.current_thread() is threading.main_thread() else self

    def end(self, command: str) -> None:
        """Print the command's last line, end the children that are left, and exit with 128 plus the signal's number.

        Raises:
            SystemExit: always.
        """
        assert self.number is not None  # noqa: S101
        click.echo(f"{command}: {_NUMBERS[signal.Signals(self.number)]}", err=True)
        _end_descendants()
        sys.exit(128 + self.number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            _kill_descendants()
            os._exit(128 + number)
        self.number = number
        if self._kills():
            # What waits for Java fails now, in this thread and in others, and would report that at length.
            logging.disable(logging.CRITICAL)
            warnings.simplefilter("ignore")
            threading.excepthook = lambda args: None
            sys.unraisablehook = lambda args: None
            _kill_descendants()
        raise KeyboardInterrupt


def descendants() -> list[int]:
    """Return the ids of this process's living children and of theirs, each parent before its children."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    pids = [os.getpid()]
    for pid in pids:
        pids += children.get(pid, [])
    return pids[1:]


def _parents() -> Iterator[tuple[int, int]]:
    """Yield the id of each living process of this machine, and its parent's."""
    if not os.path.exists("/proc/self/stat"):
        command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
            for line in listing.communicate()[0].splitlines():
                pid, parent, state = line.split()[:3]
                if not state.startswith("Z") and int(pid) != listing.pid:
                    yield int(pid), int(parent)
        return
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    status, above = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if status not in (b"Z", b"X"):
                yield int(name), int(above)


def _kill_descendants() -> None:
    """Stop all descendants first, so that none starts another meanwhile, and then kill them."""
    stopped: set[int] = set()
    while new := [pid for pid in descendants() if pid not in stopped]:
        for pid in new:
            _send(pid, signal.SIGSTOP)
        stopped.update(new)
    for pid in stopped:
        _send(pid, signal.SIGKILL)


def _end_descendants() -> None:
    """Ask descendants to end, and kill those that do not within some seconds."""
    for pid in descendants():
        _send(pid, signal.SIGTERM)
    ends = time.monotonic() + _GRACE
    while descendants() and time.monotonic() < ends:
        time.sleep(_LOOK)
    _kill_descendants()


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
