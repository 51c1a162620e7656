"""The demo's data: two sets of the PyPI package vega-datasets, read from its files, written as JSON lines."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

__all__ = ["AIRPORTS", "WEATHER", "Row", "prepare", "read"]

Row = dict[str, str | float]

PACKAGE = ".demo/vega-datasets/lib/python*/site-packages/vega_datasets/_data"
AIRPORTS = "airports.csv"
WEATHER = "seattle-weather.csv"
NUMBERS = {"latitude", "longitude", "precipitation", "temp_max", "temp_min", "wind"}


def _value(name: str, text: str) -> str | float:
    if name in NUMBERS:
        return float(text)
    return text.replace("/", "-") if name == "date" else text


def read(root: Path, name: str) -> list[Row]:
    """The rows of one of the package's CSV files: numbers as floats, dates as ISO 8601 has them."""
    path = next(root.glob(f"{PACKAGE}/{name}"), None)
    if path is None:
        raise SystemExit(f"demo: vega-datasets has no {name} here; run: make demo-parts")
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: _value(key, text) for key, text in row.items()} for row in csv.DictReader(file)]


def _write(path: Path, rows: Iterable[Row]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def prepare(root: Path, folder: Path) -> list[Path]:
    """Write what the taps read: all airports in one file, the weather in one a year. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    years: dict[str, list[Row]] = defaultdict(list)
    for row in read(root, WEATHER):
        years[str(row["date"])[:4]].append(row)
    return [
        _write(folder / "airports.jsonl", read(root, AIRPORTS)),
        *(_write(folder / f"weather-{year}.jsonl", rows) for year, rows in sorted(years.items())),
    ]
