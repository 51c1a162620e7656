"""What can be wrong with a tap, its streams and its records."""

from __future__ import annotations

from balog.errors import BalogError

__all__ = ["RecordError", "SourceError", "StreamError", "TapError"]


class TapError(BalogError):
    """The tap's own code declares what cannot be: two streams of one name, a parent that does not exist."""


class StreamError(BalogError):
    """One stream could not be synced to its end; the others may have been.

    Args:
        stream: its ``tap_stream_id``.
        reason: what went wrong, as a clause.
    """

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(f"{stream}: {reason}")
        self.stream = stream
        self.reason = reason


class RecordError(BalogError):
    """A record that breaks its stream's schema.

    Args:
        stream: its ``tap_stream_id``.
        reason: what is wrong, as a clause.
        path: where in the record, as a JSONPath.
    """

    def __init__(self, stream: str, reason: str, path: str = "$") -> None:
        super().__init__(f"{stream}: {path}: {reason}")
        self.stream = stream
        self.reason = reason
        self.path = path


class SourceError(BalogError):
    """The source does not answer, or answers what cannot be: a page again and again, records out of their order.

    The stream that asked fails with it.

    Args:
        reason: what went wrong, and where, as a clause; never with a secret in it.
        retryable: whether asking again later can help.
    """

    def __init__(self, reason: str, *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
