"""Inspect a topic and its groups from the log's offsets and the groups' commits."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Literal, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from balog.common.errors import TopicError
from balog.topics.base import Received
from balog.topics.kafka.clients import REQUEST_TIMEOUT, Clients
from balog.topics.kafka.errors import as_kafka_error
from balog.topics.kafka.member import GroupMember
from balog.topics.kafka.progress import CommittedProgress, decode, encode
from balog.topics.kafka.records import body_of, origin_of, read, read_headers, read_id, read_key, read_published


class Log(NamedTuple):
    """A topic's log: the first offset of each partition, and the one after its last."""

    topic: str
    bounds: dict[int, tuple[int, int]]

    @property
    def length(self) -> int:
        """Number of offsets."""
        return sum(end - start for start, end in self.bounds.values())


class Pending(NamedTuple):
    """A group's pending messages in a log, and its latest delivered position."""

    position: int = 0
    lag: int = 0
    in_flight: int = 0
    waiting: int = 0

    def plus(self, other: Pending) -> Pending:
        """Return both together."""
        return Pending(*(left + right for left, right in zip(self, other)))


def pending(clients: Clients, log: Log, group: str, member: GroupMember | None, where: str) -> Pending:
    """Count a group's pending messages, from this process's member and, for other partitions, from commits."""
    ours = member.describe() if member is not None else {}
    total = Pending()
    rest = []
    for number, (start, end) in log.bounds.items():
        seen = ours.get((log.topic, number))
        if seen is None:
            rest.append(number)
            continue
        reached, untouched, in_flight, waiting, handed = seen
        lag = untouched + max(0, end - max(start, reached or 0))
        total = total.plus(Pending(handed, lag, in_flight, waiting))
    if not rest:
        return total
    busy: bool | None = None
    for commit in _committed(clients, log, group, where, rest):
        start, end = log.bounds[commit.partition]
        offset = commit.offset if commit.offset >= 0 else start
        progress = decode(offset, commit.metadata)
        handed = progress.handed if progress is not None else offset
        again = sum(start <= there < end for there in progress.unsettled) if progress is not None else 0
        if again and busy is None:
            busy = _has_members(clients, group, where)
        state = Pending(handed, max(0, end - max(start, handed)))
        total = total.plus(state._replace(in_flight=again) if busy else state._replace(waiting=again))
    return total


def groups(clients: Clients, log: Log, where: str) -> list[str]:
    """List the groups with commits in a log."""
    listed = clients.ask(where, clients.admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT).result)
    wanted = [TopicPartition(log.topic, number) for number in log.bounds]
    answers = {
        group.group_id: clients.admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group.group_id, wanted)], request_timeout=REQUEST_TIMEOUT
        )[group.group_id]
        for group in listed.valid
    }
    names = []
    for name, answer in answers.items():
        committed = clients.ask(where, answer.result, group=name).topic_partitions or []
        if any(partition.offset >= 0 for partition in committed):
            names.append(name)
    return sorted(names)


def peek(clients: Clients, log: Log, limit: int, where: str, *, newest: bool) -> list[Received]:
    """Return messages from an end of the log; several partitions are merged by time."""
    if limit <= 0:
        return []
    width = limit
    while True:
        stretches = {
            number: (max(start, end - width), end) if newest else (start, min(end, start + width))
            for number, (start, end) in log.bounds.items()
        }
        records = read(clients.settings, log.topic, stretches, where)
        messages = sorted(map(_received, records), key=attrgetter("published"))
        if len(messages) >= limit or stretches == log.bounds:
            return messages[-limit:] if newest else messages[:limit]
        width *= 4  # offsets of aborted transactions and of deleted records hold no message


def _received(record: Record) -> Received:
    headers = read_headers(record)
    id, key, published = read_id(record, headers), read_key(record, headers), read_published(record, headers)
    body, is_tombstone = body_of(record), record.value() is None
    return Received(id, body, origin_of(record), 0, published, key, is_tombstone=is_tombstone)


def last_replay(clients: Clients, log: Log, group: str, where: str) -> int:
    """Return the number of a group's last replay from its commits; 0 without a replay."""
    decoded = [decode(max(commit.offset, 0), commit.metadata) for commit in _committed(clients, log, group, where)]
    return max([progress.replay for progress in decoded if progress is not None], default=0)


def seek(
    clients: Clients, log: Log, group: str, to: float | Literal["earliest", "latest", "stay"], replay: int, where: str
) -> None:
    """Commit other offsets for a group without members.

    Args:
        to: seconds since the epoch; or ``stay`` to commit nothing but the replay.
        replay: the number of the replay that begins.

    Raises:
        TopicError: it has some.
    """
    progress: dict[int, CommittedProgress] = {}
    if to == "stay":
        for commit in _committed(clients, log, group, where):
            if commit.offset >= 0:
                decoded = decode(commit.offset, commit.metadata) or CommittedProgress(commit.offset, commit.offset, {})
                progress[commit.partition] = decoded._replace(replay=replay)
        offsets = {number: reached.commit for number, reached in progress.items()}
    elif to == "earliest":
        offsets = {number: start for number, (start, _) in log.bounds.items()}
    elif to == "latest":
        offsets = {number: end for number, (_, end) in log.bounds.items()}
    else:
        wanted = [TopicPartition(log.topic, number, max(0, int(to * 1000))) for number in log.bounds]
        times = clients.ask(where, lambda: clients.lookup.offsets_for_times(wanted, timeout=REQUEST_TIMEOUT))
        offsets = {each.partition: each.offset if each.offset >= 0 else log.bounds[each.partition][1] for each in times}
    if not offsets:
        return
    places = []
    for number, offset in offsets.items():
        text, _ = encode(progress.get(number) or CommittedProgress(offset, offset, {}, replay))
        places.append(TopicPartition(log.topic, number, offset, metadata=text))
    changes = [ConsumerGroupTopicPartitions(group, places)]
    try:
        done = clients.admin.alter_consumer_group_offsets(changes, request_timeout=REQUEST_TIMEOUT)[group].result()
        for partition in done.topic_partitions or []:
            if partition.error is not None:
                raise KafkaException(partition.error)
    except KafkaException as error:
        kafka_error = as_kafka_error(error)
        if kafka_error is not None and kafka_error.code() in (
            KafkaError.NON_EMPTY_GROUP,
            KafkaError.UNKNOWN_MEMBER_ID,
            KafkaError.REBALANCE_IN_PROGRESS,
        ):
            reason = f"{where}: group {group} can't be moved while it has consumers; stop them first"
            raise TopicError(reason, retryable=False) from None
        raise clients.explain(error, where, group=group) from None


def _committed(
    clients: Clients, log: Log, group: str, where: str, numbers: Iterable[int] | None = None
) -> list[TopicPartition]:
    """Return a group's commits of all partitions, or of some."""
    wanted = [TopicPartition(log.topic, number) for number in (log.bounds if numbers is None else numbers)]
    asked = [ConsumerGroupTopicPartitions(group, wanted)]
    answer = clients.admin.list_consumer_group_offsets(asked, request_timeout=REQUEST_TIMEOUT)[group]
    return list(clients.ask(where, answer.result, group=group).topic_partitions or [])


def _has_members(clients: Clients, group: str, where: str) -> bool:
    answer = clients.admin.describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT)[group]
    state = clients.ask(where, answer.result, group=group).state
    return state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
