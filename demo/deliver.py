"""Airports out of a CSV file as typed events: `balog micro … -- python -m demo.deliver [AIRPORTS.csv]`."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
import urllib.request
from typing import Any

from balog.service import ServiceClient

OLD_STYLE = {"ATL", "HNL"}  # still sent by a program that calls the longitude "lon", so that something is refused
PATIENCE = 30.0  # seconds for filters and callbacks to be through


def payload(row: dict[str, str]) -> dict[str, Any]:
    longitude = "lon" if row["iata"] in OLD_STYLE else "longitude"
    return {
        "cls_type": "airport",
        "version": "1.0.0",
        **{name: row[name] for name in ("iata", "name", "state")},
        "latitude": float(row["latitude"]),
        longitude: float(row["longitude"]),
    }


def send(path: str, url: str) -> None:
    with open(path, newline="", encoding="utf-8") as file, ServiceClient(url) as client:
        acks = client.send(payload(row) for row in csv.DictReader(file))
    durable = sum(ack.status == 202 for ack in acks)
    print(f"{durable:,} of {len(acks):,} airports are durable")


def settle(url: str) -> None:
    """Wait until nothing waits for a filter or a callback."""
    until = time.monotonic() + PATIENCE
    quiet = 0
    while quiet < 3:  # the filter's lag may be gone before the callback's is there
        with urllib.request.urlopen(f"{url}/v1/status", timeout=PATIENCE) as answer:
            jobs = json.load(answer)["jobs"]
        quiet = quiet + 1 if all(job["lag"] == 0 for job in jobs) else 0
        if time.monotonic() > until:
            raise SystemExit(f"demo: events still wait for filters and callbacks: {jobs}")
        time.sleep(0.2)


if __name__ == "__main__":
    service = os.environ["BALOG_SERVICE"]
    for each in sys.argv[1:]:
        send(each, service)
    settle(service)
