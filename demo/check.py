"""What must be true after the demo, each told as one line; anything else raises ``Wrong``."""

from __future__ import annotations

import csv
import gzip
import json
import re
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb

from balog.event import decode
from balog.topics import open_topics
from demo.data import Row
from demo.receiver import Receiver
from examples.shop_server import Shop

__all__ = [
    "Wrong",
    "airports_are_delivered",
    "airports_were_called_back",
    "alert_has_fired",
    "alert_has_resolved",
    "alerts_are_settled",
    "backtest_agrees",
    "csv_is_complete",
    "every_event_was_handled",
    "incident_is_open",
    "page_is_whole",
    "read_archive",
    "records_are_counted",
    "runs_were_called_back",
    "shop_is_complete",
    "tables_are_complete",
]


class Wrong(Exception):
    """The demo made something that it should not have."""


def csv_is_complete(path: Path, source: list[Row], what: str) -> str:
    """Every record and every value of the source is in the CSV that the target wrote, in order."""
    with path.open(newline="", encoding="utf-8") as file:
        loaded = list(csv.DictReader(file))
    for number, (row, written) in enumerate(zip_longest(source, loaded), start=1):
        if row is None or written is None:
            raise Wrong(f"{path}: {len(loaded):,} records where the source has {len(source):,}")
        for key, value in row.items():
            text = written.get(key)
            if text is None or (float(text) if isinstance(value, float) else text) != value:
                raise Wrong(f"{path}: record {number}: {key} is {text!r}, the source has {value!r}")
    return f"{path} has all {len(source):,} {what}, every value as in the source"


def shop_is_complete(folder: Path) -> str:
    """What the shop has is in the CSVs, each record once, and by its key."""
    shop = Shop()
    expected: dict[str, list[tuple[str, ...]]] = {
        "customers": [(str(number),) for number in shop.customers],
        "orders": [(str(number),) for number in shop.orders],
        "order_lines": [(str(line["order_id"]), str(line["line"])) for lines in shop.lines.values() for line in lines],
    }
    for stream, keys in expected.items():
        with (folder / f"{stream}.csv").open(newline="", encoding="utf-8") as file:
            loaded = [tuple(row[key] for key in KEYS[stream]) for row in csv.DictReader(file)]
        if sorted(loaded) != sorted(keys):
            raise Wrong(f"{folder / stream}.csv: {len(loaded):,} records that are not the {len(keys):,} of the shop")
    return f"{folder} has all {sum(map(len, expected.values())):,} customers, orders and lines of the shop"


KEYS = {"customers": ["id"], "orders": ["id"], "order_lines": ["order_id", "line"]}


