"""Events from the standard library's logging: each log record becomes an event.

``install()`` sets up everything. Use ``EventHandler`` and ``EventFormatter`` in a ``dictConfig``, a ``logging.conf`` or
the config file of the Meltano SDK.
"""

from balog.log.stdlib.capture import capture_uncaught, capture_warnings
from balog.log.stdlib.formatter import EventFormatter
from balog.log.stdlib.handler import EventHandler
from balog.log.stdlib.installation import install, keep_through_singer_python

__all__ = [
    "EventFormatter",
    "EventHandler",
    "capture_uncaught",
    "capture_warnings",
    "install",
    "keep_through_singer_python",
]
