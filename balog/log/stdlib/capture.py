"""Events from outside the loggers: warnings and uncaught exceptions."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from balog.event import LEVELS, Level
from balog.event.log_payload import log_payload
from balog.log.configuration import state
from balog.log.logger import emit
from balog.log.outputs.calls import ThreadBlock
from balog.log.outputs.console import ConsoleOutput
from balog.log.outputs.stdio import SingerOutput, StderrOutput
from balog.log.recorder import Recorder
from balog.log.values import exceptions
from balog.log.values.json_values import safe_str

_report = ThreadBlock()
_WANTED = (KeyboardInterrupt, SystemExit)  # a requested end of the program
_PRINTING = ("warnings", "_py_warnings", "logging")  # modules that define Python's own ways to show a warning


def capture_warnings() -> ExitStack:
    """Turn each warning into an event: level WARNING, channel ``py.warnings``. A second call changes nothing.

    The payload is a ``log``; ``category``, ``file`` and ``line`` are in its fields. The filters still decide which
    warnings are shown. Python does not print them any more; another ``showwarning`` hook runs afterwards.

    Returns:
        A stack that undoes it, with ``close()`` or at the end of a ``with`` block.
    """
    return replace_hook(warnings, "showwarning", _on_warning)


def capture_uncaught() -> ExitStack:
    """Turn each uncaught exception into an event. A second call changes nothing.

    The level is CRITICAL in every thread, and ERROR where Python can only ignore the exception (a destructor, a
    callback). The channel is ``<application>.uncaught``, the payload a ``log`` with the exception as data and as text.
    Ctrl-C is not an event.

    Another exception hook runs afterwards. Python's own hook, which prints the traceback, runs only when no output
    shows the event on this process's stdout or stderr, so that it appears once.

    Returns:
        A stack that undoes it, with ``close()`` or at the end of a ``with`` block.
    """
    stack = ExitStack()
    stack.enter_context(replace_hook(sys, "excepthook", _on_exception))
    stack.enter_context(replace_hook(threading, "excepthook", _on_thread_exception))
    stack.enter_context(replace_hook(sys, "unraisablehook", _on_unraisable))
    return stack


class _Hook:
    """Replaces an interpreter's hook; once undone, it only calls the previous one."""

    def __init__(self, previous: Callable[..., Any], act: Callable[..., Any], block: ThreadBlock) -> None:
        self.previous = previous
        self.act = act
        self.is_active = True
        self._block = block

    def end(self) -> None:
        """Only call the previous hook from now on, because another hook may wrap this one."""
        self.is_active = False

    def __call__(self, *args: Any, **options: Any) -> None:
        if self.is_active and not self._block.is_entered:
            with self._block:
                self.act(self.previous, *args, **options)
        else:
            self.previous(*args, **options)


def replace_hook(owner: Any, name: str, act: Callable[..., Any], block: ThreadBlock = _report) -> ExitStack:
    """Run a function instead of another one, which it gets as its first argument. A second call changes nothing.

    Args:
        owner: the module that has the function.
        name: the function's name there.
        act: runs instead.
        block: what a thread does once at a time: inside it, only the other one runs.

    Returns:
        A stack that undoes it.
    """
    stack = ExitStack()
    previous = getattr(owner, name)
    if isinstance(previous, _Hook) and previous.is_active:
        return stack
    hook = _Hook(previous, act, block)

    def undo() -> None:
        hook.end()
        if getattr(owner, name) is hook:
            setattr(owner, name, previous)

    setattr(owner, name, hook)
    stack.callback(undo)
    return stack


def _on_warning(
    previous: Callable[..., Any],
    message: Any,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    if file is not None:  # the caller wants it in that file
        previous(message, category, filename, lineno, file, line)
        return
    fields = {"category": exceptions.type_name(category), "file": filename, "line": lineno}
    emit("WARNING", "py.warnings", log_payload(safe_str(message), "WARNING", logger="py.warnings", fields=fields))
    if getattr(previous, "__module__", None) not in _PRINTING:
        previous(message, category, filename, lineno, file, line)


def _on_exception(previous: Callable[..., Any], kind: type[BaseException], error: BaseException, trace: Any) -> None:
    if issubclass(kind, _WANTED):
        previous(kind, error, trace)
        return
    is_shown = _emit("CRITICAL", _uncaught(kind, error), error, {"where": "main thread"})
    if previous is not sys.__excepthook__ or not is_shown:
        previous(kind, error, trace)


def _on_thread_exception(previous: Callable[..., Any], args: threading.ExceptHookArgs) -> None:
    if issubclass(args.exc_type, _WANTED):
        previous(args)
        return
    is_shown = _emit("CRITICAL", _uncaught(args.exc_type, args.exc_value), args.exc_value, {"where": "thread"})
    if previous is not threading.__excepthook__ or not is_shown:
        previous(args)


def _on_unraisable(previous: Callable[..., Any], args: Any) -> None:
    fields = {"where": "unraisable", "object": safe_str(args.object, repr)[:200]}
    message = f"{args.err_msg or 'Exception ignored in'}: {_uncaught(args.exc_type, args.exc_value)}"
    is_shown = _emit("ERROR", message, args.exc_value, fields)
    if previous is not sys.__unraisablehook__ or not is_shown:
        previous(args)


def _uncaught(kind: type[BaseException], error: BaseException | None) -> str:
    text = "" if error is None else safe_str(error)
    return f"uncaught {exceptions.type_name(kind)}: {text}" if text else f"uncaught {exceptions.type_name(kind)}"


def _emit(level: Level, message: str, error: BaseException | None, fields: dict[str, Any]) -> bool:
    """Write the event and return whether it appears on this process's stdout or stderr."""
    try:
        recorder = state.current()
        lost = recorder.lost
        exception = {} if error is None else exceptions.describe(error)
        channel = f"{recorder.process_context.get()[0]['application']}.uncaught"
        emit(level, channel, log_payload(message, level, fields=fields, **exception))
        return recorder.lost == lost and _shows(recorder, level, channel)
    except Exception:  # a hook that raises would hide the exception that it reports
        return False


def _shows(recorder: Recorder, level: Level, channel: str) -> bool:
    if recorder.threshold_of(channel) > LEVELS[level]:
        return False
    return any(
        isinstance(route.output, (ConsoleOutput, StderrOutput, SingerOutput))
        and route.where is None
        and route.threshold <= LEVELS[level]
        for route in recorder.routes
    )
