"""HTTP for sources: a retry policy for any library, a client on the standard library, instrumented sessions.

None of it is forced on a tap, and nothing here needs a package: ``http.client`` is imported when a ``Client`` asks.
"""

from balog.tap.http.client import Client
from balog.tap.http.instrumentation import instrument
from balog.tap.http.outcomes import HttpError
from balog.tap.http.response import Response
from balog.tap.http.retries import Policy, retrying

__all__ = ["Client", "HttpError", "Policy", "Response", "instrument", "retrying"]
