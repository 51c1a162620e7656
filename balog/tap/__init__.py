"""The tap toolkit: a Singer tap in one page that logs, measures and verifies itself.

``Tap`` puts together what the rooms beside it do, and each of them is of use without the rest: ``config`` (what a
config must hold), ``catalog`` (discovery, metadata, selection), ``bookmarks`` (state and when it is written),
``streams`` (what a stream is, and in which order they run), ``schema`` (where schemas come from), ``records`` (from a
source's record to a line on stdout) and ``verify`` (does any tap keep to Singer's practices).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.tap.context import Context
    from balog.tap.schema import generated, json_file
    from balog.tap.streams import Stream
    from balog.tap.tap import Tap

__all__ = ["Context", "Stream", "Tap", "generated", "json_file"]

_HOMES = {
    "Context": "balog.tap.context",
    "Stream": "balog.tap.streams",
    "Tap": "balog.tap.tap",
    "generated": "balog.tap.schema",
    "json_file": "balog.tap.schema",
}

__getattr__ = deferred(globals(), _HOMES)
