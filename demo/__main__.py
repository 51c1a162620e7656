"""Run the demo: `python -m demo` in the checkout, once `make demo-parts` has installed what it needs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from demo import check, data
from demo.pipeline import Pipeline

OUT = Path(".demo/out")
TOPICS = f"local:{OUT / 'topics'}"
BROKER = ["balog", "broker", "--config", "demo/broker.json", "--strip"]
TAP_JSONL = ["balog", "run", "--", ".demo/tap-jsonl/bin/tap-jsonl", "--config", "demo/airports.json"]
PYTHON_TAP = [".demo/tap-weather/bin/python", "demo/tap_weather.py", "--config"]
TAP_WEATHER = ["balog", "run", "--name", "tap-weather", "--", *PYTHON_TAP]
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


def demo(root: Path) -> None:
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
    step(
        "4. Handlers of the package consumers/ act on the events",
        Pipeline([["balog", "consume", "consumers", "--topics", TOPICS, "--until-empty"]]),
    )
    step(
        "5. Spark asks the whole archive",
        Pipeline([["balog", "report", str(OUT / "archive"), "--html", str(OUT / "report.html")]]),
    )
    ask(
        [
            lambda: check.csv_is_complete(OUT / "csv/airports.csv", data.read(root, data.AIRPORTS), "airports"),
            lambda: check.csv_is_complete(OUT / "csv/weather.csv", data.read(root, data.WEATHER), "days of weather"),
            lambda: check.every_event_was_handled(OUT / "archive", TOPICS, "balog"),
            lambda: check.page_is_whole(OUT / "report.html"),
        ]
    )


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    os.chdir(root)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    began = time.monotonic()
    try:
        demo(root)
    except (check.Wrong, OSError) as problem:
        say(f"{RED}failed{PLAIN}  {problem}")
        return 1
    say(f"\nDone in {time.monotonic() - began:.0f} s. Open {root / OUT / 'report.html'} in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
