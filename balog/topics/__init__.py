"""Topics store events durably between their publishers and the groups that handle them.

Open a backend by its URL, publish messages to a topic by name, receive them in a group, and ack handled ones.
"""

from balog.topics.base import DeadLetter, Generation, GivenUp, GroupState, Message, Received, Topic, Topics, TopicState
from balog.topics.url import local_folder, open_topics, split_url

__all__ = [
    "DeadLetter",
    "Generation",
    "GivenUp",
    "GroupState",
    "Message",
    "Received",
    "Topic",
    "TopicState",
    "Topics",
    "local_folder",
    "open_topics",
    "split_url",
]
