"""Time filters: an expression, CEL (cel-python) and a function written by hand, over the same events.

    python -m benchmarks.filters [--quick]

Needs cel-python. First the predicate alone: the events' payloads are decoded before, and CEL's values are made before.
Then with all that is work for each event where lines come in: decoding, and making CEL's values; of a filter of the
service also the new payload and encoding it, without the topics. Times are of the thread's own on a core, and all ways
take turns, so that what else the machine does falls on all; medians are compared.
"""

from __future__ import annotations

import argparse
import platform
import random
import re
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import celpy
import msgspec

from balog.event import LEVELS, Event, decode, encode
from balog.filters import Expression
from balog.filters.event_filter import EventFilter

Filter = Callable[[Event], bool]

_BYTES = re.compile("^by")

PREDICATES: dict[str, tuple[str, Filter]] = {
    "level = 'ERROR' AND payload.metric IN ('rows', 'bytes')": (
        "level == 'ERROR' && payload.metric in ['rows', 'bytes']",
        lambda event: event.header.level == "ERROR" and event.payload.get("metric") in ("rows", "bytes"),
    ),
    "level >= 'WARNING' AND channel LIKE 'tap_stripe.%'": (
        "level in ['WARNING', 'ERROR', 'CRITICAL'] && channel.startsWith('tap_stripe.')",
        lambda event: LEVELS[event.level or ""] >= 30 and event.header.channel.startswith("tap_stripe."),
    ),
    "payload.value * 2 > 150 AND payload.tags.stream <> 'users'": (
        "payload.value * 2.0 > 150.0 && payload.tags.stream != 'users'",
        lambda event: event.payload["value"] * 2 > 150 and event.payload["tags"]["stream"] != "users",
    ),
    "context.environment = 'test' OR payload.metric RLIKE '^by' OR payload.value IN (1.5, 400)": (
        "context.environment == 'test' || payload.metric.matches('^by') || payload.value in [1.5, 400.0]",
        lambda event: (
            event.header.context.get("environment") == "test"
            or _BYTES.search(event.payload["metric"]) is not None
            or event.payload["value"] in (1.5, 400)
        ),
    ),
}


def make_events(count: int) -> list[Event]:
    pick = random.Random(3).choice
    events = []
    for number in range(count):
        tags = {"stream": pick(["users", "orders", "items"]), "endpoint": f"/v1/{number}"}
        values = {"value": pick([1.5, 60.0, 80.25, 400.0]), "tags": tags}
        payload = {"cls_type": "metric", "type": "counter", "metric": pick(["rows", "bytes", "calls"]), **values}
        channel = pick(["tap_stripe.sync", "tap_github.sync", "target.load"])
        context = {"environment": pick(["test", "production"]), "run_id": f"r{number}"}
        raw = msgspec.Raw(msgspec.json.encode(payload))
        events.append(Event.new(channel, raw, level=pick(list(LEVELS)), context=context))
    for event in events:
        _ = event.payload
    return events


def cel_values(event: Event) -> Any:
    header = event.header
    document = {"level": event.level, "channel": header.channel, "context": header.context, "payload": event.payload}
    return {key: celpy.json_to_cel(value) for key, value in document.items()}


def cel_filter(text: str, runner: Any, activations: dict[str, Any]) -> Filter:
    environment = celpy.Environment(runner_class=runner)
    program = environment.program(environment.compile(text))
    return lambda event: bool(program.evaluate(activations[event.header.id]))


def line_ways(text: str, cel: str, by_hand: Filter) -> dict[str, Callable[[bytes], bool]]:
    """Ways from a line to whether it is wanted; the last one also makes and writes what a filter selects."""
    matches = Expression(text).matches
    environment = celpy.Environment(runner_class=celpy.CompiledRunner)
    program = environment.program(environment.compile(cel))
    selection = EventFilter("f", text, {"metric": "payload.metric", "value": "payload.value"}, "part")

    def select(line: bytes) -> bool:
        event = decode(line)
        is_wanted = selection.wants(event)
        if is_wanted:
            encode(selection.make(event))
        return is_wanted

    return {
        "by hand": lambda line: by_hand(decode(line)),
        "balog": lambda line: matches(decode(line)),
        "balog, selecting": select,
        "CEL, compiled": lambda line: bool(program.evaluate(cel_values(decode(line)))),
    }


def show(times: dict[str, float]) -> None:
    for name, nanoseconds in times.items():
        rate, ratio = 1e9 / nanoseconds, nanoseconds / times["balog"]
        print(f"  {name:18}{nanoseconds:12,.0f} ns{rate:14,.0f} /s{ratio:10.2f} x balog")


def time_each(ways: dict[str, Callable[[Any], bool]], events: list[Any], rounds: int) -> dict[str, float]:
    """Nanoseconds of one evaluation, by way; slow ways see fewer of the events."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    shares = {name: events[: len(events) // 20] if name.startswith("CEL") else events for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.thread_time_ns()
            for event in shares[name]:
                way(event)
            spent[name].append((time.thread_time_ns() - begin) / len(shares[name]))
    return {name: statistics.median(times) for name, times in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a few seconds, rougher numbers")
    quick = parser.parse_args().quick
    events, rounds = make_events(2_000 if quick else 20_000), 3 if quick else 9
    lines = [encode(event) for event in events]
    activations = {event.header.id: cel_values(event) for event in events}
    versions = f"Python {platform.python_version()}, cel-python {version('cel-python')}"
    print(f"{versions}, {len(events)} events, median of {rounds} rounds")
    for text, (cel, by_hand) in PREDICATES.items():
        compiled = cel_filter(cel, celpy.CompiledRunner, activations)  # the first: celpy keeps its first parser for all
        ways = {
            "by hand": by_hand,
            "balog": Expression(text).matches,
            "CEL, interpreted": cel_filter(cel, celpy.InterpretedRunner, activations),
            "CEL, compiled": compiled,
        }
        for event in events[:200]:
            answers = {name: way(event) for name, way in ways.items()}
            assert len(set(answers.values())) == 1, (text, answers)
        print(f"\n{text}")
        show(time_each(ways, events, rounds))
        whole = line_ways(text, cel, by_hand)
        for line in lines[:200]:
            assert len({way(line) for way in whole.values()}) == 1, (text, line)
        print("  from the line:")
        show(time_each(whole, lines, rounds))


if __name__ == "__main__":
    main()
