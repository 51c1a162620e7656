"""Act on events: ``@consumer_config`` declares a handler, a hub finds the handlers of a package, and an engine receives
events from topics, calls the handlers that want them, and acks each event after they succeeded.
"""

from balog.consumers.consumer import Consumer, MessageConsumer, ReceivedEvent, consumer_config
from balog.consumers.engine import Engine
from balog.consumers.hooks import Hook, Work
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import ConsumerOperator
from balog.consumers.outcomes import Halt, PartialFailure, Reject, Requeue, Retry
from balog.consumers.stats import EngineState, EngineStats

__all__ = [
    "Consumer",
    "ConsumerHub",
    "ConsumerOperator",
    "Engine",
    "EngineState",
    "EngineStats",
    "Halt",
    "Hook",
    "MessageConsumer",
    "PartialFailure",
    "ReceivedEvent",
    "Reject",
    "Requeue",
    "Retry",
    "Work",
    "consumer_config",
]
