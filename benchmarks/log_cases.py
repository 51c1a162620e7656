"""Time further cases of one logged event: balog beside structlog's fastest set-up, each in one run with it.

``bound`` and ``structlog.contextvars`` bind two values for one event, as a request does, and for a hundred events.
Three outputs are three files; structlog has one writer, so it logs three times there. Among 1,000 keys, "new" ones are
others in every event.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import logging
import os
import time
from collections.abc import Callable
from typing import Any, BinaryIO

import click
import orjson
import structlog

import balog
from balog.common.redaction import Redactor
from balog.log import configuration
from balog.log.context import ProcessContext
from balog.log.outputs import LogOutput
from balog.log.recorder import OutputRoute, Recorder
from balog.log.rendering.callsites import CallsiteFinder
from benchmarks.measure import interleaved, medians

PAYLOAD = {
    "cls_type": "metric",
    "type": "counter",
    "metric": "record_count",
    "value": 1234,
    "tags": {"stream": "users"},
}
LISTS = {**PAYLOAD, "fields": ["id", "name", None], "note": None}
TARGETS = {
    "plain": 0.65,
    "disabled": 1.0,
    "contextvars, new for each event": 0.8,
    "contextvars, kept": 0.8,
    "structlog's contextvars": 0.8,
}
Case = tuple[Callable[[], Any], Callable[[], Any], int]
"""balog's work, structlog's, and the number of events in each; 0 if the level is off."""


class _Bytes(LogOutput):
    """Writes and flushes lines as structlog's BytesLogger does, into a file of its own."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, level: str, event: bytes) -> None:
        self._out.write(event + b"\n")
        self._out.flush()


def structlog_logger(out: BinaryIO, *processors: Any) -> Any:
    """Return a logger with the set-up of structlog's page on performance."""
    return structlog.wrap_logger(
        structlog.BytesLogger(out),
        cache_logger_on_first_use=True,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *processors,
            structlog.processors.format_exc_info,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
    ).bind()


def balog_recorder(*outs: BinaryIO, callsite: bool = False) -> Recorder:
    """Return a recorder with redaction, as ``configure`` makes it, for files."""
    redactor = Redactor()
    return Recorder(
        [OutputRoute(f"out{number}", _Bytes(out), threshold=20) for number, out in enumerate(outs)],
        ProcessContext("bench", None, redactor.redact_encoded),
        redactor=redactor,
        strict=True,
        callsites=CallsiteFinder() if callsite else None,
    )


def make_cases(ours: Any, theirs: Any) -> dict[str, Case]:
    """Return the cases with one output."""
    numbers = itertools.count()
    same = {f"column_{number}": number for number in range(1000)}

    def request(log: Any, bind: Callable[..., Any], events: int) -> Callable[[], None]:
        def work() -> None:
            with bind(request_id=next(numbers), user="bob"):
                for _ in range(events):
                    log.info("done", payload=PAYLOAD)

        return work

    def new_keys(log: Any) -> Callable[[], None]:
        def work() -> None:
            turn = next(numbers)
            log.info("done", payload={f"column_{turn}_{number}": number for number in range(1000)})

        return work

    def tasks(log: Any, bind: Callable[..., Any]) -> Callable[[], None]:
        async def task() -> None:
            with bind(request_id=next(numbers)):
                for _ in range(10):
                    log.info("done", payload=PAYLOAD)
                    await asyncio.sleep(0)

        async def main() -> None:
            await asyncio.gather(*(task() for _ in range(10)))

        return lambda: asyncio.run(main())

    theirs_bound = structlog.contextvars.bound_contextvars
    return {
        "plain": (lambda: ours.info("done", payload=PAYLOAD), lambda: theirs.info("done", payload=PAYLOAD), 1),
        "lists and null": (lambda: ours.info("done", payload=LISTS), lambda: theirs.info("done", payload=LISTS), 1),
        "contextvars, new for each event": (request(ours, balog.bound, 1), request(theirs, theirs_bound, 1), 1),
        "contextvars, kept": (request(ours, balog.bound, 100), request(theirs, theirs_bound, 100), 100),
        "structlog's contextvars": (request(ours, theirs_bound, 1), request(theirs, theirs_bound, 1), 1),
        "disabled": (lambda: ours.debug("done"), lambda: theirs.debug("done"), 0),
        "1,000 keys": (lambda: ours.info("done", payload=same), lambda: theirs.info("done", payload=same), 1),
        "1,000 new keys": (new_keys(ours), new_keys(theirs), 1),
        "asyncio": (tasks(ours, balog.bound), tasks(theirs, theirs_bound), 100),
    }


