import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import UNSET

from balog.common.errors import EventError
from balog.event import Event, decode
from balog.event import payload as payloads
from balog.event.payload import (
    AlertAcknowledgementPayload,
    AlertEvidence,
    AlertPayload,
    AlertSilencePayload,
    ConsumerFailurePayload,
    ExceptionInfo,
    ExpectedBand,
    FailedEventPayload,
    FailedEventProblem,
    LogPayload,
    MetricPayload,
    MetricsPayload,
    MetricValue,
    NullPayload,
    RunPayload,
    RunStartedPayload,
    StatePayload,
    StreamCount,
    StreamSchemaPayload,
    log_payload,
    read,
)

SCHEMAS = Path(__file__).parents[2] / "schemas" / "payload"
TYPES = {
    "alert": AlertPayload,
    "alert_acknowledgement": AlertAcknowledgementPayload,
    "alert_silence": AlertSilencePayload,
    "stream_schema": StreamSchemaPayload,
    "consumer_failure": ConsumerFailurePayload,
    "failed_event": FailedEventPayload,
    "log": LogPayload,
    "metrics": MetricsPayload,
    "metric": MetricPayload,
    "run": RunPayload,
    "run_started": RunStartedPayload,
    "state": StatePayload,
    "null": NullPayload,
}

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.dictionaries(text, text | st.integers(-(2**60), 2**60) | st.none() | st.lists(st.booleans()), max_size=3)
counts = st.integers(0, 2**50)

logs = st.builds(
    LogPayload,
    message=text,
    severity=st.none() | text,
    logger=st.none() | text,
    fields=st.none() | plain,
    exception=st.none() | st.builds(ExceptionInfo, type=text, message=text),
    exc_text=st.none() | text,
    problem=st.none() | text,
)
metrics = st.builds(MetricsPayload, values=st.lists(st.builds(MetricValue, name=text, value=numbers), max_size=3))
metric = st.builds(
    MetricPayload,
    type=st.sampled_from(["counter", "timer", "gauge"]),
    metric=text.filter(bool),
    value=numbers,
    tags=plain,
)
runs = st.builds(
    RunPayload,
    outcome=st.sampled_from(["succeeded", "failed"]),
    duration=st.floats(0, 1e9),
    exit_code=st.integers(0, 255),
    command=text,
    records=counts,
    streams=st.lists(st.builds(StreamCount, stream=text, records=counts, bytes=st.just(UNSET) | counts), max_size=3),
    started=st.just(UNSET) | st.just("2026-11-20T07:46:12.123456Z"),
    ended=st.just(UNSET) | st.just("2026-11-20T07:46:13.123456Z"),
    signal=st.just(UNSET) | st.just("SIGKILL"),
    bytes=st.just(UNSET) | counts,
    invalid_lines=st.just(UNSET) | counts,
    cpu_user=st.just(UNSET) | st.floats(0, 1e9),
    cpu_system=st.just(UNSET) | st.floats(0, 1e9),
    peak_memory=st.just(UNSET) | counts,
    problem=st.just(UNSET) | text,
    state=st.just(UNSET) | plain,
)
times = st.datetimes().map(lambda time: f"{time.isoformat()}Z")
refused = st.builds(
    FailedEventPayload,
    data=st.binary(max_size=20).map(lambda data: base64.b64encode(data).decode()),
    form=st.sampled_from(["json", "protobuf"]),
    problems=st.lists(st.builds(FailedEventProblem, path=text, reason=text), min_size=1, max_size=3),
    event=st.just(UNSET) | text,
    sender=st.just(UNSET) | text,
)
states = st.builds(StatePayload, value=plain | text | st.integers(-(2**60), 2**60))
failures = st.builds(
    ConsumerFailurePayload,
    outcome=st.sampled_from(["retry", "dead"]),
    topic=text,
    event=text,
    consumers=st.lists(text, max_size=3),
    attempt=counts,
    reason=text,
    channel=st.just(UNSET) | text,
    error_type=st.just(UNSET) | text,
    delay=st.just(UNSET) | st.floats(0, 1e9),
)
alert_states = st.sampled_from(
    ["ok", "pending", "firing", "resolved", "no_data", "learning", "silenced", "acknowledged"]
)
limits = st.none() | st.floats(-1e9, 1e9)
alerts = st.builds(
    AlertPayload,
    monitor=text,
    kind=text,
    state=alert_states,
    key=text,
    severity=st.sampled_from(["info", "warning", "error", "critical"]),
    reason=text,
    since=times,
    sequence=counts,
    previous=st.none() | alert_states,
    incident=text,
    incident_firing=st.integers(0, 2**40),
    labels=st.dictionaries(text, text, max_size=2),
    value=limits,
    expected=st.none() | st.builds(ExpectedBand, low=limits, high=limits),
    started=st.none() | times,
    evidence=st.builds(AlertEvidence, runs=st.lists(text, max_size=2), link=st.none() | text),
)
silences = st.builds(AlertSilencePayload, match=text.filter(bool), until=times, why=text, by=text)
acknowledgements = st.builds(AlertAcknowledgementPayload, match=text.filter(bool), until=st.none() | times, why=text)
alert_events = alerts | silences | acknowledgements
schemas = st.builds(
    StreamSchemaPayload, stream=text, schema=st.just(msgspec.Raw(b'{"type":"object"}')), key_properties=st.lists(text)
)
nulls = st.builds(NullPayload, version=st.none() | st.just("1.0.0"))


