"""The clients of one cluster in one process, made when first needed, and never used by the child of a fork.

librdkafka's threads do not survive a fork, and closing a client without them would wait forever. So a child
leaves inherited clients as they are, and creates its own.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

from balog.common.ending import close_last, seconds_left
from balog.common.errors import ConfigError, TopicError
from balog.topics.kafka.errors import as_kafka_error, explain, is_denied, is_missing, is_stale
from balog.topics.kafka.member import GroupMember
from balog.topics.kafka.publisher import Publisher
from balog.topics.kafka.settings import SECRETS, Settings

REQUEST_TIMEOUT = 15.0
"""Seconds to wait for an answer of the cluster."""

_QUIET_SECONDS = 2.0  # before a warning that no answer has come

log = logging.getLogger("balog.topics.kafka")

T = TypeVar("T")


class Clients:
    """The clients of a cluster: a producer, an admin client, a consumer for lookups, and group members."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        global _made
        _made = True
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._admin: AdminClient | None = None
        self._lookup: Consumer | None = None
        self._publisher: Publisher | None = None
        self._members: dict[tuple[str, str], GroupMember] = {}
        self._denied: KafkaError | None = None
        self._counting = threading.Lock()
        self._asking = 0
        _all.add(self)

    # -- clients --------------------------------------------------------------------------------------------------

    @property
    def admin(self) -> AdminClient:
        """The client that creates topics and lists groups."""
        with self._lock:
            if self._admin is None:
                with _making:
                    config: dict[str, Any] = {**self.settings.admin(), "error_cb": self._on_error}
                    self._admin = AdminClient(config)
            return self._admin

    @property
    def lookup(self) -> Consumer:
        """A consumer for metadata, which is in no group and reads no records."""
        with self._lock:
            if self._lookup is None:
                with _making:
                    self._lookup = Consumer({**self.settings.consumer("balog"), "error_cb": self._on_error})
            return self._lookup

    @property
    def publisher(self) -> Publisher:
        """The producer, replaced after a fatal error."""
        with self._lock:
            if self._publisher is not None and self._publisher.broken:
                self._publisher.retire()
                self._publisher = None
            if self._publisher is None:
                with _making:
                    self._publisher = Publisher(self.settings.producer())
            return self._publisher

    def member(self, topic: str, group: str, make: Callable[[], GroupMember]) -> GroupMember:
        """Return this process's member of a group on a topic; create it if it does not exist or has failed."""
        with self._lock:
            member = self._members.get((topic, group))
            if member is None or not member.usable:
                with _making:
                    member = self._members[topic, group] = make()
            return member

    def member_if_there(self, topic: str, group: str) -> GroupMember | None:
        """Return this process's member of a group on a topic, if it has one."""
        with self._lock:
            member = self._members.get((topic, group))
            return member if member is not None and member.usable else None

    def leave(self, topic: str, group: str) -> None:
        """Close this process's member of a group on a topic, if it has one."""
        with self._lock:
            member = self._members.pop((topic, group), None)
        if member is not None:
            member.close()

    def close(self, topic: str | None = None) -> None:
        """Close the members on a topic; without a topic, all members and clients."""
        with self._lock:
            if os.getpid() != self._pid:
                return
            members = [self._members.pop(key) for key in list(self._members) if topic is None or key[0] == topic]
            lookup = publisher = None
            if topic is None:
                lookup, self._lookup = self._lookup, None
                publisher, self._publisher = self._publisher, None
                self._admin = None
        for member in members:
            member.ask_to_close()
        for member in members:
            member.close()
        if publisher is not None:
            publisher.close()
        if lookup is not None:
            lookup.close()

    def close_at_end(self) -> None:
        """Close all at the end of the process, within ``seconds_left``. A cluster that does not answer is left."""
        with self._lock:
            if os.getpid() != self._pid:
                return
            for member in self._members.values():
                member.ask_to_close()
            for member in self._members.values():
                member.close(seconds_left())
            if self._publisher is not None:
                self._publisher.close(seconds_left())
            if self._lookup is not None and not self._asking:  # its close would wait for the answer
                self._lookup.close()

    def _on_error(self, error: KafkaError) -> None:
        if is_denied(error):
            self._denied = error

    # -- asking ---------------------------------------------------------------------------------------------------

    def ask(self, where: str, question: Callable[[], T], *, topic: str = "", group: str = "") -> T:
        """Ask the cluster.

        Args:
            topic: the topic on which the request needs READ, for the error; by default that of ``where``.
            group: the group likewise.

        Raises:
            TopicError: the cluster did not answer, or rejected the request.
        """
        with self._counting:
            self._asking += 1
        warning = "%s: no answer yet; giving up after %.0f s"
        slow = threading.Timer(_QUIET_SECONDS, log.warning, (warning, where, REQUEST_TIMEOUT))
        slow.daemon = True
        slow.start()
        try:
            try:
                answer = question()
            except KafkaException as error:
                if not is_stale(error):
                    raise
                self._renew_admin()
                answer = question()
        except KafkaException as error:
            topic_error = self.explain(error, where, topic=topic, group=group)
            self._renew_admin()
            raise topic_error from None
        finally:
            slow.cancel()
            with self._counting:
                self._asking -= 1
        self._denied = None  # an answer means that the login succeeded
        return answer

    def _renew_admin(self) -> None:
        """Drop the admin client, so that the next request makes another. After a restart of the cluster, this one would
        go on with the leaders and the coordinators that it knows.
        """
        with self._lock:
            self._admin = None

    def explain(self, error: KafkaException, where: str, **needs: str) -> TopicError:
        """Return the error to raise for a client's error."""
        if self._lookup is not None:
            self._lookup.poll(0)  # reports a failed login through error_cb
        if self._admin is not None:
            self._admin.poll(0)
        return explain(as_kafka_error(error) or KafkaError(KafkaError._FAIL), where, self._denied, **needs)

    def topics(self, where: str) -> dict[str, int]:
        """Return the topics of the cluster with their numbers of partitions."""
        metadata = self.ask(where, lambda: self.lookup.list_topics(timeout=REQUEST_TIMEOUT))
        return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}

    def partitions(self, topic: str, where: str) -> int:
        """Return the number of a topic's partitions; 0 if the topic does not exist."""
        metadata = self.ask(where, lambda: self.lookup.list_topics(topic, timeout=REQUEST_TIMEOUT)).topics[topic]
        if metadata.error is not None:
            if is_missing(metadata.error):
                return 0
            raise explain(metadata.error, where, topic=topic)
        return len(metadata.partitions)

    def bounds(self, topic: str, partitions: Iterable[int], where: str) -> dict[int, tuple[int, int]]:
        """Return the first offset of each partition, and the one after its last."""
        wanted = [TopicPartition(topic, number) for number in partitions]

        def ends(spec: Any) -> dict[int, int]:
            answers = self.admin.list_offsets(dict.fromkeys(wanted, spec), request_timeout=REQUEST_TIMEOUT)
            return {partition.partition: answer.result().offset for partition, answer in answers.items()}

        def question() -> dict[int, tuple[int, int]]:
            first, last = ends(OffsetSpec.earliest()), ends(OffsetSpec.latest())  # type: ignore[no-untyped-call]
            return {number: (first[number], last[number]) for number in first}

        return self.ask(where, question, topic=topic)

    def make_topic(self, topic: str, partitions: int, config: dict[str, str], where: str) -> None:
        """Create a topic unless it exists; without ``config`` if the cluster rejects it."""
        refused = (KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION)
        try:
            new_topic = NewTopic(topic, partitions, self.settings.replication, config=config)
            self.admin.create_topics([new_topic], request_timeout=REQUEST_TIMEOUT)[topic].result()
        except KafkaException as error:
            kafka_error = as_kafka_error(error)
            if kafka_error is not None and kafka_error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if not (config and kafka_error is not None and kafka_error.code() in refused):
                raise self.explain(error, where, topic=topic, operation="CREATE") from None
            self.make_topic(topic, partitions, {}, where)


