"""A listing of consumers: their topics and conditions, and the conditions that no registered version meets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources

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


class Listed(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One consumer as declared. Times are in seconds; the JSON omits fields that were not declared."""

    consumer: str
    topic: str
    cls_type: tuple[str, ...] | None = None
    version: tuple[str, ...] | None = None
    payload_version: tuple[str, ...] | None = None
    channel: tuple[str, ...] | None = None
    level: str | None = None
    where: str | None = None
    batch: tuple[int, float] | None = None
    retries: int | None = None
    backoff: tuple[float, float] | None = None
    timeout: float | None = None
    concurrency: int | None = None
    ordered_by: str | None = None
    is_async: bool = False
    matches_its_own_way: bool = False

    @property
    def wants(self) -> list[str]:
        """The conditions on events, as a line each; "everything" without conditions."""
        conditions = [
            (", ".join(self.cls_type or ()), ""),
            (", ".join(self.version or ()), "facility "),
            (", ".join(self.payload_version or ()), "payload version "),
            (" or ".join(self.channel or ()), "channel "),
            (self.level and f"{self.level} and above", "level "),
            (self.where, "where "),
            (self.matches_its_own_way and "by its own match_event", ""),
        ]
        return [label + str(text) for text, label in conditions if text] or ["everything"]

    @property
    def handling(self) -> list[str]:
        """The options of calls, as a line each; none when the engine's defaults apply."""
        lines = ["async"] if self.is_async else []
        if self.batch is not None:
            lines.append(f"batches of {self.batch[0]}, or after {self.batch[1]:g} s")
        if self.ordered_by is not None:
            lines.append(f"in order by {self.ordered_by}")
        if self.concurrency is not None:
            lines.append(f"{self.concurrency} at once")
        if self.retries is not None:
            lines.append(f"{self.retries} retries")
        if self.backoff is not None:
            lines.append(f"backoff {self.backoff[0]:g} to {self.backoff[1]:g} s")
        if self.timeout is not None:
            lines.append(f"timeout {self.timeout:g} s")
        return lines


def describe(consumer: Consumer, operator: Operator) -> Listed:
    """Describe a consumer; a topic whose placeholders the operator can't fill in stays as it was declared."""
    try:
        topic = operator.get_topic(consumer)
    except ConfigError:
        topic = consumer.topic
    conditions = consumer.conditions
    declared = {name: getattr(conditions, name) for name in ("version", "payload_version", "channel", "level")}
    options = ("batch", "retries", "backoff", "timeout", "concurrency", "is_async", "matches_its_own_way")
    return Listed(
        consumer=consumer.name,
        topic=topic,
        cls_type=None if conditions.cls_type is None else tuple(sorted(conditions.cls_type)),
        where=None if consumer.where is None else consumer.where.text,
        ordered_by=None if consumer.ordered_by is None else consumer.ordered_by.text,
        **declared,
        **{name: getattr(consumer, name) for name in options},
    )


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
