"""Singer messages: every message type, BATCH files, bookmarks and the quarantine of lines."""

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

__all__ = [
    "ActivateVersionMessage",
    "BatchMessage",
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
