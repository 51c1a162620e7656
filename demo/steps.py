"""The steps of the demo: what each runs, what must be true after it, and what it adds to the closing table."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from demo import check, data
from demo.pipeline import Pipeline
from demo.receiver import Receiver

__all__ = ["OUT", "Step", "steps"]

OUT = Path(".demo/out")
TOPICS = f"local:{OUT / 'topics'}"
BROKER = ["balog", "broker", "--config", "demo/broker.json", "--strip"]
TAP_JSONL = ["balog", "run", "--", ".demo/tap-jsonl/bin/tap-jsonl", "--config", "demo/airports.json"]
PYTHON_TAP = [".demo/tap-weather/bin/python", "demo/tap_weather.py", "--config"]
TAP_WEATHER = ["balog", "run", "--name", "tap-weather", "--", *PYTHON_TAP]
TOPIC = ["singer-events", "--topics", TOPICS]
FORWARD = ["--topics", TOPICS, "--topic", "singer-events", "--config", "demo/forward.json", "--group", "forward"]
WATCH = ["balog", "watch", "demo/monitors.json"]
FOLLOW = ["--topics", TOPICS, "--topic", "singer-events", "--state", f"{OUT / 'watch.sqlite'}", "--until-empty"]
MONITOR = "syncs-succeed"
SLOWEST = "SELECT application, outcome, round(duration, 1) AS seconds, records FROM run ORDER BY seconds DESC"
INCIDENT = "balog/tap-weather"
TYPES = ["--registry", "demo/types", "--document", "demo/document.json"]
SERVICE = ["balog", "micro", *TYPES, "--data", f"{OUT / 'service'}", "--"]
DELIVER = ["python", "-m", "demo.deliver"]
REPLAY = f"balog replay --failed local:{OUT / 'service/topics'} --patch demo/patch.json --service $BALOG_SERVICE"
SHOP = ["python", "examples/shop_server.py", "--fail-every", "50", "--"]
TAP_SHOP = ["env", "PYTHONPATH=examples/tap_shop", "python", "-m", "tap_shop"]
TAP_COOL = ["python", "examples/tap_cool.py", "--config", "ENV"]
TARGET = [".demo/target-csv/bin/target-csv", "--config", "demo/target.json"]
FIRED, RESOLVED = OUT / "alert-fired.jsonl", OUT / "alert-resolved.jsonl"

Checks = Sequence[tuple[str, Callable[[], str]]]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        name: the name of its log.
        text: what happens, on one line.
        make: returns the pipeline when the step begins.
        expected: exit codes; all 0 if empty.
        checks: what must be true after it, under the names that the closing table has; an empty name is not in it.
        shows_check: the line of the step ends with what its check found.
    """

    name: str
    text: str
    make: Callable[[], Pipeline]
    expected: Sequence[int] = ()
    checks: Checks = ()
    shows_check: bool = False


def steps(root: Path, receiver: Receiver) -> list[Step]:
    """The steps, in order."""
    consume = ["balog", "consume", "consumers", "--topics", TOPICS, *_settings(receiver), "--until-empty"]
    began = time.monotonic()
    return [*_syncs(root, consume, receiver), *_history(began, receiver), *_service(root, receiver), *_taps()]


def _syncs(root: Path, consume: list[str], receiver: Receiver) -> list[Step]:
    csv, airports, days = OUT / "csv", data.read(root, data.AIRPORTS), data.read(root, data.WEATHER)
    weather, failing = ([*TAP_WEATHER, f"demo/{name}.json"] for name in ("weather", "weather-failing"))
    mended = [*TAP_WEATHER, "demo/weather-mended.json"]
    return [
        Step("airports", "A tap from PyPI synced airports; its logs and metrics travelled along",
             lambda: Pipeline([TAP_JSONL, BROKER, TARGET], OUT / "airports.state")),
        Step("weather", "So did a tap on singer-python, with the weather of Seattle",
             lambda: Pipeline([weather, BROKER, TARGET], OUT / "weather.state"),
             checks=[
                 ("airports", lambda: check.csv_is_complete(csv / "airports.csv", airports, "airports")),
                 ("weather", lambda: check.csv_is_complete(csv / "weather.csv", days, "days of weather")),
             ]),
        Step("failing", "A sync failed half-way, as it should: there is no weather for 2016",
             lambda: Pipeline([failing, BROKER], OUT / "failing.singer"), expected=[1, 0]),
        Step("watch-failing", "Watcher: ", lambda: Pipeline([[*WATCH, *FOLLOW]], FIRED),
             checks=[("", lambda: check.alert_has_fired(FIRED, MONITOR))], shows_check=True),
        Step("handlers", "The package consumers/ listed its handlers, and what they listen to",
             lambda: Pipeline([["balog", "consumers", "list", "consumers"]])),
        Step("consume", "They acted on the events: an incident, an archive, callbacks, metrics",
             lambda: Pipeline([consume]),
             checks=[
                 ("metrics", lambda: check.records_are_counted(OUT / "metrics.prom", 3376 + 1461 + 365)),
                 ("", lambda: check.incident_is_open(receiver, INCIDENT)),
             ]),
        Step("mended", "The sync was mended, and succeeded",
             lambda: Pipeline([mended, BROKER], OUT / "mended.singer")),
        Step("watch-mended", "Watcher: ", lambda: Pipeline([[*WATCH, *FOLLOW]], RESOLVED),
             checks=[("alert", lambda: check.alert_has_resolved(FIRED, RESOLVED, MONITOR))], shows_check=True),
        Step("consume-mended", "The handlers resolved its incident", lambda: Pipeline([consume])),
        Step("topics", "The topic listed what waits in it, and for which group",
             lambda: Pipeline([["balog", "topics", "describe", *TOPIC]])),
        Step("forward", "The topic went into sinks: errors to files, reports of runs to a webhook",
             lambda: Pipeline([["balog", "forward", *FORWARD, "--until-empty"]])),
    ]  # fmt: skip