def read_archive(archive: Path) -> list[dict[str, Any]]:
    """The archive's events, read the plain way."""
    events: list[dict[str, Any]] = []
    for path in sorted(archive.glob("*/date=*/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            events.extend(json.loads(line) for line in lines)
    return events


def every_event_was_handled(archive: Path, topics: str, group: str) -> str:
    """The archive and the topic hold the same number of events, no id twice, and the group has handled all of them."""
    identities = [event["header"]["id"] for event in read_archive(archive)]
    if not identities or len(identities) != len(set(identities)):
        raise Wrong(f"{archive}: {len(identities)} events with {len(set(identities))} ids")
    with open_topics(topics) as home, home.topic("singer-events") as topic:
        state = topic.describe()
    if state.messages != len(identities):
        raise Wrong(f"{topics}: {state.messages} events where {archive} has {len(identities)}")
    progress = next((each for each in state.groups if each.name == group), None)
    if progress is None or progress.pending or progress.dead:
        raise Wrong(f"{topics}: the handlers have not handled every event: {progress}")
    return f"{archive} and {topics} hold the same {state.messages} events; none is left to handle, none failed"


def records_are_counted(metrics: Path, records: int) -> str:
    """The counters that Prometheus would read add up to the records of the syncs."""
    lines = re.findall(r"^record_count_total\{.*\} (\S+)$", metrics.read_text(encoding="utf-8"), re.MULTILINE)
    found = sum(map(float, lines))
    if found != records:
        raise Wrong(f"{metrics}: record_count_total adds up to {found:,.0f}, the syncs carried {records:,}")
    return f"{metrics} counts all {records:,} records of the syncs, in {len(lines)} series"


def incident_is_open(receiver: Receiver, key: str) -> str:
    """PagerDuty has one open incident, of this key."""
    if list(receiver.incidents) != [key] or receiver.refused:
        raise Wrong(f"PagerDuty: open are {receiver.incidents}, refused {receiver.refused}; expected {key}")
    return f"PagerDuty has one incident open, {key}: {receiver.incidents[key]}"


def alerts_are_settled(receiver: Receiver, key: str) -> str:
    """The incident of this key was triggered, and then resolved; no other was opened."""
    actions = [action for action, each in receiver.history if each == key]
    if receiver.incidents or "trigger" not in actions or actions[-1] != "resolve":
        raise Wrong(f"PagerDuty: open are {receiver.incidents}; told of {key}: {actions}")
    return f"PagerDuty has no incident open any more; it received these for {key}: {', '.join(actions)}"


def read_alerts(path: Path) -> list[dict[str, Any]]:
    """The alerts that `balog watch` wrote, oldest first."""
    return [json.loads(line)["payload"] for line in path.read_text(encoding="utf-8").splitlines()]


def alert_has_fired(alerts: Path, monitor: str) -> str:
    """The watcher wrote one alert, of this monitor, and it fires."""
    found = [(each["monitor"], each["state"]) for each in read_alerts(alerts)]
    if found != [(monitor, "firing")]:
        raise Wrong(f"{alerts}: {found}; expected {monitor} firing")
    return f"{monitor} fires: {read_alerts(alerts)[0]['reason']}"


def alert_has_resolved(fired: Path, resolved: Path, monitor: str) -> str:
    """The alert that fired resolved, as the only change after it."""
    (before,), after = read_alerts(fired), read_alerts(resolved)
    if [(each["key"], each["state"], each["previous"]) for each in after] != [(before["key"], "resolved", "firing")]:
        raise Wrong(f"{resolved}: {[(each['monitor'], each['state']) for each in after]}; expected {monitor} resolved")
    return f"{monitor} fired at {before['since'][11:19]} and resolved at {after[0]['since'][11:19]} UTC"


def backtest_agrees(result: Path, fired: Path, resolved: Path) -> str:
    """Over the tables, the monitors send the alert that the watcher sent, from the same time to the same time."""
    found = json.loads(result.read_text(encoding="utf-8"))
    (began,), (ended,) = read_alerts(fired), read_alerts(resolved)
    times = [(each["key"], each["started"], each["ended"]) for each in found["firings"]]
    if times != [(began["key"], began["since"], ended["since"])]:
        raise Wrong(f"{result}: {times}; the watcher had {began['key']} from {began['since']} to {ended['since']}")
    seconds = found["firings"][0]["seconds"]
    return f"over {found['events']} events in the tables: the same alert, for {seconds:.1f} s, and no other"


def runs_were_called_back(receiver: Receiver, archive: Path, path: str) -> str:
    """Each report of a run in the archive came as a callback to this path, signed as it should be, and no other."""
    runs = {event["header"]["id"] for event in read_archive(archive) if event["payload"].get("cls_type") == "run"}
    came = receiver.callbacks[path].keys()
    if not runs or came != runs or receiver.refused:
        raise Wrong(f"{path}: {len(came)} callbacks of {len(runs)} runs; refused: {receiver.refused}")
    return f"{path} got the reports of all {len(runs)} runs, each signed"


def airports_are_delivered(topics: str, source: list[Row]) -> str:
    """The service's topic has each airport of the source once, with its place; of what was refused nothing is left."""
    with open_topics(topics) as home:
        payloads = [decode(each.body).payload for each in home.topic("airports").peek(2 * len(source))]
        left = [group.pending for group in home.topic("failed_events").describe().groups]
    names = ("iata", "latitude", "longitude")
    if sorted(tuple(each[name] for name in names) for each in payloads) != sorted(
        tuple(row[name] for name in names) for row in source
    ):
        raise Wrong(f"{topics}: {len(payloads)} airports where the source has {len(source)}, or they are not the same")
    if left != [0]:
        raise Wrong(f"{topics}: of what was refused there is left, by group: {left}")
    return f"{topics} has all {len(payloads):,} airports as typed events, the refused ones mended"


def airports_were_called_back(receiver: Receiver, source: list[Row], path: str, state: str) -> str:
    """Each airport of this state came as a callback to this path, signed as it should be, and no other."""
    came = sorted(event["payload"]["iata"] for event in receiver.callbacks[path].values())
    if not came or came != sorted(row["iata"] for row in source if row["state"] == state):
        raise Wrong(f"{path}: callbacks of {came}")
    return f"{path} got the {len(came)} airports of {state}, each signed"


class _Asked(HTMLParser):
    """What a page would ask a server for while it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        if tag != "a":
            self.urls += [value for name, value in attrs if name in {"src", "srcset", "href"} and value]

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.urls += re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""", data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def tables_are_complete(tables: Path, archive: Path) -> str:
    """The table of events, read by DuckDB, has every event of the archive once, under its own day."""
    events = [event["header"] for event in read_archive(archive)]
    asked = f"SELECT id, date::VARCHAR FROM read_parquet('{tables}/events/**/*.parquet', hive_partitioning = true)"
    with duckdb.connect() as connection:
        rows = connection.execute(asked).fetchall()
    if sorted(rows) != sorted((header["id"], header["timestamp"][:10]) for header in events):
        raise Wrong(f"{tables}: {len(rows)} events, {archive} has {len(events)}, or they are not the same")
    return f"{tables} has the archive's {len(rows)} events, each once, for whoever reads Parquet"


def page_is_whole(page: Path) -> str:
    """The page is there and asks nobody for anything."""
    text = page.read_text(encoding="utf-8")
    if not text.rstrip().endswith("</html>"):
        raise Wrong(f"{page}: breaks off")
    asked = _Asked()
    asked.feed(text)
    outside = [url for url in asked.urls if not url.startswith(("data:", "#"))]
    if outside:
        raise Wrong(f"{page}: needs more than itself: {outside[0]}")
    return f"{page} is one page of {len(text.encode()) / 1e6:.2f} MB that opens offline"
