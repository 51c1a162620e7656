"""One series of a monitor: its state, what it reports, and its form in a store."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from balog.event import format_timestamp
from balog.event.payload import AlertEvidence, AlertPayload, AlertState, ExpectedBand
from balog.watch.bands.arrays import decode_array, encode_array
from balog.watch.evaluators import CompiledMonitor
from balog.watch.kinds.base import SeriesSample, Verdict
from balog.watch.observations import AcknowledgementObserved, SilenceObserved
from balog.watch.state_machine import Lifecycle

MAX_RUNS = 5
"""Ids of runs in an alert's evidence."""

MAX_KEY = 480

_SEVERITIES = ("info", "warning", "error", "critical")


class Series(Struct):
    """One series of a monitor.

    Attributes:
        memory: the state that the monitor's evaluator keeps.
        shown: the state of the last alert; None before the first one.
        since: when that state began.
        started: when the alert began, while there is one.
        acknowledged: until when it is acknowledged; 0 for not.
        sequence: number of alerts so far.
        seen: when the last observation came.
        good: the last good verdict while it fires, which its alert resolves with.
        incident: the incident that it belongs to; "" for none.
    """

    monitor: str
    key: str
    pipeline: str
    stream: str
    labels: list[tuple[str, str]]
    life: Lifecycle
    memory: Any = None
    shown: AlertState | None = None
    since: float = 0.0
    started: float | None = None
    acknowledged: float = 0.0
    sequence: int = 0
    seen: float = 0.0
    severity: str = "error"
    reason: str = ""
    value: float | str | None = None
    expected: ExpectedBand | None = None
    good: Verdict | None = None
    runs: list[str] = field(default_factory=list)
    incident: str = ""

    @property
    def is_alerting(self) -> bool:
        """Whether it fires, silenced or not."""
        return self.life.state == "firing"

    def matches(self, match: str) -> bool:
        """Return whether a text is the name of its monitor or its key, or a glob of either."""
        names = (self.monitor, self.key)
        return match in names or any(fnmatchcase(name, match) for name in names)

    def judge(self, monitor: CompiledMonitor, sample: SeriesSample, now: float) -> Verdict | None:
        """Judge a value, and add its run to the evidence."""
        self.seen = now
        if sample.run and sample.run not in self.runs:
            self.runs = [*self.runs, sample.run][-MAX_RUNS:]
        verdict: Verdict | None = self.memory.judge(monitor.evaluator, sample.value, now)
        return verdict

    def tick(self, monitor: CompiledMonitor, now: float) -> Verdict | None:
        """Judge the series at a deadline."""
        verdict: Verdict | None = None
        due = self.memory.deadline(monitor.evaluator)
        if due is not None and due <= now:
            verdict = self.memory.tick(monitor.evaluator, now)
        if verdict is None and monitor.no_data is not None and self.seen + monitor.no_data <= now:
            verdict = Verdict("no_data", "No event has come for the time that no_data sets.")
        return verdict

    def apply(self, monitor: CompiledMonitor, verdict: Verdict | None, now: float) -> bool:
        """Change the state by a verdict, or by the clock alone; return whether the alert is to be repeated."""
        was_alerting = self.is_alerting
        self.life.change(verdict.signal if verdict is not None else None, now, monitor.timing)
        if verdict is not None and (verdict.signal == "bad" or not self.is_alerting):
            self._note(verdict, monitor.config.severity, was_alerting=was_alerting)
        elif verdict is not None and verdict.signal == "ok":
            self.good = verdict
        elif was_alerting and not self.is_alerting and self.good is not None:
            self._note(self.good, monitor.config.severity)
        if not self.is_alerting:
            self.acknowledged = 0.0
        return verdict is not None and verdict.is_repeated and was_alerting and self.is_alerting

    def stay_ok(self, monitor: CompiledMonitor, verdict: Verdict) -> bool:
        """Keep a good verdict on a series that is and was reported well; return False for any other one."""
        if not verdict.signal == self.life.state == self.shown == "ok":
            return False
        self._note(verdict, monitor.config.severity)
        return True

    def heed(self, observation: SilenceObserved | AcknowledgementObserved) -> bool:
        """Return whether a silence or an acknowledgement, which is kept, is about the alert of this series."""
        if not self.is_alerting or not self.matches(observation.match):
            return False
        if isinstance(observation, AcknowledgementObserved):
            self.acknowledged = observation.until
        return True

    def end(self, reason: str) -> None:
        """Resolve the alert, whatever the values are."""
        self.life.resolve()
        self.reason = reason

    def state_at(self, now: float, silenced_until: float) -> AlertState:
        """Return the state that people see."""
        if not self.is_alerting:
            return self.life.state
        if silenced_until > now:
            return "silenced"
        return "acknowledged" if self.acknowledged > now else "firing"

    def show(self, state: AlertState, now: float) -> AlertState | None:
        """Return the state that was shown before, and show another one from now on."""
        previous = self.shown
        if state != previous:
            self.shown, self.since = state, now
        return previous

    def report(
        self, monitor: CompiledMonitor, state: AlertState, now: float, incident: str, firing: int
    ) -> AlertPayload:
        """Return the alert of a state.

        Args:
            incident, firing: the incident that it belongs to, and the number of series that fire in it.
        """
        previous = self.show(state, now)
        if self.is_alerting and self.started is None:
            self.started, self.incident = now, incident
        self.sequence += 1
        alert = AlertPayload(
            monitor=self.monitor,
            kind=monitor.config.kind,
            state=state,
            previous=previous,
            key=self.key,
            incident=incident,
            incident_firing=firing,
            severity=self.severity,  # type: ignore[arg-type]
            labels=self._all_labels(monitor),
            value=self.value,
            expected=self.expected,
            reason=self.reason,
            since=_moment(self.since),
            started=None if self.started is None else _moment(self.started),
            evidence=AlertEvidence(runs=list(self.runs), link=self._link(monitor.config.link)),
            sequence=self.sequence,
        )
        if not self.is_alerting and self.started is not None:
            self.started, self.incident, self.runs = None, "", self.runs[-1:]
        return alert

    def due(self, monitor: CompiledMonitor, silenced_until: float) -> float | None:
        """Return when the series changes without an observation; None if it does not."""
        due: float | None = self.memory.deadline(monitor.evaluator)
        if self.life.state == "ok" and monitor.no_data is None:
            return due
        dues = [due, self.life.deadline(monitor.timing)]
        if monitor.no_data is not None and self.life.state not in ("firing", "no_data"):
            dues.append(self.seen + monitor.no_data)
        if self.shown == "silenced":
            dues.append(silenced_until)
        elif self.shown == "acknowledged":
            dues.append(self.acknowledged)
        return min((time for time in dues if time is not None), default=None)

    def _note(self, verdict: Verdict, severity: str, *, was_alerting: bool = False) -> None:
        """Keep what the next alert says. While a series fires, its severity only rises, so that its end reaches all."""
        self.good = None
        self.reason, self.value, self.expected = verdict.reason, verdict.value, verdict.expected
        if verdict.signal == "bad":  # an alert resolves with the severity that it had
            new_severity = verdict.severity or severity
            self.severity = max(new_severity, self.severity, key=_SEVERITIES.index) if was_alerting else new_severity

    def _all_labels(self, monitor: CompiledMonitor) -> dict[str, str]:
        own = {name: value for name, value in (("pipeline", self.pipeline), ("stream", self.stream)) if value}
        return {**monitor.config.labels, **own, **dict(self.labels)}

    def _link(self, link: str | None) -> str | None:
        if link is None:
            return None
        parts = {"pipeline": self.pipeline, "stream": self.stream, "run_id": self.runs[-1] if self.runs else ""}
        for name, value in parts.items():
            link = link.replace(f"{{{name}}}", quote(value, safe=""))
        return link


