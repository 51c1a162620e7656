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
    fields: dict[str, Any] = {}
    if child is not None and child.returncode is not None and child.returncode < 0:
        fields["signal"] = _signal_name(-child.returncode)
    if child is not None and child.usage is not None:
        fields |= msgspec.structs.asdict(child.usage)
    counts: dict[str, StreamCount] = {}
    if stream is not None:
        sizes = stream.records.bytes
        counts = {
            name: StreamCount(stream=name, records=count, bytes=sizes[name])
            for name, count in stream.records.streams.items()
        }
        fields |= {"bytes": stream.bytes, "records": stream.records.total}
        if stream.state is not None:
            fields["state"] = Raw(stream.state)
    if own is not None:
        for count in own.streams:
            if stream is not None:  # the counted output wins
                known = counts.get(count.stream) or StreamCount(stream=count.stream, records=0)
                counts[count.stream] = msgspec.structs.replace(count, records=known.records, bytes=known.bytes)
            else:
                counts[count.stream] = count
        fields.setdefault("records", own.records)
        if report.problem is UNSET:
            fields["problem"] = own.problem
    report = msgspec.structs.replace(report, streams=list(counts.values()), **fields)
    payload: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report))
    if stream is None and own is None:  # not counted, which differs from 0
        del payload["records"], payload["streams"]
    return payload


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"SIG{number}"