def validator(cls_type: str) -> Any:
    schema = json.loads((SCHEMAS / cls_type / "1.0.0.json").read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def event(payload: Any) -> Event:
    return Event.new("c", payload)


def test_every_payload_type_that_the_project_writes_has_a_schema_and_every_schema_a_type() -> None:
    assert {path.name for path in SCHEMAS.iterdir()} == set(TYPES)
    assert set(payloads._decoders) == set(TYPES)


@given(payload=alert_events | schemas | failures | refused | logs | metrics | metric | runs | states | nulls)
def test_what_is_written_satisfies_its_schema_and_is_read_back(payload: Any) -> None:
    made = event(payload)
    cls_type = type(payload).__struct_config__.tag

    validator(cls_type).validate(json.loads(bytes(made.raw_payload)))
    assert made.cls_type == cls_type
    assert read(made) == payload


@given(message=text, fields=plain, logger=st.none() | text)
def test_log_payload_satisfies_its_schema_and_leaves_out_what_is_empty(
    message: str, fields: dict[str, Any], logger: str | None
) -> None:
    made = log_payload(message, "INFO", fields=fields, logger=logger, exc_text="", exception={})

    validator("log").validate(json.loads(msgspec.json.encode(made)))
    assert read(event(made)) == LogPayload(
        message=message, severity="INFO", fields=fields or None, logger=logger or None
    )
    assert not {"exc_text", "exception"} & made.keys()


class TestRead:
    def test_the_numeric_strings_of_the_first_balog_are_numbers(self) -> None:
        old = decode((Path(__file__).parents[1] / "data" / "event-0.0.1.json").read_bytes())

        assert read(old) == MetricsPayload(
            values=[MetricValue(name="foo", value=1234), MetricValue(name="bar", value=5678)]
        )

    @pytest.mark.parametrize("number", ["7", "-7.25", "1e3", "-1.5E-2", "0"])
    def test_a_numeric_string_that_the_schema_takes_is_read(self, number: str) -> None:
        data = {"cls_type": "metrics", "values": [{"name": "n", "value": number}]}

        validator("metrics").validate(data)
        found = read(event(data))
        assert isinstance(found, MetricsPayload)
        assert found.values[0].value == float(number)

    @pytest.mark.parametrize("number", ["", "seven", "1_000", "0x10", " 1", "1,5", "nan", "inf", "-Infinity"])
    @pytest.mark.parametrize("cls_type", ["metrics", "metric"])
    def test_a_string_that_is_no_number_is_refused_with_its_path(self, cls_type: str, number: str) -> None:
        data: dict[str, Any] = {"cls_type": "metrics", "values": [{"name": "n", "value": number}]}
        if cls_type == "metric":
            data = {"cls_type": "metric", "type": "gauge", "metric": "m", "value": number}

        assert not validator(cls_type).is_valid(data)
        with pytest.raises(EventError) as refused:
            read(event(data))
        assert refused.value.path == ("$.payload.value" if cls_type == "metric" else "$.payload.values[0].value")

    @pytest.mark.parametrize("payload", [{}, {"cls_type": "app.order"}, {"cls_type": 5}, {"cls_type": None}])
    def test_a_type_that_belongs_to_somebody_else_is_none(self, payload: dict[str, Any]) -> None:
        assert read(event(payload)) is None

    def test_keys_that_the_type_does_not_know_are_left_to_the_payload(self) -> None:
        made = event({"cls_type": "log", "message": "m", "colour": "red"})

        assert read(made) == LogPayload(message="m")
        assert made.payload["colour"] == "red"

    @pytest.mark.parametrize(
        ("payload", "path"),
        [
            ({"cls_type": "log"}, "$.payload"),
            ({"cls_type": "log", "message": 5}, "$.payload.message"),
            ({"cls_type": "log", "message": "m", "exception": {}}, "$.payload.exception"),
            ({"cls_type": "metric", "type": "rate", "metric": "m", "value": 1}, "$.payload.type"),
            ({"cls_type": "metric", "type": "gauge", "metric": "", "value": 1}, "$.payload.metric"),
            ({"cls_type": "metric", "type": "gauge", "metric": "m", "value": True}, "$.payload.value"),
            ({"cls_type": "metric", "type": "gauge", "metric": "m", "value": 1, "tags": []}, "$.payload.tags"),
            ({"cls_type": "metrics", "values": {}}, "$.payload.values"),
            (
                {"cls_type": "run", "outcome": "maybe", "duration": 1, "exit_code": 0, "command": "c"},
                "$.payload.outcome",
            ),
            (
                {"cls_type": "run", "outcome": "failed", "duration": -1, "exit_code": 1, "command": "c"},
                "$.payload.duration",
            ),
            (
                {"cls_type": "run", "outcome": "failed", "duration": 1, "exit_code": 1, "command": "c", "records": -1},
                "$.payload.records",
            ),
        ],
    )
    def test_what_the_schema_refuses_is_refused_with_its_path(self, payload: dict[str, Any], path: str) -> None:
        assert not validator(payload["cls_type"]).is_valid(payload)
        with pytest.raises(EventError) as refused:
            read(event(payload))
        assert refused.value.path == path

    def test_a_number_that_no_float_holds_is_an_event_error(self) -> None:
        raw = msgspec.Raw(b'{"cls_type":"metric","type":"gauge","metric":"m","value":1e999}')

        with pytest.raises(EventError, match="out of range"):
            read(event(raw))
