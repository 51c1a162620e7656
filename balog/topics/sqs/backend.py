"""The queues of an AWS region as a backend."""

from __future__ import annotations

import re
import threading
from importlib.util import find_spec

from balog.common.errors import ConfigError, MissingExtraError
from balog.common.http import check_url
from balog.topics.base import Topics, check_name
from balog.topics.sqs.account import Account
from balog.topics.sqs.claim_check import ClaimCheck
from balog.topics.sqs.dead_letters import DeadQueue, dead_name
from balog.topics.sqs.packing import Packing
from balog.topics.sqs.queue import LONGEST_POLL, Queue
from balog.topics.sqs.topic import SqsFifoTopic, SqsTopic
from balog.topics.url import split_url

_MAX_NAME = 80
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.fifo)?")
_REGION = re.compile(r"[a-z][a-z0-9-]{1,40}")
_OPTIONS = ("endpoint", "claim_check", "s3_endpoint", "create")
_SWITCH = {"yes": True, "no": False}


class SqsTopics(Topics):
    """The queues of one region and account.

    Args:
        region: ``eu-central-1``.
        aws_access_key_id: with ``aws_secret_access_key``, and ``aws_session_token`` if they are temporary; by default
            boto3's own chain (environment, shared files, the machine's role).
        endpoint: the URL of an SQS server other than AWS's.
        claim_check: ``s3://BUCKET/PREFIX`` for bodies that are too large for a queue.
        s3_endpoint: the URL of an S3 server other than AWS's.
        create: create missing queues when they are needed.
        polling_period: seconds that a receive waits for messages when its caller leaves the wait to the topic.

    Raises:
        ConfigError: an invalid region, endpoint or claim check.
    """

    def __init__(
        self,
        region: str,
        aws_access_key_id: str | None = None,
        aws_secret_access_key: str | None = None,
        aws_session_token: str | None = None,
        *,
        endpoint: str | None = None,
        claim_check: str | None = None,
        s3_endpoint: str | None = None,
        create: bool = True,
        polling_period: float | None = None,
    ) -> None:
        if not _REGION.fullmatch(region):
            raise ConfigError(f"{region!r:.60} is not an AWS region: expected a name like eu-central-1")
        self.url = f"sqs:{region}?endpoint={endpoint}" if endpoint else f"sqs:{region}"
        self._where = f"sqs:{region}"
        self._account = Account(
            region,
            {
                "aws_access_key_id": aws_access_key_id or None,
                "aws_secret_access_key": aws_secret_access_key or None,
                "aws_session_token": aws_session_token or None,
            },
            {"sqs": _checked("endpoint", endpoint), "s3": _checked("s3_endpoint", s3_endpoint)},
        )
        self._claims = ClaimCheck(self._account, claim_check) if claim_check else None
        self._create = create
        self._poll_timeout = SqsTopic.poll_timeout if polling_period is None else _checked_wait(polling_period)
        self._topics: dict[str, SqsTopic] = {}
        self._lock = threading.Lock()

    def topic(self, name: str) -> SqsTopic:
        """Return the topic of a queue's name; the same object each time."""
        _check_queue_name(name)
        with self._lock:
            if name not in self._topics:
                self._topics[name] = self._make(name)
            return self._topics[name]

    def names(self) -> list[str]:
        """List the queues, sorted, without dead-letter queues of listed ones."""
        names: set[str] = set()
        more: dict[str, str] = {}
        while True:
            answer = self._account.call("sqs", "list_queues", self._where, MaxResults=1000, **more)
            names.update(url.rpartition("/")[2] for url in answer.get("QueueUrls") or ())
            if not answer.get("NextToken"):
                return sorted(names - {dead_name(name) for name in names})
            more = {"NextToken": answer["NextToken"]}

    def close(self) -> None:
        """Close the connections; a later use opens them again."""
        self._account.close()

    def _make(self, name: str) -> SqsTopic:
        queue = Queue(self._account, name, f"topic {name} ({self._where})")
        packing = Packing(name, queue.label, self._claims)
        kind = SqsFifoTopic if queue.is_fifo else SqsTopic
        dead = DeadQueue(self._account, queue, packing, self._create)
        return kind(queue, dead, packing, self._create, self._poll_timeout)


def _checked_wait(seconds: float) -> float:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= LONGEST_POLL:
        raise ConfigError(f"polling_period {seconds!r:.60} can't be; expected seconds from 0 to {LONGEST_POLL}")
    return float(seconds)


def open_sqs(url: str) -> SqsTopics:
    """Open a URL ``sqs:REGION?endpoint=URL&claim_check=s3://BUCKET/PREFIX&s3_endpoint=URL&create=no``.

    Raises:
        ConfigError: an unknown or invalid option. Credentials in a URL are an error, because other users see URLs in
            process lists and logs.
        MissingExtraError: boto3 is not installed.
    """
    region, options = split_url(url, "sqs:REGION")
    if find_spec("boto3") is None:  # an error now, not when the first message arrives
        raise MissingExtraError("SQS", "aws")
    for name in options:
        if name in _OPTIONS:
            continue
        if any(word in name.lower() for word in ("key", "secret", "token", "password", "credential")):
            raise ConfigError(
                f"sqs:{region}: {name!r:.40} has no place in a URL; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "a profile, or a role"
            )
        raise ConfigError(f"sqs:{region}: there is no option {name!r:.40}; there are {', '.join(_OPTIONS)}")
    create = options.get("create", "yes")
    if create not in _SWITCH:
        raise ConfigError(f"sqs:{region}: create is {create!r:.40}; expected yes or no")
    return SqsTopics(
        region,
        endpoint=options.get("endpoint"),
        claim_check=options.get("claim_check"),
        s3_endpoint=options.get("s3_endpoint"),
        create=_SWITCH[create],
    )


def _checked(option: str, url: str | None) -> str | None:
    if not url:
        return None
    check_url(url, option)
    if "?" in url:
        raise ConfigError("has a ?; expected https://HOST:PORT", path=option)
    return url


def _check_queue_name(name: str) -> None:
    """Raise ConfigError for an invalid queue name (SQS developer guide, quotas related to queues)."""
    check_name("topic", name)
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise ConfigError(
            f"topic name {name!r:.220} can't be used by SQS: expected 1 to {_MAX_NAME} letters, digits, '_' or '-', "
            "at the end '.fifo' for a FIFO queue"
        )
