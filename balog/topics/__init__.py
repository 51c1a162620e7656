"""Topics are where events wait, durably, between who publishes them and the groups that handle them.

Open a home of topics by its URL, publish messages to a topic by name, receive them in a group and ack what was handled.
"""

from balog.topics.base import DeadLetter, Generation, GivenUp, GroupState, Message, Received, Topic, Topics, TopicState
from balog.topics.url import local_folder, open_topics

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
]
