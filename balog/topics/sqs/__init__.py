"""The queues of an AWS region as topics: standard and FIFO, with dead-letter queues, and S3 for large bodies.

boto3 (the extra ``aws``) is imported when a queue is first used.
"""

from balog.topics.sqs.backend import SqsTopics, open_sqs
from balog.topics.sqs.topic import SqsFifoTopic, SqsTopic

__all__ = ["SqsFifoTopic", "SqsTopic", "SqsTopics", "open_sqs"]
