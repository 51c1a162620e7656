"""Patterns for reading sources: windows of time, pages, sorting, concurrent requests."""

from balog.tap.paging.pages import Next, Page, by_cursor, by_link, by_offset, by_page, by_url, pages
from balog.tap.patterns.concurrency import concurrently
from balog.tap.patterns.ordering import request_then_emit
from balog.tap.patterns.windows import Window, bisected, date_windows

__all__ = [
    "Next",
    "Page",
    "Window",
    "bisected",
    "by_cursor",
    "by_link",
    "by_offset",
    "by_page",
    "by_url",
    "concurrently",
    "date_windows",
    "pages",
    "request_then_emit",
]
