"""Topics on this machine: a folder with one SQLite file a topic, shared by any number of processes and threads."""

from balog.topics.local.backend import LocalTopics
from balog.topics.local.tables import DEFAULT_RETENTION
from balog.topics.local.topic import LocalTopic

__all__ = ["DEFAULT_RETENTION", "LocalTopic", "LocalTopics"]
