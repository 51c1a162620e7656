"""The state of one series of a monitor, and its form in a store."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct, field

from balog.event.payload import AlertState, ExpectedBand
from balog.watch.bands.arrays import decode_array, encode_array
from balog.watch.evaluators import CompiledMonitor
from balog.watch.kinds.base import SeriesSample, Verdict
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

    def note(self, verdict: Verdict, severity: str, *, was_alerting: bool = False) -> None:
        """Keep what the next alert says. While a series fires, its severity only rises, so that its end reaches all."""
        self.good = None
        self.reason, self.value, self.expected = verdict.reason, verdict.value, verdict.expected
        if verdict.signal == "bad":  # an alert resolves with the severity that it had
            new_severity = verdict.severity or severity
            self.severity = max(new_severity, self.severity, key=_SEVERITIES.index) if was_alerting else new_severity

    def add_run(self, run: str) -> None:
        """Add a run's id to the evidence."""
        if run and run not in self.runs:
            self.runs = [*self.runs, run][-MAX_RUNS:]

    @property
    def is_alerting(self) -> bool:
        """Whether it fires, silenced or not."""
        return self.life.state == "firing"


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
        series.memory = msgspec.convert(series.memory, monitor.evaluator.state_type, dec_hook=decode_array)
    except msgspec.ValidationError:
        return None
    return series
