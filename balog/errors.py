"""Every error that balog raises on purpose. Each says what went wrong, where, and what to do about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from balog.distribution import install_command

__all__ = [
    "BalogError",
    "ConfigError",
    "ConfigProblems",
    "EventError",
    "MessageError",
    "MissingExtraError",
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
