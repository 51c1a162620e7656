"""Windows of time: a source is queried for one after another, and the bookmark moves with each.

::

    for window in date_windows(context.bookmark, context.now, days=7):
        yield client.orders(since=window.start, until=window.end)
        context.checkpoint(window.end)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo
from itertools import count
from typing import Any, NamedTuple

from balog.tap.bookmarks import times
from balog.tap.errors import SourceError, TapError, check_number
from balog.tap.records.times import from_iso

_OFFSET = re.compile(r"([+-]\d\d)(?::?(\d\d))?$")  # Python 3.10 reads +05:00 only


class Window(NamedTuple):
    """The time from ``start``, inclusive, to ``end``, exclusive: two datetimes with a zone, or two dates."""

    start: Any
    end: Any

    def __str__(self) -> str:
        return f"{_text(self.start)}/{_text(self.end)}"


def date_windows(
    start: str | date,
    end: str | date,
    *,
    days: int = 0,
    months: int = 0,
    step: timedelta | None = None,
    overlap: timedelta = timedelta(0),
    zone: tzinfo | None = None,
) -> Iterator[Window]:
    """Yield consecutive windows from ``start``, inclusive, to ``end``, exclusive.

    With ``days`` and ``months`` each window starts at the same time of day in ``zone`` as the first, also across clock
    changes. With ``months`` it starts on the same day of the month, or on the last if there is none. With ``step`` it
    has this elapsed time. If both ends are dates, the windows are of dates.

    Args:
        start: a datetime, a date, or either as ISO 8601. Without a zone it is in ``zone``.
        end: likewise. The last window may be shorter.
        days: length in days; set one of ``days``, ``months`` and ``step``.
        months: length in months.
        step: length in elapsed time.
        overlap: all windows but the first start earlier by this, for sources whose records arrive late.
        zone: the zone of days and datetimes, such as ``ZoneInfo("Europe/Berlin")``; None means UTC.

    Raises:
        TapError: no length or several, a negative length or overlap, a text that is not a time.
    """
    for name, length in (("days", days), ("months", months)):
        check_number(f"date_windows: {name}", length, least=0)
    lengths = [bool(days), bool(months), step is not None]
    if sum(lengths) != 1 or (step is not None and step <= timedelta(0)):
        raise TapError("date_windows: expected one of days=…, months=… and step=…, and more than 0")
    if overlap < timedelta(0):
        raise TapError("date_windows: expected an overlap of 0 or more")
    zone = zone or timezone.utc
    first, last = _parsed(start), _parsed(end)
    if not isinstance(first, datetime) and not isinstance(last, datetime):
        if step is not None and step % timedelta(days=1):
            raise TapError("date_windows: between dates the step must be whole days")
        if overlap % timedelta(days=1):
            raise TapError("date_windows: between dates the overlap must be whole days")
        days = days or (step.days if step else 0)
        bounds = _bounds(first, last, lambda number: _later(first, days * number, months * number))
        return _windows(bounds, overlap, lambda at: at)
    begin, until = _instant(first, zone), _instant(last, zone)
    local = begin.astimezone(zone)

    def start_of(number: int) -> datetime:
        if step is not None:
            return begin + step * number
        moved: datetime = _later(local, days * number, months * number)
        return moved.astimezone(timezone.utc)

    return _windows(_bounds(begin, until, start_of), overlap, lambda at: at.astimezone(zone))


def bisected(
    window: Window,
    fetch: Callable[[Window], Any],
    has_too_many: Callable[[Any], bool],
    *,
    smallest: timedelta = timedelta(seconds=1),
) -> Iterator[tuple[Window, Any]]:
    """Fetch a window, or its halves if the answer has too many records; yield the windows and answers in order.

    For sources that limit the number of records and have no pages. Halves start at whole seconds (or days), which
    every source supports.

    Args:
        window: a window of ``date_windows``.
        fetch: returns the answer for a window.
        has_too_many: returns whether an answer may be cut off.
        smallest: the length of a window that is not divided further.

    Raises:
        SourceError: even the smallest window has too many.
    """
    left = [window]
    while left:
        now = left.pop()
        answer = fetch(now)
        if not has_too_many(answer):
            yield now, answer
            continue
        is_dates = not isinstance(now.start, datetime)
        # Halved in UTC: the difference of datetimes in one zone ignores clock changes.
        start, end = (at if is_dates else at.astimezone(timezone.utc) for at in now)
        middle = start + (end - start) / 2
        if not is_dates:
            middle = middle.replace(microsecond=0)
        if end - start <= smallest or not start < middle < end:
            raise SourceError(f"the source has too many records in {now}, and there is no smaller window")
        middle = middle if is_dates else middle.astimezone(now.start.tzinfo)
        left += [Window(middle, now.end), Window(now.start, middle)]


def _windows(bounds: Iterator[Any], overlap: timedelta, localize: Callable[[Any], Any]) -> Iterator[Window]:
    start: Any = next(bounds, None)
    is_first = True
    for end in bounds:
        yield Window(localize(start if is_first else start - overlap), localize(end))
        start, is_first = end, False


def _bounds(begin: Any, until: Any, start_of: Callable[[int], Any]) -> Iterator[Any]:
    """Yield the starts of all windows, of which ``start_of`` returns the n-th, and the end of the last one."""
    if begin >= until:
        return
    yield begin
    before = begin
    for number in count(1):
        try:
            at = start_of(number)
        except OverflowError:  # beyond the calendar
            break
        if at >= until:
            break
        if at > before:  # a clock change may skip a day, as in Samoa on 2011-12-30
            yield at
            before = at
    yield until


def _later(at: Any, days: int, months: int) -> Any:
    """Return the same time of day, some days or months later."""
    if days:
        return at + timedelta(days=days)
    from calendar import monthrange

    total = at.year * 12 + at.month - 1 + months
    year, month = divmod(total, 12)
    if year > date.max.year:
        raise OverflowError
    return at.replace(year=year, month=month + 1, day=min(at.day, monthrange(year, month + 1)[1]))


def _instant(at: date, zone: tzinfo) -> datetime:
    if not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day)
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(timezone.utc)


def _parsed(value: str | date) -> date:
    if not isinstance(value, str):
        if not isinstance(value, date):
            raise TapError(f"date_windows: expected a datetime, a date or a text, not {type(value).__name__}")
        return value
    text = value.strip()
    try:
        if times.TIME.fullmatch(text) is None:
            raise ValueError
        if len(text) == 10:
            return date.fromisoformat(text)
        return from_iso(_OFFSET.sub(lambda at: f"{at[1]}:{at[2] or '00'}", text))
    except ValueError:
        raise TapError(f"date_windows: expected an ISO 8601 time, not {value[:60]!r}") from None


def _text(at: date) -> str:
    return at.isoformat().replace("+00:00", "Z")
