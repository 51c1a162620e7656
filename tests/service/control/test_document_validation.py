"""A document is refused before anybody applies it, with all that is wrong."""

import json

import pytest

from balog.service.control import read_document
from balog.service.document import ControlDocument

GOOD = {
    "streams": [
        {"name": "orders", "types": ["order*"], "where": "level >= 'INFO'", "key": "payload.customer", "rate": 100},
        {"name": "rest"},
    ],
    "filters": [{"name": "big", "sources": ["orders"], "to": "big_orders", "where": "payload.price > 100"}],
    "tables": [{"type": "clickhouse", "name": "ch", "sources": ["orders"], "url": "http://ch:8123"}],
    "callbacks": [{"name": "crm", "source": "orders", "url": "https://crm.example/hook", "secrets": [{"env": "K"}]}],
}


def test_a_document_without_faults_is_read():
    document, problems = read_document(json.dumps(GOOD).encode())

    assert problems == []
    assert [stream.name for stream in document.streams] == ["orders", "rest"]


def test_the_empty_document_is_one():
    assert read_document(b"{}") == (ControlDocument(), [])


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"streams": [{"name": "a", "types": ["x"]}, {"name": "a"}]}, "$.streams[1].name"),
        ({"streams": [{"name": "a", "where": "level >"}]}, "$.streams[0].where"),
        ({"filters": [{"name": "a", "sources": ["t"], "to": "t"}]}, "$.filters[0].to"),
        ({"filters": [{"name": "a", "sources": ["t"], "to": "u", "where": "nope = 1"}]}, "$.filters[0].where"),
        ({"filters": GOOD["filters"] * 2}, "$.filters[1].name"),
        ({"filters": [{**GOOD["filters"][0], "sources": ["a", "b", "a"]}]}, "$.filters[0].sources[2]"),
        ({"tables": GOOD["tables"] * 2}, "$.tables[1].name"),
        ({"tables": [{"type": "load", "name": "x", "sources": ["a", "a"], "to": "t"}]}, "$.tables[0].sources[1]"),
        ({"callbacks": GOOD["callbacks"] * 2}, "$.callbacks[1].name"),
        ({"callbacks": [{**GOOD["callbacks"][0], "url": "https://u:hunter2@x/"}]}, "$.callbacks[0].url"),
        ({"callbacks": [{**GOOD["callbacks"][0], "where": "("}]}, "$.callbacks[0].where"),
        ({"callbacks": [{**GOOD["callbacks"][0], "headers": {"X Y": "a"}}]}, "$.callbacks[0].headers"),
        ({"callbacks": [{**GOOD["callbacks"][0], "headers": {"X": "a\r\nY: hunter2"}}]}, "$.callbacks[0].headers"),
        ({"tables": [{**GOOD["tables"][0], "where": "1 +"}]}, "$.tables[0].where"),
        ({"callbacks": [{"name": "a", "source": "b", "url": "https://x.y", "secrets": ["hunter2"]}]}, "$.callbacks[0]"),
        ({"stream": []}, "$"),
    ],
)
def test_what_can_not_work_is_refused_with_its_place_and_no_secret(change, path):
    _, problems = read_document(json.dumps(GOOD | change).encode(), "doc.json")

    assert any(problem.path.startswith(path) for problem in problems), [str(problem) for problem in problems]
    assert all(problem.source == "doc.json" and "\n" not in str(problem) for problem in problems)
    assert "hunter2" not in str(problems)


def test_all_problems_are_told_at_once():
    _, problems = read_document(
        b'{"streams": [{"name": "a", "rat": 1}, {"nam": "b"}], "filters": [{"name": "f", "sources": [], "to": 5}]}'
    )
    assert {problem.path for problem in problems} >= {"$.streams[0]", "$.streams[1]", "$.filters[0].to"}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"null", b'"x"'])
def test_what_is_no_document_is_one_line(data):
    document, problems = read_document(data)

    assert document is None
    assert problems
    assert "\n" not in str(problems[0])
