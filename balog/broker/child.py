"""The sidecar's child: started, sent the signals that come, waited for, and measured at its end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import IO, Any, cast

from msgspec import Struct

__all__ = ["Child", "Signals", "Usage", "is_in_foreground"]

_FORWARDED = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
_FROM_KEYS = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP})


class Usage(Struct, kw_only=True, frozen=True):
    """What a child took, with the descendants that it waited for: CPU in seconds, memory in bytes."""

    cpu_user: float
    cpu_system: float
    peak_memory: int


class Child:
    """A command, run as it is, by no shell.

    Args:
        command: program and arguments.
        stdout: the descriptor that its stdout is; None makes a pipe to read from.
        environment: its environment variables.

    Attributes:
        stdout: the pipe's end to read, if one was made; ``stderr`` the other's.
        is_over: whether ``has_ended`` has said so.

    Raises:
        OSError: it cannot be run.
    """

    def __init__(self, command: Sequence[str], stdout: int | None, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(environment),
        )
        self.pid = self._process.pid
        self.stdout: IO[bytes] | None = self._process.stdout
        self.stderr = cast("IO[bytes]", self._process.stderr)
        self.code: int | None = None
        self.usage: Usage | None = None
        self.is_over = False

    def has_ended(self) -> bool:
        """Tell whether it has ended; its exit code is in ``code`` then (-N for signal N), what it took in ``usage``."""
        if self.is_over:
            return True
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.is_over = True
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.usage = Usage(
            cpu_user=round(usage.ru_utime, 6),
            cpu_system=round(usage.ru_stime, 6),
            peak_memory=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        )
        return True

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if not self.is_over:
            try:
                os.kill(self.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def close(self) -> None:
        """Close what is left of its pipes."""
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


class Signals:
    """A context in which the signals that would end or stop the sidecar go to the child instead.

    What a terminal's keys send (Ctrl-C, Ctrl-\\, Ctrl-Z) has reached the child already and is not sent twice. Ctrl-Z
    and SIGTSTP stop both, and both go on together. Once the child has ended nothing is left but delivery: the second
    signal of all that came cuts that short, by ``force``.

    Attributes:
        force: called for it with its number, in the handler; ends the process.
        child: who gets them; those that come before there is one are kept for it.
        wake: a descriptor that becomes readable when a signal comes or the child ends, for ``wait``.
    """

    def __init__(self) -> None:
        self.child: Child | None = None
        self.force: Callable[[int], None] = lambda number: os._exit(128 + number)
        self.wake, self._write, self._old_wakeup = -1, -1, -1
        self._came = 0
        self._early: list[int] = []
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self.wake, self._write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._write, False)
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (*_FORWARDED, signal.SIGTSTP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as for a background job, or under nohup
                self._old[number] = signal.signal(number, self._stop if number == signal.SIGTSTP else self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self.wake)
        os.close(self._write)

    def came(self) -> bool:
        """Tell whether a signal has come that is to end the run."""
        return self._came > 0

    def attach(self, child: Child) -> None:
        """Name the child, and send it what came while it was being started."""
        self.child = child
        early, self._early = self._early, []
        for number in early:
            self._pass_on(child, number)

    def wait(self, streams: Sequence[IO[bytes]], seconds: float | None) -> list[IO[bytes]]:
        """Wait for input, for a signal or for the child's end, ``seconds`` at most; give the streams that are ready."""
        ready = select.select([*(stream.fileno() for stream in streams), self.wake], [], [], seconds)[0]
        if self.wake in ready:
            os.read(self.wake, 4096)
        return [stream for stream in streams if stream.fileno() in ready]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._came += 1
        if self.child is None:
            self._early.append(number)
        elif not self.child.is_over:
            self._pass_on(self.child, number)
        elif self._came > 1:
            self.force(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop with the child, as the terminal would have it, and go on with it."""
        if self.child is not None:
            self._pass_on(self.child, number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # here the process stands still until SIGCONT
        signal.signal(number, self._stop)
        if self.child is not None:
            self.child.send(signal.SIGCONT)

    def _pass_on(self, child: Child, number: int) -> None:
        if number not in _FROM_KEYS or not is_in_foreground():
            child.send(number)


def is_in_foreground() -> bool:
    """Tell whether what a terminal's keys send reaches this process, and so its children too."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False  # no terminal controls this process
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
