"""The errors of a tap, its streams and its records."""

from __future__ import annotations

from typing import Any

from balog.common.errors import BalogError, ConfigProblems


class TapError(BalogError):
    """The tap's code has an invalid declaration: two streams of one name, a parent that does not exist."""


def check_number(name: str, value: Any, *, least: int | None = None) -> None:
    """Raise if a value is not a finite number above 0, or not a whole number of at least ``least``.

    Raises:
        TapError: with the name and the value.
    """
    kinds = (int, float) if least is None else int
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number or not (0 < value < float("inf") if least is None else value >= least):
        wanted = "a number above 0" if least is None else f"a whole number, at least {least}"
        raise TapError(f"{name}={value!r:.60}: expected {wanted}")


class LateDeclarationError(TapError):
    """The tap's code declares a stream while the tap runs. It ends the run."""


class TapConfigProblems(ConfigProblems):
    """A config or a catalog is invalid, and nothing ran. Each line of its text is a problem."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class SchemaError(TapError):
    """A schema that a tap declares is invalid, cannot be read, or has a broken reference.

    Args:
        reason: what is wrong and what to do, as a clause.
        source: its file or URL; "" if it is in code.
        path: the JSONPath of the error.
    """

    def __init__(self, reason: str, source: str = "", path: str = "") -> None:
        super().__init__(": ".join(part for part in (source, path, reason) if part))
        self.reason = reason
        self.source = source
        self.path = path


class SyncError(BalogError):
    """A stream failed. Others may be complete.

    Args:
        stream: its ``tap_stream_id``.
        reason: what went wrong, as a clause.
    """

    def __init__(self, stream: str, reason: str, cause: BaseException | None = None) -> None:
        super().__init__(f"{stream}: {reason}")
        self.stream = stream
        self.reason = reason
        self.__cause__ = cause


class OutputError(BalogError):
    """The output cannot be written: the reader of stdout has gone, or the state's file cannot be written.

    It ends the run.

    Args:
        reason: what went wrong, and where, as a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RecordError(BalogError):
    """A record does not match its stream's schema.

    Args:
        stream: its ``tap_stream_id``.
        reason: what is wrong, as a clause.
        path: the JSONPath of the error in the record.
    """

    def __init__(self, stream: str, reason: str, path: str = "$") -> None:
        super().__init__(f"{stream}: {path}: {reason}")
        self.stream = stream
        self.reason = reason
        self.path = path


class SourceError(BalogError):
    """The source does not answer, or its answer is invalid: a page that repeats, records out of order.

    It ends the stream.

    Args:
        reason: what went wrong, and where, as a clause, without secrets.
        retryable: whether a retry can help.
        fault: the cause in a few words, for the warning of a retry; "" for the name of the class.
    """

    def __init__(self, reason: str, *, retryable: bool = False, fault: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.fault = fault
