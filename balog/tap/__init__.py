"""The tap toolkit: a Singer tap in one page that logs, measures and verifies itself.

``Tap`` combines these packages, which can also be used alone: ``config`` (the settings of a tap), ``catalog``
(discovery, metadata, selection), ``bookmarks`` (state and when it is written), ``streams`` (streams and their order),
``schema`` (sources of schemas), ``records`` (from a source's record to a line on stdout). ``balog.tap.verify`` checks
any tap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.tap.command.tap import Tap
    from balog.tap.endpoints import BulkStream, GraphQLStream, RestStream
    from balog.tap.schema import generated, json_file
    from balog.tap.streams import Stream
    from balog.tap.streams.context import Context

__all__ = ["BulkStream", "Context", "GraphQLStream", "RestStream", "Stream", "Tap", "generated", "json_file"]

_MODULES = {
    "BulkStream": "balog.tap.endpoints",
    "Context": "balog.tap.streams.context",
    "GraphQLStream": "balog.tap.endpoints",
    "RestStream": "balog.tap.endpoints",
    "Stream": "balog.tap.streams",
    "Tap": "balog.tap.command.tap",
    "generated": "balog.tap.schema",
    "json_file": "balog.tap.schema",
}

__getattr__ = deferred(globals(), _MODULES)
