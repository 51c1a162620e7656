"""A listing of consumers: their topics and conditions, and the conditions that no registered version meets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import NamedTuple

from msgspec import Struct

from balog.consumers.consumer import Consumer
from balog.consumers.operator import Operator
from balog.errors import ConfigError
from balog.event import FACILITY_VERSION, KNOWN_VERSIONS


class Versions(Struct, frozen=True):
    """The registered versions: of the facility layer, and of payload types by name."""

    facility: tuple[str, ...]
    payload: Mapping[str, tuple[str, ...]]

    @classmethod
    def registered(cls) -> Versions:
        """Return the facility versions that were ever written, and the payload versions in ``schemas/``."""
        payloads = resources.files("balog.schemas").joinpath("payload")
        types = [folder for folder in payloads.iterdir() if folder.is_dir()]
        return cls(
            tuple(sorted(KNOWN_VERSIONS)),
            {folder.name: _versions(file.name for file in folder.iterdir()) for folder in types},
        )


class Listed(NamedTuple):
    """One consumer as declared, for people.

    Attributes:
        wants: the conditions on events, as a line each; "everything" without conditions.
        handling: the options of calls, as a line each; none when the engine's defaults apply.
    """

    consumer: str
    topic: str
    wants: list[str]
    handling: list[str]


def describe(consumer: Consumer, operator: Operator) -> Listed:
    """Describe a consumer; a topic whose placeholders the operator can't fill in stays as it was declared."""
    try:
        topic = operator.get_topic(consumer)
    except ConfigError:
        topic = consumer.topic
    return Listed(consumer.name, topic, _wants(consumer), _handling(consumer))


def _wants(consumer: Consumer) -> list[str]:
    conditions, where = consumer.conditions, consumer.where
    lines = [
        (", ".join(sorted(conditions.cls_type or ())), ""),
        (", ".join(conditions.version or ()), "facility "),
        (", ".join(conditions.payload_version or ()), "payload version "),
        (" or ".join(conditions.channel or ()), "channel "),
        (conditions.level and f"{conditions.level} and above", "level "),
        (where and where.text, "where "),
        (consumer.matches_its_own_way and "by its own match_event", ""),
    ]
    return [label + str(text) for text, label in lines if text] or ["everything"]


def _handling(consumer: Consumer) -> list[str]:
    lines = ["async"] if consumer.is_async else []
    if consumer.batch is not None:
        lines.append(f"batches of {consumer.batch.size}, or after {consumer.batch.wait:g} s")
    if consumer.ordered_by is not None:
        lines.append(f"in order by {consumer.ordered_by.text}")
    if consumer.concurrency is not None:
        lines.append(f"{consumer.concurrency} at once")
    if consumer.retries is not None:
        lines.append(f"{consumer.retries} retries")
    if consumer.backoff is not None:
        lines.append(f"backoff {consumer.backoff.first:g} to {consumer.backoff.longest:g} s")
    if consumer.timeout is not None:
        lines.append(f"timeout {consumer.timeout:g} s")
    return lines


def unmet_today(consumer: Consumer) -> str | None:
    """Return a warning if the consumer wants no event that this release writes; None if it wants some.

    Raises:
        ConfigError: no release ever wrote an event that the consumer wants.
    """
    conditions = consumer.conditions
    if consumer.matches_its_own_way or conditions.meet_version(FACILITY_VERSION):
        return None
    line = (
        f"consumer {consumer.name} gets no event that this release writes: its version "
        f"{_all_of(conditions.version or ())} is a condition on the facility layer, which is at {FACILITY_VERSION}; "
        "leave it out, or use payload_version for the version of the payload"
    )
    if any(map(conditions.meet_version, KNOWN_VERSIONS)):
        return line
    raise ConfigError(line)


def unmeetable(consumer: Consumer, versions: Versions) -> list[str]:
    """Return the conditions on versions that no registered schema, or no event of this release, meets, as a line each.

    Types without a registered schema are skipped.
    """
    conditions = consumer.conditions
    lines = []
    if conditions.version is not None and not any(map(conditions.meet_version, versions.facility)):
        lines.append(
            f"{consumer.name}: no version of the facility layer meets {_all_of(conditions.version)}; "
            f"there are {', '.join(versions.facility)}"
        )
    elif (unwritten := unmet_today(consumer)) is not None:
        lines.append(unwritten)
    if conditions.payload_version is not None:
        for name in sorted(conditions.cls_type if conditions.cls_type is not None else ()):
            known = versions.payload.get(name, ())
            if known and not any(map(conditions.meet_payload_version, known)):
                lines.append(
                    f"{consumer.name}: no version of {name} meets {_all_of(conditions.payload_version)}; "
                    f"there are {', '.join(known)}"
                )
    return lines


def _all_of(conditions: tuple[str, ...]) -> str:
    return " and ".join(conditions)


def _versions(names: Iterable[str]) -> tuple[str, ...]:
    found = [name.removesuffix(".json") for name in names if name.endswith(".json")]
    return tuple(sorted(found, key=lambda version: [int(part) for part in version.split(".") if part.isdigit()]))
