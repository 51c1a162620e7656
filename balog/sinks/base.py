"""The interface of a sink: a config that builds it, and an object that takes batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Protocol

from msgspec import Meta, Struct

from balog.common.backoff import Backoff
from balog.common.config.tagged_config import TaggedConfig
from balog.common.errors import BalogError, redact_error
from balog.common.errors import SinkError as SinkError
from balog.common.plugins import PluginRegistry, load, package_of
from balog.event import Event, decode_own
from balog.sinks.guarantee import SinkGuarantee as SinkGuarantee


class Delivery:
    """An event, and its encoding as one line without a newline; unpacked as ``event, body``.

    Args:
        event: None if this process encoded ``body``: it is decoded when it is first asked for.

    Attributes:
        refusal: why the server has refused the event for good; "" if it has accepted it, None while that is open.
    """

    __slots__ = ("_event", "body", "refusal")

    def __init__(self, event: Event | None, body: bytes) -> None:
        self._event = event
        self.body = body
        self.refusal: str | None = None

    @property
    def event(self) -> Event:
        """The decoded event."""
        if self._event is None:
            self._event = decode_own(self.body)
        return self._event

    def accept(self) -> None:
        """Note that the server has the event, for an end between two requests of a batch."""
        self.refusal = ""

    def refuse(self, reason: str) -> None:
        """Note that the server has refused the event for good; see ``accept``."""
        self.refusal = redact_error(reason) or "refused"

    def __iter__(self) -> Iterator[Any]:
        return iter((self.event, self.body))


class RequestErrors:
    """Collects the errors of requests by the indexes of their events, and raises them at the end.

    An event of several requests is retried if any of them is; see ``PartialDeliveries``.

    Attributes:
        remaining: the indexes of events that were not taken completely.
    """

    def __init__(self) -> None:
        self._rejected: dict[int, str] = {}
        self.remaining: set[int] = set()
        self._errors: list[SinkError] = []
        self._unnamed: list[tuple[int, str]] = []

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Record events that will never be taken."""
        self._rejected.update(reasons)

    def refuse_unnamed(self, count: int, reason: str) -> None:
        """Record how many events will never be taken, if the server does not name them."""
        self._unnamed.append((count, reason))

    def keep(self, indexes: Iterable[int], error: SinkError) -> None:
        """Record events that were not taken because of an error, retryable or not."""
        self.remaining.update(indexes)
        self._errors.append(error)

    def finish(self) -> None:
        """Raise the recorded errors as one, if there are any.

        Raises:
            SinkError: retryable if any of the errors is; ``retry_after`` is the longest one.
        """
        errors = [error for error in self._errors if error.retryable] or self._errors
        rejected = {index: why for index, why in self._rejected.items() if index not in self.remaining}
        reasons = [*map(str, errors), *rejected.values(), *(reason for _, reason in self._unnamed)]
        if not reasons:
            return
        waits = [error.retry_after for error in errors if error.retry_after is not None]
        raise SinkError(
            reasons[0],
            retryable=any(error.retryable for error in errors),
            retry_after=max(waits, default=None),
            rejected=rejected,
            remaining=sorted(self.remaining),
            unnamed=sum(count for count, _ in self._unnamed),
        )


def send_each(batch: Sequence[Delivery], send: Callable[[Delivery], None]) -> None:
    """Send each event of a batch in a request of its own.

    Args:
        send: sends one event. A retryable error ends the batch, another one rejects the event.

    Raises:
        SinkError: some events were not taken.
    """
    errors = RequestErrors()
    for index, delivery in enumerate(batch):
        try:
            send(delivery)
        except SinkError as error:
            if error.retryable:
                errors.keep(range(index, len(batch)), error)
                break
            errors.reject({index: str(error)})
            delivery.refuse(str(error))
        else:
            delivery.accept()
    errors.finish()


