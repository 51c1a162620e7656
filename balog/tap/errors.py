"""What can be wrong with a tap, its streams and its records."""

from __future__ import annotations

from collections.abc import Sequence

from balog.errors import BalogError, ConfigError

__all__ = ["ConfigProblems", "OutputError", "RecordError", "SchemaError", "SourceError", "StreamError", "TapError"]


class TapError(BalogError):
    """The tap's own code declares what cannot be: two streams of one name, a parent that does not exist."""


class ConfigProblems(ConfigError):
    """What a tap was given, a config or a catalog, is refused before anything ran; each line of its text is a problem.

    Args:
        problems: at least one. ``reason``, ``source`` and ``path`` are those of the first.
    """

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.reason, first.source, first.path)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class SchemaError(TapError):
    """A schema that a tap declares is none, cannot be read, or refers to what is not there.

    Args:
        reason: what is wrong and what to do, as a clause.
        source: the file or URL it came from; "" for one that is said in code.
        path: where in it, as a JSONPath.
    """

    def __init__(self, reason: str, source: str = "", path: str = "") -> None:
        super().__init__(": ".join(part for part in (source, path, reason) if part))
        self.reason = reason
        self.source = source
        self.path = path


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


class OutputError(BalogError):
    """What was written cannot be handed on: nobody reads stdout any more, the state's file cannot be written.

    It ends the run, whichever stream wrote.

    Args:
        reason: what went wrong, and where, as a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
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
        fault: the cause in a few words, for the warning of a retry; "" for the name of the class.
    """

    def __init__(self, reason: str, *, retryable: bool = False, fault: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.fault = fault
