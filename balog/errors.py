"""Every error that balog raises on purpose. Each says what went wrong, where, and what to do about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence

from balog.distribution import install_command

__all__ = [
    "BalogError",
    "ConfigError",
    "ConfigProblems",
    "EventError",
    "MessageError",
    "MissingExtraError",
    "SinkError",
    "TopicError",
    "complain",
    "split_refusal",
]


class BalogError(Exception):
    """The root. ``retryable`` tells whether doing the same again later can help."""

    retryable = False


class EventError(BalogError):
    """Bytes that should have been an event are not one.

    Args:
        reason: what is wrong, as a clause.
        path: where in the document, as a JSONPath (``$.header.id``); ``$`` is the whole document.
    """

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason
        self.path = path


class ConfigError(BalogError):
    """A configuration was refused before anything ran.

    Args:
        reason: what is wrong and what to do.
        source: the file or variable it came from.
        path: where in it, as a JSONPath.
    """

    def __init__(self, reason: str, source: str = "", path: str = "") -> None:
        super().__init__(": ".join(part for part in (source, path, reason) if part))
        self.reason = reason
        self.source = source
        self.path = path


class ConfigProblems(ConfigError):
    """A configuration has several problems. As text it is the first one, and how many more there are.

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
    """A topic could not take or give messages. Retryable unless said otherwise."""

    retryable = True


class MessageError(TopicError):
    """A message that its topic can never take, such as one that is too large; others it can."""

    retryable = False


class SinkError(BalogError):
    """A sink did not take a batch, or not all of it.

    Args:
        reason: what happened, as a clause; never with a secret in it.
        retryable: whether what was not taken may be taken later. What is wrong with the other side (down, busy, a key
            that it refuses) is retryable, what is wrong with the events is not.
        retry_after: seconds that the other side asked to be left alone, if it did.
        rejected: events that it will never take, by their index in the batch, each with the reason. They become dead
            letters; the rest of the batch is not held up by them.
        remaining: indexes of the events that were not taken, when others of the batch were; None means all that are
            not in ``rejected``.
        unnamed: the number of events, among those that are neither in ``rejected`` nor in ``remaining``, that it will
            never take, where it does not say which. They count as refused, and nothing keeps them.
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
    """A part of balog was used whose packages are not installed.

    Args:
        what: the feature that needs them.
        extra: the name of the extra that brings them.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed; run: {install_command(extra)}")
        self.extra = extra


def complain(problem: str) -> None:
    """Write one line to stderr, where an exception would disturb the application."""
    try:
        sys.stderr.write(f"balog: {problem}\n")
        sys.stderr.flush()
    except Exception:  # nobody listens
        return


_MAX_REASON = 300
_PLACE = re.compile(r" - at `(\$(?:\.\w+|\[(?:\d+|\.\.\.)\])*)`\Z")


def split_refusal(error: Exception) -> tuple[str, str]:
    """Split what msgspec says of a document that it refused into a clause and a JSONPath.

    The clause is one line of at most 300 characters, also where the document's own text is in it.
    """
    message = str(error)
    place = _PLACE.search(message)
    reason = (message[: place.start()] if place else message).removeprefix("JSON is malformed: ")
    clause = "".join(char if char.isprintable() else " " for char in reason[: _MAX_REASON + 1])
    if len(clause) > _MAX_REASON:
        clause = clause[: _MAX_REASON - 1] + "…"
    return clause[:1].lower() + clause[1:], place[1] if place else "$"