class Batching(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """When a batch is full: by events, by bytes, or by the age of its oldest event."""

    events: Annotated[int, Meta(ge=1, le=10_000, description="Events at most in a batch.")] = 1000
    bytes: Annotated[int, Meta(ge=1024, le=16 << 20, description="Bytes of encoded events, about.")] = 4 << 20
    age: Annotated[float, Meta(ge=0, le=3600, description="Seconds that the oldest event waits at most.")] = 0.05


class Retrying(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Exponential backoff with full jitter; a longer ``Retry-After`` of the server is respected."""

    first: Annotated[float, Meta(gt=0, le=3600, description="Seconds before the second try.")] = 0.1
    longest: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds between tries at most; not less than first.")
    ] = 30.0

    def __post_init__(self) -> None:
        if self.longest < self.first:
            raise ValueError(f"longest ({self.longest:g}) is less than first ({self.first:g}); expected at least first")

    def backoff(self) -> Backoff:
        """Return the delays between attempts."""
        return Backoff(self.first, self.longest)


SINKS = PluginRegistry(
    "balog.sinks",
    {
        "datadog": "balog.sinks.datadog:DatadogSinkConfig",
        "elastic": "balog.sinks.elastic:ElasticSinkConfig",
        "email": "balog.sinks.email:EmailSinkConfig",
        "pagerduty": "balog.sinks.pagerduty:PagerDutySinkConfig",
        "prometheus": "balog.sinks.prometheus:PrometheusSinkConfig",
        "service": "balog.sinks.service:ServiceSinkConfig",
        "statsd": "balog.sinks.statsd:StatsdSinkConfig",
        "store": "balog.sinks.store:StoreSinkConfig",
        "topic": "balog.sinks.topic:TopicSinkConfig",
        "webhook": "balog.sinks.webhook:WebhookSinkConfig",
    },
)
"""``type`` of a sink's config -> its struct."""

_PACKAGED = ("alertmanager", "clickhouse", "otlp", "slack", "teams", "ytsaurus")
"""Sinks of the packages under ``plugins/``."""


class AnySinkConfig(TaggedConfig):
    """The config of any sink, built-in or of an installed package. ``tagged_config.convert`` decodes it."""

    __slots__ = ()

    @classmethod
    def known_tags(cls) -> list[str]:
        """Return the types of sinks, sorted."""
        return sorted([*SINKS.builtin, *SINKS.added()])

    @classmethod
    def struct_of(cls, tag: str) -> type[Struct]:
        """Import the config of a type of sinks.

        Raises:
            KeyError: there is no such type.
            BalogError: the plug-in is not installed, cannot be imported or is not the config of a sink.
        """
        if tag in SINKS.builtin:
            builtin: type[Struct] = SINKS.load(tag)
            return builtin
        if tag in _PACKAGED and tag not in SINKS:
            raise BalogError(f"the sink {tag!r} is not installed; in a clone, run: pip install ./plugins/balog-{tag}")
        config = load("balog.sinks", tag)
        plugin = f"plug-in {tag!r} of balog.sinks, package {package_of('balog.sinks', tag)},"
        if not (isinstance(config, type) and issubclass(config, SinkOptions) and hasattr(config, "build")):
            raise BalogError(f"{plugin} is not a SinkOptions with build()")
        options = config.__struct_config__
        if (options.tag_field, options.tag) != ("type", tag):
            raise BalogError(f'{plugin} must have tag_field="type" and tag="{tag}"')
        return config


class SinkOptions(AnySinkConfig, Struct, kw_only=True):
    """The options of all sinks; each sink's config inherits from this struct.

    Attributes:
        guarantees: what the sink guarantees; several if it depends on an option.
    """

    guarantees: ClassVar[tuple[SinkGuarantee, ...]] = ()

    where: Annotated[
        str | None,
        Meta(description="Takes only events for which this expression is true.", examples=["level >= 'ERROR'"]),
    ] = None
    batch: Batching = Batching()
    retry: Retrying = Retrying()

    def takes(self, event: Event) -> bool:
        """Return whether the sink sends anything of an event. Other events count as filtered and are not queued."""
        return True

    def preview(self, event: Event) -> str | None:
        """Return what the sink would send for an event, as text without secrets; None if it cannot tell.

        Raises:
            ConfigError: a field is invalid.
        """
        return None


class Sink(Protocol):
    """A destination of events. One thread calls it, with one batch at a time.

    A sink whose ``open`` does not connect also has a method ``probe`` for ``balog check --connect``. It delivers
    nothing and raises SinkError if the server can't be reached or refuses the credentials. A text that it returns is
    a note for people.
    """

    def open(self) -> None:
        """Connect. Called at the start, and again if it raised; a failed call must leave nothing open.

        Raises:
            SinkError: the server can't be reached; ``retryable`` says whether to try again.
        """

    def write(self, batch: Sequence[Delivery]) -> None:
        """Deliver a batch. When this returns, the server has all events.

        Raises:
            SinkError: some events were not taken; they come again if the error is retryable.
        """

    def close(self) -> None:
        """Finish open requests and release resources. Called once, also after errors."""


class SinkConfig(Protocol):
    """The config of one sink; it includes the fields of ``SinkOptions``."""

    where: str | None
    batch: Batching
    retry: Retrying

    @property
    def name(self) -> str:
        """The sink's name in messages: its type and destination, such as ``statsd localhost:8125``."""

    def build(self) -> Sink:
        """Return the sink, unopened. Secrets are read here.

        Raises:
            ConfigError: a value is invalid in a way that the struct's types can't express; ``path`` is the field.
        """
