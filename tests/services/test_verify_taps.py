"""``balog tap verify`` over taps that others made: the findings are those that verified_taps.md tells.

Each was looked at: it is the tap's. One that is new or gone is a change of the verifier, or of what the tap is run on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from balog.tap.verify.rules import CHECKS
from tests.services.real_taps import MORE_TAPS, ROOT, TAPS, prepared
from tests.services.servers.postgres import PostgresServer
from tests.services.verified_taps import FINDING, PAGE, SECTION, SUMMARY, postgres_in, rewritten, verified

pytestmark = pytest.mark.service

TEXT = PAGE.read_text(encoding="utf-8")
TOLD = {
    section["tap"]: {(found["severity"], found["rule"]) for found in FINDING.finditer(section["text"])}
    for section in SECTION.finditer(TEXT)
}
SCORES = {row["tap"]: (int(row["score"]), int(row["skipped"])) for row in SUMMARY.finditer(TEXT)}
PLACE = re.compile(r"`([\w./-]+\.py):(\d+)`")

NOT_ASKED = {
    "tap-postgres": ("interruption", "failures", "observability"),
    "tap-s3-csv": ("interruption", "failures", "observability"),
    "tap-rest-api-msdk": ("selection", "interruption", "failures", "observability"),
}
"""Groups of rules by the tap that starts slowly, and whose neighbour on the same library is asked them."""

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
        yield postgres_in(stack)


def test_the_page_tells_of_each_tap() -> None:
    assert TOLD.keys() == SCORES.keys() == TAPS.keys() | MORE_TAPS.keys()
    assert len(SCORES) >= 15


def test_the_page_is_written_from_a_report() -> None:
    rule = {"id": "keys-exist", "severity": "error"}
    found = {"outcome": "failed", "rule": rule, "stream": "s", "detail": "the schema has no a|b", "place": "tap_x.py:3"}
    counts = {"errors": 1, "warnings": 0, "advice": 0, "skipped": 7}

    page = rewritten(TEXT, "tap-jsonl", {"score": 5, "counts": counts, "findings": [found]})

    assert "| tap-jsonl | tap-jsonl 0.3.1 | singer-sdk 0.53.7 | a file | 5 | 1 | 0 | 0 | 7 |\n" in page
    [section] = [each["text"] for each in SECTION.finditer(page) if each["tap"] == "tap-jsonl"]
    assert section.endswith("| error | `keys-exist` | the schema has no a/b | tap_x.py:3 |\n\n")


@pytest.mark.parametrize("name", [*TAPS, *MORE_TAPS])
def test_each_cause_is_a_line_of_the_tap_or_its_library(name: str) -> None:
    [section] = [each["text"] for each in SECTION.finditer(TEXT) if each["tap"] == name]
    causes = [found["cause"] for found in FINDING.finditer(section)]
    assert all(PLACE.fullmatch(cause) or cause in ("none: it is missing", "the data") for cause in causes), causes
    packages = next((ROOT / ".demo" / name).glob("lib/python3*/site-packages"), None)
    if packages is None:
        return  # only `make soak` installs it
    for file, line in (match.groups() for match in map(PLACE.fullmatch, causes) if match is not None):
        path = ROOT / file if file.startswith("demo/") else packages / file
        assert path.read_text(encoding="utf-8").splitlines()[int(line) - 1].strip(), (file, line)


SOAK = bool(os.environ.get("BALOG_SOAK"))
NAMES = [*TAPS, *(MORE_TAPS if SOAK else ())]


# Dealt out in two halves: each tap is run some twenty times.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(f"taps-{at % 2}")) for at, name in enumerate(NAMES)]
)
def test_findings_are_those_that_the_page_tells(
    name: str, tmp_path: Path, postgres: Callable[[], PostgresServer]
) -> None:
    not_asked = () if SOAK else NOT_ASKED.get(name, ())
    with prepared(name, tmp_path / "tap", postgres) as (command, environment):
        report = verified(command, environment, tmp_path, not_asked)
    outcomes = {(found["outcome"], found["rule"]["severity"], found["rule"]["id"]) for found in report["findings"]}
    told = {(severity, rule) for outcome, severity, rule in outcomes if outcome == "failed"}
    asked = {(severity, rule) for severity, rule in TOLD[name] if CHECKS[rule].rule.group not in not_asked}
    assert told == asked, [found for found in report["findings"] if found["outcome"] == "failed"]
    assert not_asked or (report["score"], report["counts"]["skipped"]) == SCORES[name]
    assert KEPT.get(name, set()) <= {rule for outcome, _, rule in outcomes if outcome == "passed"}
