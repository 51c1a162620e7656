"""Time one logged event: balog beside structlog, the standard library, loguru, eliot and OpenTelemetry.

    python -m benchmarks.log

Each writes one JSON line an event, to /dev/null and into a pipe that somebody reads, and flushes it. balog's line has
both layers: id, channel, time, level and the process's context around the payload, and secrets are looked for in all of
it. The others' have level, time and what is passed. "bare" is a ready dict that is encoded and written. Below: what a
call costs whose level is off, and what an import costs, in processes of their own.
"""

from __future__ import annotations

import io
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO

import click
import eliot
import loguru
import msgspec
import orjson
import structlog
from pythonjsonlogger.json import JsonFormatter
from pythonjsonlogger.orjson import OrjsonFormatter

import balog
from benchmarks.history import show_ratio
from benchmarks.log_cases import cases, check_cases
from benchmarks.measure import interleaved, machine, medians

PAYLOAD = {
    "cls_type": "metric",
    "version": "1.0.0",
    "type": "counter",
    "metric": "record_count",
    "value": 1234,
    "tags": {"stream": "users", "endpoint": "/v1/users"},
}
CONTEXT = {"fqdn": os.uname().nodename, "application": "bench", "process": os.getpid()}
BOUND = {"stream": "users", "run_id": "a1b2c3"}
KINDS = ["payload", "message", "bound"]
Rounds = dict[str, list[float]]
Work = dict[str, Callable[[], Any]]
"""What is timed, by its kind: an event with a payload, with a message and two fields, with two bound values besides."""


def with_balog(out: BinaryIO) -> Work:
    """Use balog as it comes, JSON lines on stderr."""
    sys.stderr = _text(out)
    balog.configure("stderr", application="bench", strict=True)
    log = balog.get_logger("bench")
    bound = log.bind(**BOUND)
    return {
        "payload": lambda: log.info("done", payload=PAYLOAD),
        "message": lambda: log.info("sync is done", stream="users", rows=1234),
        "bound": lambda: bound.info("done", payload=PAYLOAD),
        "off": lambda: log.debug("sync is done"),
        "off, with a payload": lambda: log.debug("done", payload=PAYLOAD),
    }


def with_structlog(out: BinaryIO, **context: Any) -> Work:
    """Use the set-up of structlog's page on performance, on a logger that is bound already."""
    log = structlog.wrap_logger(
        structlog.BytesLogger(out),
        cache_logger_on_first_use=True,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
    ).bind(**context)
    return _structlog_calls(log)


def with_structlog_over_stdlib(out: BinaryIO) -> Work:
    """Use structlog as its page on the standard library shows it, with JSON made by orjson."""
    stdlib = _stdlib("structlog", out, logging.Formatter("%(message)s"))
    log = structlog.wrap_logger(
        stdlib,
        cache_logger_on_first_use=True,
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=lambda value, **_: orjson.dumps(value).decode()),
        ],
    ).bind()
    return _structlog_calls(log)


def _structlog_calls(log: Any) -> Work:
    bound = log.bind(**BOUND)
    return {
        "payload": lambda: log.info("done", payload=PAYLOAD),
        "message": lambda: log.info("sync is done", stream="users", rows=1234),
        "bound": lambda: bound.info("done", payload=PAYLOAD),
        "off": lambda: log.debug("sync is done"),
        "off, with a payload": lambda: log.debug("done", payload=PAYLOAD),
    }


def with_stdlib(out: BinaryIO, name: str, formatter: logging.Formatter) -> Work:
    """Use the standard library's logging with a JSON formatter."""
    log = _stdlib(name, out, formatter)
    bound = logging.LoggerAdapter(log, {**BOUND, "payload": PAYLOAD})
    return {
        "payload": lambda: log.info("done", extra={"payload": PAYLOAD}),
        "message": lambda: log.info("sync is done", extra={"stream": "users", "rows": 1234}),
        "bound": lambda: bound.info("done"),
        "off": lambda: log.debug("sync is done"),
        "off, with a payload": lambda: log.debug("done", extra={"payload": PAYLOAD}),
    }


def _stdlib(name: str, out: BinaryIO, formatter: logging.Formatter) -> logging.Logger:
    log = logging.getLogger(f"{name} {id(out)}")
    log.propagate = False
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler(_text(out))
    handler.setFormatter(formatter)
    log.addHandler(handler)
    return log


