"""One client for each AWS service and process, with errors that know whether a retry helps."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from balog.common.errors import MissingExtraError
from balog.topics.sqs.errors import explain

_TRIES = 4
"""Tries of one request within botocore, whose back-off between them is below 1, 2 and 4 seconds."""

_CONNECT_TIMEOUT = 5.0
_READ_TIMEOUT = 25.0
"""Seconds; a long poll answers within 20."""


_CHECKSUMS = ("request_checksum_calculation", "response_checksum_validation")


class Account:
    """Creates one client for each service and process, and calls them. Thread-safe; a forked child creates its own.

    Args:
        region: ``eu-central-1``.
        credentials: ``aws_access_key_id``, ``aws_secret_access_key``, ``aws_session_token``; None for boto3's own chain
            (environment, files, role of the machine …).
        endpoints: the URL of a service (``sqs``, ``s3``) other than AWS's.
    """

    def __init__(self, region: str, credentials: dict[str, str | None], endpoints: dict[str, str | None]) -> None:
        self.region = region
        self._credentials = credentials
        self._endpoints = endpoints
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        _accounts.add(self)

    def call(self, service: str, operation: str, where: str, **parameters: Any) -> dict[str, Any]:
        """Call a service; throttling and transient errors are retried for some seconds.

        Args:
            operation: boto3's name, ``receive_message``.
            where: the name of the topic in errors.

        Raises:
            AwsError: AWS rejected the call, or is out of reach.
            MissingExtraError: boto3 is not installed.
        """
        client = self._client(service, where)
        try:
            answer: dict[str, Any] = getattr(client, operation)(**parameters)
        except Exception as error:
            raise self._explain(error, service, where) from None
        return answer

    def read(self, body: Any, service: str, where: str) -> bytes:
        """Read the stream of a response to its end; raises as ``call`` does."""
        try:
            data: bytes = body.read()
        except Exception as error:
            raise self._explain(error, service, where) from None
        finally:
            body.close()
        return data

    def _explain(self, error: Exception, service: str, where: str) -> Exception:
        return explain(error, where, self.region, self._endpoints.get(service)) or error

    def close(self) -> None:
        """Close connections; a later call opens them again."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _client(self, service: str, where: str) -> Any:
        client = self._clients.get(service)
        if client is not None:
            return client
        with self._lock:  # creating a client is not thread-safe
            if service not in self._clients:
                self._clients[service] = self._make(service, where)
            return self._clients[service]

    def _make(self, service: str, where: str) -> Any:
        try:
            import boto3.session
            from botocore.config import Config
        except ImportError:
            raise MissingExtraError("SQS", "aws") from None
        endpoint = self._endpoints.get(service)
        alien: dict[str, Any] = {}
        if endpoint and service == "s3":  # other servers may lack bucket.host names and new checksums
            alien = {name: "when_required" for name in _CHECKSUMS if name in Config.OPTION_DEFAULTS}
            alien["s3"] = {"addressing_style": "path"}
        config = Config(
            retries={"mode": "standard", "total_max_attempts": _TRIES},
            connect_timeout=_CONNECT_TIMEOUT,
            read_timeout=_READ_TIMEOUT,
            max_pool_connections=50,
            tcp_keepalive=True,
            **alien,
        )
        try:
            session = boto3.session.Session(**self._credentials)
            return session.client(service, region_name=self.region, endpoint_url=endpoint, config=config)
        except Exception as error:
            raise self._explain(error, service, where) from None

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._clients = {}


_accounts: weakref.WeakSet[Account] = weakref.WeakSet()


def _after_fork() -> None:
    """Drop the parent's connections and locks in a forked child."""
    for account in list(_accounts):
        account._renew()


os.register_at_fork(after_in_child=_after_fork)