def _history(began: float, receiver: Receiver) -> list[Step]:
    tables, archive = OUT / "tables", OUT / "archive"
    place = ["--tables", str(tables)]
    result, page = OUT / "backtest.json", OUT / "watch.html"

    def backtest() -> Pipeline:
        minutes = ceil((time.monotonic() - began) / 60) + 1  # since the demo began
        return Pipeline([[*WATCH, *place, "--backtest", f"{minutes}m", "--html", str(page), "--json"]], result)

    return [
        Step("load", "Spark loaded the archive of the handlers into tables",
             lambda: Pipeline([["balog", "load", str(archive), *place]]),
             checks=[
                 ("tables", lambda: check.tables_are_complete(tables, archive)),
                 ("topic", lambda: check.every_event_was_handled(archive, TOPICS, "balog")),
                 ("incident", lambda: check.alerts_are_settled(receiver, INCIDENT)),
                 ("callbacks", lambda: check.runs_were_called_back(receiver, archive, "/runs")),
                 ("forwarded", lambda: check.runs_were_called_back(receiver, archive, "/forwarded")),
             ]),
        Step("report", "DuckDB reported from them: what ran, what failed, what slowed down",
             lambda: Pipeline([["balog", "report", str(tables), "--html", str(OUT / "report.html")]]),
             checks=[("", lambda: check.page_is_whole(OUT / "report.html"))]),
        Step("query", "It answered a question in SQL", lambda: Pipeline([["balog", "query", SLOWEST, *place]])),
        Step("backtest", "A backtest ", backtest,
             checks=[
                 ("backtest", lambda: check.backtest_agrees(result, FIRED, RESOLVED)),
                 ("", lambda: check.page_is_whole(page)),
             ], shows_check=True),
    ]  # fmt: skip


def _service(root: Path, receiver: Receiver) -> list[Step]:
    airports = data.read(root, data.AIRPORTS)
    return [
        Step("service", "The event service took each airport, and refused two of an old program",
             lambda: Pipeline([[*SERVICE, *DELIVER, f"{OUT / 'csv/airports.csv'}"]]), expected=[1]),
        Step("replay", "A patch mended those two; airports of Hawaii were filtered, called back",
             lambda: Pipeline([[*SERVICE, "sh", "-c", f"{REPLAY} && {shlex.join(DELIVER)}"]]),
             checks=[
                 ("service", lambda: check.airports_are_delivered(f"local:{OUT / 'service/topics'}", airports)),
                 ("hawaii", lambda: check.airports_were_called_back(receiver, airports, "/hawaii", "HI")),
             ]),
    ]  # fmt: skip


def _taps() -> list[Step]:
    return [
        Step("shop", "A tap on balog's toolkit read a shop that fails at each 50th request",
             lambda: Pipeline([[*SHOP, *TAP_SHOP], TARGET], OUT / "shop.state"),
             checks=[("shop", lambda: check.shop_is_complete(OUT / "csv"))]),
        Step("verify", "Another tap was run as pipelines run it, and checked for good practice",
             lambda: Pipeline([[*SHOP[:2], "--", "balog", "tap", "verify", "--", *TAP_COOL]])),
    ]  # fmt: skip


def _settings(receiver: Receiver) -> list[str]:
    """What the handlers are configured with; secrets go by the environment."""
    os.environ["PAGERDUTY_ROUTING_KEY"] = receiver.routing_key
    os.environ["WEBHOOK_SECRET"] = receiver.secret
    os.environ["DEMO_WEBHOOK"] = f"{receiver.url}/forwarded"
    os.environ["DEMO_HAWAII"] = f"{receiver.url}/hawaii"
    settings = {
        "archive": OUT / "archive",
        "prometheus": OUT / "metrics.prom",
        "pagerduty": receiver.url,
        "webhook": f"{receiver.url}/runs",
    }
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
