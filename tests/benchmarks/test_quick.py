"""The benchmarks run and say their ratio. How fast anything is, is not for a test to say."""

import re
import sys
from pathlib import Path

import pytest

from tests.programs import run_program

for extra in ("orjson", "celpy", "elasticsearch", "pythonjsonlogger"):
    pytest.importorskip(extra, reason="needs the extra bench")


def quick(name: str) -> str:
    return run_program(sys.executable, "-m", f"benchmarks.{name}", "--quick", cwd=Path(__file__).parents[2]).stdout


@pytest.mark.parametrize(
    ("name", "peers"),
    [
        ("log", ["balog", "structlog", "python-json-logger", "bare"]),
        ("pipe", ["cat", "balog broker", "balog broker, topic + store", "loop with orjson"]),
        ("validate", ["balog, JSON Schema", "fastjsonschema", "jsonschema", "balog, protobuf"]),
        ("serve", ["empty", "balog"]),
        ("sinks", ["elastic", "store", "topic", "webhook", "webhook, batches"]),
        ("watch", ["balog", "fixed threshold", "z-score", "Elementary", "Elementary, seasonal"]),
    ],
)
def test_a_quick_run_ends_well_and_prints_the_table_and_the_ratio(name: str, peers: list[str]) -> None:
    said = quick(name)
    assert re.search(r"^ratio: \d+\.\d\d × ", said, re.MULTILINE)
    for peer in peers:
        assert re.search(rf"^{re.escape(peer)} +\d", said, re.MULTILINE), peer


OWN = r"^\S.* \d+\.\d\d( x balog)?$|^  balog .* 1\.00 x balog$"
POISON = "".join(
    rf"^ratio: \d+\.\d\d × the good events' rate alone, 1 of 11 {kind}.*\n" for kind in ("can", "raises", "raises")
)


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("redaction", [OWN]),
        ("filters", [OWN]),
        ("records", [r"^md5: balog broker +\d+\.\d\d +[\d,]+ +1\.000$", r"^one mask: [\d,]+ records/s on one core"]),
        ("tap", [r"^balog\.tap, one by one +\d+\.\d\d +[\d,]+ +1\.000$"]),
        ("verify", [r"^recall: 1\.000 ", r"^precision: 1\.000 ", r"^ratio: \d+\.\d\d × one run at a time"]),
        ("acting", [r"^end to end: [\d,]+ events/s", r"^routing: at most \d+\.\d µs an event", POISON]),
    ],
)
def test_a_quick_run_with_tables_of_its_own_ends_well(name: str, tables: list[str]) -> None:
    said = quick(name)
    for table in tables:
        assert re.search(table, said, re.MULTILINE), said


def test_the_routes_are_short_and_name_the_files_from_the_call_to_the_sink_and_from_the_queue_to_the_handler() -> None:
    routes = re.findall(r"^a .*: (\d+) files, (\d+) functions\n((?:  .*\n)+)", quick("route"), re.MULTILINE)
    (files, functions, event), (message_files, _, message) = routes
    assert (int(files) <= 12, int(functions) <= 35, int(message_files) <= 25) == (True, True, True), routes
    assert {"log/logger.py", "sinks/statsd.py"} <= set(re.findall(r"^  (.*?): ", event, re.MULTILINE))
    assert {"topics/sqs/queue.py", "consumers/operator.py"} <= set(re.findall(r"^  (.*?): ", message, re.MULTILINE))