def cases(events: int, rounds: int) -> None:
    """Measure every case, and print µs an event and the ratio to structlog's."""
    with open(os.devnull, "wb") as one, open(os.devnull, "wb") as two, open(os.devnull, "wb") as three:
        ours, theirs = balog.get_logger("bench"), structlog_logger(one)
        before = configuration.state.swap(balog_recorder(one))
        try:
            for name, case in make_cases(ours, theirs).items():
                _show(name, case, events, rounds)
            configuration.state.swap(balog_recorder(one, callsite=True))
            parameter = structlog.processors.CallsiteParameter
            sites = structlog.processors.CallsiteParameterAdder(
                {parameter.PATHNAME, parameter.LINENO, parameter.FUNC_NAME}
            )
            located = structlog_logger(one, sites)
            _show(
                "callsite",
                (lambda: ours.info("done", payload=PAYLOAD), lambda: located.info("done", payload=PAYLOAD), 1),
                events,
                rounds,
            )
            _show_callsite(lambda: ours.info("done", payload=PAYLOAD), one, events, rounds)
            configuration.state.swap(balog_recorder(one, two, three))
            loggers = [structlog_logger(out) for out in (one, two, three)]

            def write_all() -> None:
                for log in loggers:
                    log.info("done", payload=PAYLOAD)

            _show("three outputs", (lambda: ours.info("done", payload=PAYLOAD), write_all, 1), events, rounds)
        finally:
            configuration.state.swap(before)


def _show(name: str, case: Case, events: int, rounds: int) -> None:
    ours, theirs, each = case
    each = each or 1
    turns = max(1, events // each // (50 if "1,000" in name else 1))
    found = medians(interleaved({"balog": _timed(ours, turns), "structlog": _timed(theirs, turns)}, rounds))
    took, other = (found[way] / each * 1e6 for way in ("balog", "structlog"))
    target = f" (target ≤ {TARGETS[name]})" if name in TARGETS else ""
    target = " (target < 2 ms)" if name == "1,000 new keys" else target
    click.echo(f"{name:34}balog {took:8.2f}   structlog {other:8.2f}   ratio {took / other:.2f}{target}")


def _show_callsite(work: Callable[[], Any], out: BinaryIO, events: int, rounds: int) -> None:
    """Print what the callsite adds to the plain event."""

    def under(recorder: Recorder) -> Callable[[], float]:
        def measure() -> float:
            configuration.state.swap(recorder)
            return _timed(work, events)()

        return measure

    ways = {"plain": under(balog_recorder(out)), "callsite": under(balog_recorder(out, callsite=True))}
    found = medians(interleaved(ways, rounds))
    took = (found["callsite"] - found["plain"]) * 1e6
    click.echo(f"{'callsite, beside plain':34}balog {took:+8.2f} (target ≤ 0.7)")


def _timed(work: Callable[[], Any], turns: int) -> Callable[[], float]:
    def measure() -> float:
        began = time.process_time()
        for _ in range(turns):
            work()
        return (time.process_time() - began) / turns

    return measure


def check_cases() -> None:
    """See that both loggers write as many lines in each case, or the comparison means nothing."""
    outs = io.BytesIO(), io.BytesIO()
    before = configuration.state.swap(balog_recorder(outs[0]))
    try:
        for name, (ours, theirs, each) in make_cases(balog.get_logger("bench"), structlog_logger(outs[1])).items():
            for out, work in zip(outs, (ours, theirs), strict=True):
                out.seek(0)
                out.truncate()
                work()
                if out.getvalue().count(b"\n") != each:
                    raise click.ClickException(f"{name}: not the number of lines that was meant")
    finally:
        configuration.state.swap(before)
