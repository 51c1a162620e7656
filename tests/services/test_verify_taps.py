"""``balog tap verify`` over taps that others made: the findings are those that docs/verified-taps.md tells.

Each was looked at: it is the tap's. One that is new or gone is a change of the verifier, or of what the tap is run on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from balog.verify.rules import CHECKS
from tests.services.real_taps import ROOT, TAPS, TOKEN, prepared
from tests.services.servers.postgres import PostgresServer, running_postgres

pytestmark = pytest.mark.service

PAGE = (ROOT / "docs" / "verified-taps.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (?P<tap>\S+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FINDING = re.compile(r"^\| (?P<severity>error|warning|advice) \| `(?P<rule>[\w-]+)` \|", re.MULTILINE)
TOLD = {
    section["tap"]: {(found["severity"], found["rule"]) for found in FINDING.finditer(section["text"])}
    for section in SECTION.finditer(PAGE)
}

SCORES = {tap: int(score) for tap, score in re.findall(r"^\| (\S+) \|(?:[^|]*\|){3} (\d+) \|", PAGE, re.MULTILINE)}

SKIPPED = {tap: int(count) for tap, count in re.findall(r"^\| (\S+) \|(?:[^|]*\|){7} (\d+) \|$", PAGE, re.MULTILINE)}

NOT_ASKED = {
    "tap-postgres": ("interruption", "failures", "observability"),
    "tap-rest-api-msdk": ("selection", "interruption", "failures", "observability"),
}
"""Groups of rules by the tap that starts slowly, and whose neighbour on the same SDK is asked them."""

KEPT = {
    "tap-gitlab": {"records-match-schema", "keys-are-there", "schema-before-record"},
    "tap-jsonl": {"catalog-is-valid", "records-match-schema", "resumes-without-a-gap", "counts-are-right"},
    "tap-postgres": {"only-selected-streams-come", "only-selected-properties-come", "resumes-with-little"},
    "tap-postgres-pipelinewise": {"properties-form-works", "versions-are-activated", "counts-are-right"},
    "tap-rest-api-msdk": {"bookmark-advances", "bookmark-is-not-ahead", "resumes-without-a-gap"},
    "tap-s3-csv": {"records-match-schema", "keys-are-unique", "properties-form-works"},
    "tap-weather": {"records-match-schema", "counts-are-right", "resumes-without-a-gap"},
}
"""Some of what each tap keeps, so that a rule which looks at nothing any more is seen."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Callable[[], PostgresServer]]:
    """Gives a server that starts when it is first asked for."""
    with ExitStack() as stack:
        found: list[PostgresServer] = []

        def server() -> PostgresServer:
            if not found:
                found.append(stack.enter_context(running_postgres()))
            return found[0]

        yield server


def verified(
    command: list[str], environment: dict[str, str], folder: Path, not_asked: tuple[str, ...]
) -> dict[str, Any]:
    """Run ``balog tap verify``; give its report."""
    options = ["--states", "1", "--json", "-", *(word for group in not_asked for word in ("--skip", group))]
    done = subprocess.run(
        [Path(sys.executable).parent / "balog", "tap", "verify", *options, "--", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(report["counts"]["errors"])
    assert TOKEN not in (done.stdout + done.stderr).decode()
    return report


def test_the_page_tells_of_each_tap() -> None:
    assert TOLD.keys() == SCORES.keys() == SKIPPED.keys() == TAPS.keys()


# Dealt out in two halves: each tap is run some twenty times.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(f"taps-{at % 2}")) for at, name in enumerate(TAPS)]
)
def test_findings_are_those_that_the_page_tells(
    name: str, tmp_path: Path, postgres: Callable[[], PostgresServer]
) -> None:
    not_asked = NOT_ASKED.get(name, ())
    with prepared(name, tmp_path / "tap", postgres) as (command, environment):
        report = verified(command, environment, tmp_path, not_asked)
    outcomes = {(found["outcome"], found["rule"]["severity"], found["rule"]["id"]) for found in report["findings"]}
    told = {(severity, rule) for outcome, severity, rule in outcomes if outcome == "failed"}
    asked = {(severity, rule) for severity, rule in TOLD[name] if CHECKS[rule].rule.group not in not_asked}
    assert told == asked, [found for found in report["findings"] if found["outcome"] == "failed"]
    assert not_asked or (report["score"], report["counts"]["skipped"]) == (SCORES[name], SKIPPED[name])
    assert KEPT[name] <= {rule for outcome, _, rule in outcomes if outcome == "passed"}
