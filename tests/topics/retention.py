"""Deletes what a publish would delete of a local topic, without its limits on time and number."""

from balog.topics.local import LocalTopic, tables


def prune(topic: LocalTopic) -> int:
    """Delete old messages and dead letters; return the number of deleted messages."""
    deleted = 0
    while (some := tables.prune_some(topic._file, topic._retention, topic._clock())) is not None:
        deleted += some
    return deleted
