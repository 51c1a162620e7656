"""The engine on the queues of an AWS region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.consumers.engine import Engine
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import Operator
from balog.event import Event
from balog.topics.sqs import SqsTopics


class SQSEngine(Engine):
    """An engine that receives from SQS and closes its connections when a run is over.

    A run ``until_empty`` ends when SQS counts nothing that is left, which it does approximately.

    Args:
        region: ``eu-central-1``.
        aws_access_key_id: and all else up to ``create``: as :class:`balog.topics.sqs.SqsTopics` takes them. Without a
            key boto3 looks for credentials as it always does.
        polling_period: seconds that a receive waits for messages, 0 to 20; a stop may take as long. 5 when omitted.
        num_messages: messages per receive, as ``batch``; SQS returns at most 10.
        options: arguments of :class:`balog.consumers.Engine`.

    Raises:
        ConfigError: a region, endpoint or claim check that can't be.
    """

    owns_topics = True

    def __init__(
        self,
        hub: ConsumerHub,
        region: str,
        aws_access_key_id: str | None = None,
        aws_secret_access_key: str | None = None,
        polling_period: float | None = None,
        num_messages: int | None = None,
        consumer_operator: Operator | None = None,
        default_event_handler: Callable[[Event], object] | None = None,
        group: str = "balog",
        *,
        aws_session_token: str | None = None,
        endpoint: str | None = None,
        claim_check: str | None = None,
        s3_endpoint: str | None = None,
        create: bool = True,
        **options: Any,
    ) -> None:
        topics = SqsTopics(
            region,
            aws_access_key_id,
            aws_secret_access_key,
            aws_session_token,
            endpoint=endpoint,
            claim_check=claim_check,
            s3_endpoint=s3_endpoint,
            create=create,
            polling_period=polling_period,
        )
        if num_messages is not None:
            options.setdefault("batch", num_messages)
        super().__init__(hub, topics, consumer_operator, group, default_event_handler=default_event_handler, **options)
