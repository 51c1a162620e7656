"""What a config may say about records, and what it may not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.records.config import RecordRule
from balog.broker.records.paths import parse_path


@pytest.mark.parametrize(
    "rule",
    [
        {"mask": {"a": "md5", "b": "redact", "c": "null", "d": {"how": "sha256", "key": {"file": "key"}}}},
        {"mask": {"a.b": "md5", "c\\.d": {"how": "redact", "text": "x"}}},
        {"set": {"a": None, "b": {"expr": "a"}}, "rename": {"a.b": "x.y"}, "drop": ["a"]},
    ],
)
def test_a_rule(rule):
    assert msgspec.convert({"stream": "users", **rule}, RecordRule).stream == "users"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"mask": {"a": "sha256"}}, "Invalid enum value 'sha256'"),
        ({"mask": {"a": {"how": "sha256"}}}, "missing required field `key`"),
        ({"mask": {"a": {"how": "sha256", "key": "letmein"}}}, "Expected `object`, got `str`"),
        ({"mask": {"a": {"how": "rot13"}}}, "Invalid value 'rot13'"),
        ({"mask": {"a..b": "null"}}, "no path to a property"),
        ({"drop": ["a\\b"]}, "a backslash stands before"),
        ({"drop": ["a."]}, "no path to a property"),
        ({"maks": {}}, "unknown field `maks`"),
    ],
)
def test_what_is_no_rule(rule, reason):
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"stream": "users", **rule}, RecordRule)
    assert reason in str(caught.value)
    assert "letmein" not in str(caught.value)


@given(steps=st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_any_name_can_be_written_in_a_path(steps):
    path = ".".join(step.replace("\\", "\\\\").replace(".", "\\.") for step in steps)
    assert parse_path(path) == tuple(steps)
