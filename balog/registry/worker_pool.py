"""Runs long validations in child processes, with a time limit.

A validator written in Rust or C holds the GIL for the whole call. In this process, no other thread could run meanwhile,
and nothing could end the call.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, Any

import msgspec

from balog.errors import BalogError, EventError
from balog.registry.schema import InvalidSchemaError, Schema, SchemaViolation
from balog.signals import blocking

CHECK_SECONDS = 1.0
"""Processor time to validate a payload."""

MAX_SECONDS = 0.01
"""A validation that may take longer runs in a child process."""

TOO_LONG = f"takes more than {CHECK_SECONDS:g} s to be validated; send less, or simplify the schema"

COMPILE_SECONDS = 3.0
"""Processor time to try a schema's own rules."""

COMPARE_SECONDS = 30.0
"""Processor time to compare a new version with the earlier ones."""

is_worker = False
"""Whether this process is a child of a pool. A child runs every call itself."""

_WAIT = 5.0  # seconds for a child to be free
_SLOWER = 10.0  # on a busy machine, a second of processor time takes so many

_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from balog.registry.worker import main; main()"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def read_frame(file: IO[bytes]) -> Any:
    """Read a frame: its length in four bytes, then MessagePack. Return None at the end of the file."""
    head = file.read(4)
    if len(head) < 4:
        return None
    data = file.read(int.from_bytes(head, "big"))
    return _decode(data)


def write_frame(file: IO[bytes], content: Any) -> None:
    """Write and flush a frame."""
    data = _encode(content)
    file.write(len(data).to_bytes(4, "big") + data)
    file.flush()


class WorkExceededError(BalogError):
    """A call exceeded its limit of processor time or memory."""


class WorkBusyError(BalogError):
    """No child process is free or can be started."""

    retryable = True


class _Child:
    def __init__(self) -> None:
        command = [sys.executable, "-I", "-c", _CHILD, *filter(None, sys.path)]
        try:
            with blocking(signal.SIGINT):
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
                )
        except OSError as error:
            raise WorkBusyError(f"no process can be started to validate in: {error.strerror or error}") from None

    def ask(self, name: str, arguments: list[Any], seconds: float) -> Any:
        process = self.process
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        try:
            write_frame(process.stdin, [name, arguments, seconds])
            if not select.select([process.stdout], [], [], seconds * _SLOWER)[0]:
                raise WorkExceededError(f"takes more than {seconds * _SLOWER:g} s")
            answer = read_frame(process.stdout)
        except (OSError, ValueError):  # the child ended, or `close` ended it
            answer = None
        if answer is None:
            raise WorkExceededError(f"takes more than {seconds:g} s of processor time")
        return answer

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout):
            if file is not None:
                with suppress(OSError):
                    file.close()


class WorkerPool:
    """A pool of at most ``count`` child processes, started on demand. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._owner = os.getpid()

    def run(self, name: str, arguments: list[Any], seconds: float = CHECK_SECONDS) -> Any:
        """Run a call of ``balog.registry.worker`` and return its result as plain data.

        Args:
            seconds: limit of processor time.

        Raises:
            WorkExceededError: the call exceeded the limit.
            WorkBusyError: no child process is free within 5 s.
            BalogError: the call itself raised; the message holds the reason.
        """
        if not self._free.acquire(timeout=_WAIT):
            raise WorkBusyError("all processes that validate are busy; try again")
        try:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is not None and child.process.poll() is not None:
                child.kill()
                child = None
            if child is None:
                child = _Child()
            with self._lock:
                self._busy.add(child)
            is_well = False
            try:
                done, result = child.ask(name, arguments, seconds)
                is_well = not self._is_closed
            except WorkExceededError:
                if self._is_closed:
                    raise WorkBusyError("the processes that validate were ended") from None
                raise
            finally:
                with self._lock:
                    self._busy.discard(child)
                    if is_well:
                        self._idle.append(child)
                if not is_well:
                    child.kill()
        finally:
            self._free.release()
        if not done:
            raise BalogError(str(result))
        return result

    def close(self) -> None:
        """End all children. Running calls raise WorkBusyError. In a forked process, do nothing."""
        if os.getpid() != self._owner:
            return
        self._is_closed = True
        with self._lock:
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for child in busy:
            child.process.kill()  # the thread that waits for it cleans up
        for child in idle:
            child.kill()


def compile_in_worker(schema: Schema) -> None:
    """Compile a schema in a child process and try its rules.

    Raises:
        InvalidSchemaError: the document is not a schema, or its rules run for more than 3 s.
    """
    try:
        refusal = workers().run("compile", [schema], COMPILE_SECONDS)
    except WorkExceededError:
        raise InvalidSchemaError(f"its rules take more than {COMPILE_SECONDS:g} s") from None
    if refusal is not None:
        raise InvalidSchemaError(refusal["reason"], path=refusal["path"])


def read_in_worker(schema: Schema, wire: bytes) -> tuple[bytes, list[SchemaViolation]]:
    """Read an encoded protobuf message in a child process; see ``CompiledMessage.read``."""
    try:
        found = workers().run("read", [schema, wire])
    except WorkExceededError:
        return b"{}", [SchemaViolation("$", TOO_LONG)]
    if isinstance(found, dict):
        raise EventError(found["reason"], found["path"])
    return found[0], [SchemaViolation(*each) for each in found[1]]


_pools: dict[int, WorkerPool] = {}


def check_in_worker(schema: Schema, payload: bytes) -> list[SchemaViolation]:
    """Validate a payload in a child process; see ``PayloadValidator.check``."""
    try:
        found = workers().run("check", [schema, payload])
    except WorkExceededError:
        return [SchemaViolation("$", TOO_LONG)]
    return [SchemaViolation(*each) for each in found]


def workers() -> WorkerPool:
    """Return the pool of this process; a forked process has its own."""
    pool = _pools.get(os.getpid())
    if pool is None:
        pool = _pools.setdefault(os.getpid(), WorkerPool(max(2, os.cpu_count() or 2)))
    return pool


@atexit.register
def end_workers() -> None:
    """End the children of this process. The next call starts new ones."""
    if (pool := _pools.pop(os.getpid(), None)) is not None:
        pool.close()
