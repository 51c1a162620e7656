"""Paging by name: ``cursor:meta.next param=after``, ``offset size=100``, ``link``; see ``Paging``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from balog.common.text import suggest
from balog.tap.paging.pages import Fullness, Next, Page, by_cursor, by_link, by_offset, by_page, by_url


@dataclass(frozen=True)
class Paging:
    """How pages of a source follow each other.

    Attributes:
        next: returns the position of the next page, see ``pages``.
        param: the parameter of a position; None for positions that are URLs.
        first: the position of the first page.
        fixed: parameters of each request, such as the size of a page.
        paths: the paths in the body that it reads.
    """

    next: Next
    param: str | None = None
    first: Any = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def params(self, position: Any) -> dict[str, Any]:
        """Return the parameters of the request for a position."""
        return {**self.fixed, **({self.param: position} if self.param and position is not None else {})}


class _Options(dict[str, str]):
    """The options of a name; each must be used once by ``take`` or ``number``."""

    def __init__(self, kind: str, words: list[str], within: str) -> None:
        self.kind = kind
        self.known: list[str] = []
        self.paths: list[str] = []
        self._within = within
        for word in words:
            name, equals, value = word.partition("=")
            if not equals or not value or name in self:
                raise ValueError(f"{word!r}: expected NAME=VALUE, each name once")
            self[name] = value

    def take(self, name: str, default: str | None = None) -> str | None:
        self.known.append(name)
        return self.pop(name, default)

    def number(self, name: str, *, least: int = 1, is_needed: bool = False) -> int | None:
        text = self.take(name)
        if text is None and is_needed:
            raise ValueError(f"{self.kind!r} needs {name}=, as in '{self.kind} {name}=100'")
        if text is not None and (not text.isdecimal() or int(text) < least):
            raise ValueError(f"{name}={text}: expected a whole number, at least {least}")
        return None if text is None else int(text)

    def body_path(self, path: str) -> str:
        """Return a path in the body."""
        self.paths.append(path)
        return f"{self._within}.{path}" if self._within else path

    def path(self, name: str) -> str | None:
        """Return the path in the body that an option has."""
        path = self.take(name)
        return path and self.body_path(path)

    def finish(self) -> None:
        for name in self:
            raise ValueError(f"{self.kind!r} has no option {name!r}{suggest(name, self.known, limit=9)}")


def named_paging(text: str, within: str = "") -> Paging:
    """Return the paging of a name: ``KIND``, or ``KIND:PATH``, with options ``NAME=VALUE`` after blanks.

    ======================= ==================================================== ==============================
    kind                    next page                                            options and their defaults
    ======================= ==================================================== ==============================
    ``cursor:meta.next``    a cursor in the body                                 ``param=cursor`` ``more=``
    ``last:id``             a field of the last record                           ``param=after`` ``more=``
    ``offset``              the number of records so far                         ``param=offset`` ``size`` needed
    ``page``                the number of the page                               ``param=page`` ``first=1``
                                                                                 ``total=``
    ``link``                the header ``Link``                                  ``relation=next``
    ``url:links.next``      a URL in the body
    ======================= ==================================================== ==============================

    All have ``size``, which is sent as ``size_param``: ``limit``, of ``page`` ``per_page``.

    Args:
        text: the name and its options.
        within: the path that all paths in the body are relative to.

    Raises:
        ValueError: there is no such paging; one line without the stream.
    """
    head, *words = text.split() or [""]
    kind, _, path = head.partition(":")
    if kind not in _KINDS:
        raise ValueError(f"there is no paging {kind!r}{suggest(kind, _KINDS, limit=9)}")
    make, wants_path = _KINDS[kind]
    if bool(wants_path) != bool(path):
        raise ValueError(
            f"{kind!r} needs {wants_path}, as in '{kind}:…'" if wants_path else f"{kind!r} has no ':{path}'"
        )
    options = _Options(kind, words, within)
    size = options.number("size", is_needed=kind == "offset")
    name = options.take("size_param", "per_page" if kind == "page" else "limit")
    paging = make(path, options, size)
    options.finish()
    fixed = {} if size is None or name is None else {name: size}
    return replace(paging, fixed=fixed, paths=tuple(options.paths))


def by_last(name: str, size: int | None = None, more: str | None = None) -> Next:
    """Continue after the last record: the position is its field.

    Args:
        name: the field, ``id``.
        size: the number of records of a full page; for the end see ``Fullness``. None ends only at an empty page.
        more: the path of a flag for further pages, ``has_more``; false is the end.
    """

    pages = Fullness(size)

    def position(last: Any) -> Any:
        return last.get(name) if isinstance(last, dict) else getattr(last, name, None)

    def next(page: Page) -> Any:
        if not page.items or (more is not None and not page.is_true(more)):
            return None
        return position(page.items[-1]) if more else pages.follow(page, lambda count: position((page.items or [])[-1]))

    return next


def _page(path: str, options: _Options, size: int | None) -> Paging:
    first = options.number("first", least=0)
    next = by_page(size, options.path("total"))
    return Paging(next, options.take("param", "page"), 1 if first is None else first)


_KINDS: dict[str, tuple[Callable[[str, _Options, int | None], Paging], str]] = {
    "cursor": (
        lambda path, options, size: Paging(
            by_cursor(options.body_path(path), options.path("more")), options.take("param", "cursor")
        ),
        "the path of the cursor",
    ),
    "last": (
        lambda path, options, size: Paging(by_last(path, size, options.path("more")), options.take("param", "after")),
        "a field of the records",
    ),
    "link": (lambda path, options, size: Paging(by_link(options.take("relation", "next") or "")), ""),
    "offset": (lambda path, options, size: Paging(by_offset(size or 1), options.take("param", "offset"), 0), ""),
    "page": (_page, ""),
    "url": (lambda path, options, size: Paging(by_url(options.body_path(path))), "the path of the URL"),
}
"""By kind: what makes the paging, and what the name has after the colon."""
