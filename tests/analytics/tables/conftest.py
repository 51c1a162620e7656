import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where tables are to be."""
    return tmp_path / "tables"


@pytest.fixture
def rows() -> Callable[..., list[tuple[Any, ...]]]:
    """Asks the plain files of tables by DuckDB, as anybody might: ``rows(place, "events", "id, cls_type")``."""

    def rows(place: Path, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        files = f"read_parquet('{place}/{table}/*/*.parquet', union_by_name=true, hive_partitioning=true)"
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(f"SELECT {columns} FROM {files} ORDER BY ALL").fetchall()

    return rows


@pytest.fixture
def dump(tmp_path: Path, make: Any) -> Callable[..., Path]:
    """Writes a dump of so many events from a number on, the same for the same numbers."""

    def dump(name: str, *numbers: int, day: str = "2026-11-20", lines: tuple[str, ...] = ()) -> Path:
        path = tmp_path / "dumps" / name
        path.parent.mkdir(exist_ok=True)
        made = [json.dumps(event(number, day)) for number in numbers]
        path.write_text("".join(line + "\n" for line in [*made, *lines]))
        return path

    return dump


def event(number: int, day: str = "2026-11-20") -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"cls_type": "log", "message": f"line {number}"},
        {"cls_type": "metric", "type": "timer", "metric": "t", "value": number / 8, "version": "1.0.0"},
        {"cls_type": "order", "number": number, "item": {"name": f"n{number}", "count": number % 5}},
    ]
    header = {
        "id": f"LG{number:022d}",
        "channel": "tap_x.log",
        "timestamp": f"{day}T{number % 24:02d}:46:12.{number % 10**6:06d}Z",
        "level": "ERROR" if number % 10 == 0 else "INFO",
        "composition": False,
        "context": {"application": "tap-x", "run_id": f"r{number % 3}"},
    }
    return {"schema": "0.1.0", "header": header, "payload": kinds[number % 3]}
