"""The contracts in ``schemas/``: valid themselves, installed, and of one mind with the code."""

import importlib
import json
import re
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from balog.cli.shared.brokers import SINGLE_SINKS
from balog.common.errors import EventError
from balog.event import FACILITY_VERSION, LEVELS, Event, decode, encode
from balog.event.facility import KNOWN_VERSIONS
from tests.ci_scripts import ci_script

write_schema = ci_script("config_schemas").write_schema

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "schemas").rglob("*.json"))

formats = FormatChecker(formats=())
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


@formats.checks("date-time")
def is_date_time(value: object) -> bool:
    """RFC 3339, whose letters may be small, but for leap seconds and the year 0, which Python does not have."""
    if not isinstance(value, str):
        return True
    if not RFC_3339.fullmatch(value):
        return False
    head = re.sub(r"\.\d+", "", value.upper().replace("Z", "+00:00").replace(" ", "T"))
    try:
        datetime.fromisoformat(head)
    except ValueError:
        return False
    return True


def facility(version: str) -> Any:
    name = {"1.0.0": FACILITY_VERSION}.get(version, version)
    schema = json.loads((ROOT / "schemas" / "facility" / f"{name}.json").read_bytes())
    return Draft202012Validator(schema, format_checker=formats)


def is_event(document: Any) -> bool:
    try:
        decode(json.dumps(document))
    except EventError:
        return False
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "schemas")))
def test_each_file_is_a_json_schema_that_says_what_it_is(path: Path) -> None:
    schema = json.loads(path.read_bytes())

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]
    kind = path.relative_to(ROOT / "schemas").with_suffix("").parts
    assert schema["$id"] == ":".join(["urn:balog", *kind])


def test_ids_are_unique() -> None:
    assert len({json.loads(path.read_bytes())["$id"] for path in FILES}) == len(FILES)


def test_the_installed_data_package_holds_the_same_files() -> None:
    package = resources.files("balog.schemas")

    for path in FILES:
        installed = package.joinpath(*path.relative_to(ROOT / "schemas").parts)
        assert installed.read_bytes() == path.read_bytes(), path


def test_every_facility_version_that_was_released_has_a_schema() -> None:
    """Checkouts before the first release wrote today's version as 1.0.0."""
    assert {path.stem for path in (ROOT / "schemas" / "facility").iterdir()} == {"0.0.1", FACILITY_VERSION}


CONFIGS = {
    "broker": ("balog.broker.config", "BrokerConfig", "The config of balog broker"),
    "run": ("balog.broker.config", "RunConfig", "The config of balog run"),
    "cases": ("balog.broker.cases", "CaseFile", "A file of cases for balog test"),
    "document": ("balog.service.document", "ControlDocument", "The document of balog's event service"),
    "service": ("balog.service.settings", "ServiceConfig", "The config of balog serve"),
    "tokens": ("balog.service.api.tokens", "TokenFile", "The file of tokens of balog serve"),
    "patch": ("balog.topics.redrive", "PatchFile", "A patch of events, for balog replay"),
    "monitors": ("balog.watch.config.monitors", "MonitorsFile", "The monitors of balog watch"),
    "logger": ("balog.log.config.logger_config", "LoggerConfig", "The config of the logger"),
    **{
        f"broker-{name}": ("balog.cli.shared.brokers", f"config_of({name!r})", f"The config of broker-{name}")
        for name in SINGLE_SINKS
    },
}


def test_every_config_has_a_schema() -> None:
    assert {path.stem for path in (ROOT / "schemas" / "config").iterdir()} == CONFIGS.keys()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_s_schema_is_what_its_structs_say(name: str) -> None:
    module, struct, title = CONFIGS[name]
    attribute, _, argument = struct.partition("(")
    found = getattr(importlib.import_module(module), attribute)
    made = write_schema(found(argument[1:-2]) if argument else found, f"urn:balog:config:{name}", title)
    path = ROOT / "schemas" / "config" / f"{name}.json"

    written = path.read_bytes() if path.exists() else b""
    assert written == made, (
        f'schemas/config/{name}.json is not what {module} says; write it anew with: PYTHONPATH=.ci python -c "'
        f"from config_schemas import write_schema; from {module} import {attribute}; "
        f"open('schemas/config/{name}.json', 'wb').write(write_schema({struct}, 'urn:balog:config:{name}', "
        f"'{title}'))\""
    )


