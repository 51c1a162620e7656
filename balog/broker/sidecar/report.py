"""The numbers of a sidecar, and the report of its run."""

from __future__ import annotations

import signal
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Raw

from balog.broker.sidecar.child import Child
from balog.broker.sidecar.tap_stream import TapStream
from balog.common.stats import Stats, counter
from balog.event.payload import RunPayload, StreamCount


class SidecarStats(
    Stats, omit_defaults=True, rename={"read_wait_seconds": "read_wait", "write_wait_seconds": "write_wait"}
):
    """Counters of a sidecar. Those that the stream must pass through the sidecar for are None until it does."""

    component: ClassVar[str] = "run"
    logs: Annotated[int, counter("Events that were made: log records of the command, and the report of the run.")]
    lost_logs: Annotated[int, counter("Log records that were lost.")]
    invalid_lines: Annotated[int | None, counter("Lines on stdout that are not a Singer message.")] = None
    bytes: Annotated[int | None, counter("Bytes on stdout.")] = None
    records: Annotated[int | None, counter("RECORD messages.")] = None
    read_wait_seconds: Annotated[float | None, counter("Seconds spent waiting for the command.")] = None
    write_wait_seconds: Annotated[float | None, counter("Seconds spent waiting for the output to be taken.")] = None


def complete_report(
    report: RunPayload, child: Child | None, stream: TapStream | None, own: RunPayload | None
) -> dict[str, Any]:
    """Return the payload of a report with the child's usage, the stream's counts and the command's own report.

    Args:
        child: None if the command could not be started.
        stream: None if the command wrote directly to the target.
        own: the report that the command itself wrote, if it did.
    """
    if child is not None and child.code is not None and child.code < 0:
        report.signal = _signal_name(-child.code)
    if child is not None and child.usage is not None:
        report.cpu_user, report.cpu_system = child.usage.cpu_user, child.usage.cpu_system
        report.peak_memory = child.usage.peak_memory
    if stream is not None:
        counted = stream.records
        report.bytes = stream.bytes
        report.records = counted.total
        report.streams = [
            StreamCount(stream=name, records=count, bytes=counted.bytes[name])
            for name, count in counted.streams.items()
        ]
        if stream.state is not None:
            report.state = Raw(stream.state)
    if own is not None:
        _add_own(report, own, is_counted=stream is not None)
    payload: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report))
    if stream is None and own is None:  # not counted, which differs from 0
        del payload["records"], payload["streams"]
    return payload


def _add_own(report: RunPayload, own: RunPayload, *, is_counted: bool) -> None:
    """Add the command's own report: details of each stream, and its problem."""
    seen = {count.stream: count for count in report.streams}
    for count in own.streams:
        if is_counted:  # the counted output wins
            known = seen.get(count.stream)
            count.records, count.bytes = (known.records, known.bytes) if known else (0, UNSET)
        seen[count.stream] = count
    report.streams = list(seen.values())
    if not is_counted:
        report.records = own.records
    if report.problem is UNSET:
        report.problem = own.problem


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"SIG{number}"