def check_settings(settings: Settings) -> None:
    """Check the user's settings with librdkafka.

    Raises:
        ConfigError: an unknown setting, or an invalid value.
    """
    if not settings.client:
        return
    for config in (settings.producer(), settings.member("balog")):
        try:
            with _making:
                client: Any = AdminClient(config) if "acks" in config else Consumer(config)
        except KafkaException as error:
            kafka_error = as_kafka_error(error)
            reason = " ".join(str(kafka_error.str() if kafka_error else error).split())
            for secret in (value for name, value in settings.client.items() if value and name in SECRETS):
                reason = reason.replace(secret, "…")
            raise ConfigError(f"kafka:{settings.servers:.100}: {reason[:300]}") from None
        if isinstance(client, Consumer):
            client.close()


_all: weakref.WeakSet[Clients] = weakref.WeakSet()
_making = threading.Lock()
_made = False


def _leave_behind() -> None:
    """Drop inherited clients in a child without ever closing them."""
    _making.release()
    if not _made:
        return
    gc.freeze()  # the child must not collect clients in reference cycles
    for clients in list(_all):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(dict(clients.__dict__)))
        clients.__dict__.update(Clients(clients.settings).__dict__)


def _close_all() -> None:
    for clients in list(_all):
        try:
            clients.close_at_end()
        except (TopicError, KafkaException, RuntimeError):
            continue


close_last(_close_all)
os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_leave_behind)
