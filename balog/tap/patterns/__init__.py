"""Patterns for reading sources: windows of time, pages, sorting, partitions, concurrent requests."""

from balog.tap.patterns.concurrency import concurrently
from balog.tap.patterns.ordering import request_then_emit
from balog.tap.patterns.pagination import Next, Page, by_cursor, by_link, by_offset, by_page, by_url, pages
from balog.tap.patterns.partitions import Partition, for_each
from balog.tap.patterns.windows import Window, bisected, date_windows

__all__ = [
    "Next",
    "Page",
    "Partition",
    "Window",
    "bisected",
    "by_cursor",
    "by_link",
    "by_offset",
    "by_page",
    "by_url",
    "concurrently",
    "date_windows",
    "for_each",
    "pages",
    "request_then_emit",
]