def test_the_logger_s_schema_knows_the_options_of_redaction() -> None:
    schema = Draft202012Validator(json.loads((ROOT / "schemas" / "config" / "logger.json").read_bytes()))
    assert schema.is_valid({"redact": {"extra_keys": ["pet"], "emails": True, "replacement": "x"}})
    assert schema.is_valid({"redact": False})
    for wrong in ({"extra_key": ["pet"]}, {"extra_keys": "pet"}, {"cards": 1}, "yes"):
        assert not schema.is_valid({"redact": wrong})


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | text
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(text, anything, max_size=3)
times = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).flatmap(
    lambda when: st.sampled_from(["Z", "+00:00", "-07:30", "z", "+24:00", "", "+05"]).map(
        lambda offset: when.isoformat() + offset
    )
)
near_times = (
    times
    | st.sampled_from(["", "now", "2026-11-20", "2026-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2026-11-20T25:00:00Z"])
    | st.sampled_from(
        ["2026-11-20T07:46:12.Z", "2026-11-20t07:46:12z", "2026-11-20 07:46:12Z", "2026-11-20T07:46:12.123456789Z"]
    )
)
ids = st.from_regex(r"\ALG[0-9A-Za-z]{1,30}\Z") | st.sampled_from(["LG", "LGé", "lg1", "LG 1", "XLG1", "LG1-"])
members: dict[str, Any] = {
    "id": ids,
    "channel": st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(["é" * 1000, "é" * 1001, "😀" * 1000, "x" * 1001]),
    "timestamp": near_times,
    "level": st.sampled_from([*LEVELS, "info", "NOTICE", ""]),
    "composition": st.booleans(),
    "context": objects,
}


@st.composite
def documents(draw: st.DrawFn, version: str) -> Any:
    """Events, some of them good, most spoilt in one or two places."""
    header = {name: draw(strategy) for name, strategy in members.items()}
    payload = draw(objects | st.fixed_dictionaries({"cls_type": anything, "version": anything}))
    document: dict[str, Any] = {"schema": version, "header": header, "payload": payload}
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from([document, header]))
        if place:
            name = draw(st.sampled_from(sorted(place)))
            change = draw(st.sampled_from(["drop", "replace", "add"]))
            if change == "drop":
                del place[name]
            elif change == "replace" and name != "schema":
                place[name] = draw(anything)
            elif change == "add":
                place[draw(text)] = draw(anything)
    return document


@pytest.mark.parametrize("version", sorted(KNOWN_VERSIONS))
def test_decode_and_the_facility_schema_agree_on_what_is_an_event(version: str) -> None:
    schema = facility(version)
    verdicts = set()

    @settings(max_examples=600)
    @given(document=documents(version))
    def agree(document: Any) -> None:
        if document.get("schema") != version:
            return  # the key was dropped or replaced: another version's schema has the say
        verdict = is_event(document)
        verdicts.add(verdict)
        assert verdict == schema.is_valid(document), next(schema.iter_errors(document), "the schema takes it")

    agree()
    assert verdicts == {True, False}


@given(channel=text.filter(bool), payload=objects, context=objects, level=st.sampled_from(list(LEVELS)))
def test_what_is_written_satisfies_the_facility_schema(
    channel: str, payload: dict[str, Any], context: dict[str, Any], level: Any
) -> None:
    line = encode(Event.new(channel, payload, context=context, level=level))

    facility("0.1.0").validate(json.loads(line))


def test_the_first_balog_s_event_satisfies_its_schema_also_when_written_again() -> None:
    data = (Path(__file__).parent / "data" / "event-0.0.1.json").read_bytes()

    facility("0.0.1").validate(json.loads(data))
    facility("0.0.1").validate(json.loads(encode(decode(data))))
