"""A Singer tap on singer-python, as many were written: it knows nothing of balog.

    python demo/tap_weather.py --config demo/weather.json

It reads daily weather, one JSON-lines document for each of the config's `years`, from `source` (a URL or a path with
`{year}` in it), and goes on after the year that `--state` names.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import singer
from singer import metrics, utils

STREAM = "weather"
SCHEMA = {
    "type": "object",
    "properties": {
        "date": {"type": "string", "format": "date"},
        "precipitation": {"type": "number"},
        "temp_max": {"type": "number"},
        "temp_min": {"type": "number"},
        "wind": {"type": "number"},
        "weather": {"type": "string"},
    },
}

LOGGER = singer.get_logger()


class SourceError(Exception):
    """The source doesn't have what it was asked for."""


def fetch(source: str) -> Iterator[dict[str, Any]]:
    """The records of one document; raises ``SourceError`` when it can't be had."""
    url = source if "://" in source else Path(source).absolute().as_uri()
    with metrics.http_request_timer(STREAM) as timer:
        try:
            with urllib.request.urlopen(url) as response:
                if response.status:
                    timer.tags[metrics.Tag.http_status_code] = response.status
                lines = response.read().splitlines()
        except urllib.error.URLError as error:
            raise SourceError(f"{source}: {error.reason}") from None
    return map(json.loads, lines)


def sync(config: dict[str, Any], state: dict[str, Any]) -> None:
    """Write the years that ``state`` doesn't have yet, and a STATE message after each."""
    LOGGER.info("Starting sync of stream %s", STREAM)
    singer.write_schema(STREAM, SCHEMA, ["date"])
    with metrics.job_timer("sync"), metrics.record_counter(STREAM) as counter:
        for year in config["years"]:
            if year <= singer.get_bookmark(state, STREAM, "year", 0):
                continue
            for record in fetch(config["source"].format(year=year)):
                singer.write_record(STREAM, record)
                counter.increment()
            singer.write_state(singer.write_bookmark(state, STREAM, "year", year))


def main() -> int:
    arguments = utils.parse_args(["source", "years"])
    try:
        sync(arguments.config, arguments.state)
    except (SourceError, ValueError):
        LOGGER.exception("Sync of stream %s failed", STREAM)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
