"""Topics of a Kafka cluster.

A group is a Kafka consumer group. The metadata of a commit has what its offset can't express: which messages beyond the
offset are settled, and how often the others were delivered (:mod:`.progress`).
"""

from balog.common.errors import MissingExtraError

try:
    import confluent_kafka  # noqa: F401
except ImportError as error:
    raise MissingExtraError("Kafka", "kafka") from error

from balog.topics.kafka.backend import KafkaTopics, open_kafka
from balog.topics.kafka.topic import KafkaTopic

__all__ = ["KafkaTopic", "KafkaTopics", "open_kafka"]
