"""Count the planted defects that ``balog tap verify`` finds, its false findings, and the time it takes.

    python -m benchmarks.verify

The corpus is ``tests/tap/verify/defects.py``: one tap, and defects that switches plant in it, each with the rule that
finds it and with the rules that it breaks besides. Precision is the part of the findings that are planted or such a
consequence; recall is the part of the defects that are found. Taps without a defect, plain and with what looks odd but
is legal, count as well: each finding of theirs is a false one.

The time is that of the example tap, one run at a time and side by side, in interleaved rounds.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from balog.tap.verify import Options, verify
from benchmarks.history import show_ratio
from benchmarks.measure import interleaved, machine, medians
from tests.tap.verify.defects import ALSO, DEFECTS, LEGAL, command, write_config

ROOT = Path(__file__).parents[1]
QUICK = "secrets-stay-secret"


def findings(config: Path, *defects: str) -> set[str]:
    """Return the ids of the rules that a tap with defects breaks."""
    options = Options(timeout=20, grace=5, skip=("memory-does-not-grow",))  # a busy machine ends taps slowly
    if "hoards" in defects:
        options = Options(timeout=60, grace=5)
    return {result.rule.id for result in verify(command(config, *defects), options).failed}


def example(folder: Path, jobs: int) -> Callable[[], float]:
    """Return a function that verifies the example tap, and returns the seconds."""
    config = folder / "own.json"
    config.write_text(
        json.dumps({"account": "a", "access_token": "of-a-sandbox", "start_date": "2026-11-20T00:00:00Z"})
    )
    tap = [sys.executable, str(ROOT / "tests" / "tap" / "verify" / "own_tap.py"), "--config", str(config)]

    def measure() -> float:
        began = time.perf_counter()
        report = verify(tap, Options(jobs=jobs))
        if report.failed:
            raise click.ClickException(f"the example tap breaks {', '.join(each.rule.id for each in report.failed)}")
        return time.perf_counter() - began

    return measure


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Rounds of the example tap, after one to warm up.")
@click.option("--quick", is_flag=True, help="Two defects of one rule and one round: does it run?")
@click.option("--verbose", is_flag=True, help="Print the findings of each defect.")
def main(rounds: int, quick: bool, verbose: bool) -> None:
    """Measure the verifier by planted defects and by legal taps."""
    click.echo(machine("balog", "msgspec"))
    planted = found = true = false = 0
    with tempfile.TemporaryDirectory() as place:
        config = write_config(Path(place, "config.json"))
        for rule, defects in DEFECTS.items():
            for defect in defects if not quick else defects[:2] if rule == QUICK else ():
                if rule == "memory-does-not-grow" and not sys.platform.startswith("linux"):
                    continue
                seen = findings(config, defect)
                others = seen - {rule} - ALSO.get(defect, set())
                planted, found = planted + 1, found + (rule in seen)
                true, false = true + len(seen) - len(others), false + len(others)
                if verbose or others or rule not in seen:
                    missed = "" if rule in seen else f"MISSED {rule}; "
                    click.echo(f"{defect}: {missed}{', '.join(sorted(others)) or '-'} of {', '.join(sorted(seen))}")
        for legal in ((), *LEGAL[: 1 if quick else None]):
            seen = findings(config, *legal)
            false += len(seen)
            if seen:
                click.echo(f"legal, {', '.join(legal) or 'plain'}: {', '.join(sorted(seen))}")
        click.echo(
            f"{planted} planted defects of {len(DEFECTS)} rules, {1 + len(LEGAL)} taps without a defect\n"
            f"recall: {found / planted:.3f} ({found} of {planted} defects found)\n"
            f"precision: {true / (true + false):.3f} ({false} false of {true + false} findings)\n"
        )
        ways = {"one run at a time": example(Path(place), 1), "side by side": example(Path(place), 0)}
        seconds = interleaved(ways, 1 if quick else rounds)
        table = medians(seconds)
        for name, took in table.items():
            click.echo(f"{name:32}{took:8.2f} s")
        click.echo()
        show_ratio("one run at a time", seconds["side by side"], seconds["one run at a time"], "≤ 1")


if __name__ == "__main__":
    main()