def with_loguru(out: BinaryIO) -> Work:
    """Use loguru with serialize=True."""
    loguru.logger.remove()
    loguru.logger.add(_text(out), serialize=True, level="INFO")
    log = loguru.logger
    bound = log.bind(**BOUND)
    return {
        "payload": lambda: log.info("done", payload=PAYLOAD),
        "message": lambda: log.info("sync is done", stream="users", rows=1234),
        "bound": lambda: bound.info("done", payload=PAYLOAD),
        "off": lambda: log.debug("sync is done"),
        "off, with a payload": lambda: log.debug("done", payload=PAYLOAD),
    }


def with_eliot(out: BinaryIO) -> Work:
    """Use eliot into a file; it has no levels and binds nothing."""
    for earlier in _eliot_destinations:
        eliot.remove_destination(earlier)
    _eliot_destinations[:] = [eliot.FileDestination(out)]
    eliot.add_destinations(*_eliot_destinations)
    return {
        "payload": lambda: eliot.log_message(message_type="done", payload=PAYLOAD),
        "message": lambda: eliot.log_message(message_type="sync is done", stream="users", rows=1234),
        "bound": lambda: eliot.log_message(message_type="done", payload=PAYLOAD, **BOUND),
    }


_eliot_destinations: list[Any] = []


