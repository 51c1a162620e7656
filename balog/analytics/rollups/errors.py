"""Errors told apart: what DuckDB makes of an event's texts so that the same fault has the same fingerprint.

An error is an event of level ERROR or CRITICAL, or a ``consumer_failure`` of any level. Its fingerprint is 16 hex
digits of an MD5 over

- the exception's type, of ``exception.type`` or ``error_type``, or else as the last lines of ``exc_text`` name it;
- its innermost ``_FRAMES`` frames as ``file:function``, without folders and line numbers, so that it stays the same
  over releases and machines; a frame that calls itself counts once;
- the message, masked and cut to ``LONGEST_MESSAGE`` characters.

The message is the payload's ``message``, ``reason`` or ``problem``, whichever is there, and behind it the exception's
own message unless it is part of it. A failed run without a ``problem`` says its command and exit code. Masked are, in
this order: white space (to one space), what follows the host of a URL, email addresses, quoted values, UUIDs, dates
and times, paths, and numbers, which hex numbers and words that mix letters and digits count among.
"""

from __future__ import annotations

__all__ = ["ERROR_LEVELS", "ERROR_PAYLOAD", "IS_ERROR", "LONGEST_MESSAGE", "MASKS", "failures", "masked"]

LONGEST_MESSAGE = 300
"""Characters of a masked message, and of an example's."""

ERROR_LEVELS = ("ERROR", "CRITICAL")

_FRAMES = 8
_LONGEST_TEXT = 4000  # of a message, before it is masked
_LONGEST_TRACE = 20_000  # of a traceback, whose end matters

_QUOTED_FROM, _QUOTED_TO = r"(^|[\s(\[{<=:,])", r"($|[\s)\]}>=:,.;!?])"
MASKS = (
    (r"\s+", " "),
    (r"""([a-z][a-z0-9+.-]*://[^/\s'"?#]*)[/?#][^\s'"]*""", r"\1/<path>"),
    (r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}", "<email>"),
    *((rf"{_QUOTED_FROM}{quote}[^{quote}]*{quote}{_QUOTED_TO}", r"\1<value>\2") for quote in "'\"`"),
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
    (
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d\b)?)?"
        r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b",
        "<time>",
    ),
    (r"(^|[\s(=:,])(?:~|[A-Za-z]:)?(?:[\\/][\w.@%+~-]+){2,}[\\/]?", r"\1<path>"),
    # an id may be digits alone by chance, so whatever has digits becomes the same
    (r"\b(?:0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8,}|[A-Za-z]+\d+[A-Za-z]\w*|\d+[A-Za-z]+\d\w*)\b", "<n>"),
    (r"-?\d+(?:[.,]\d+)*", "<n>"),
)
"""Patterns of RE2, one after the other, each with what it is replaced by."""

ERROR_PAYLOAD = {
    "message": "VARCHAR",
    "reason": "VARCHAR",
    "problem": "VARCHAR",
    "error_type": "VARCHAR",
    "exception": "JSON",
    "exc_text": "VARCHAR",
    "command": "VARCHAR",
    "signal": "VARCHAR",
    "exit_code": "VARCHAR",
}
"""The payload's fields that a fingerprint is made of, as DuckDB's types."""

IS_ERROR = f"""("level" IN {ERROR_LEVELS} OR payload.cls_type = 'consumer_failure')"""


def masked(text: str) -> str:
    """Give the SQL expression that masks another."""
    for pattern, instead in MASKS:
        text = f"regexp_replace({text}, {_text(pattern)}, {_text(instead)}, 'g')"
    return f"left(trim({text}), {LONGEST_MESSAGE})"


def failures(events: str) -> str:
    """Give the SQL of the errors among events: a row for each, with ``fingerprint`` and what it is made of.

    Args:
        events: a relation with ``hour``, ``moment``, ``id``, ``channel``, ``level``, ``application``, ``run_id`` and
            ``payload``, a struct that has ``ERROR_PAYLOAD`` and ``cls_type``.
    """
    return f"""SELECT *, left(md5(concat_ws(chr(10), coalesce(error_type, ''), frames, message)), 16) AS fingerprint
FROM (SELECT * EXCLUDE (said), left(said, {LONGEST_MESSAGE}) AS example, {masked("said")} AS message
FROM (SELECT hour, moment, id, channel, "level", application, run_id, left(type_, 300) AS error_type,
  list_aggregate(frames[-{_FRAMES}:], 'string_agg', chr(10)) AS frames,
  left(CASE WHEN why <> '' AND NOT contains(coalesce(what, ''), why) THEN concat_ws(': ', what, why)
    ELSE coalesce(what, kind, '') END, {_LONGEST_TEXT}) AS said
FROM (SELECT *, coalesce(payload.error_type, exception."type", nullif({_LAST_LINE.format(group=1)}, '')) AS type_,
  coalesce(exception.message, {_LAST_LINE.format(group=2)}) AS why,
  coalesce(payload.message, payload.reason, payload.problem, {_RUN}) AS what, payload.cls_type AS kind,
  {_ONCE.format(frames=_NAMED)} AS frames
FROM (SELECT *, right(payload.exc_text, {_LONGEST_TRACE}) AS trace, json_transform(payload.exception,
  '{{"type":"VARCHAR","message":"VARCHAR","frames":[{{"file":"VARCHAR","function":"VARCHAR"}}]}}') AS exception
FROM {events} WHERE {IS_ERROR}))))"""  # noqa: S608


# The last line that begins with a class's name and ends there or goes on after a colon.
_LAST_LINE = r"regexp_extract(trace, '(?s)(?:^|.*\n)([A-Za-z_][A-Za-z0-9_.]*)(?:: ([^\n]*)|\s*$|\s*\n)', {group})"

_RUN = """CASE WHEN payload.cls_type = 'run' THEN concat_ws(' ', coalesce(payload.command, 'the run'),
  CASE WHEN payload.signal IS NULL THEN 'ended with exit code ' || payload.exit_code
    ELSE 'was ended by ' || payload.signal END) END"""

_NAMED = r"""CASE WHEN exception.frames IS NOT NULL
  THEN list_transform(exception.frames, lambda x:
    concat(regexp_extract(x.file, '[^/\\]*$'), ':', x."function"))
  ELSE list_transform(regexp_extract_all(trace, '  File "[^"\n]*", line \d+, in [^\n]+'), lambda x:
    regexp_replace(x, '^  File "(?:[^"]*[/\\])?([^"]*)", line \d+, in (.*)$', '\1:\2')) END"""

_ONCE = "list_filter({frames}, lambda x, i: i = 1 OR x <> ({frames})[i - 1])"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
