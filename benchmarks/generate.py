"""Make dumps of realistic events: the archive of a few taps that ran for some days.

``events(folder, size)`` writes ``plain-<size>/singer-events/date=…/NN.jsonl`` and the same as ``gzip-<size>/…``.
Out of a hundred events about 60 are log lines, 25 timers, 14 counters and one a gauge; each run ends with its report.
"""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec

from balog.event import format_timestamp, new_id

__all__ = ["events", "lines", "run"]

_APPLICATIONS = {
    "tap-jsonl": ["airports", "carriers"],
    "tap-weather": ["weather"],
    "tap-stripe": ["charges", "customers", "invoices", "refunds"],
    "tap-github": ["issues", "commits", "pull_requests"],
    "target-csv": [],
}
_MESSAGES = [
    "Beginning sync of {stream!r} in incremental mode",
    "GET https://api.example.com/v1/{stream}?page={number} answered 200 in {number} ms",
    "Wrote state: bookmark of {stream} is 2026-10-{day:02d}T00:00:00Z",
    "Processed {number} rows of {stream}",
    'The source\'s field "{stream}_id" holds a value of another type; kept as text (n° {number})',
]
_LONGEST = 20_000  # events of a run
_START = datetime(2026, 10, 1, tzinfo=timezone.utc)
_DAYS = 9
_encode = msgspec.json.Encoder().encode


def run(random_: random.Random, length: int, days: int = _DAYS) -> Iterator[bytes]:
    """Give the lines of one run of ``length`` events, which begins in one of ``days`` days."""
    application = random_.choice(list(_APPLICATIONS))
    streams = _APPLICATIONS[application] or ["output"]
    context = {
        "fqdn": f"worker-{random_.randrange(8)}.example.com",
        "application": application,
        "application_version": "1.4.2",
        "process": random_.randrange(1000, 60000),
        "run_id": f"{random_.getrandbits(64):016x}",
    }
    clock = (_START + timedelta(seconds=random_.randrange(days * 86400))).timestamp()
    began, records = clock, 0

    def line(channel: str, level: str, payload: dict[str, object]) -> bytes:
        nonlocal clock
        clock += random_.expovariate(20)
        header = {
            "id": new_id(),
            "channel": f"{application.replace('-', '_')}.{channel}",
            "timestamp": format_timestamp(int(clock * 1e9)),
            "level": level,
            "composition": False,
            "context": context,
        }
        return _encode({"schema": "0.1.0", "header": header, "payload": payload}) + b"\n"

    failed = random_.random() < 0.1
    for _ in range(length - 1):
        stream, dice, number = random_.choice(streams), random_.random(), random_.randrange(1, 5000)
        if dice < 0.60:
            message = random_.choice(_MESSAGES).format(stream=stream, number=number, day=number % 28 + 1)
            level = "WARNING" if dice < 0.02 else "DEBUG" if dice < 0.2 else "INFO"
            yield line(
                "log",
                level,
                {"cls_type": "log", "message": message, "version": "1.0.0", "logger": f"{application}.{stream}"},
            )
        elif dice < 0.605:
            where = f'  File "tap.py", line {number}, in sync'
            text = f"Traceback (most recent call last):\n{where}\nRuntimeError: HTTP 500 from source"
            yield line(
                "log", "ERROR", {"cls_type": "log", "message": "sync failed", "version": "1.0.0", "exc_text": text}
            )
        elif dice < 0.85:
            tags = {"endpoint": stream, "http_status_code": 200, "status": "succeeded"}
            value = random_.lognormvariate(-3, 1)
            yield line("metric", "INFO", _metric("timer", "http_request_duration", value, tags))
        elif dice < 0.99:
            records += number
            yield line(
                "metric",
                "INFO",
                _metric("counter", "record_count", number, {"stream": stream, "pid": context["process"]}),
            )
        else:
            yield line("metric", "INFO", _metric("gauge", "queue_depth", random_.randrange(100), {"stream": stream}))
    report = {
        "cls_type": "run",
        "outcome": "failed" if failed else "succeeded",
        "duration": clock - began,
        "exit_code": int(failed),
        "command": application,
        "version": "1.0.0",
        "records": records,
    }
    yield line("run", "ERROR" if failed else "INFO", report)


def _metric(kind: str, name: str, value: float, tags: dict[str, object]) -> dict[str, object]:
    return {"cls_type": "metric", "type": kind, "metric": name, "value": value, "tags": tags, "version": "1.0.0"}


def lines(size: int, seed: int = 1, days: int = _DAYS, longest: int = _LONGEST) -> Iterator[bytes]:
    """Give whole runs' lines until they are ``size`` bytes; the same for the same seed, but for the ids."""
    random_ = random.Random(seed)
    given = 0
    while given < size:
        for text in run(random_, random_.randrange(50, longest), days):
            given += len(text)
            yield text


def events(folder: Path, size: int, files: int = 8, days: int = _DAYS, longest: int = _LONGEST) -> tuple[Path, Path]:
    """Write ``size`` bytes of events below ``folder`` in ``files`` files, plain and gzip, unless they are there.

    Their runs begin in ``days`` days. A file ends with a whole run, which has fewer events than ``longest``.

    Returns:
        The archive's root in its plain and in its gzip form.
    """
    name = f"{size}" if days == _DAYS else f"{size}-{days}d"
    roots = folder / f"plain-{name}", folder / f"gzip-{name}"
    if (folder / f"made-{name}").exists():
        return roots
    for number in range(files):
        day = (_START + timedelta(days=number)).date().isoformat()
        plain = roots[0] / "singer-events" / f"date={day}" / f"{number:02d}.jsonl"
        packed = roots[1] / "singer-events" / f"date={day}" / f"{number:02d}.jsonl.gz"
        plain.parent.mkdir(parents=True, exist_ok=True)
        packed.parent.mkdir(parents=True, exist_ok=True)
        with plain.open("wb") as out:
            out.writelines(lines(size // files, seed=number, days=days, longest=longest))
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    (folder / f"made-{name}").touch()
    return roots
