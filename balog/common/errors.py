"""The errors that balog raises on purpose. Each says what went wrong, where, and what to do."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from balog.common.distribution import install_command
from balog.common.text import cut, printable

if TYPE_CHECKING:
    from balog.common.redaction import Redactor


class BalogError(Exception):
    """The root of all errors.

    Attributes:
        retryable: whether a later retry can help.
        exit_code: the exit code of a command that ends with the error.
    """

    retryable = False
    exit_code = 1


class EventError(BalogError):
    """Bytes are not an event.

    Args:
        reason: what is wrong, as a clause.
        path: where in the document, as a JSONPath (``$.header.id``); ``$`` is the whole document.
    """

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason
        self.path = path


class ConfigError(BalogError):
    """A configuration is invalid; nothing has run.

    Args:
        reason: what is wrong and what to do.
        source: the file or variable it came from.
        path: where in it, as a JSONPath.
    """

    exit_code = 2

    def __init__(self, reason: str, source: str = "", path: str = "") -> None:
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in source)  # a path has any character
        super().__init__(": ".join(part for part in (shown, path, reason) if part))
        self.reason = reason
        self.source = source
        self.path = path


class ConfigProblems(ConfigError):
    """A configuration has several problems. Its text is the first one and the number of others.

    Args:
        problems: at least one.
    """

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.reason, first.source, first.path)
        self.problems = list(problems)
        if len(problems) > 1:
            more = len(problems) - 1
            self.args = (f"{first} (and {more} more problem{'s' * (more > 1)}; balog check names all)",)


class TopicError(BalogError):
    """A topic could not accept or deliver messages. Retryable by default.

    Args:
        reason: what happened, as a clause without secrets.
        retryable: whether a later attempt may succeed; by default as the class declares.
    """

    retryable = True

    def __init__(self, reason: str, *, retryable: bool | None = None) -> None:
        super().__init__(reason)
        if retryable is not None:
            self.retryable = retryable


class TopicNotFoundError(TopicError):
    """A topic does not exist yet: nothing was published to it."""

    exit_code = 2  # as for a file

    def __init__(self, where: str) -> None:
        super().__init__(f"{where}: no such topic; it is made when something is first published to it")


class MessageError(TopicError):
    """A topic rejects this message for good, for example because it is too large; others can be published."""

    retryable = False


class SinkError(BalogError):
    """A sink or its server did not accept a batch, or only a part of it.

    Args:
        reason: what happened, as a clause without secrets.
        retryable: whether a later attempt may succeed. Errors of the other side (down, busy, refused key) are
            retryable, errors in the events are not.
        retry_after: seconds that the other side asked to wait.
        rejected: events that will never be accepted, by index in the batch, each with the reason. They become
            dead letters; the other events are delivered.
        remaining: indexes of the events that were not accepted although others were; None means all events that are
            not in ``rejected``.
        unnamed: number of further events that will never be accepted, when the other side does not report which. They
            are counted as refused, and not kept.
    """

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool = True,
        retry_after: float | None = None,
        rejected: Mapping[int, str] | None = None,
        remaining: Sequence[int] | None = None,
        unnamed: int = 0,
    ) -> None:
        super().__init__(reason)
        self.retryable = retryable
        self.retry_after = retry_after
        self.rejected = rejected or {}
        self.remaining = remaining
        self.unnamed = unnamed


class MissingExtraError(BalogError):
    """A feature needs packages that are not installed.

    Args:
        what: the feature.
        extra: the extra that installs the packages.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed; run: {install_command(extra)}")
        self.extra = extra


def complain(problem: str, program: str = "balog") -> None:
    """Write one line to stderr, without secrets, instead of raising into the application.

    Args:
        program: the line's beginning.
    """
    try:
        problem = redact_error(problem)
        sys.stderr.write(f"{program}: {problem}\n")
        sys.stderr.flush()
    except Exception:  # stderr is closed
        return


_MAX_REASON = 300
_PLACE = re.compile(r" - at `(?:key` in `)?(\$(?:\.\w+|\[(?:\d+|\.\.\.)\])*)`\Z")


def split_refusal(error: Exception) -> tuple[str, str]:
    """Split msgspec's error about a document into a clause and a JSONPath.

    The clause is one line of at most 300 characters, even if it quotes the document.
    """
    message = str(error)
    match = _PLACE.search(message)
    reason = (message[: match.start()] if match else message).removeprefix("JSON is malformed: ")
    clause = cut(printable(reason[: _MAX_REASON + 1], " "), _MAX_REASON)
    return clause[:1].lower() + clause[1:], match[1] if match else "$"


@functools.cache
def _redactor() -> Redactor:
    from balog.common.redaction import Redactor  # at the first error: it takes time to import

    return Redactor()


def redact_error(text: str) -> str:
    """Return the text of an error without secrets, by the built-in rules.

    For every text of an error that leaves the process or is stored: lines on stderr, reasons, tracebacks. Redact it
    before it is cut, because half a secret is not recognized.
    """
    return _redactor().redact_text(text)
