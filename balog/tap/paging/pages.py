"""Paging: how to find the next page, and a guard against a source that returns the same page forever.

::

    yield from pages(lambda cursor: client.get("contacts", {"cursor": cursor}), by_cursor("meta.next"), items="data")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin

import msgspec

import balog
from balog.tap.errors import SourceError, check_number

_NEAR = 8  # pages: an equal page within this distance is reported; farther away, two in a row
_REMEMBERED = 100_000  # pages
_NO_PAGE = (400, 404, 410, 416, 422)
"""Answers to a position after the last page."""


class Page:
    """One page, from which the next position is found.

    Attributes:
        answer: the result of ``fetch``.
        body: the decoded result: the JSON of a response.
        items: the records; None if the page has no list at their path.
        position: the argument of ``fetch``.
        number: the number of the page, from 1.
    """

    def __init__(self, answer: Any, position: Any, number: int, items: str | None) -> None:
        self.answer = answer
        self.position = position
        self.number = number
        self.body = _decoded(answer)
        value = self.at(items) if items else self.body
        self.items = value if isinstance(value, list) else None

    def at(self, path: str) -> Any:
        """Return the value at a path in the body, such as ``meta.next``; None if there is none."""
        value = self.body
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def is_true(self, path: str) -> bool:
        """Return whether the flag at a path is set; the texts ``false`` and ``0`` are not."""
        flag = self.at(path)
        return bool(flag) and str(flag).strip().lower() not in ("false", "0")


Next = Callable[[Page], Any]
"""Returns the position of the next page, None if there is none."""


def pages(
    fetch: Callable[[Any], Any],
    next: Next,
    *,
    first: Any = None,
    items: str | None = None,
    may_repeat: bool | None = None,
) -> Iterator[list[Any]]:
    """Fetch one page after another, and yield the records of each as a list; empty pages are skipped.

    Args:
        fetch: called with a position, first with ``first``; returns a response (of this toolkit's client, ``requests``
            or ``httpx``), or a decoded body.
        next: returns the next position; one of the functions here, or the tap's own.
        first: the position of the first page.
        items: the path of the records in the body, ``data.contacts``; None means the body itself.
        may_repeat: whether two pages may be equal, as pages of a log can. None logs a warning about equal pages, and
            raises only when the same position returns the same page again. False raises for equal pages at any
            position. True only logs a warning when the same position returns the same page again.

    Raises:
        SourceError: a page repeats, see ``may_repeat``; a page has no list of records at their path.
    """
    guard = _RepeatGuard(may_repeat)
    position, number = first, 0
    before: list[Any] | None = None
    while True:
        number += 1
        is_probe = isinstance(position, Probe)
        position = position.position if is_probe else position
        try:
            page = Page(fetch(position), position, number, items)
        except SourceError as error:
            if is_probe and getattr(error, "status", 0) in _NO_PAGE:
                return
            raise
        if is_probe and (not page.items or page.items == before):
            return
        before = page.items
        if page.items is None:
            raise SourceError(f"page {number} has no list of records at {items or 'its top level'!r}")
        guard.check(position, page.items, number)
        if page.items:
            yield page.items
        position = next(page)
        if position is None:
            return


def by_cursor(path: str, more: str | None = None) -> Next:
    """Read the next cursor from the body; null, an empty text or a missing one is the end.

    Args:
        path: the path of the cursor, ``meta.next_cursor``.
        more: the path of a flag for further pages, ``has_more``; false is the end, whatever the cursor. True without a
            cursor is a ``SourceError``, because records would be lost.
    """

    def next(page: Page) -> Any:
        if more is not None and not page.is_true(more):
            return None
        cursor = page.at(path)
        if more is not None and cursor in (None, "", False):
            raise SourceError(f"{more} says that there are more pages, but {path} has no cursor")
        return None if cursor == "" or cursor is False else cursor

    return next


class Probe(NamedTuple):
    """The position of a page that may not exist: no records, the same ones again, or status 404 are the end."""

    position: Any


class Fullness:
    """Tells which page is the last one, for a source whose pages may have a smaller maximum than asked for.

    A page with fewer records than asked for, and than an earlier page had, is the last one. After a page that is the
    longest so far and yet short, another one may follow.
    """

    def __init__(self, size: int | None) -> None:
        self._size, self._longest = size or 1, 0

    def follow(self, page: Page, position: Callable[[int], Any]) -> Any:
        """Return the position after a page; ``position`` returns it for the number of its records, None at the end."""
        count = len(page.items or ())
        self._longest = max(self._longest, count)
        if not count or count < min(self._size, self._longest):
            return None
        following = position(count)
        return following if count >= self._size or following is None else Probe(following)


def by_offset(size: int) -> Next:
    """Count records: the position is the number of records before the page. For the end see ``Fullness``.

    Offsets shift if records are inserted or deleted meanwhile: if possible, use cursors, or windows of the replication
    key. The first position is 0: ``pages(…, first=0)``.
    """
    check_number("by_offset: size", size, least=1)
    pages = Fullness(size)
    return lambda page: pages.follow(page, lambda count: (page.position or 0) + count)


def by_page(size: int | None = None, total: str | None = None) -> Next:
    """Count pages: the position is the page's number, ``pages(…, first=1)``.

    Args:
        size: the number of records of a full page; for the end see ``Fullness``. None ends only at an empty page.
        total: the path of the number of pages, ``meta.pages``; the end is at that number.
    """
    if size is not None:
        check_number("by_page: size", size, least=1)
    pages = Fullness(size)

    def next(page: Page) -> Any:
        position = 1 if page.position is None else page.position
        if total is not None:
            last = page.at(total)
            if isinstance(last, int):
                return position + 1 if position < last else None
        return pages.follow(page, lambda count: position + 1)

    return next


def by_link(relation: str = "next") -> Next:
    """Follow the header ``Link`` (RFC 8288): the position is a URL, None for the first page."""

    def next(page: Page) -> Any:
        headers = getattr(page.answer, "headers", {})
        header = headers.get("link") or headers.get("Link") or ""
        return links(header, str(getattr(page.answer, "url", ""))).get(relation)

    return next


def by_url(path: str) -> Next:
    """Follow a URL in the body, ``links.next``: the position is a URL, None for the first page."""

    def next(page: Page) -> Any:
        url = page.at(path)
        try:
            return urljoin(str(getattr(page.answer, "url", "")), url) if isinstance(url, str) and url else None
        except ValueError:
            raise SourceError(f"page {page.number} has no valid URL of the next page at {path!r}") from None

    return next


class _RepeatGuard:
    """Detects pages that repeat.

    An equal page at another position may be data: one row of a log that is toggled, records without keys. The same
    position with the same page leads to the same next position, so the source repeats forever.
    """

    def __init__(self, may_repeat: bool | None) -> None:
        self._positions: dict[bytes, tuple[int, bytes]] = {}  # the page's number and content
        self._contents: dict[bytes, tuple[int, int]] = {}  # the page's number, and its number without empty pages
        self._count = 0
        self._like = 0
        self._warn_from = 0
        self._may_repeat = may_repeat

    def check(self, position: Any, items: list[Any], number: int) -> None:
        """Compare a page with those before it.

        Raises:
            SourceError: the page repeats, and ``may_repeat`` does not allow that.
        """
        content, position_key = _digest(items), _digest(position)
        before, seen = self._positions.pop(position_key, (0, b""))
        _remember(self._positions, position_key, (number, content))
        if before and seen == content:
            self._report(
                f"page {number} has the position and the content of page {before}, so this may go on forever",
                is_error=not self._may_repeat,
                number=number,
                hint="may_repeat=True where such pages are data",
            )
        elif self._may_repeat is not True and items:
            self._check_content(content, number)

    def _check_content(self, content: bytes, number: int) -> None:
        self._count += 1
        before, at = self._contents.pop(content, (0, 0))
        if at and (self._count - at <= _NEAR or at == self._like + 1 > 1):
            self._report(
                f"page {number} has the same content as page {before}, so this may go on forever",
                is_error=self._may_repeat is False,
                number=number,
                hint="may_repeat=True where equal pages are data, may_repeat=False to end the stream here",
            )
        self._like = at
        _remember(self._contents, content, (number, self._count))

    def _report(self, message: str, *, is_error: bool, number: int, hint: str) -> None:
        if is_error:
            raise SourceError(f"the source repeats its pages: {message}; set {hint}")
        if number >= self._warn_from:  # each time that there are twice as many pages
            self._warn_from = 2 * number
            balog.get_logger("balog.tap.patterns").warning(f"The source repeats its pages: {message}; set {hint}")


_Entry = TypeVar("_Entry")


def _remember(known: dict[bytes, _Entry], key: bytes, entry: _Entry) -> None:
    known[key] = entry
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]


def _digest(value: Any) -> bytes:
    from hashlib import blake2b  # not before there is a page

    try:
        data = msgspec.json.encode(value, enc_hook=repr)
    except (TypeError, ValueError):  # not decoded from JSON
        data = repr(value).encode()
    return blake2b(data, digest_size=16, usedforsecurity=False).digest()


def _decoded(answer: Any) -> Any:
    decode = getattr(answer, "json", None)
    return decode() if callable(decode) else answer


_TARGET = re.compile(r"[\s,]*<([^>]*)>", re.ASCII)
_PARAMETER = re.compile(r'\s*;\s*(?:([!#$%&\'*+.^_`|~\w-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?)?', re.ASCII)
_MAX = 16 * 1024


def links(header: str, base: str = "") -> dict[str, str]:
    """Return the target URLs by their relations in lower case; the first if a relation has several.

    Parsing stops at the first syntax error; the links before it are returned.

    Args:
        header: the value, or several joined by commas.
        base: the base URL of relative targets.
    """
    targets: dict[str, str] = {}
    at = 0
    header = header[:_MAX]
    while match := _TARGET.match(header, at):
        at = match.end()
        relations: str | None = None
        while parameter := _PARAMETER.match(header, at):
            at = parameter.end()
            if (parameter[1] or "").lower() == "rel" and relations is None:  # a second one is ignored: section 3.3
                quoted, plain = parameter[2], parameter[3]
                relations = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain or ""
        try:
            target = urljoin(base, match[1].strip())
        except ValueError:  # not a URL
            break
        for relation in (relations or "").lower().split():
            targets.setdefault(relation, target)
    return targets
