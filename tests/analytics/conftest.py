import gzip
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make() -> Make:
    """Makes documents of events, each with an id of its own."""
    made = iter(range(10**9))

    def make(payload: dict[str, Any] | None = None, *, schema: str = "0.1.0", **header: Any) -> dict[str, Any]:
        number = next(made)
        whole = {
            "id": f"LG{number:022d}",
            "channel": "tap_x.log",
            "timestamp": f"2026-11-20T07:46:12.{number % 10**6:06d}Z",
            "level": "INFO",
            "composition": False,
            "context": {"application": "tap-x", "run_id": "r1"},
            **header,
        }
        whole = {name: value for name, value in whole.items() if value is not ...}
        payload = payload if payload is not None else {"cls_type": "log", "message": "done"}
        return {"schema": schema, "header": whole, "payload": payload}

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes lines to a file below the test's folder; documents become compact JSON."""

    def write(name: str, *lines: Any, end: bytes = b"\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [
            line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines
        ]
        data = b"\n".join(parts) + (end if parts else b"")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def percentile(values: list[float], share: float) -> float:
    """Give the value of the nearest rank: the least one with at least that share of all values at or below it."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def recount(root: Path) -> dict[str, Any]:
    """Count the events below a folder by what their documents say, without anything of balog."""
    counted: dict[str, Any] = {"channels": Counter(), "errors": Counter(), "runs": {}, "events": 0, "bad": 0}
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for path in sorted(root.rglob("*.jsonl*")):
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
            try:
                event = json.loads(line)
                header, payload = event["header"], event["payload"]
                assert event["schema"] in ("0.1.0", "0.0.1")
            except (ValueError, KeyError, AssertionError):
                counted["bad"] += 1
                continue
            counted["events"] += 1
            key = header["channel"], header.get("level")
            counted["channels"][key] += 1
            is_error = key[1] in ("ERROR", "CRITICAL")
            counted["errors"][key] += is_error
            kind = payload.get("cls_type")
            if kind == "metric":
                values[payload["metric"], payload["type"]].append(float(payload["value"]))
            elif kind == "metrics":
                for item in payload["values"]:
                    values[item["name"], "value"].append(float(item["value"]))
            context = header.get("context", {})
            if context.get("run_id"):
                empty = {"applications": set(), "stamps": [], "events": 0, "errors": 0, "reports": []}
                run = counted["runs"].setdefault(context["run_id"], empty)
                run["applications"].add(context["application"])
                run["stamps"].append(header["timestamp"])
                run["events"] += 1
                run["errors"] += is_error
                run["reports"] += [payload] if kind == "run" else []
    counted["values"] = dict(values)
    counted["metrics"] = {
        key: (
            len(found),
            math.fsum(found),
            [None if key[1] == "counter" else percentile(found, p) for p in (0.5, 0.95, 0.99)],
        )
        for key, found in values.items()
    }
    return counted


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some hundred kilobytes of runs, plain and gzip, with bad lines, an old event, and a run that was killed."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.generate import run

    root = tmp_path_factory.mktemp("archive")
    made = [line for seed in range(9) for line in run(random.Random(seed), 300)]
    text = [line.decode() for line in made]
    last = json.loads(text[-1])["header"]["context"]["run_id"]
    killed = [line for line in text if not (last in line and '"cls_type":"run"' in line)]
    old = (Path(__file__).parents[1] / "data" / "event-0.0.1.json").read_text()
    killed.insert(77, json.dumps(json.loads(old)) + "\n")
    killed.insert(99, "{ broken\n")
    header = '{"id": "LG1", "channel": "x", "timestamp": "2026-01-01T00:00:00Z"}'
    killed.insert(1234, f'{{"schema": "3.0.0", "header": {header}, "payload": {{}}}}\n')
    half = len(killed) // 2
    for day, part in (("2026-10-01", killed[:half]), ("2026-10-02", killed[half:])):
        folder = root / "singer-events" / f"date={day}"
        folder.mkdir(parents=True)
        (folder / "a.jsonl").write_text("".join(part[::2]))
        (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(part[1::2]).encode()))
    return root


@pytest.fixture(scope="session")
def counted(root: Path) -> dict[str, Any]:
    """What plain Python counts in ``root``."""
    return recount(root)
