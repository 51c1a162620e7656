"""Each rule finds the tap that breaks it, and none finds fault with one that keeps them all."""

import json
import re
import sys
from pathlib import Path

import pytest

from balog.tap.verify import VerifyReport
from balog.tap.verify.rules import CHECKS
from balog.tap.verify.trials import Trials
from tests.tap.verify.defects import DEFECTS, LEGAL, PAIRS, SECRET, TAP, verified

ALONE = {
    "memory-does-not-grow": "of records are too few",
    "versions-are-activated": "no stream has versions",
    "state-comes-on-the-way": "short",
}
"""Rules that the clean tap gives nothing to look at."""


@pytest.fixture(scope="module")
def clean(config: Path) -> VerifyReport:
    """The report of the tap that keeps to every practice."""
    return verified(config)


def test_each_rule_has_a_tap_that_breaks_it() -> None:
    assert DEFECTS.keys() == CHECKS.keys()


def test_a_clean_tap_scores_100(clean: VerifyReport) -> None:
    assert [(finding.rule.id, finding.detail) for finding in clean.failed] == []
    assert clean.score == 100
    assert clean.is_clean


def test_a_clean_tap_is_judged_by_almost_every_rule(clean: VerifyReport) -> None:
    skipped = {finding.rule.id: finding.detail for finding in clean.findings if finding.outcome == "skipped"}
    assert skipped.keys() == ALONE.keys()
    for rule, reason in ALONE.items():
        assert reason in skipped[rule]


@pytest.mark.parametrize(("rule", "sin"), PAIRS, ids=[f"{rule}-{sin}" for rule, sin in PAIRS])
def test_a_rule_finds_who_breaks_it(config: Path, rule: str, sin: str) -> None:
    report = verified(config, sin, rules=(rule,))

    assert {finding.outcome for finding in report.findings} == {"failed"}
    assert report.score == 0
    assert SECRET not in report.encode().decode()


@pytest.mark.parametrize(
    ("few", "many", "rule"),
    [
        ("twice", "nearly all twice", "records-come-once"),
        ("odd time", "half odd time", "formats-hold"),
        ("null key", "half null key", "keys-are-there"),
        ("wrong type", "half wrong type", "records-match-schema"),
    ],
)
def test_the_severity_grows_with_the_share_of_records(config: Path, few: str, many: str, rule: str) -> None:
    [one], [other] = ([each.rule for each in verified(config, sin, rules=(rule,)).failed] for sin in (few, many))

    assert one.severity == CHECKS[rule].rule.severity
    assert other.severity == "error"
    assert one.weight == CHECKS[rule].rule.weight < other.weight


@pytest.mark.parametrize("legal", LEGAL, ids=[each[0] for each in LEGAL])
def test_what_a_tap_may_do_is_no_fault(config: Path, legal: tuple[str, ...]) -> None:
    report = verified(config, *legal, skip=("interruption", "observability"))

    assert [(finding.rule.id, finding.detail) for finding in report.failed] == []


def test_a_bookmark_in_a_form_of_its_own_is_no_fault(config: Path) -> None:
    assert verified(config, "partitioned state", rules=("bookmark-advances",)).score == 100


def test_the_cause_of_a_crash_is_quoted(config: Path) -> None:
    [finding] = verified(config, "crashes", rules=("sync-succeeds",)).failed

    assert finding.detail.startswith("exit code 1; said: KeyError: 'nothing' (in ")
    place = re.search(r"sinful_tap\.py:(\d+)\)$", finding.detail)
    assert place is not None
    assert 'record["nothing"]' in TAP.read_text().splitlines()[int(place[1]) - 1]
    assert finding.place.endswith(f"sinful_tap.py:{place[1]}")


def test_a_tap_without_the_older_form_is_not_judged_by_it(config: Path) -> None:
    report = verified(config, "no properties form", rules=("properties-form-works", "both-forms-at-once-work"))

    assert {finding.detail for finding in report.findings} == {"the tap has no --properties"}


def test_runs_that_were_cut_are_not_judged_by_what_would_have_come(config: Path) -> None:
    report = verified(config, rules=("state", "interruption", "records"), records=120)

    assert [finding.rule.id for finding in report.failed] == []
    skipped = {finding.rule.id for finding in report.findings if finding.outcome == "skipped"}
    assert {"state-is-written", "bookmark-advances", "resumes-with-little"} <= skipped


def test_a_tap_that_knows_the_older_form_alone_is_judged_by_that(config: Path) -> None:
    report = verified(config, "older", rules=("selection", "records", "state"))

    assert [(finding.rule.id, finding.detail) for finding in report.failed] == [
        ("sync-succeeds", "no records with --catalog, 220 records with --properties")
    ]
    assert [stream.records for stream in report.streams] == [200, 20]


def test_a_stream_may_be_written_under_its_tap_stream_id(config: Path) -> None:
    report = verified(config, "names of its own", rules=("selection", "state"))

    assert not report.failed
    assert [stream.stream for stream in report.streams] == ["shop-orders", "shops"]


def test_a_config_of_nothing_is_broken_too(tmp_path: Path) -> None:
    empty = tmp_path / "config.json"
    empty.write_text("{}")

    with Trials([sys.executable, str(TAP), "--config", str(empty)]) as trials:
        broken = trials.broken_config

    assert "--config cannot be read" in broken.output.logs.last_error


def test_of_a_bare_config_secrets_are_left_alone(tmp_path: Path) -> None:
    whole = tmp_path / "config.json"
    whole.write_text(json.dumps({"base": "x", "base_token": SECRET, "deep": {"token": SECRET + "-2"}}))

    with Trials([sys.executable, str(TAP), "--config", str(whole), "--sin", "dumps config"]) as trials:
        bare = trials.bare_config

    assert "base is missing" in bare.output.logs.last_error
    assert bare.output.leaks.found.keys() == {("$.base_token", "stderr"), ("$.deep.token", "stderr")}
