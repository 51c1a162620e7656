"""What taps of other makes do and may: no rule finds fault with it."""

import json
import sys
from pathlib import Path

import pytest

from balog.verify import Options, VerifyReport, verify

TAP = """
import argparse, json, sys

parser = argparse.ArgumentParser()
for name in ("config", "catalog", "properties", "state"):
    parser.add_argument(f"--{name}")
parser.add_argument("--discover", action="store_true")
asked = parser.parse_args()
with open(asked.config) as file:
    config = json.load(file)

keys = {"table-key-properties": ["id"], "forced-replication-method": "FULL_TABLE"}
metadata = [{"breadcrumb": [], "metadata": keys}]
metadata += [
    {"breadcrumb": ["properties", name], "metadata": {"inclusion": inclusion}}
    for name, inclusion in (("id", "automatic"), ("share", "available"))
]
share = {"type": "number", "minimum": 0, "maximum": 1, "exclusiveMaximum": True}
schema = {**config["schema"], "type": "object", "properties": {"id": {"type": "integer"}, "share": share}}
if asked.discover:
    streams = [
        {"tap_stream_id": f"public-{name}", "stream": name, "schema": schema, "metadata": metadata}
        for name in ("cities", "people")
    ]
    json.dump({"streams": streams}, sys.stdout)
    sys.exit()

with open(asked.properties or (None if config["is_older"] else asked.catalog) or asked.config) as file:
    catalog = json.load(file)
for entry in catalog.get("streams", ()):
    chosen = [item["metadata"].get("selected") for item in entry["metadata"] if not item["breadcrumb"]]
    if entry["schema"].get("selected") if asked.properties else any(chosen):
        name = entry["tap_stream_id"]
        print(json.dumps({"type": "SCHEMA", "stream": name, "schema": schema, "key_properties": ["id"]}))
        for number in range(config["rows"]):
            print(json.dumps({"type": "RECORD", "stream": name, "record": {"id": number, "share": number / 10}}))
"""


def verified(folder: Path, *rules: str, is_older: bool = False, schema: object = None, rows: int = 10) -> VerifyReport:
    (folder / "tap.py").write_text(TAP)
    (folder / "config.json").write_text(json.dumps({"is_older": is_older, "schema": schema or {}, "rows": rows}))
    command = [sys.executable, str(folder / "tap.py"), "--config", str(folder / "config.json")]
    return verify(command, Options(rules=rules))


def failed(report: VerifyReport) -> dict[str, str]:
    return {found.rule.id: found.detail for found in report.findings if found.outcome == "failed"}


def passed(report: VerifyReport) -> set[str]:
    return {found.rule.id for found in report.findings if found.outcome == "passed"}


class TestDraft4:
    RULES = ("schemas-are-json-schema", "schema-messages-are-json-schema", "records-match-schema")

    def test_a_schema_that_names_no_draft_may_be_of_it_and_is_held_to_it(self, tmp_path: Path) -> None:
        assert passed(verified(tmp_path, *self.RULES)) == set(self.RULES)
        # The eleventh is 1.0, which is no longer below the maximum.
        assert set(failed(verified(tmp_path, *self.RULES, rows=11))) == {"records-match-schema"}

    def test_one_that_names_a_later_draft_is_of_that(self, tmp_path: Path) -> None:
        later = {"$schema": "http://json-schema.org/draft-07/schema#"}
        assert "schemas-are-json-schema" in failed(verified(tmp_path, *self.RULES, schema=later))


def test_messages_may_name_a_stream_by_its_tap_stream_id(tmp_path: Path) -> None:
    rules = ("only-selected-streams-come", "only-known-streams-come", "each-stream-gives-records", "keys-are-unique")
    assert passed(verified(tmp_path, *rules)) == set(rules)


class TestProperties:
    @pytest.fixture
    def report(self, tmp_path: Path) -> VerifyReport:
        rules = ("sync-succeeds", "each-stream-gives-records", "only-selected-streams-come", "records-match-schema")
        return verified(tmp_path, *rules, is_older=True)

    def test_a_tap_that_knows_no_other_form_is_verified_by_it(self, report: VerifyReport) -> None:
        assert passed(report) == {"each-stream-gives-records", "only-selected-streams-come", "records-match-schema"}
        assert [(stream.stream, stream.records) for stream in report.streams] == [("cities", 10), ("people", 10)]

    def test_and_it_is_said(self, report: VerifyReport) -> None:
        assert failed(report) == {"sync-succeeds": "no records with --catalog, 20 records with --properties"}
