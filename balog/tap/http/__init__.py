"""HTTP for sources: a retry policy for any library, a client on urllib3, instrumented sessions.

A tap may use any part, or none. urllib3 is imported with a client's first request.
"""

from balog.tap.http.authorization import Signer
from balog.tap.http.client import Client
from balog.tap.http.instrumentation import instrument
from balog.tap.http.outcomes import HttpError, Response
from balog.tap.http.retries import Policy, retrying

__all__ = ["Client", "HttpError", "Policy", "Response", "Signer", "instrument", "retrying"]
