"""Singer messages: LOG messages, BATCH files, bookmarks and the quarantine of lines."""

from balog.singer.messages import LogMessage, parse_log, to_event, write, write_log

__all__ = ["LogMessage", "parse_log", "to_event", "write", "write_log"]
