"""What is different between two documents, by name."""

import json

from hypothesis import given
from hypothesis import strategies as st

from balog.service.control.diff import diff


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


parts = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")},
        optional={"rate": st.integers(1, 3), "retry": st.dictionaries(st.sampled_from("xy"), st.integers(0, 1))},
    ),
    max_size=4,
    unique_by=lambda part: part["name"],
)
documents = st.fixed_dictionaries({}, optional={"streams": parts, "filters": parts, "watch": st.just({"window": 5})})


def by_name(document):
    sections = {"streams": [], "filters": [], "tables": [], "callbacks": []} | document
    return {
        name: {part["name"]: {key: value for key, value in part.items() if key != "name"} for part in section}
        if isinstance(section, list)
        else section
        for name, section in sections.items()
    }


@given(old=documents, new=documents)
def test_the_differences_make_the_new_document_of_the_old_one(old, new):
    made = by_name(old)
    for kind, path, before, after in changes(old, new):
        *way, last = path.split(".")
        place = made
        for name in way:
            place = place[name]
        if kind == "moved":
            continue  # dicts are equal in any order
        assert place.get(last) == before
        if kind == "removed":
            del place[last]
        else:
            place[last] = after

    assert made == by_name(new)
    moved = [after for kind, _, _, after in changes(old, new) if kind == "moved"]
    common = [part["name"] for part in new.get("streams", []) if part["name"] in by_name(old)["streams"]]
    assert moved in ([], [common])
