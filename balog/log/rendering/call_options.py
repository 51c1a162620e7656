"""The keywords of a logging call that are not fields: ``exc_info``, ``lazy``, ``stack_info`` …"""

from __future__ import annotations

from typing import Any

from balog.log.values.encoding import message_text
from balog.log.values.json_values import safe_str

NO_PAYLOAD = (str, bytes, bytearray, int, float, list, tuple, set, type(None))
"""Types of a value named ``payload`` in ``extra`` that is a field like any other."""

OPTION_NAMES = frozenset({"event", "exc_info", "extra", "lazy", "raw_event", "stack_info", "stacklevel"})


class CallOptions:
    """The options of one call, taken out of its fields.

    Args:
        fields: the call's keywords; changed.

    Attributes:
        exc_info: an exception, ``sys.exc_info()``, or True for the exception that is being handled.
        raw_event: an event that the program made.
        stacklevel: whose callsite and stack to use, 1 for the caller, as in the standard library.
        has_stack: whether the caller's stack is wanted.
    """

    __slots__ = ("_extra", "_lazy", "exc_info", "has_stack", "raw_event", "stacklevel")

    def __init__(self, fields: dict[str, Any]) -> None:
        take = fields.pop
        self.exc_info = take("exc_info", None)
        self.raw_event = take("raw_event", None)
        self.stacklevel: int = take("stacklevel") if isinstance(fields.get("stacklevel"), int) else 1
        self.has_stack = fields.get("stack_info") is True
        if "stack_info" in fields and (self.has_stack or not isinstance(fields["stack_info"], str)):
            take("stack_info")
        self._lazy: Any = None
        if "lazy" in fields and (callable(fields["lazy"]) or isinstance(fields["lazy"], dict)):
            self._lazy = take("lazy")
        self._extra: dict[Any, Any] = take("extra") if isinstance(fields.get("extra"), dict) else {}

    def message(self, event: str, fields: dict[str, Any]) -> str:
        """Return the message of a call, which may be a keyword, as structlog allows."""
        return message_text(fields.pop("event"), ()) if not event and "event" in fields else event

    def take_extra(self, event: str, fields: dict[str, Any], payload: Any) -> tuple[str, Any]:
        """Add ``extra`` to the fields, whose own values win.

        Args:
            event: the call's event.
            fields: the call's keywords; changed.
            payload: the call's payload. Without one, a payload in ``extra`` is it, and the message becomes a field.

        Returns:
            The event and the payload.
        """
        for name, value in self._extra.items():
            if name == "payload" and payload is None and not isinstance(value, NO_PAYLOAD):
                fields.setdefault("message", event)
                event, payload = "", value
            else:
                fields.setdefault(safe_str(name), value)
        return event, payload

    def evaluate(self, fields: dict[str, Any], *, strict: bool) -> str:
        """Call the callables of ``lazy``, and add their values to the fields, whose own values win.

        Args:
            fields: the call's keywords; changed.
            strict: whether errors of the callables are raised.

        Returns:
            The values that could not be had, as a text for the event's ``problem``.
        """
        lazy, self._lazy = self._lazy, None
        problems = []
        if callable(lazy):
            try:
                lazy = dict(lazy())
            except Exception as error:
                if strict:
                    raise
                lazy = {}
                problems.append(_reason("lazy", error))
        for name, make in (lazy or {}).items():
            text = safe_str(name)
            if text in fields:
                continue
            try:
                fields[text] = make() if callable(make) else make
            except Exception as error:
                if strict:
                    raise
                problems.append(_reason(f"lazy {text}", error))
        return "; ".join(problems)


def _reason(what: str, error: Exception) -> str:
    return f"{what} raised {type(error).__name__}: {safe_str(error)[:200]}"
