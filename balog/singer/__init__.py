"""Singer messages on stdout, and log lines of taps on stderr.

``messages`` reads and writes every message type; ``stderr`` turns the log dialects of today's taps into events.
"""

from balog.singer.messages import (
    ActivateVersionMessage,
    BatchMessage,
    LogMessage,
    Message,
    RecordMessage,
    SchemaMessage,
    StateMessage,
    parse,
    parse_log,
    to_event,
    write,
    write_log,
)
from balog.singer.stderr import LineAssembler

__all__ = [
    "ActivateVersionMessage",
    "BatchMessage",
    "LineAssembler",
    "LogMessage",
    "Message",
    "RecordMessage",
    "SchemaMessage",
    "StateMessage",
    "parse",
    "parse_log",
    "to_event",
    "write",
    "write_log",
]
