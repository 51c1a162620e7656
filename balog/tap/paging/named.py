"""Paging by name: ``cursor:meta.next param=after``, ``offset size=100``, ``link``; see ``Paging``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


class _Kind(NamedTuple):
    """What a name of paging has: what follows its colon, its parameter for the position, and further options."""

    path: str
    param: str | None
    options: tuple[str, ...]


_KINDS = {
    "cursor": _Kind("the path of the cursor", "cursor", ("param", "more")),
    "last": _Kind("a field of the records", "after", ("param", "more")),
    "link": _Kind("", None, ("relation",)),
    "offset": _Kind("", "offset", ("param",)),
    "page": _Kind("", "page", ("param", "first", "total")),
    "url": _Kind("the path of the URL", None, ()),
}


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
    known = _KINDS[kind]
    if bool(known.path) != bool(path):
        raise ValueError(
            f"{kind!r} needs {known.path}, as in '{kind}:…'" if known.path else f"{kind!r} has no ':{path}'"
        )
    options = _options(kind, words, (*known.options, "size", "size_param"))
    size = _number(options, "size", 1)
    if kind == "offset" and size is None:
        raise ValueError("'offset' needs size=, as in 'offset size=100'")
    in_body = {"path": path} if kind in ("cursor", "url") else {}
    in_body |= {name: options[name] for name in ("more", "total") if name in options}
    at = {name: f"{within}.{each}" if within else each for name, each in in_body.items()}
    first = {"offset": 0, "page": _number(options, "first", 0, 1)}.get(kind)
    steps: dict[str, Callable[[], Next]] = {
        "cursor": lambda: by_cursor(at["path"], at.get("more")),
        "last": lambda: by_last(path, size, at.get("more")),
        "link": lambda: by_link(options.get("relation", "next")),
        "offset": lambda: by_offset(size or 1),
        "page": lambda: by_page(size, at.get("total")),
        "url": lambda: by_url(at["path"]),
    }
    name = options.get("size_param", "per_page" if kind == "page" else "limit")
    fixed = {} if size is None else {name: size}
    return Paging(steps[kind](), options.get("param", known.param), first, fixed, tuple(in_body.values()))


def _options(kind: str, words: list[str], known: tuple[str, ...]) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not value or name in options:
            raise ValueError(f"{word!r}: expected NAME=VALUE, each name once")
        if name not in known:
            raise ValueError(f"{kind!r} has no option {name!r}{suggest(name, known, limit=9)}")
        options[name] = value
    return options


def _number(options: dict[str, str], name: str, least: int, default: int | None = None) -> int | None:
    text = options.get(name)
    if text is not None and (not text.isdecimal() or int(text) < least):
        raise ValueError(f"{name}={text}: expected a whole number, at least {least}")
    return default if text is None else int(text)


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
