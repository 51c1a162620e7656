"""What each part of a rule does to a record. Values that no part names stay the bytes that they were."""

import hashlib
import hmac
import json

import pytest

from balog.broker.editor import PipeError
from tests.broker.records.editing import KEY, SHA256, build, changed, record


def sha256(data):
    return hmac.digest(KEY.encode(), data, "sha256").hex()


def md5(data):
    return hashlib.md5(data).hexdigest()


SORTED = sha256(b'{"a":2,"b":1}')
EXOTIC = '"a":1.10,"b":123456789012345678901234567890,"c":1e400,"d":-0.0,"e":"\\u00e9\\/","f":[1.0, {"x" : 2}]'


def test_values_that_no_part_names_stay_byte_for_byte():
    assert changed({"drop": ["gone"]}, f'{{{EXOTIC},"gone":1}}') == f"{{{EXOTIC}}}"


def test_what_only_python_writes_stays_too():
    given = '{"a":NaN,"b":-Infinity,"c":"\\ud800","gone":1}'
    assert changed({"drop": ["gone"]}, given) == '{"a":NaN,"b":-Infinity,"c":"\\ud800"}'


def test_of_a_key_that_comes_twice_the_last_counts():
    assert changed({"drop": ["x"]}, '{"a":1,"x":1,"a":2,"x":2}') == '{"a":2}'


# filter


@pytest.mark.parametrize(
    ("expression", "data", "stays"),
    [
        ("age >= 18", {"age": 18}, True),
        ("age >= 18", {"age": 17}, False),
        ("age >= 18", {"age": None}, False),
        ("age >= 18", {}, False),
        ("address.city = 'Bonn'", {"address": {"city": "Bonn"}}, True),
        ("orders[1].total > 5", {"orders": [{}, {"total": 6}]}, True),
        ("x > 1", '{"x": 1e400}', True),
        ("x > 1", '{"x": NaN}', False),
    ],
)
def test_a_filter_keeps_the_records_for_which_it_is_true(expression, data, stays):
    assert (changed({"filter": expression}, data) is not None) is stays


def test_a_record_that_a_filter_keeps_passes_as_its_line_came():
    assert build({"stream": "users", "filter": "a = 1"}).edit("RECORD", record('{"a" :  1}')) is None


# mask


@pytest.mark.parametrize(
    ("how", "value", "masked"),
    [
        (SHA256, '"a@b.de"', f'"{sha256(b"a@b.de")}"'),
        (SHA256, '"\\u00e9\\n"', f'"{sha256("é".encode() + bytes([10]))}"'),
        (SHA256, '"é\\n"', f'"{sha256("é".encode() + bytes([10]))}"'),
        (SHA256, "12", f'"{sha256(b"12")}"'),
        (SHA256, "true", f'"{sha256(b"true")}"'),
        (SHA256, '{"b":1,"a":2}', f'"{SORTED}"'),
        (SHA256, '{ "a": 2, "b": 1 }', f'"{SORTED}"'),
        (SHA256, '["a", null, 1]', f'["{sha256(b"a")}",null,"{sha256(b"1")}"]'),
        (SHA256, "null", "null"),
        (SHA256, "NaN", f'"{sha256(b"NaN")}"'),
        ("md5", '"a"', f'"{md5(b"a")}"'),
        ("md5", "7", f'"{md5(b"7")}"'),
        ("redact", '"a"', '"[redacted]"'),
        ({"how": "redact", "text": "?"}, '["a", 1]', '["?",null]'),
        ("redact", "1.5", "null"),
        ("redact", "false", "null"),
        ("redact", '{"a":1}', "null"),
        ("null", '"a"', "null"),
        ("null", '["a"]', "null"),
    ],
)
def test_a_masked_value(how, value, masked):
    assert changed({"mask": {"x": how}}, f'{{"a":1,"x":{value},"z":2}}') == f'{{"a":1,"x":{masked},"z":2}}'


@pytest.mark.parametrize("length", [16, 63, 64, 65, 200])
def test_a_keyed_hash_is_hmac_for_keys_of_any_length(length, monkeypatch):
    monkeypatch.setenv("MASK_KEY", "k" * length)
    expected = hmac.digest(b"k" * length, b"value", "sha256").hex()
    assert changed({"mask": {"x": SHA256}}, {"x": "value"}) == f'{{"x":"{expected}"}}'


def test_a_mask_reaches_into_objects_and_the_items_of_arrays():
    given = {"people": [{"email": "a", "n": 1}, {"email": "b"}, 3], "email": "c"}
    expected = {"people": [{"email": None, "n": 1}, {"email": None}, 3], "email": "c"}
    assert json.loads(changed({"mask": {"people.email": "null"}}, given)) == expected