def with_opentelemetry(out: BinaryIO) -> Work:
    """Use OpenTelemetry's log SDK, exporting each record as it comes as one line of JSON."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, SimpleLogRecordProcessor

    provider = LoggerProvider()
    text = _text(out)
    exporter = ConsoleLogRecordExporter(out=text, formatter=lambda record: record.to_json(indent=None) + "\n")
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    log = provider.get_logger("bench")

    def emit(body: str, **attributes: Any) -> None:
        log.emit(
            LogRecord(
                timestamp=time.time_ns(),
                severity_text="INFO",
                severity_number=SeverityNumber.INFO,
                body=body,
                attributes=attributes,
            )
        )

    return {
        "payload": lambda: emit("done", payload=PAYLOAD),
        "message": lambda: emit("sync is done", stream="users", rows=1234),
        "bound": lambda: emit("done", payload=PAYLOAD, **BOUND),
    }


def bare(out: BinaryIO) -> Work:
    """Encode a ready event and write it: what no logger gets below."""
    encode = msgspec.json.Encoder().encode
    event = {
        "schema": "0.1.0",
        "header": {"id": "LG0VbVMxkV1CS8RdUkRB0000", "channel": "bench.done", "level": "INFO", "context": CONTEXT},
        "payload": PAYLOAD,
    }

    def write() -> None:
        out.write(encode(event) + b"\n")
        out.flush()

    return dict.fromkeys(KINDS, write)


FORMAT = "%(asctime)s%(levelname)s%(name)s%(message)s"
WAYS: dict[str, Callable[[BinaryIO], Work]] = {
    "balog": with_balog,
    "structlog": with_structlog,
    "structlog, same context": lambda out: with_structlog(out, **CONTEXT),
    "structlog over stdlib": with_structlog_over_stdlib,
    "python-json-logger, orjson": lambda out: with_stdlib(out, "orjson", OrjsonFormatter(FORMAT)),
    "python-json-logger": lambda out: with_stdlib(out, "json", JsonFormatter(FORMAT)),
    "loguru, serialize": with_loguru,
    "eliot": with_eliot,
    "bare": bare,
}
WITH_OPENTELEMETRY: dict[str, Callable[[BinaryIO], Work]] = {
    "balog": with_balog,
    "structlog": with_structlog,
    "OpenTelemetry": with_opentelemetry,
}


def _text(out: BinaryIO) -> TextIO:
    return io.TextIOWrapper(out, encoding="utf-8")


def check(ways: dict[str, Callable[[BinaryIO], Work]]) -> None:
    """See that each way writes its payload as one JSON line, or the comparison means nothing."""
    for name, make in ways.items():
        out = io.BytesIO()
        make(out)["payload"]()
        line = out.getvalue()
        if line.count(b"\n") != 1 or PAYLOAD not in _parts(json.loads(line)):
            raise click.ClickException(f"{name}: not the event that was meant: {line!r}")


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        for part in value.values():
            yield from _parts(part)


@contextmanager
def destination(kind: str) -> Iterator[BinaryIO]:
    """Open what is written to: /dev/null, or a pipe that ``cat`` empties."""
    if kind == "/dev/null":
        with open(os.devnull, "wb") as out:
            yield out
        return
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        assert reader.stdin is not None
        yield reader.stdin  # type: ignore[misc]
        reader.stdin.close()


def timed(work: Callable[[], Any], events: int) -> Callable[[], float]:
    """Give a function that does the work so many times and gives the seconds of processor time that one took."""

    def measure() -> float:
        turns = range(events)
        began = time.process_time()
        for _ in turns:
            work()
        return (time.process_time() - began) / events

    return measure


def table(kinds: list[str], works: dict[str, Work], base: str, events: int, rounds: int) -> dict[str, Rounds]:
    """Measure, print µs an event and the ratio to ``base``, and return the seconds of each round by kind."""
    seconds = {
        kind: interleaved({name: timed(w[kind], events) for name, w in works.items() if kind in w}, rounds)
        for kind in kinds
    }
    found = {kind: medians(each) for kind, each in seconds.items()}
    click.echo(f"{'':28}" + "".join(f"{kind:>22}" for kind in kinds))
    for name in works:
        cells = [
            f"{found[kind][name] * 1e6:.2f} ({found[kind][name] / found[kind][base]:.2f})"
            if name in found[kind]
            else ""
            for kind in kinds
        ]
        click.echo(f"{name:28}" + "".join(f"{cell:>22}" for cell in cells))
    return seconds


def imports(rounds: int) -> dict[str, float]:
    """Time imports of what logs, each in a process of its own, one after another."""
    statements = {"balog": "from balog import get_logger"}
    seconds: dict[str, list[float]] = {"balog": [], "structlog": [], "loguru": [], "eliot": []}
    for number in range(rounds + 1):
        for name, times in seconds.items():
            statement = statements.get(name, f"import {name}")
            code = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
            took = float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
            if number:
                times.append(took)
    return {name: statistics.median(times) for name, times in seconds.items()}


@click.command()
@click.option("--events", default=5_000, show_default=True, help="Events a round.")
@click.option("--rounds", default=11, show_default=True, help="Rounds, after one to warm up.")
@click.option("--quick", is_flag=True, help="A few events only: does it run?")
def main(events: int, rounds: int, quick: bool) -> None:
    """Compare what it costs to log one event."""
    if quick:
        events, rounds = 100, 2
    check(WAYS)
    peers = ("structlog", "orjson", "python-json-logger", "loguru", "eliot", "opentelemetry-sdk")
    click.echo(machine("balog", "msgspec", *peers))
    for kind in ("/dev/null", "a pipe"):
        click.echo(f"\nbytes to {kind}: medians of {rounds} rounds of {events} events, µs an event (× structlog's)\n")
        with destination(kind) as out:
            works = {name: make(out) for name, make in WAYS.items()}
            found = table(KINDS, works, "structlog", events, rounds)["payload"]
        click.echo()
        show_ratio(f"structlog, to {kind}", found["balog"], found["structlog"], "≤ 0.65")
        show_ratio(f"python-json-logger, to {kind}", found["balog"], found["python-json-logger, orjson"], "≤ 0.35")
    with destination("/dev/null") as out:
        click.echo("\na call whose level is off (× structlog's; target ≤ 1)\n")
        works = {
            "balog": with_balog(out),
            "the standard library": with_stdlib(out, "off", logging.Formatter()),
            "structlog": with_structlog(out),
            "loguru": with_loguru(out),
        }
        table(["off", "off, with a payload"], works, "structlog", events, rounds)
    check_cases()
    click.echo("\nbytes to /dev/null: further cases, µs an event (× structlog's)\n")
    cases(events, rounds)
    check(WITH_OPENTELEMETRY)
    with destination("/dev/null") as out:
        click.echo("\nbytes to /dev/null once OpenTelemetry is loaded, whose span ids balog looks for\n")
        table(KINDS, {name: make(out) for name, make in WITH_OPENTELEMETRY.items()}, "structlog", events, rounds)
    took = imports(3 if quick else 25)
    click.echo("\nimport, ms (× structlog's; target ≤ 1.5)\n")
    for name, seconds in took.items():
        click.echo(f"{name:28}" + f"{seconds * 1e3:.0f} ({seconds / took['structlog']:.2f})".rjust(22))


if __name__ == "__main__":
    main()
