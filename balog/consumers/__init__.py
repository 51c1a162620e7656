"""Consumers act on events: ``@consumer_config`` marks a handler, a hub finds the handlers of a package, an engine
receives events from topics, hands each to the handlers that want it, and acks it once they all succeeded.
"""

from balog.consumers.consumer import Consumer, consumer_config
from balog.consumers.engine import Counts, Engine
from balog.consumers.hooks import Hook, Work
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import ConsumerOperator
from balog.consumers.outcomes import Halt, PartialFailure, Reject, Retry

__all__ = [
    "Consumer",
    "ConsumerHub",
    "ConsumerOperator",
    "Counts",
    "Engine",
    "Halt",
    "Hook",
    "PartialFailure",
    "Reject",
    "Retry",
    "Work",
    "consumer_config",
]