def test_a_dot_in_a_name_is_written_with_a_backslash():
    assert changed({"mask": {"a\\.b": "null"}}, {"a.b": 1, "a": {"b": 1}}) == '{"a.b":null,"a":{"b": 1}}'


def test_nothing_of_a_masked_object_stays_that_a_first_wins_reader_would_see():
    assert "secret" not in changed({"mask": {"a.b": "null"}}, '{"a":{"b":"secret","b":1}}')
    assert "secret" not in changed({"mask": {"a.b": "null"}}, '{"a":{"b":"secret"},"a":{}}')
    assert "secret" not in changed({"mask": {"a.b.c": "null"}}, '{"a":{"b":{"c":"secret"},"b":{}}}')


def test_a_record_that_passes_its_filter_goes_on_with_each_key_once():
    line = b'{"type":"RECORD","stream":"users","record":{"x":1,"\\u0078":2, "y":{"a":1,"a":2}}}\n'
    edited = build({"stream": "users", "filter": "x = 2"}).edit("RECORD", line)
    assert edited == (("RECORD", b'{"type":"RECORD","stream":"users","record":{"x":2,"y":{"a":1,"a":2}}}\n'),)


# drop, rename, set


def test_drop_takes_properties_out_at_any_depth():
    given = {"a": 1, "b": {"c": 2, "d": [{"e": 3, "f": 4}]}}
    assert json.loads(changed({"drop": ["a", "b.d.e", "not.there"]}, given)) == {"b": {"c": 2, "d": [{"f": 4}]}}


def test_rename_keeps_the_order_and_changes_places_at_once():
    assert changed({"rename": {"a": "b", "b": "a"}}, {"a": 1, "b": 2, "c": 3}) == '{"b":1,"a":2,"c":3}'


def test_a_nested_property_is_renamed_where_it_is():
    assert changed({"rename": {"a.b": "c.d"}}, {"a": {"b": 1}}) == '{"a":{"c.d":1}}'


def test_two_properties_of_one_name_do_not_pass():
    with pytest.raises(PipeError, match="renamed, two of its properties have the same name"):
        changed({"rename": {"a": "b"}}, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("eu", '"eu"'),
        (1.5, "1.5"),
        (None, "null"),
        ({"a": [1]}, '{"a":[1]}'),
        ({"expr": "a"}, "1.10"),
        ({"expr": "b || '!'"}, '"x!"'),
        ({"expr": "a * 2 > 2"}, "true"),
        ({"expr": "missing"}, "null"),
        ({"expr": "UPPER(b)"}, '"X"'),
        ({"expr": "TIMESTAMP '2026-11-20T07:46:12Z'"}, '"2026-11-20T07:46:12Z"'),
    ],
)
def test_set_gives_a_property_a_constant_or_the_value_of_an_expression(value, given):
    assert changed({"set": {"x": value}}, '{"a":1.10,"b":"x"}') == f'{{"a":1.10,"b":"x","x":{given}}}'


def test_expressions_see_the_record_as_it_came():
    assert changed({"set": {"a": {"expr": "b"}, "b": {"expr": "a"}}}, {"a": 1, "b": 2}) == '{"a":2,"b":1}'


# the order


def test_the_parts_of_a_rule_work_in_the_order_that_is_documented():
    """The filter sees what came; set sees it unmasked; what is set is masked; names are those that came, to the end."""
    rule = {
        "filter": "email LIKE '%@b.de'",
        "set": {"domain": {"expr": "SUBSTR(email, 3, 4)"}, "copy": {"expr": "email"}},
        "mask": {"email": SHA256, "copy": "redact"},
        "drop": ["a.gone"],
        "rename": {"email": "mail", "a": "b"},
    }
    after = json.loads(changed(rule, {"email": "a@b.de", "a": {"x": 1, "gone": 2}}))
    assert after == {"mail": sha256(b"a@b.de"), "b": {"x": 1}, "domain": "b.de", "copy": "[redacted]"}


def test_of_several_rules_each_works_on_what_the_one_before_gave():
    editor = build(
        {"stream": "*", "rename": {"Email": "email"}},
        {"stream": "orders", "drop": ["email"]},
        {"stream": "us*", "mask": {"email": "redact"}},
    )
    ((_, line),) = editor.edit("RECORD", record({"Email": "a"}))
    assert json.loads(line)["record"] == {"email": "[redacted]"}
