"""Topics of a Kafka cluster.

A group of balog's is a consumer group of Kafka's. What a commit can't say by its offset alone, which messages beyond
it are settled and how often the others were handed out, travels in the commit's metadata (:mod:`.progress`).
"""

from balog.errors import MissingExtraError

try:
    import confluent_kafka  # noqa: F401
except ImportError as error:
    raise MissingExtraError("Kafka", "kafka") from error

from balog.topics.kafka.backend import KafkaTopics, open_kafka
from balog.topics.kafka.topic import KafkaTopic

__all__ = ["KafkaTopic", "KafkaTopics", "open_kafka"]
