"""What is different between two documents, by name."""

import json

from balog.delivery.control.diffing import diff


def changes(old, new):
    return [(one.kind, one.path, one.old, one.new) for one in diff(json.dumps(old).encode(), json.dumps(new).encode())]


def test_parts_and_fields_are_told_by_their_names():
    old = {"streams": [{"name": "a", "rate": 1, "key": "id"}, {"name": "b"}], "filters": []}
    new = {"streams": [{"name": "a", "rate": 2, "where": "x"}], "callbacks": [{"name": "c", "source": "a"}]}

    assert changes(old, new) == [
        ("changed", "streams.a.rate", 1, 2),
        ("removed", "streams.a.key", "id", None),
        ("added", "streams.a.where", None, "x"),
        ("removed", "streams.b", {}, None),
        ("added", "callbacks.c", None, {"source": "a"}),
    ]


def test_the_order_of_streams_counts_and_that_of_filters_does_not():
    streams = [{"name": "a", "types": ["x"]}, {"name": "b"}]
    filters = [{"name": name, "sources": ["a"], "to": name} for name in ("f", "g")]

    assert changes({"streams": streams}, {"streams": streams[::-1]}) == [("moved", "streams", ["a", "b"], ["b", "a"])]
    assert changes({"filters": filters}, {"filters": filters[::-1]}) == []


def test_equal_documents_have_no_difference():
    document = {"streams": [{"name": "a"}], "watch": {"window": 5}}

    assert changes(document, document) == []
    assert changes({"watch": {"window": 5}}, {"watch": {"window": 6}}) == [("changed", "watch.window", 5, 6)]
