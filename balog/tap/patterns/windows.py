"""Windows of time: a source is asked for a span after the other, and the bookmark moves with each.

::

    for window in date_windows(context.bookmark, context.now, days=7):
        yield client.orders(since=window.start, until=window.end)
        context.checkpoint(window.end)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

from balog.tap.errors import SourceError, TapError

__all__ = ["Window", "bisected", "date_windows"]

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:([Zz])|([+-])(\d\d):?(\d\d)?)?)?", re.ASCII
)


class Window(NamedTuple):
    """From ``start`` until before ``end``: two datetimes with a zone, or two dates."""

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
    """Give windows one after another that cover all from ``start`` until before ``end``, without gaps.

    With ``days`` and ``months`` a window begins at the same time of day in ``zone`` as the first, also where clocks are
    changed in between; a month's window begins on the same day of the month, or on the last where there is none. With
    ``step`` it is so long in elapsed time. When both ends are dates, the windows are of dates.

    Args:
        start: where to begin; a datetime, a date, or either as ISO 8601. What has no zone is in ``zone``.
        end: where to end. The last window may be shorter.
        days: length in days; this, ``months`` or ``step``.
        months: length in months.
        step: length.
        overlap: all windows but the first begin so much earlier: for sources whose records arrive late.
        zone: in which days begin, and of the datetimes, as ``ZoneInfo("Europe/Berlin")``; UTC if none.

    Raises:
        TapError: no length or several, a length or an overlap below 0, a text that is no time, a zone that is no
            tzinfo.
    """
    lengths = [bool(days), bool(months), step is not None]
    if sum(lengths) != 1 or days < 0 or months < 0 or (step is not None and step <= timedelta(0)):
        raise TapError("date_windows: want one of days=…, months=… and step=…, and more than 0")
    if overlap < timedelta(0):
        raise TapError("date_windows: want an overlap of 0 or more")
    zone = zone or timezone.utc
    if not isinstance(zone, tzinfo):
        raise TapError(
            f"date_windows: want a tzinfo for zone, such as ZoneInfo('Europe/Berlin'), not {type(zone).__name__}"
        )
    first, last = _parsed(start), _parsed(end)
    if not isinstance(first, datetime) and not isinstance(last, datetime):
        if step is not None and step % timedelta(days=1):
            raise TapError("date_windows: between dates the step must be whole days")
        if overlap % timedelta(days=1):
            raise TapError("date_windows: between dates the overlap must be whole days")
        bounds: Iterator[Any] = _date_bounds(first, last, days or (step.days if step else 0), months)
        return _windows(bounds, overlap, lambda at: at)
    begin, until = _instant(first, zone), _instant(last, zone)
    return _windows(_bounds(begin, until, days, months, step, zone), overlap, lambda at: at.astimezone(zone))


def bisected(
    window: Window,
    fetch: Callable[[Window], Any],
    has_too_many: Callable[[Any], bool],
    *,
    smallest: timedelta = timedelta(seconds=1),
) -> Iterator[tuple[Window, Any]]:
    """Ask for a window, and for its halves where the answer has too many; give the windows and answers in order.

    For sources that answer with so many records at most and have no further pages. Halves begin at whole seconds (or
    days), which every source understands.

    Args:
        window: as ``date_windows`` gives it.
        fetch: asks for a window.
        has_too_many: tells of an answer whether it may be cut off.
        smallest: a window that is not divided any more.

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
        # Halved in UTC: datetimes of one zone are subtracted by what clocks show, and those may be changed in between.
        start, end = (at if is_dates else at.astimezone(timezone.utc) for at in now)
        middle = start + (end - start) / 2
        if not is_dates:
            middle = middle.replace(microsecond=0)
        if end - start <= smallest or not start < middle < end:
            raise SourceError(f"the source has too many records in {now}, and there is no smaller window to ask for")
        middle = middle if is_dates else middle.astimezone(now.start.tzinfo)
        left += [Window(middle, now.end), Window(now.start, middle)]


def _windows(bounds: Iterator[Any], overlap: timedelta, shown: Callable[[Any], Any]) -> Iterator[Window]:
    start: Any = next(bounds, None)
    is_first = True
    for end in bounds:
        yield Window(shown(start if is_first else start - overlap), shown(end))
        start, is_first = end, False


def _bounds(
    begin: datetime, until: datetime, days: int, months: int, step: timedelta | None, zone: tzinfo
) -> Iterator[datetime]:
    """Give where windows begin and where the last one ends, in UTC; nothing when there is none."""
    if begin >= until:
        return
    local = begin.astimezone(zone)
    yield begin
    before, number = begin, 0
    while True:
        number += 1
        try:
            if step is not None:
                at = begin + step * number
            else:
                at = _later(local, days * number, months * number).astimezone(timezone.utc)
        except OverflowError:  # beyond the calendar
            at = until
        if at >= until:
            break
        if at > before:  # clocks may be set so that a day is left out, as Samoa's of 2011-12-30
            yield at
            before = at
    yield until


def _date_bounds(begin: date, until: date, days: int, months: int) -> Iterator[date]:
    if begin >= until:
        return
    yield begin
    number = 0
    while True:
        number += 1
        try:
            at = _later(begin, days * number, months * number)
        except OverflowError:
            at = until
        if at >= until:
            break
        yield at
    yield until


def _later(at: Any, days: int, months: int) -> Any:
    """Give the same time of day, so many days or months later."""
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


def _parsed(said: str | date) -> date:
    if not isinstance(said, str):
        if not isinstance(said, date):
            raise TapError(f"date_windows: want a datetime, a date or a text, not {type(said).__name__}")
        return said
    match = _TIME.fullmatch(said.strip())
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second, fraction, utc, sign, hours, minutes = match.groups()
        if hour is None:
            return date(int(year), int(month), int(day))
        zone: tzinfo | None = timezone.utc if utc else None
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
            zone = timezone(-offset if sign == "-" else offset)
        micro = int((fraction or "")[:6].ljust(6, "0"))
        return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micro, zone)
    except ValueError:
        raise TapError(f"date_windows: want a time as ISO 8601 has it, not {said[:60]!r}") from None


def _text(at: date) -> str:
    return at.isoformat().replace("+00:00", "Z")
