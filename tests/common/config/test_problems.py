import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.broker.config import BrokerConfig
from balog.common.config.problems import problems
from balog.common.config.tagged_config import decode_tagged

STORE = {"type": "store", "path": "archive", "topic": "events"}


def found(document):
    return [(error.path, error.reason) for error in problems(document, BrokerConfig)]


def test_a_config_that_is_taken_has_none():
    assert found({"sinks": [STORE], "strip": True}) == []


def test_every_problem_is_told_with_its_place():
    document = {
        "sinks": [
            {"type": "store", "path": "", "topic": "events", "max_file_byte": 9},
            STORE,
            {"type": "stor", "path": "a"},
            {"path": "a"},
            {"type": "topic", "url": 5},
            "store",
        ],
        "strip": "yes",
        "sink": [],
    }
    assert [path for path, _ in found(document)] == [
        "$.sinks[0].path",
        "$.sinks[0]",
        "$.sinks[2]",
        "$.sinks[3]",
        "$.sinks[4].url",
        "$.sinks[4]",
        "$.sinks[5]",
        "$.strip",
        "$",
    ]
    said = dict(found(document))
    assert said["$.sinks[0]"] == "there is no field 'max_file_byte'; did you mean 'max_file_bytes'?"
    assert said["$.sinks[2]"] == "there is no type 'stor'; did you mean 'store'?"
    assert said["$.sinks[4]"] == "the field 'topic' is missing"
    assert said["$"] == "there is no field 'sink'; did you mean 'sinks'?"


def test_an_error_has_the_file():
    (error,) = problems({"sinks": 1}, BrokerConfig, "broker.json")
    assert str(error).startswith("broker.json: $.sinks: ")


@pytest.mark.parametrize("document", [None, [], "x", 5, {}])
def test_what_is_no_config_at_all_is_one_problem(document):
    assert len(found(document)) == 1


def test_there_is_an_end():
    assert len(found({"sinks": [{}] * 1000})) == 100


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5000) | st.text(max_size=5) | st.sampled_from(["store", "topic", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["sinks", "strip", "type", "path", "topic", "url", "where", "batch", "events", "x"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_it_finds_a_problem_exactly_where_msgspec_does(document):
    try:
        msgspec.json.decode(json.dumps(document), type=BrokerConfig, dec_hook=decode_tagged)
    except msgspec.ValidationError:
        assert found(document)
    else:
        assert found(document) == []


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("sha256", """'sha256' needs options; write {"how": "sha256", …}"""),
        ("redct", "did you mean 'redact'?"),
        ("hide", """there are md5, null, redact; or write {"how": …} with redact, sha256"""),
    ],
)
def test_a_word_that_is_none_is_answered_with_those_that_there_are(word, reason):
    ((path, said),) = found({"sinks": [], "records": [{"stream": "users", "mask": {"email": word}}]})
    assert path == "$.records[0].mask.email"
    assert reason in said
