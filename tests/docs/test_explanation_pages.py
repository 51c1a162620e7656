"""The pages that explain: their examples are what the code does, and their pictures are drawn."""

import json
import re

import pytest

from balog.event.fingerprints import failure
from balog.registry import Schema
from balog.registry.comparing import compare
from tests.documentation import docs_page

PROPERTIES = {"id": {"type": "integer"}, "state": {"enum": ["a", "b"]}}
BEFORE = {"type": "object", "required": ["id"], "properties": PROPERTIES}
NOTE = {"note": {"type": "string"}}


def _changed(**changes: object) -> dict[str, object]:
    return {**BEFORE, **changes}


def _properties(**changes: object) -> dict[str, object]:
    return {**PROPERTIES, **changes}


def test_the_error_of_the_page_has_the_fingerprint_s_parts_of_the_page() -> None:
    page = docs_page("fingerprints.md").read_text(encoding="utf-8")
    before, after = (
        {"type": "KeyError", "frames": [{"file": f"{folder}/sync.py", "function": name} for name in ("run", "load")]}
        for folder in ("/app/v12", "/srv/v13")
    )
    message = "customer cus_NffrFeUfNV2Hib has no email since 2026-11-20"
    for part in message.split(" has no "):
        assert part in page
    found = failure({"exception": json.dumps(before), "message": message})
    assert found.message == "customer cus_<n> has no email since <time>"
    other = "customer cus_PaTLj3DoXsE1wq has no email since 2026-11-23"
    assert failure({"exception": json.dumps(after), "message": other}).fingerprint == found.fingerprint


@pytest.mark.parametrize(
    ("after", "backward", "forward"),
    [
        (_changed(properties=_properties(**NOTE)), True, True),
        (_changed(properties=_properties(state={"enum": ["a", "b", "c"]})), True, False),
        (_changed(properties=_properties(state={"enum": ["a"]})), False, True),
        (_changed(properties=_properties(id={"type": "number"})), True, False),
        (_changed(properties=_properties(**NOTE), required=["id", "note"]), False, True),
        (_changed(required=[]), True, False),
    ],
    ids=["add optional", "more values", "remove a value", "widen a type", "require a field", "no longer require"],
)
def test_the_changes_of_the_table_break_what_it_says(after: object, backward: bool, forward: bool) -> None:
    old = Schema("order", "1.0.0", "json", json.dumps(BEFORE).encode())
    new = Schema("order", "1.1.0", "json", json.dumps(after).encode())
    assert [compare(old, new, mode).compatible for mode in ("backward", "forward")] == [backward, forward]


@pytest.mark.parametrize("page", ["two-layers", "guarantees-explained", "fingerprints", "schema-evolution"])
def test_a_page_that_explains_a_way_or_a_form_has_a_picture(page: str) -> None:
    assert re.search(r"^```mermaid$", docs_page(f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
