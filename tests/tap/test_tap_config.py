"""What a tap's config must hold, in each of its forms: what passes, what is refused, and that no value is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from balog.tap.config import ConfigSpec, make_spec
from balog.tap.errors import TapConfigProblems, TapError


def refused(spec: ConfigSpec, config: dict[str, Any], **given: Any) -> list[str]:
    with pytest.raises(TapConfigProblems) as error:
        spec.check(config, **given)
    assert str(error.value).splitlines() == [str(problem) for problem in error.value.problems]
    return str(error.value).splitlines()


class TestListOfNames:
    def test_what_is_named_must_be_there_and_may_be_anything(self) -> None:
        spec = make_spec(["base_url", "access_token"])
        config = {"base_url": None, "access_token": 3}
        assert spec.check(config)[0] == config
        assert refused(spec, {}, source="c.json") == [
            "c.json: $: the field 'base_url' is missing",
            "c.json: $: the field 'access_token' is missing",
        ]

    def test_others_are_warned_of_with_what_was_meant(self) -> None:
        spec = make_spec(["base_url"])
        assert spec.check({"base_url": "x", "bas_url": "y"})[0] == {"base_url": "x", "bas_url": "y"}
        assert spec.warnings({"base_url": "x", "bas_url": "y"}) == [
            "$.bas_url: the tap does not know this setting; did you mean 'base_url'?"
        ]

    def test_start_date_is_known_and_must_be_a_time(self) -> None:
        spec = make_spec(["base_url"])
        for right in ("2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T00:00:00+02:00", "2026-01-31 10:00:00"):
            assert spec.warnings({"base_url": "x", "start_date": right}) == []
            assert spec.check({"base_url": "x", "start_date": right})[0]["start_date"] == right
        for wrong in ("2026-02-30", "yesterday", "20260131"):
            (line,) = refused(spec, {"base_url": "x", "start_date": wrong})
            assert line.startswith("$.start_date: expected a date as")
            assert wrong not in line

    def test_names_that_are_none_are_refused(self) -> None:
        with pytest.raises(TapError, match="expected a list of names"):
            make_spec(["a", 3])


INT, TEXT = {"type": "integer"}, {"type": "string"}


class TestJsonSchema:
    def test_each_problem_names_the_type_that_is_wanted(self) -> None:
        auth = {"type": "object", "properties": {"id": TEXT}, "required": ["id"]}
        spec = make_spec(
            {
                "properties": {
                    "url": TEXT,
                    "pages": INT,
                    "ratio": {"type": "number"},
                    "dry": {"type": "boolean"},
                    "tags": {"type": "array", "items": TEXT},
                    "auth": auth,
                    "size": {"type": ["integer", "null"]},
                    "kind": {"enum": ["x", "y"]},
                    "at": {**TEXT, "format": "date-time"},
                    "day": {**TEXT, "format": "date"},
                    "any": {},
                }
            }
        )
        right = {"url": "u", "pages": 1, "ratio": 1, "dry": True, "tags": [], "auth": {"id": "i"}, "size": None}
        right |= {"kind": "y", "at": "2026-01-01T00:00:00Z", "day": "2026-01-01", "any": [{}]}
        assert spec.check(right)[0] == right
        wrong = {"url": 1, "pages": True, "ratio": "x", "dry": 0, "tags": ["a", 5], "auth": {"id": None}, "size": "x"}
        assert sorted(refused(spec, {**wrong, "kind": "z", "at": "2026-01-01", "day": "x"})) == sorted(
            [
                "$.url: expected a string, got an integer",
                "$.pages: expected an integer, got a boolean",
                "$.ratio: expected a number, got a string",
                "$.dry: expected a boolean, got an integer",
                "$.tags[1]: expected a string, got an integer",
                "$.auth.id: expected a string, got null",
                "$.size: expected an integer or null, got a string",
                '$.kind: is not one of "x" or "y"',
                "$.at: expected a date and time as 2026-01-31T00:00:00Z",
                "$.day: expected a date as 2026-01-31",
            ]
        )

    def test_what_may_be_missing_gets_its_default(self) -> None:
        auth = {"type": "object", "properties": {"scope": TEXT}}
        spec = make_spec({"properties": {"size": {**INT, "default": 100}, "auth": auth}, "required": ["auth"]})
        assert spec.check({"auth": {}})[0] == {"auth": {}, "size": 100}
        assert refused(spec, {"size": "x"}) == [
            "$: the field 'auth' is missing",
            "$.size: expected an integer, got a string",
        ]

    def test_defaults_are_filled_inside_of_what_is_there_and_the_given_config_stays(self) -> None:
        scopes = {"type": "array", "items": TEXT, "default": ["read"]}
        spec = make_spec({"properties": {"auth": {"type": "object", "properties": {"scopes": scopes}}}})
        given: dict[str, Any] = {"auth": {}}
        spec.check(given)[0]["auth"]["scopes"].append("write")
        assert given == {"auth": {}}
        assert spec.check(given)[0] == {"auth": {"scopes": ["read"]}}

    def test_a_default_that_does_not_fit_is_the_taps_error(self) -> None:
        spec = make_spec({"properties": {"size": {**INT, "default": "x"}, "a": INT}})
        with pytest.raises(TapError, match=r"default .*: \$\.size: expected an integer, got a string"):
            spec.check({})
        assert refused(spec, {"a": "x"}) == ["$.a: expected an integer, got a string"]

    def test_the_default_of_a_setting_inside_another_is_checked_with_its_references(self) -> None:
        port = {"$ref": "#/definitions/port", "default": 5432}
        auth = {"type": "object", "properties": {"port": {"allOf": [port], "default": "x"}}}
        spec = make_spec({"properties": {"auth": auth}, "definitions": {"port": INT}})
        with pytest.raises(TapError, match=r"default .*: \$\.auth\.port: expected an integer, got a string"):
            spec.check({"auth": {}})

    @pytest.mark.parametrize(
        ("keywords", "config", "problem"),
        [
            ({"dependentRequired": {"a": ["b"]}}, {}, "$: the field 'b' is missing"),
            ({"maxProperties": 1}, {"b": 1}, "$: has more than 1 property"),
            ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {}, "$: the field 'b' is missing"),
        ],
    )
    def test_a_default_that_fits_alone_is_not_the_taps_error(self, keywords: Any, config: Any, problem: str) -> None:
        spec = make_spec({"properties": {"a": {"default": "x"}, "b": {}}, **keywords})
        assert refused(spec, config) == [problem]

    def test_what_is_the_toolkits_is_not_refused_by_a_strict_one(self) -> None:
        spec = make_spec({"type": "object", "properties": {"url": {}}, "additionalProperties": False})
        config = {"url": "u", "start_date": "2026-01-01", "quarantine_file": "q"}
        assert spec.check(config)[0] == config
        assert refused(spec, {**config, "start_dat": 1}) == ["$: there is no field 'start_dat'"]

    @pytest.mark.parametrize(
        ("setting", "reason"),
        [
            ({"format": "iri-of-mine"}, r"\$\.properties\.a\.format: Unknown format"),
            ({"type": "text"}, r"\$\.properties\.a\.type"),
            ({"$ref": "#/$defs/b"}, "has no target"),
            ({"$ref": "https://example.com/b.json"}, "is not a place in the schema"),
            ({"pattern": "(?=a)"}, "regex"),
        ],
    )
    def test_what_is_no_schema_is_the_taps_error(self, setting: dict[str, Any], reason: str) -> None:
        spec = make_spec({"type": "object", "properties": {"a": setting}})
        with pytest.raises(TapError, match=reason):
            spec.check({})

    def test_what_is_said_of_unknown_settings_counts(self) -> None:
        closed = make_spec({"properties": {"url": {}}, "additionalProperties": False})
        assert refused(closed, {"ulr": 1}) == ["$: there is no field 'ulr'"]
        opened = make_spec({"properties": {"url": {}}, "additionalProperties": True})
        assert opened.warnings({"ulr": 1}) == []

    def test_a_schema_that_holds_itself_is_followed(self) -> None:
        node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
        spec = make_spec({"type": "object", "properties": {"node": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
        assert refused(spec, {"node": {"next": {"next": {"n": "x"}}}}) == [
            "$.node.next.next.n: expected an integer, got a string"
        ]

    def test_a_reference_that_goes_round_is_refused(self) -> None:
        with pytest.raises(TapError, match="is not a place"):
            make_spec({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})


class TestNone:
    def test_any_config_will_do(self) -> None:
        assert make_spec(None).check({"x": 1})[0] == {"x": 1}
        assert make_spec(None).warnings({"x": 1}) == []

    def test_what_is_no_spec_is_refused(self) -> None:
        for wrong in (3, int, {}, {"size": object()}, {"url": "https://x"}, {"type": "array"}):
            with pytest.raises(TapError, match="expected a list of names, or a JSON Schema"):
                make_spec(wrong)


class TestSecrets:
    def test_one_may_be_kept_elsewhere(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("THE_TOKEN", "hunter2")
        (tmp_path / "port").write_text("8080\n")
        spec = make_spec({"properties": {"token": TEXT, "port": INT, "more": {"type": "array", "items": TEXT}}})
        given = {"token": {"env": "THE_TOKEN"}, "port": {"file": str(tmp_path / "port")}, "auth": {"id": "i"}}
        given["more"] = [{"env": "THE_TOKEN"}]
        config = {"token": "hunter2", "port": 8080, "auth": {"id": "i"}, "more": ["hunter2"]}
        assert spec.check(given) == (config, {"hunter2", "8080"})
        assert given["token"] == {"env": "THE_TOKEN"}

    def test_an_object_that_the_spec_wants_is_no_reference(self) -> None:
        spec = make_spec({"properties": {"vars": {"type": "object"}, "place": {"properties": {"env": TEXT}}}})
        config = {"vars": {"env": "PATH"}, "place": {"env": "PATH"}}
        assert spec.check(config)[0] == config

    def test_one_that_is_not_there_is_told_by_its_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NO_TOKEN", raising=False)
        spec = make_spec(["token", "key"])
        lines = refused(spec, {"token": {"env": "NO_TOKEN"}, "key": {"file": "/none"}}, source="c.json")
        assert lines[0].startswith("c.json: $.token: the environment variable NO_TOKEN is not set")
        assert lines[1].startswith("c.json: $.key: the secret's file /none cannot be read")

    def test_the_schema_marks_them_and_hides_their_defaults(self) -> None:
        auth = {"type": "object", "properties": {"password": TEXT}}
        spec = make_spec(
            {"properties": {"access_token": {**TEXT, "default": "letmein"}, "page_token": TEXT, "auth": auth}}
        )
        shown = spec.json_schema()
        assert "letmein" not in json.dumps(shown)
        assert shown["properties"]["access_token"]["secret"] is True
        assert shown["properties"]["auth"]["properties"]["password"]["secret"] is True
        assert "secret" not in shown["properties"]["page_token"]
        assert spec.check({"page_token": "p", "auth": {"password": "x"}})[0]["access_token"] == "letmein"

    def test_a_schema_may_say_which_is_one(self) -> None:
        spec = make_spec(
            {"properties": {"pin": {"type": "string", "secret": True}, "token": {"type": "string", "secret": False}}}
        )
        assert spec.check({"pin": "1234567", "token": "harmless"})[1] == {"1234567"}


def test_each_problem_has_the_source_of_its_setting() -> None:
    spec = make_spec({"properties": {"a": INT, "b": INT}})
    assert refused(spec, {"a": "x", "b": "x"}, source="1.json, 2.json", sources={"a": "1.json", "b": "2.json"}) == [
        "1.json: $.a: expected an integer, got a string",
        "2.json: $.b: expected an integer, got a string",
    ]
