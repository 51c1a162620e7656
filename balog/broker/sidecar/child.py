"""Run the sidecar's command: start it, forward signals to it, wait for its end and measure its usage."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from balog.common.signals import WakingSignalHandlers

if TYPE_CHECKING:
    from typing_extensions import Self

_FORWARDED = (*(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT), *(signal.SIGUSR1, signal.SIGUSR2))
_FROM_KEYS = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP})


class Usage(Struct, kw_only=True, frozen=True):
    """Resources that a command and its waited-for descendants used: CPU in seconds, memory in bytes."""

    cpu_user: float
    cpu_system: float
    peak_memory: int


class Child(subprocess.Popen[bytes]):
    """A running command, started without a shell, and waited for with its usage.

    Args:
        command: program and arguments.
        stdout: the descriptor for its stdout; None makes a pipe to read from.
        environment: its environment variables.

    Attributes:
        stdout: the end of the pipe to read, if one was made; ``stderr`` likewise.
        returncode: -N for signal N; None until ``has_ended`` has returned True.

    Raises:
        OSError: the command cannot be run.
    """

    stderr: IO[bytes]

    def __init__(self, command: Sequence[str], stdout: int | None, environment: Mapping[str, str]) -> None:
        self.usage: Usage | None = None
        super().__init__(
            list(command),
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(environment),
        )

    def has_ended(self) -> bool:
        """Return whether the command has ended, and set ``returncode`` and ``usage`` if it has."""
        if self.returncode is not None:
            return True
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.returncode = os.waitstatus_to_exitcode(status)
        self.usage = Usage(
            cpu_user=round(usage.ru_utime, 6),
            cpu_system=round(usage.ru_stime, 6),
            peak_memory=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        )
        return True

    def send(self, number: int) -> None:
        """Send the command a signal, unless it has ended."""
        if self.returncode is None:
            try:
                os.kill(self.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def close(self) -> None:
        """Close the pipes that are open."""
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


class ForwardedSignals(WakingSignalHandlers):
    """A context that forwards the signals that would end or stop the sidecar to its command.

    Signals from the terminal's keys (Ctrl-C, Ctrl-\\, Ctrl-Z) reach the command without being forwarded. Ctrl-Z and
    SIGTSTP stop both processes, and both continue together. After the command's end, the sidecar only delivers: a
    second signal then ends the delivery through ``force``.

    Attributes:
        child: the command; signals that come before it is set are sent when ``attach`` sets it.
        wake: a descriptor that becomes readable when a signal comes or the command ends, for ``wait``.
    """

    def __init__(self) -> None:
        super().__init__({**dict.fromkeys(_FORWARDED, self._handle), signal.SIGTSTP: self._stop})
        self.child: Child | None = None
        self._force: Callable[[int], None] | None = None
        self._came = 0
        self._early: list[int] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return self

    def came(self) -> bool:
        """Return whether a signal has come that ends the run."""
        return self._came > 0

    def attach(self, child: Child, force: Callable[[int], None]) -> None:
        """Set the command, and send it the signals that came during its start.

        Args:
            force: called in the handler with the signal's number; ends the process.
        """
        self.child, self._force = child, force
        early, self._early = self._early, []
        for number in early:
            self._pass_on(child, number)

    def wait(self, streams: Sequence[IO[bytes]], seconds: float | None) -> list[IO[bytes]]:
        """Wait for input, a signal or the command's end, at most ``seconds``; return the streams that are ready."""
        ready = select.select([*(stream.fileno() for stream in streams), self.wake], [], [], seconds)[0]
        if self.wake in ready:
            os.read(self.wake, 4096)
        return [stream for stream in streams if stream.fileno() in ready]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._came += 1
        if self.child is None:
            self._early.append(number)
        elif self.child.returncode is None:
            self._pass_on(self.child, number)
        elif self._came > 1 and self._force is not None:
            self._force(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop together with the command, as the terminal would stop both, and continue with it."""
        if self.child is not None:
            self._pass_on(self.child, number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # the process is stopped here until SIGCONT
        signal.signal(number, self._stop)
        if self.child is not None:
            self.child.send(signal.SIGCONT)

    def _pass_on(self, child: Child, number: int) -> None:
        if number not in _FROM_KEYS or not is_in_foreground():
            child.send(number)


def is_in_foreground() -> bool:
    """Return whether signals from the terminal's keys reach this process, and therefore its children."""
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
