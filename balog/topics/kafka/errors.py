"""Explain Kafka's errors in one line, and classify them as retryable or not."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from balog.common.errors import MessageError, TopicError, TopicNotFoundError

_DENIED = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError._SSL,
}
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}
_PERMANENT = {
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_CONFIG,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.INVALID_RECORD,
    KafkaError._INVALID_ARG,
    KafkaError._UNSUPPORTED_FEATURE,
}
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
_FENCED = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError.STALE_MEMBER_EPOCH,
}
_STALE = {
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
}
_AWAY = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT_QUEUE,
}


def as_kafka_error(error: BaseException) -> KafkaError | None:
    """Return the KafkaError in an exception, if it is one of the client's."""
    argument = error.args[0] if isinstance(error, KafkaException) and error.args else None
    return argument if isinstance(argument, KafkaError) else None


def is_missing(error: KafkaError) -> bool:
    """Return whether the error means that the topic does not exist."""
    return error.code() in _MISSING


def is_fenced(error: KafkaError) -> bool:
    """Return whether the error means that partitions were or will be moved to another member."""
    return error.code() in _FENCED


def is_stale(error: BaseException) -> bool:
    """Return whether the error means that the client knows former leaders of partitions, such as before a restart."""
    kafka_error = as_kafka_error(error)
    return kafka_error is not None and kafka_error.code() in _STALE


def is_denied(error: KafkaError) -> bool:
    """Return whether authentication or TLS failed."""
    return error.code() in _DENIED


def explain(
    error: KafkaError,
    where: str,
    denied: KafkaError | None = None,
    *,
    topic: str = "",
    group: str = "",
    operation: str = "READ",
) -> TopicError:
    """Return the error to raise.

    Args:
        where: the name of the topic, ``topic orders (kafka:host:9092)``.
        denied: the error of an earlier failed login: the client retries until it times out.
        topic: the topic that the operation needs, if it is not the one in ``where``.
        group: the group on which the operation needs READ.
        operation: the operation on the topic, as named in ACLs.
    """
    code = error.code()
    if denied is not None and (code in _AWAY or code in _DENIED):
        error, code = denied, denied.code()
    text = " ".join(str(error.str() or error.name()).split())[:300]
    if code in _DENIED:
        return TopicError(
            f"{where}: could not log in or agree on TLS ({text}); check the sasl.* and ssl.* options", retryable=False
        )
    if code in _FORBIDDEN:
        acl = _missing_acl(code, where, topic, group, operation)
        return TopicError(f"{where}: not allowed ({text}); ask for {acl}", retryable=False)
    if code in _TOO_LARGE:
        return MessageError(f"{where}: a message is too large for it ({text}); see max.message.bytes of the topic")
    if code in _MISSING:
        return TopicNotFoundError(where)
    if code in _AWAY:
        return TopicError(f"{where}: the cluster can't be reached ({text}); check that it runs, and try again")
    if code in _PERMANENT or error.fatal():
        return TopicError(f"{where}: {text}", retryable=False)
    return TopicError(f"{where}: {text}")


def _missing_acl(code: int, where: str, topic: str, group: str, operation: str) -> str:
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED and group:
        return f"the ACL READ on the group {group}"
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED or operation == "CREATE":
        return f"the ACL {operation} on the topic {topic or where.partition(' (')[0].removeprefix('topic ')}"
    return "an ACL"
