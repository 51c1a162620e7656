"""Each rule finds the tap that breaks it, and none finds fault with one that keeps them all."""

import json
import sys
from pathlib import Path

import pytest

from balog.distribution import install_command
from balog.verify import Options, VerifyReport, verify
from balog.verify.rules import CHECKS
from balog.verify.trials import Trials

TAP = Path(__file__).parent / "sinful_tap.py"
SECRET = "tok-123-hush"
ALONE = {
    "memory-does-not-grow": "of records are too few",
    "order-is-as-declared": "--ordered",
    "versions-are-activated": "no stream has versions",
    "state-comes-on-the-way": "short",
}
"""Rules that the clean tap gives nothing to look at."""

SINS = {
    "discovery-succeeds": ["discovery fails", "no catalog"],
    "discovery-writes-only-the-catalog": ["discovery prints", "discovery prints after"],
    "discovery-is-repeatable": ["shaky discovery"],
    "catalog-is-valid": ["doubled id", "schema is a text"],
    "schemas-are-json-schema": ["unknown type"],
    "breadcrumbs-exist": ["lost breadcrumb"],
    "metadata-is-publishable": ["odd metadata"],
    "inclusion-is-declared": ["no inclusion"],
    "keys-exist": ["lost key"],
    "keys-are-automatic": ["available key", "available key in the schema"],
    "replication-key-is-automatic": ["available replication key"],
    "keys-are-one-story": ["two keys"],
    "replication-is-valid": ["odd method", "lost replication key"],
    "replication-is-declared": ["no method"],
    "discovery-selects-nothing": ["selects"],
    "sync-succeeds": ["fails in the end", "older"],
    "each-stream-gives-records": ["empty"],
    "properties-form-works": ["breaks on properties"],
    "both-forms-at-once-work": ["breaks on both"],
    "nothing-selected-gives-nothing": ["selects all", "breaks on nothing"],
    "only-selected-streams-come": ["selects all"],
    "only-known-streams-come": ["unknown stream"],
    "only-selected-properties-come": ["all properties"],
    "automatic-properties-come": ["drops keys"],
    "only-messages-on-stdout": ["prints", "binary"],
    "message-types-are-known": ["odd type"],
    "messages-are-whole": ["no record", "no key properties"],
    "lines-end": ["no newline", "torn"],
    "nothing-is-left-running": ["leaves a child"],
    "schema-before-record": ["late schema"],
    "schema-has-the-catalog-keys": ["other keys"],
    "bookmark-properties-exist": ["lost bookmark property"],
    "versions-are-activated": ["no activation"],
    "schema-messages-are-json-schema": ["odd schema"],
    "records-match-schema": ["wrong type"],
    "formats-hold": ["odd time"],
    "properties-are-declared": ["undeclared"],
    "properties-are-used": ["unused"],
    "keys-are-there": ["null key"],
    "keys-are-unique": ["doubled keys"],
    "records-come-once": ["twice"],
    "state-is-written": ["no state"],
    "state-is-an-object": ["text state"],
    "bookmark-advances": ["stuck bookmark"],
    "bookmark-reaches-the-records": ["hasty bookmark"],
    "bookmark-is-not-ahead": ["rash state", "unordered"],
    "bookmark-is-of-a-record": ["bookmark of now"],
    "replication-values-are-there": ["valueless"],
    "bookmark-properties-are-declared": ["no bookmark properties"],
    "state-comes-on-the-way": ["many orders and quiet"],
    "currently-syncing-is-cleared": ["never done"],
    "currently-syncing-is-written": ["no currently_syncing"],
    "order-is-as-declared": ["unordered at the end"],
    "resumes-without-a-gap": ["rash state", "exclusive"],
    "resumes-with-little": ["ignores state"],
    "state-only-moves-forward": ["forgets state"],
    "start-date-is-kept": ["ignores start_date"],
    "ends-on-sigterm": ["ignores sigterm", "hangs on sigterm"],
    "interrupted-is-not-done": ["zero on sigterm"],
    "interrupted-output-is-whole": ["torn on sigterm"],
    "interrupted-resumes-without-a-gap": ["rash on sigterm"],
    "state-of-another-tap-is-harmless": ["breaks on foreign state"],
    "broken-state-is-refused": ["lenient state"],
    "bad-config-is-refused": ["lenient config"],
    "bad-config-is-explained": ["silent failure", "traceback only", "traceback after info", "traceback after warning"],
    "failure-is-logged-at-a-level": ["failure at info"],
    "secrets-stay-secret": ["logs secret", "dumps config", "logs basic", "logs dsn", "logs pat", "logs key"],
    "failure-is-not-success": ["fails without output", "fails in a traceback"],
    "version-is-printed": ["no version"],
    "about-is-printed": ["no about"],
    "clean-run-has-no-errors": ["logs error"],
    "streams-are-named": ["anonymous"],
    "records-are-counted": ["no metrics"],
    "counts-are-right": ["miscounts"],
    "requests-are-timed": ["no timers"],
    "logs-are-bounded": ["logs each"],
    "memory-does-not-grow": ["hoards"],
}
PAIRS = [(rule, sin) for rule, sins in SINS.items() for sin in sins]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config with a secret."""
    path = tmp_path_factory.mktemp("config") / "config.json"
    secrets = {"token": SECRET, "pat": "ghp-1234567", "key": "k-1234567"}
    database = "postgres://me:hush-in-a-url@db.example/shop"
    start = {"start_date": "2026-11-20T00:00:00Z"}
    path.write_text(json.dumps({"base": "https://api.example", "database": database, **secrets, **start}))
    return path


def verified(config: Path, *sins: str, **options: object) -> VerifyReport:
    named = [word for sin in sins for word in ("--sin", sin)]
    command = [sys.executable, "-S", "-E", str(TAP), "--config", str(config), *named]
    return verify(command, Options(**{"timeout": 20, "grace": 0.5, **options}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def clean(config: Path) -> VerifyReport:
    """The report of the tap that keeps to every practice."""
    return verified(config)


def test_each_rule_has_a_tap_that_breaks_it() -> None:
    assert SINS.keys() == CHECKS.keys()


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
    ordered = {"orders": "updated_at"} if rule == "order-is-as-declared" else {}

    report = verified(config, sin, rules=(rule,), ordered=ordered)

    assert {finding.outcome for finding in report.findings} == {"failed"}
    assert report.score == 0
    assert report.is_clean == (CHECKS[rule].rule.severity != "error")
    assert SECRET not in report.encode().decode()


def test_the_severity_of_keys_that_come_again_grows_with_their_share(config: Path) -> None:
    few, many = (verified(config, sin, rules=("records",)) for sin in ("twice", "nearly all twice"))

    assert [(finding.rule.id, finding.rule.severity) for finding in few.failed] == [("records-come-once", "warning")]
    assert [(finding.rule.id, finding.rule.severity) for finding in many.failed] == [("records-come-once", "error")]
    assert (few.is_clean, many.is_clean) == (True, False)
    assert many.score < few.score


def test_inclusions_inside_of_schemas_are_as_good(config: Path) -> None:
    report = verified(config, "inclusions in schemas", rules=("discovery", "only-selected-properties-come"))

    assert [finding.rule.id for finding in report.failed] == []


def test_an_error_that_says_no_failure_is_a_warning_alone(config: Path) -> None:
    report = verified(config, "logs error", rules=("failure-is-not-success", "clean-run-has-no-errors"))

    assert [(finding.rule.id, finding.rule.severity) for finding in report.failed] == [
        ("clean-run-has-no-errors", "warning")
    ]


def test_an_order_that_is_kept_is_no_fault(config: Path) -> None:
    report = verified(config, rules=("order-is-as-declared",), ordered={"orders": "updated_at"})

    assert report.score == 100


def test_versions_that_are_activated_are_no_fault(config: Path) -> None:
    assert verified(config, "versions", rules=("versions-are-activated",)).score == 100


def test_a_stream_out_of_order_whose_state_waits_for_its_end_is_no_fault(config: Path) -> None:
    report = verified(config, "unordered at the end", rules=("bookmark-is-not-ahead", "state"))

    assert [finding.rule.id for finding in report.failed] == []


def test_a_bookmark_in_a_form_of_its_own_is_no_fault(config: Path) -> None:
    assert verified(config, "partitioned state", rules=("bookmark-advances",)).score == 100


def test_a_tap_without_the_older_form_is_not_judged_by_it(config: Path) -> None:
    report = verified(config, "no properties form", rules=("properties-form-works", "both-forms-at-once-work"))

    assert {finding.detail for finding in report.findings} == {"the tap has no --properties"}


@pytest.mark.parametrize("words", ["refused in words", "done without output"])
def test_nothing_selected_may_be_refused_in_words(config: Path, words: str) -> None:
    sins = ("refuses nothing",) if words == "refused in words" else ()

    assert verified(config, *sins, rules=("nothing-selected-gives-nothing",)).score == 100


def test_runs_that_were_cut_are_not_judged_by_what_would_have_come(config: Path) -> None:
    report = verified(config, rules=("state", "interruption", "records"), records=120)

    assert [finding.rule.id for finding in report.failed] == []
    skipped = {finding.rule.id for finding in report.findings if finding.outcome == "skipped"}
    assert {"state-is-written", "bookmark-advances", "resumes-with-little"} <= skipped


def test_without_a_validator_what_needs_it_is_not_judged(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("jsonschema_rs", "jsonschema"):
        monkeypatch.setitem(sys.modules, package, None)

    report = verified(config, rules=("records-match-schema", "schemas-are-json-schema", "keys-are-there"))

    said = {finding.rule.id: (finding.outcome, finding.detail) for finding in report.findings}
    assert said["keys-are-there"] == ("passed", "")
    for rule in ("records-match-schema", "schemas-are-json-schema"):
        assert said[rule][0] == "skipped"
        assert install_command("schema") in said[rule][1]


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


def test_a_schema_of_draft_4_that_names_no_draft_is_one(config: Path) -> None:
    report = verified(config, "draft 4", rules=("schemas-are-json-schema", "records-match-schema"))

    assert report.score == 100


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
    assert bare.leaks.found.keys() == {("$.base_token", "stderr"), ("$.deep.token", "stderr")}


def test_a_tap_whose_sync_hangs_is_waited_for_once(config: Path) -> None:
    report = verified(config, "hangs", timeout=0.4, rules=("selection",))

    assert [run.name for run in report.runs] == ["discover", "sync"]
    assert {finding.detail for finding in report.findings if finding.rule.id == "only-selected-streams-come"} == {
        "a sync wrote nothing in 0 s"
    }


@pytest.mark.parametrize("name", ["orders", "shop-orders"])
def test_a_stream_is_asked_for_by_its_name_or_its_id(config: Path, name: str) -> None:
    report = verified(config, "names of its own", rules=("only-known-streams-come",), streams=(name,))

    assert [stream.stream for stream in report.streams] == ["shop-orders"]