def key_of(monitor: str, pipeline: str, stream: str, labels: tuple[tuple[str, str], ...]) -> str:
    """Return the key of a series, such as ``late{pipeline="tap-shop"}``; a hash ends one that is too long."""
    named = [("pipeline", pipeline), ("stream", stream), *labels]
    inside = ",".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in named if value)
    key = f"{monitor}{{{inside}}}"
    if len(key) <= MAX_KEY:
        return key
    return f"{key[:MAX_KEY]}…{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"


def new_series(monitor: CompiledMonitor, key: str, sample: SeriesSample, now: float) -> Series:
    """Return a series that begins at a time."""
    return Series(
        monitor=monitor.config.name,
        key=key,
        pipeline=sample.pipeline,
        stream=sample.stream,
        labels=list(sample.labels),
        life=Lifecycle(),
        memory=monitor.evaluator.state_type(),
        since=now,
        seen=now,
        severity=monitor.config.severity,
    )


_encoder = msgspec.msgpack.Encoder(enc_hook=encode_array)


def dump_series(series: Series) -> bytes:
    """Return a series as bytes."""
    return _encoder.encode(series)


def load_series(data: bytes, monitors: dict[str, CompiledMonitor]) -> Series | None:
    """Return a series from its bytes; None if its monitor is gone or has become of another kind."""
    series = msgspec.msgpack.decode(data, type=Series)
    monitor = monitors.get(series.monitor)
    if monitor is None:
        return None
    try:
        memory = msgspec.convert(series.memory, monitor.evaluator.state_type, dec_hook=decode_array)
    except msgspec.ValidationError:
        return None
    return msgspec.structs.replace(series, memory=memory)


def _moment(seconds: float) -> str:
    return format_timestamp(round(seconds * 1_000_000) * 1000)
