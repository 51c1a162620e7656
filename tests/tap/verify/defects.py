"""A corpus of planted defects: what ``sinful_tap.py`` can be made to do wrong, and the rule that finds it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from balog.tap.verify import Options, VerifyReport, verify

TAP = Path(__file__).parent / "sinful_tap.py"
SECRET = "tok-123-hush"

DEFECTS = {
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
    "sync-succeeds": ["fails in the end", "older", "is killed", "crashes"],
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
    "records-match-schema": ["wrong type", "half wrong type"],
    "formats-hold": ["odd time", "half odd time"],
    "properties-are-declared": ["undeclared", "half undeclared"],
    "properties-are-used": ["unused"],
    "keys-are-there": ["null key", "half null key"],
    "keys-are-unique": ["doubled keys"],
    "records-come-once": ["twice", "nearly all twice"],
    "state-is-written": ["no state"],
    "state-is-an-object": ["text state"],
    "bookmark-advances": ["stuck bookmark"],
    "bookmark-reaches-the-records": ["hasty bookmark"],
    "bookmark-is-not-ahead": ["rash state", "unordered"],
    "bookmark-is-of-a-record": ["bookmark of now"],
    "replication-values-are-there": ["valueless"],
    "times-have-an-offset": ["naive times"],
    "bookmark-properties-are-declared": ["no bookmark properties"],
    "state-comes-on-the-way": ["many orders and quiet"],
    "currently-syncing-is-cleared": ["never done"],
    "currently-syncing-is-written": ["no currently_syncing"],
    "resumes-without-a-gap": ["rash state", "exclusive", "other rows on resume"],
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
    "bad-config-is-explained": ["silent failure", "quiet death", "traceback only"],
    "failure-is-logged-at-a-level": ["failure at info"],
    "secrets-stay-secret": ["logs secret", "dumps config"],
    "failure-is-not-success": [
        *("fails without output", "fails in a traceback", "gives up at warning", "a thread dies"),
    ],
    "success-is-complete": ["stops early", "stops early at times"],
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
"""The defects by the id of the rule that finds them."""

WHOLE = {"secrets-stay-secret", "failure-is-not-success", "success-is-complete"}
PAIRS = [
    (rule, defect)
    for rule, defects in DEFECTS.items()
    for number, defect in enumerate(defects)
    if not number or rule in WHOLE or os.environ.get("BALOG_SOAK")
]
"""Those that tests try: one a rule, all of some rules, and all in ``make soak``."""

LEGAL = (
    ("versions", "names of its own", "unicode", "logs public texts", "retries", "handles an exception"),
    ("versions at both ends", "inclusions in schemas", "unordered at the end", "no properties form"),
    ("number marks", "draft 4", "refuses nothing"),
    ("decimal marks",),
)
"""What taps may do, though it looks odd; what one tap of tests may do at once."""


RULES = ("records", "clean-run-has-no-errors", "about-is-printed", "sync-succeeds", "bookmark-advances")
"""The rules of most reports of tests."""


def write_config(path: Path) -> Path:
    """Write a config with secrets, and with texts that are none."""
    secrets = {"token": SECRET, "door": "Sesame#17", "database": "postgres://me:hush-in-a-url@db.example/shop"}
    public = {
        "stream": "orders",
        "environment": "production",
        "password": "orders",
        "user_agent": "tap/1.0 (a@b.example)",
    }
    start = {"start_date": "2026-11-20T00:00:00Z"}
    path.write_text(json.dumps({"base": "https://api.example", **secrets, **public, **start}))
    return path


def command(config: Path, *defects: str) -> list[str]:
    """Return the command of the tap with defects."""
    named = [word for defect in defects for word in ("--sin", defect)]
    return [sys.executable, "-S", "-E", str(TAP), "--config", str(config), *named]


def verified(config: Path, *defects: str, **options: Any) -> VerifyReport:
    """Verify the tap with defects."""
    return verify(command(config, *defects), Options(**{"timeout": 20, "grace": 0.2, **options}))


ALSO: dict[str, set[str]] = {
    "shaky discovery": {"inclusion-is-declared"},
    "doubled id": {"each-stream-gives-records", "properties-are-used", "replication-values-are-there"},
    "schema is a text": {"sync-succeeds"},
    "bookmark of now": {
        *("bookmark-is-not-ahead", "interrupted-resumes-without-a-gap", "resumes-without-a-gap"),
    },
    "unknown type": {"breadcrumbs-exist", "properties-are-used"},
    "lost key": {"schema-has-the-catalog-keys"},
    "lost replication key": {"replication-values-are-there"},
    "selects all": {
        *("nothing-selected-gives-nothing", "only-selected-properties-come", "only-selected-streams-come"),
    },
    "unknown stream": {"nothing-selected-gives-nothing", "only-selected-streams-come", "streams-are-named"},
    "no key properties": {"schema-has-the-catalog-keys"},
    "torn": {"only-messages-on-stdout"},
    "other keys": {"keys-are-there", "records-come-once"},
    "null key": {"records-match-schema"},
    "half null key": {"records-match-schema", "records-come-once"},
    "twice": {"counts-are-right"},
    "nearly all twice": {"counts-are-right"},
    "stuck bookmark": {"resumes-with-little"},
    "rash state": {"bookmark-is-of-a-record", "bookmark-is-not-ahead", "resumes-without-a-gap"},
    "unordered": {"resumes-without-a-gap", "interrupted-resumes-without-a-gap"},
    "other rows on resume": {"interrupted-resumes-without-a-gap"},
    "silent failure": {"failure-is-logged-at-a-level"},
    "quiet death": {"failure-is-logged-at-a-level"},
    "anonymous": {"records-are-counted", "requests-are-timed"},
    "no metrics": {"requests-are-timed"},
    "hoards": {"counts-are-right", "ends-on-sigterm", "only-selected-properties-come", "records-come-once"},
}
"""By defect, the other rules that it breaks: each was looked at."""
