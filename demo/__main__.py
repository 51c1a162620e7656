"""Run the demo: `python -m demo` in the checkout, once `make demo-parts` has installed what it needs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from demo import check, data
from demo.pipeline import Pipeline
from demo.receiver import Receiver

OUT = Path(".demo/out")
TOPICS = f"local:{OUT / 'topics'}"
BROKER = ["balog", "broker", "--config", "demo/broker.json", "--strip"]
TAP_JSONL = ["balog", "run", "--", ".demo/tap-jsonl/bin/tap-jsonl", "--config", "demo/airports.json"]
PYTHON_TAP = [".demo/tap-weather/bin/python", "demo/tap_weather.py", "--config"]
TAP_WEATHER = ["balog", "run", "--name", "tap-weather", "--", *PYTHON_TAP]
LIST = ["consumers", "list", "consumers"]
TOPIC = ["singer-events", "--topics", TOPICS]
FORWARD = ["--topics", TOPICS, "--topic", "singer-events", "--config", "demo/forward.json", "--group", "forward"]
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

COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ
BOLD, GREEN, RED, DIM, PLAIN = ("\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m") if COLOUR else [""] * 5


def say(text: str) -> None:
    print(text, flush=True)


def step(heading: str, pipeline: Pipeline, expected: Sequence[int] = ()) -> None:
    """Show a heading and the command, run it; exit codes other than the expected (all 0) end the demo."""
    say(f"\n{BOLD}{heading}{PLAIN}\n{DIM}${PLAIN} {pipeline}")
    began = time.monotonic()
    codes = pipeline.run()
    say(f"{DIM}# {time.monotonic() - began:.1f} s{PLAIN}")
    if codes != list(expected or [0] * len(codes)):
        raise check.Wrong(f"exit codes {codes} of: {pipeline}")


def sync(heading: str, tap: list[str], output: str, to_target: bool = True, expected: Sequence[int] = ()) -> None:
    step(heading, Pipeline([tap, BROKER, *[TARGET] * to_target], OUT / output), expected)


def ask(checks: Sequence[Callable[[], str]]) -> None:
    say(f"\n{BOLD}What was made, checked against the source{PLAIN}")
    for each in checks:
        say(f"{GREEN}ok{PLAIN}  {each()}")


def demo(root: Path, receiver: Receiver) -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "csv").mkdir(parents=True)
    data.prepare(root, OUT / "data")
    sync(
        "1. A tap from PyPI syncs the airports; its log lines and metrics travel with the data",
        TAP_JSONL,
        "airports.state",
    )
    sync(
        "2. So does a tap on singer-python with the weather of Seattle",
        [*TAP_WEATHER, "demo/weather.json"],
        "weather.state",
    )
    sync(
        "3. A sync that fails half-way: there is no weather for 2016, so exit code 1 is right here",
        [*TAP_WEATHER, "demo/weather-failing.json"],
        "failing.singer",
        to_target=False,
        expected=[1, 0],
    )
    step("4. The package consumers/ has handlers; this is what they listen to", Pipeline([["balog", *LIST]]))
    consume = ["balog", "consume", "consumers", "--topics", TOPICS, *_settings(receiver), "--until-empty"]
    step("5. They act on the events: alerts, an archive, callbacks, metrics, lines", Pipeline([consume]))
    ask(
        [
            lambda: check.records_are_counted(OUT / "metrics.prom", 3376 + 1461 + 365),
            lambda: check.incident_is_open(receiver, INCIDENT),
        ]
    )
    sync(
        "6. The sync is mended, and succeeds",
        [*TAP_WEATHER, "demo/weather-mended.json"],
        "mended.singer",
        to_target=False,
    )
    step("7. So the handlers resolve its incident", Pipeline([consume]))
    step("8. What waits in the topic, and for whom", Pipeline([["balog", "topics", "describe", *TOPIC]]))
    step(
        "9. The topic into sinks, without any Python: errors into files, reports of runs to a webhook",
        Pipeline([["balog", "forward", *FORWARD, "--until-empty"]]),
    )
    step(
        "10. Spark lays the archive that the handlers made out as tables",
        Pipeline([["balog", "load", str(OUT / "archive"), "--tables", str(OUT / "tables")]]),
    )
    step(
        "11. DuckDB reports from their rollups, without Java: what ran, what failed, what slowed down",
        Pipeline([["balog", "report", str(OUT / "tables"), "--html", str(OUT / "report.html")]]),
    )
    step(
        "12. So it does for everything else in SQL",
        Pipeline([["balog", "query", SLOWEST, "--tables", str(OUT / "tables")]]),
    )
    step(
        "13. The event service takes each airport as a typed event; two of an old program are refused, so exit code 1",
        Pipeline([[*SERVICE, *DELIVER, f"{OUT / 'csv/airports.csv'}"]]),
        expected=[1],
    )
    step(
        "14. A patch mends what was refused; those of Hawaii are filtered into a topic, and called back",
        Pipeline([[*SERVICE, "sh", "-c", f"{REPLAY} && {shlex.join(DELIVER)}"]]),
    )
    step(
        "15. A tap on balog's own toolkit reads a shop that fails at each 50th request, and ends each token",
        Pipeline([[*SHOP, *TAP_SHOP], TARGET], OUT / "shop.state"),
    )
    step(
        "16. And is a tap a good one? It is run as a pipeline would run it, and held against the practices",
        Pipeline([[*SHOP[:2], "--", "balog", "tap", "verify", "--", *TAP_COOL]]),
    )
    ask(
        [
            lambda: check.shop_is_complete(OUT / "csv"),
            lambda: check.csv_is_complete(OUT / "csv/airports.csv", data.read(root, data.AIRPORTS), "airports"),
            lambda: check.csv_is_complete(OUT / "csv/weather.csv", data.read(root, data.WEATHER), "days of weather"),
            lambda: check.every_event_was_handled(OUT / "archive", TOPICS, "balog"),
            lambda: check.alerts_are_settled(receiver, INCIDENT),
            lambda: check.runs_were_called_back(receiver, OUT / "archive", "/runs"),
            lambda: check.runs_were_called_back(receiver, OUT / "archive", "/forwarded"),
            lambda: check.tables_are_complete(OUT / "tables", OUT / "archive"),
            lambda: check.airports_are_delivered(f"local:{OUT / 'service/topics'}", data.read(root, data.AIRPORTS)),
            lambda: check.airports_were_called_back(receiver, data.read(root, data.AIRPORTS), "/hawaii", "HI"),
            lambda: check.page_is_whole(OUT / "report.html"),
        ]
    )


def _settings(receiver: Receiver) -> list[str]:
    """What the handlers are told; secrets go by the environment."""
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


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    os.chdir(root)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # For so few events Spark's second compilation of its own code costs more than all the rest.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    began = time.monotonic()
    try:
        with Receiver() as receiver:
            demo(root, receiver)
    except (check.Wrong, OSError) as problem:
        say(f"{RED}failed{PLAIN}  {problem}")
        return 1
    say(f"\nDone in {time.monotonic() - began:.0f} s. Open {root / OUT / 'report.html'} in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
