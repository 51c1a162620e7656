"""Write ``verified_taps.md`` anew from real runs::

    python -m tests.services.verified_taps [NAME …]

The numbers and findings are those of the runs. What a person found out about a finding, its observation and its cause,
is kept from the page; a new finding has its detail, and the place in the tap where a traceback shows it.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.programs import run_program
from tests.services.real_taps import MORE_TAPS, TAPS, TOKEN, prepared
from tests.services.servers.postgres import PostgresServer, running_postgres

PAGE = Path(__file__).with_suffix(".md")
SECTION = re.compile(r"^## (?P<tap>\S+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FINDING = re.compile(
    r"^\| (?P<severity>error|warning|advice) \| `(?P<rule>[\w-]+)` \| (?P<seen>.*?) \| (?P<cause>[^|]*) \|\n",
    re.MULTILINE,
)
SUMMARY = re.compile(
    r"^\| (?P<tap>\S+) \| (?P<what>[^|]*\|[^|]*\|[^|]*)\| (?P<score>\d+) \| (?P<errors>\d+) \| (?P<warnings>\d+) \|"
    r" (?P<advice>\d+) \| (?P<skipped>\d+) \|$",
    re.MULTILINE,
)
HEAD = "| severity | rule | observation | cause |\n|---|---|---|---|\n"


def verified(
    command: list[str], environment: dict[str, str], folder: Path, not_asked: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Run ``balog tap verify``; give its report."""
    options = ["--json", "-", *(word for group in not_asked for word in ("--skip", group))]
    balog = [Path(sys.executable).parent / "balog", "tap", "verify"]
    done = run_program(*balog, *options, "--", *command, cwd=folder, env=environment, code=None)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(report["counts"]["errors"])
    assert TOKEN not in done.stdout + done.stderr
    return report


def postgres_in(stack: ExitStack) -> Callable[[], PostgresServer]:
    """Give a function that gives a server, which starts when it is first asked for."""
    found: list[PostgresServer] = []

    def server() -> PostgresServer:
        if not found:
            found.append(stack.enter_context(running_postgres()))
        return found[0]

    return server


def rewritten(page: str, tap: str, report: dict[str, Any]) -> str:
    """Give the page with the results of one tap."""
    counts = report["counts"]
    numbers = (report["score"], *(counts[name] for name in ("errors", "warnings", "advice", "skipped")))

    def summary(match: re.Match[str]) -> str:
        if match["tap"] != tap:
            return match[0]
        return f"| {tap} | {match['what']}| {' | '.join(map(str, numbers))} |"

    def section(match: re.Match[str]) -> str:
        if match["tap"] != tap:
            return match[0]
        known = {found["rule"]: (found["seen"], found["cause"]) for found in FINDING.finditer(match["text"])}
        intro = match["text"].partition(HEAD)[0]
        rows = {}
        for result in report["findings"]:
            if result["outcome"] == "failed":
                rule = result["rule"]
                seen, cause = known.get(rule["id"], (result["detail"].replace("|", "/"), result["place"] or "?"))
                order = ("error", "warning", "advice").index(rule["severity"])
                rows.setdefault(rule["id"], (order, f"| {rule['severity']} | `{rule['id']}` | {seen} | {cause} |\n"))
        return f"## {tap}\n{intro}{HEAD}{''.join(row for _, row in sorted(rows.values(), key=lambda row: row[0]))}\n"

    return SECTION.sub(section, SUMMARY.sub(summary, page)).rstrip("\n") + "\n"


def main(names: list[str]) -> None:
    """Verify the taps and write the page."""
    with ExitStack() as stack:
        postgres = postgres_in(stack)
        for name in names or [*TAPS, *MORE_TAPS]:
            with tempfile.TemporaryDirectory() as place, prepared(name, Path(place, "tap"), postgres) as (command, env):
                report = verified(command, env, Path(place))
            print(name, report["score"], report["counts"])
            PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), name, report), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
