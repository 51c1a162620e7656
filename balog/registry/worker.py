"""The child process of a ``WorkerPool``. It runs one call at a time, with a limit of processor time.

The kernel ends the process when a call exceeds its limit, even inside a library that cannot be interrupted. The process
also ends when its parent is gone.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from balog.errors import EventError
from balog.registry import worker_pool
from balog.registry.json_schema import decode_schema
from balog.registry.registry import make_validator
from balog.registry.schema import InvalidSchemaError, Schema
from balog.registry.validator_pair import disagreements
from balog.registry.worker_pool import read_frame, write_frame

if TYPE_CHECKING:
    from balog.registry.comparing import CompatibilityReport

MAX_MEMORY = 4 << 30  # bytes of address space


def _read(schema: Any, wire: bytes) -> Any:
    """Return the JSON of an encoded protobuf message with its violations, or why it cannot be decoded."""
    try:
        return _validator(msgspec.convert(schema, Schema)).read_in_process(wire)
    except EventError as error:
        return {"reason": error.reason, "path": error.path}


def _compile(schema: Any) -> Any:
    try:
        _validator(msgspec.convert(schema, Schema))
    except InvalidSchemaError as error:
        return {"reason": error.reason, "path": error.path}
    return None


def _compare(before: Any, schema: Any, mode: Any) -> CompatibilityReport:
    from balog.registry.comparing import compare_history

    return compare_history(msgspec.convert(before, list[Schema]), msgspec.convert(schema, Schema), mode)


@lru_cache(maxsize=64)
def _validator(schema: Schema) -> Any:
    return make_validator(schema)


_CALLS: dict[str, Callable[..., Any]] = {
    "compile": _compile,
    "check": lambda schema, payload: _validator(msgspec.convert(schema, Schema)).check_in_process(payload),
    "read": _read,
    "compare": _compare,
    "disagreements": lambda source: disagreements(decode_schema(source)),
}


def main() -> None:
    """Answer calls from stdin on stdout until stdin ends."""
    worker_pool.is_worker = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the parent decides
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MAX_MEMORY if hard == resource.RLIM_INFINITY else min(MAX_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (call := read_frame(source)) is not None:
        name, arguments, seconds = call
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            answer = [True, _CALLS[name](*arguments)]
        except Exception as error:
            answer = [False, f"{type(error).__name__}: {error}"[:300]]
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(sink, answer)
