"""Time what redaction costs a log call, beside structlog with the recursive processor that people write by hand.

    python -m benchmarks.redaction [--quick]

Two tables. The first is redaction alone, in nanoseconds an event: documents whose shape was seen before, documents
that are new each time (a random word in the message), and two that have a secret. The second is the whole call, bytes
to /dev/null, with redaction and without. All ways of a table take turns, so that what else the machine does falls on
all; medians are compared. Trust the ratios, not the times.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import partial
from itertools import cycle
from typing import Any, BinaryIO

import msgspec
import structlog

import balog
from balog.common.redaction import Redactor

NAMES = {
    *("password", "passwd", "pwd", "secret", "client_secret", "token", "access_token", "refresh_token", "id_token"),
    *("authorization", "proxy-authorization", "api_key", "apikey", "x-api-key", "private_key", "access_key"),
    *("secret_key", "aws_secret_access_key", "credentials", "cookie", "set-cookie", "session_id", "dsn"),
}
TEXTS = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[\w.~+/=-]{8,}|eyJ[\w-]{8,}\.[\w-]{8,}|AKIA[A-Z0-9]{16}|gh[pousr]_\w{20,}"
    r"|(?:password|token|secret|api_key)=[^\s&]+|://[^/\s:@]+:[^/\s@]+@"
)


def by_hand(value: Any) -> Any:
    """What one writes in an hour: exact names, one expression, a copy of everything."""
    if isinstance(value, dict):
        return {
            key: "[redacted]" if isinstance(key, str) and key.lower() in NAMES else by_hand(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [by_hand(item) for item in value]
    return TEXTS.sub("[redacted]", value) if isinstance(value, str) else value


def hand_written_processor(_logger: Any, _method: str, event: Any) -> Any:
    return by_hand(event)


def payload(message: str, **more: Any) -> dict[str, Any]:
    return {
        "cls_type": "sync",
        "version": "1.0.0",
        "message": message,
        "stream": "charges",
        "endpoint": "https://api.example.com/v1/charges?page=3&per_page=100",
        "tags": {"status": "succeeded", "http_status_code": 200, "region": "eu-west-1"},
        "records": 1234,
        "seconds": 0.482711,
        **more,
    }


def cases() -> dict[str, Callable[[], Any]]:
    """Give the sources of payloads by name, of about 300 bytes each."""
    random_ = random.Random(1)
    numbers = cycle(payload(f"page {number} of 812 done in {number * 7} ms") for number in range(1000))
    words = [payload(f"charge ch-{random_.getrandbits(96):024x} done".translate(_LETTERS)) for _ in range(10_000)]
    new = cycle(words)
    key = cycle([payload("logging in", auth={"user": "bob", "access_token": "abcdef0123456789"})])
    text = cycle([payload("GET https://bob:hunter2@api.example.com/v1/charges?page=3 failed")])
    return {
        "clean, shape seen": lambda: next(numbers),
        "clean, new text each": lambda: next(new),
        "a secret's key": lambda: next(key),
        "a secret in text": lambda: next(text),
    }


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def spent(work: Callable[[Any], Any], given: list[Any]) -> float:
    """Give the nanoseconds of this process for each of what is given."""
    began = time.process_time_ns()
    for one in given:
        work(one)
    return (time.process_time_ns() - began) / len(given)


def taking(work: Callable[[Any], Any], source: Callable[[], Any], events: int) -> Callable[[], float]:
    """Give a way that does some work on so many events of a source, which are made before the clock starts."""
    return lambda: spent(work, [source() for _ in range(events)])


def compare(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Let all ways take turns; give the median of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(way())
    return {name: statistics.median(taken) for name, taken in times.items()}


def redaction_alone(rounds: int, events: int) -> Iterator[str]:
    ways = ("encoding", "encoded", "data", "by hand")
    yield f"{'redaction alone, ns an event':34}" + "".join(f"{way:>10}" for way in ways) + f"{'encoded/hand':>14}"
    encode = msgspec.json.Encoder().encode
    redactor = Redactor()
    for name, source in cases().items():

        def line(source: Callable[[], Any] = source) -> bytes:
            return encode(source())

        taken = compare(
            {
                "encoding": taking(encode, source, events),
                "encoded": taking(redactor.redact_encoded, line, events),
                "data": taking(redactor.redact, source, events),
                "by hand": taking(by_hand, source, events),
            },
            rounds,
        )
        times = "".join(f"{taken[way]:10.0f}" for way in ways)
        yield f"{name + f' ({len(line())} bytes)':34}{times}{taken['encoded'] / taken['by hand']:14.2f}"


def whole_call(rounds: int, events: int) -> Iterator[str]:
    ways = ("balog off", "balog on", "structlog", "+ by hand")
    yield f"{'whole call, ns an event':34}" + "".join(f"{way:>11}" for way in ways) + f"{'on/by hand':>12}"
    ours = balog.get_logger("tap_stripe.sync")
    with open(os.devnull, "wb") as nowhere, open(os.devnull, "w") as null, redirect_stderr(null):
        plain, redacting = peer(nowhere), peer(nowhere, hand_written_processor)

        def log(redact: bool, source: Callable[[], Any]) -> float:
            balog.configure("stderr", redact=redact)
            ours.info("page", payload=source())  # what is looked up once
            return taking(lambda one: ours.info("page", payload=one), source, events)()

        try:
            for name, source in cases().items():
                taken = compare(
                    {
                        "balog off": partial(log, False, source),
                        "balog on": partial(log, True, source),
                        "structlog": taking(lambda one: plain.info("page", payload=one), source, events),
                        "+ by hand": taking(lambda one: redacting.info("page", payload=one), source, events),
                    },
                    rounds,
                )
                times = "".join(f"{taken[way]:11.0f}" for way in ways)
                yield f"{name:34}{times}{taken['balog on'] / taken['+ by hand']:12.2f}"
        finally:
            balog.configure("stderr")


def peer(nowhere: BinaryIO, *processors: Any) -> Any:
    """Give a structlog logger in its fastest documented set-up."""
    encode = msgspec.json.Encoder().encode
    return structlog.wrap_logger(
        structlog.BytesLogger(nowhere),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *processors,
            structlog.processors.JSONRenderer(serializer=lambda event, **_: encode(event)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
    ).bind()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few rounds: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    rounds, events = (3, 500) if quick else (31, 5000)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {rounds} rounds of {events} events\n")
    for line in redaction_alone(rounds, events):
        print(line)
    print()
    for line in whole_call(rounds, events):
        print(line)


if __name__ == "__main__":
    main()
