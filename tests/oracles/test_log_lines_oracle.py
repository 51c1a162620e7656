"""Lines that real libraries make of random records: level, name and message come back. Random text loses no line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from balog.event import encode
from balog.log_lines import LineAssembler
from balog.log_lines.dialects import read_line
from tests.oracles.effort import examples

LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

levels = st.sampled_from(LEVELS)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}([.-][A-Za-z_][A-Za-z0-9_]{0,12}){0,3}", fullmatch=True)
characters = st.characters(exclude_categories=["Cs", "Cc"])
words = st.text(characters, max_size=60) | st.sampled_from(
    ["", " ", "a: b", "x - y", "INFO", "ERROR: no", "{", '{"a": 1}', "[info]", "a=b level=error", "| x |", "%s", "::"]
)
messages = st.lists(words, max_size=4).map(" ".join)

FORMATS = {
    logging.BASIC_FORMAT: True,
    "%(levelname)s %(message)s": False,
    "%(asctime)s - %(name)s - %(levelname)s - %(message)s": True,
    "%(asctime)s - %(levelname)s - %(message)s": False,
    "%(asctime)s %(levelname)s %(message)s": False,
    "%(asctime)s [%(levelname)s] %(message)s": False,
    "[%(asctime)s] [%(levelname)s] %(message)s": False,
    "[%(asctime)s] %(levelname)s in %(name)s: %(message)s": True,
    "[%(asctime)s: %(levelname)s/%(processName)s] %(message)s": False,
    "%(asctime)s | %(levelname)-8s | %(name)-30s | %(message)s": True,
    "%(asctime)s:%(levelname)s:%(name)s:%(message)s": True,
    "%(asctime)s [%(name)s] %(levelname)s: %(message)s": True,
    "%(name)s - %(levelname)s - %(message)s": True,
    "[%(levelname)s] %(message)s": False,
    "[%(levelname)s/%(processName)s] %(message)s": False,
    "time=%(asctime)s name=%(name)s level=%(levelname)s message=%(message)s": True,
}
"""Formats of Python's ``logging``, and whether they part the name from the message."""


def record(level: str, name: str, message: str) -> logging.LogRecord:
    return logging.LogRecord(name, getattr(logging, level), "x.py", 1, message, None, None)


def read(line: str) -> Any:
    found = read_line(line)
    assert found is not None, line
    return found


@pytest.mark.parametrize("format", FORMATS)
@given(level=levels, name=names, message=messages)
@examples(25)
def test_a_line_of_logging_comes_back(format: str, level: str, name: str, message: str) -> None:
    datefmt = "%Y-%m-%d %H:%M:%S" if format.startswith("time=") else None
    line = logging.Formatter(format, datefmt).format(record(level, name, message))
    found = read(line)
    assert (found.level, found.message.strip()) == (level, message.strip())
    if FORMATS[format]:
        assert found.logger == name
    assert ("%(asctime)" in format) == (found.timestamp is not None)


def _json_logger(level: str, name: str, message: str) -> str:
    module = pytest.importorskip("pythonjsonlogger.json")
    return str(module.JsonFormatter("%(levelname)s %(name)s %(message)s").format(record(level, name, message)))


def _json_logger_by_number(level: str, name: str, message: str) -> str:
    module = pytest.importorskip("pythonjsonlogger.json")
    formatter = module.JsonFormatter("%(levelno)d %(name)s %(message)s", rename_fields={"levelno": "level"})
    return str(formatter.format(record(level, name, message)))


def _google(level: str, name: str, message: str) -> str:
    return json.dumps({"severity": level, "message": message, "time": "2026-01-01T00:00:00.5Z", "logger": name})


def _pino(level: str, name: str, message: str) -> str:
    return json.dumps({"level": 20 + 10 * LEVELS.index(level), "time": 1767225600500, "name": name, "msg": message})


def _loguru(level: str, name: str, message: str, *, is_json: bool) -> str:
    loguru = pytest.importorskip("loguru")
    logger, out = loguru._logger.Logger(loguru._logger.Core(), None, 0, False, False, False, False, True, [], {}), []
    logger.add(out.append, level=0, serialize=is_json)
    logger.patch(lambda made: made.update(name=name)).log(level, "{}", message)
    return str(out[0]).rstrip("\n")


def _structlog(level: str, name: str, message: str, renderer: Any) -> str:
    out = io.StringIO()
    processors = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        renderer,
    ]
    log = structlog.wrap_logger(structlog.PrintLogger(out), processors, structlog.BoundLogger)
    getattr(log.bind(logger=name, is_late=True), level.lower())(message)
    return out.getvalue().rstrip("\n")


LIBRARIES: dict[str, Callable[[str, str, str], str]] = {
    "python-json-logger": _json_logger,
    "python-json-logger by number": _json_logger_by_number,
    "google cloud": _google,
    "pino": _pino,
    "loguru": lambda *said: _loguru(*said, is_json=False),
    "loguru as JSON": lambda *said: _loguru(*said, is_json=True),
    "structlog as JSON": lambda *said: _structlog(*said, structlog.processors.JSONRenderer()),
    "structlog as logfmt": lambda *said: _structlog(*said, structlog.processors.LogfmtRenderer()),
}


@pytest.mark.parametrize("library", LIBRARIES)
@given(level=levels, name=names, message=messages)
@examples(25)
def test_a_line_of_a_library_comes_back(library: str, level: str, name: str, message: str) -> None:
    found = read(LIBRARIES[library](level, name, message))
    assert (found.level, found.message.strip(), found.logger) == (level, message.strip(), name)


HEADS = [
    *("", " ", "\t", "INFO ", "ERROR:x:", "WARNING: ", "2026-01-01 00:00:00,000 - a - ERROR - ", "[info     ] "),
    *("[2026-01-01 00:00:00,000] ERROR in x: ", "Traceback (most recent call last):", '  File "x.py", line 1', "time="),
    *("ValueError: ", "level=info msg=", "During handling of the above exception", "\x1b[31mERROR\x1b[0m ", "I0101 "),
    *("2026-01-01 00:00:00.000 | INFO     | a:b:1 - ", "  + Exception Group Traceback (most recent call last):", "{"),
    *("12:00:00 ", "[", "2026-13-99 99:99:99 ", "METRIC: ", "INFO METRIC Point(", "panic: ", "x.py:1: UserWarning: "),
]


@given(st.lists(st.tuples(st.sampled_from(HEADS), st.text(characters, max_size=40), st.booleans()), max_size=30))
@examples(150)
def test_of_random_lines_none_is_lost_and_none_raises(lines: list[tuple[str, str, bool]]) -> None:
    tags = [f"<<{number}>>" for number in range(len(lines))]
    texts = [
        json.dumps({"level": "error", "message": tag, "x": text}) if is_json else f"{head}{text}{tag}"
        for tag, (head, text, is_json) in zip(tags, lines, strict=True)
    ]
    assembler = LineAssembler("tap-x")
    events = assembler.feed("\n".join(texts).encode()) + assembler.close()
    written = b"".join(encode(event) for event in events).decode()
    assert [tag for tag in tags if tag not in written] == []


@given(st.binary(max_size=300))
@examples(200)
def test_no_bytes_raise(data: bytes) -> None:
    assembler = LineAssembler("tap-x")
    for event in assembler.feed(data) + assembler.close():
        encode(event)
