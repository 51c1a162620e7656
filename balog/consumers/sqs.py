"""The engine on the queues of an AWS region."""

from __future__ import annotations

from typing import Any

from balog.consumers.engine import Engine
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import Operator
from balog.topics.sqs import SqsTopics

__all__ = ["SQSEngine"]


class SQSEngine(Engine):
    """An engine that receives from SQS and closes its connections when a run is over.

    A run ``until_empty`` ends when SQS counts nothing that is left, which it does approximately.

    Args:
        region: ``eu-central-1``.
        aws_access_key_id: and all else up to ``s3_client``: as :class:`balog.topics.sqs.SqsTopics` takes them. Without
            a key boto3 looks for credentials as it always does.
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
        consumer_operator: Operator | None = None,
        group: str = "balog",
        *,
        aws_session_token: str | None = None,
        endpoint: str | None = None,
        claim_check: str | None = None,
        s3_endpoint: str | None = None,
        create: bool = True,
        session: Any = None,
        client: Any = None,
        s3_client: Any = None,
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
            session=session,
            client=client,
            s3_client=s3_client,
        )
        super().__init__(hub, topics, consumer_operator, group, **options)
