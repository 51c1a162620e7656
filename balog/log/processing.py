"""Run structlog's processors on a logging call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import structlog

from balog.event import LEVELS, Level, parse_level
from balog.log.channels import LoggerChannel
from balog.log.levels import level_of
from balog.log.recorder import Recorder
from balog.log.rendering import callsites
from balog.log.values.json_values import safe_str

_calling_stack = getattr(structlog.contextvars, "_ASYNC_CALLING_STACK", None)
"""Where structlog's own processors begin to look for the caller."""


class ProcessedCall(NamedTuple):
    """The parts of a call before or after its processors; ``problem`` is for the payload."""

    event: str
    channel: str
    level: Level
    payload: Any
    fields: dict[str, Any]
    context: Mapping[str, Any]
    problem: str


def process(
    call: ProcessedCall, recorder: Recorder, logger: LoggerChannel, frame: FrameType | None
) -> ProcessedCall | None:
    """Run the processors. Return None if one drops the event, or if its new level or channel is not written.

    Their dict has ``event``, ``channel``, ``level``, ``payload`` (None without one), ``context`` and the call's fields.
    A processor that raises is skipped, and reported in the event's ``problem``.

    Args:
        recorder: has the processors.
        logger: passed to them.
        frame: of the caller, for the context and for processors that look for it.
    """
    context = dict(call.context)
    if frame is not None and recorder.callsites is not None:
        context = {callsites.KEY: callsites.describe(frame), **context}
    names = {"event": call.event, "channel": call.channel, "level": call.level, "payload": call.payload}
    data: dict[str, Any] = {**call.fields, **names, "context": context}
    problems = [call.problem] if call.problem else []
    with _called_from(frame):
        for processor in recorder.processors:
            try:
                changed = processor(logger, call.level.lower(), dict(data))
                if not isinstance(changed, dict):
                    raise TypeError(f"gave {type(changed).__name__}, no dict")
                data = changed
            except structlog.DropEvent:
                return None
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # such as the panic of an extension in Rust
                if recorder.strict:
                    raise
                problems.append(f"a processor raised {type(error).__name__}: {safe_str(error)[:200]}")
    event, channel = safe_str(data.pop("event", "")), safe_str(data.pop("channel", call.channel))
    payload, context = data.pop("payload", None), data.pop("context", {})
    level, given = call.level, data.pop("level", call.level)
    if isinstance(given, str) and parse_level(given) is None:
        problems.append(f"a processor set no level but {given[:40]!r}")
    elif isinstance(given, (str, int)) and not isinstance(given, bool):
        level = level_of(given)
    if (level, channel) != (call.level, call.channel) and recorder.threshold_of(channel) > LEVELS[level]:
        return None
    context = context if isinstance(context, dict) else {}
    return ProcessedCall(event, channel, level, payload, data, context, "; ".join(problems))


@contextmanager
def _called_from(frame: FrameType | None) -> Iterator[None]:
    """Make structlog's own processors find the program's frame as the caller, instead of balog's."""
    if frame is None or _calling_stack is None:
        yield
        return
    token = _calling_stack.set(frame)
    try:
        yield
    finally:
        _calling_stack.reset(token)
