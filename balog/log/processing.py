"""Run structlog's processors on a logging call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import structlog

from balog.event import LEVELS, Level, parse_level
from balog.log.calls.channels import LoggerChannel
from balog.log.levels import level_of
from balog.log.recorder import Recorder
from balog.log.rendering import callsites
from balog.log.values.json_values import safe_str

_calling_stack = getattr(structlog.contextvars, "_ASYNC_CALLING_STACK", None)
"""Where structlog's own processors begin to look for the caller."""


class ProcessedCall:
    """A call in the form of structlog's processors: one dict."""

    def __init__(
        self, event: str, channel: str, level: Level, payload: Any, fields: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        self.event = event
        self.channel = channel
        self.level = level
        self.payload = payload
        self.fields = fields
        self.context = dict(context)
        self.problem = ""

    def process(self, recorder: Recorder, logger: LoggerChannel, frame: FrameType | None = None) -> bool:
        """Run the processors. Return False if one drops the event, or if its new level or channel is not written.

        Their dict has ``event``, ``channel``, ``level``, ``payload`` (None without one), ``context`` and the call's
        fields. A processor that raises is skipped, and reported in the event's ``problem``.

        Args:
            recorder: has the processors.
            logger: passed to them.
            frame: of the caller, for the context and for processors that look for it.
        """
        if frame is not None and recorder.callsites is not None:
            self.context = {callsites.KEY: callsites.describe(frame), **self.context}
        data: dict[str, Any] = {
            **self.fields,
            "event": self.event,
            "channel": self.channel,
            "level": self.level,
            "payload": self.payload,
            "context": self.context,
        }
        problems = []
        with _called_from(frame):
            for processor in recorder.processors:
                try:
                    changed = processor(logger, self.level.lower(), dict(data))
                    if not isinstance(changed, dict):
                        raise TypeError(f"gave {type(changed).__name__}, no dict")
                    data = changed
                except structlog.DropEvent:
                    return False
                except Exception as error:
                    if recorder.strict:
                        raise
                    problems.append(f"a processor raised {type(error).__name__}: {safe_str(error)[:200]}")
        before = self.level, self.channel
        self.event, self.channel = safe_str(data.pop("event", "")), safe_str(data.pop("channel", self.channel))
        self.payload, context = data.pop("payload", None), data.pop("context", {})
        self.context = context if isinstance(context, dict) else {}
        level = data.pop("level", self.level)
        if isinstance(level, str) and parse_level(level) is None:
            problems.append(f"a processor set no level but {level[:40]!r}")
        elif isinstance(level, (str, int)):
            self.level = level_of(level)
        self.fields = data
        self.problem = "; ".join(problems)
        return before == (self.level, self.channel) or recorder.threshold_of(self.channel) <= LEVELS[self.level]


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
