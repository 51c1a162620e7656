"""Run the demo: `python -m demo` in the checkout, once `make demo-parts` has installed what it needs."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo import check, data
from demo.console import Console
from demo.receiver import Receiver
from demo.steps import OUT, Step, steps

LOGS = OUT / "logs"


def run(step: Step, number: int, console: Console, is_verbose: bool) -> list[tuple[str, str]]:
    """Run a step and its checks, print its line, and return its rows of the closing table.

    Raises:
        check.Wrong: a command ended with another exit code than expected, or a check found something else.
    """
    log = None if is_verbose else LOGS / f"{number:02}-{step.name}.log"
    began = time.monotonic()
    pipeline = step.make()
    if log is None:
        console.line(f"\n{console.styled('dim', '$')} {pipeline}")
    else:
        log.write_text(f"$ {pipeline}\n", encoding="utf-8")
    try:
        with console.running(number, step.text.rstrip(": ")):
            codes = pipeline.run(log)
            expected = list(step.expected or [0] * len(codes))
            if codes != expected:
                raise check.Wrong(f"exit codes {codes} instead of {expected}")
            found = [(name, each()) for name, each in step.checks]
    except check.Wrong as problem:
        where = "" if log is None else f"; its output: {log}"
        raise check.Wrong(f"step {number}, {step.name}: {problem}{where}") from None
    console.done(number, step.text + (found[0][1] if step.shows_check else ""), time.monotonic() - began)
    return [(name, text) for name, text in found if name]


def demo(root: Path, receiver: Receiver, is_verbose: bool) -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    for folder in (OUT / "csv", LOGS):
        folder.mkdir(parents=True)
    data.prepare(root, OUT / "data")
    parts = steps(root, receiver)
    console = Console(sys.stdout, len(parts), False if is_verbose else None)
    seen: list[tuple[str, str]] = []
    for number, step in enumerate(parts, 1):
        seen += run(step, number, console, is_verbose)
    links = [("the report", "report.html"), ("the backtest", "watch.html")]
    seen += [(name, (root / OUT / file).as_uri()) for name, file in links]
    if not is_verbose:
        seen.append(("all output", str(LOGS)))
    console.table("What you saw", seen)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make demo", description="Balog on real data, one line a step.")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the commands, and all that they print")
    given = parser.parse_args(arguments)
    root = Path(__file__).resolve().parents[1]
    os.chdir(root)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # For so few events Spark's second compilation of its own code costs more than all the rest.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    began = time.monotonic()
    console = Console(sys.stdout, 0)
    try:
        with Receiver() as receiver:
            demo(root, receiver, given.verbose)
    except (check.Wrong, OSError) as problem:
        console.failed(str(problem))
        return 1
    except KeyboardInterrupt:
        console.failed("stopped")
        return 130
    console.line(f"\nDone in {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
