import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.secrets import Secret
from balog.event import LEVELS, Event
from balog.event.payload import RunPayload, log_payload
from balog.sinks import SinkError
from balog.sinks.pagerduty import PagerDutySinkConfig
from tests.stand_ins.alerts import alert_delivery, alert_life
from tests.stand_ins.batches import JSON, deliver, refused
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.stand_ins.pagerduty import ROUTING_KEY, PagerDuty


@pytest.fixture
def service():
    return PagerDuty()


@pytest.fixture
def server(service):
    with HttpStandIn(service) as server:
        yield server


@pytest.fixture(autouse=True)
def routing_key(monkeypatch):
    monkeypatch.setenv("PAGERDUTY_KEY", ROUTING_KEY)


def build(server, **options):
    return PagerDutySinkConfig(routing_key=Secret(env="PAGERDUTY_KEY"), url=server.url, **options).build()


def delivery(event):
    return deliver(event)[0]


def error(message="it broke", *, level="ERROR", channel="tap_stripe.sync", **context):
    context = {"application": "tap-stripe", "fqdn": "host.example", **context}
    return delivery(Event.new(channel, log_payload(message, level), level=level, context=context))


def run(outcome, *, command="tap-stripe", application="tap-stripe", **context):
    report = RunPayload(outcome=outcome, duration=12.5, exit_code=int(outcome == "failed"), command=command)
    level = "ERROR" if outcome == "failed" else "INFO"
    context = {"application": application, "run_id": "R1", **context}
    return delivery(Event.new(f"{application}.run", report, level=level, context=context))


def actions(service):
    return [(event["event_action"], event["dedup_key"]) for event in service.accepted]


def test_an_error_triggers_an_incident_that_says_what_happened(service, server):
    batch = [error("card declined\nfor good", run_id="R1")]
    build(server).write(batch)
    (sent,) = service.accepted
    assert sent["event_action"] == "trigger"
    assert sent["dedup_key"] == "balog/tap-stripe"
    details = sent["payload"].pop("custom_details")
    assert sent["payload"] == {
        "summary": "tap-stripe: card declined for good",
        "source": "host.example",
        "severity": "error",
        "timestamp": batch[0].event.header.timestamp.isoformat(timespec="microseconds"),
        "component": "tap-stripe",
        "group": "tap_stripe",
        "class": "log",
    }
    assert details["event"] == batch[0].event.header.id
    assert details["context"]["run_id"] == "R1"
    assert details["payload"]["message"] == "card declined\nfor good"


def test_only_events_from_the_level_on_trigger(service, server):
    build(server, level="CRITICAL").write([error(level=level) for level in LEVELS])
    assert [event["payload"]["severity"] for event in service.accepted] == ["critical"]


def test_with_no_level_only_failed_runs_trigger(service, server):
    build(server, level=None).write([error(level="CRITICAL"), run("failed")])
    (sent,) = service.accepted
    assert sent["payload"]["summary"] == "tap-stripe failed with exit code 1 after 12.5 s"
    assert sent["payload"]["severity"] == "error"


def test_the_next_run_resolves_it_in_another_process(service, server):
    """Given an error and a failed run, when a later broker sees a run succeed, then the one incident is resolved."""
    build(server).write([error(channel="stripe.deep.inside", run_id="R1"), run("failed", run_id="R1", fqdn="a")])
    assert list(service.open) == ["balog/tap-stripe"]
    build(server).write([run("succeeded", run_id="R2", fqdn="b")])
    assert service.open == {}


def test_a_run_that_succeeds_when_nothing_is_open_is_told_all_the_same(service, server):
    build(server).write([run("succeeded")])
    assert actions(service) == [("resolve", "balog/tap-stripe")]
    assert set(service.accepted[0]) == {"routing_key", "event_action", "dedup_key"}


def test_another_application_has_another_incident(service, server):
    build(server).write([error(), error(application="target-csv"), run("succeeded")])
    assert list(service.open) == ["balog/target-csv"]


def test_without_an_application_the_channel_begins_with_its_name(service, server):
    build(server).write([delivery(Event.new("tap_x.sync", {"message": "no"}, level="ERROR"))])
    assert list(service.open) == ["balog/tap_x"]


def test_a_pipeline_is_one_incident(service, server):
    sink = build(server, pipeline="stripe/csv")
    sink.write([error(), error(application="target-csv"), run("failed")])
    assert actions(service) == [("trigger", "balog/stripe%2Fcsv")]
    sink.write([run("succeeded")])
    assert service.open == {}


def test_the_success_of_one_command_does_not_resolve_the_failure_of_another(service, server):
    sink = build(server, pipeline="p")
    sink.write([run("failed", command="tap"), run("succeeded", command="target")])
    assert list(service.open) == ["balog/p"]
    sink.write([run("succeeded", command="target")])
    assert list(service.open) == ["balog/p"]
    sink.write([run("succeeded", command="tap")])
    assert service.open == {}


def test_a_long_key_is_shortened_and_stays_the_same(service, server):
    build(server).write([error(application="x" * 400)])
    build(server).write([run("succeeded", application="x" * 400)])
    keys = {key for _, key in actions(service)}
    assert len(keys) == 1
    assert service.open == {}


def test_triggers_of_one_incident_go_as_one_with_their_number_and_the_worst_severity(service, server):
    build(server).write([error("first"), error("second"), error("third", level="CRITICAL")])
    (sent,) = service.accepted
    assert sent["payload"]["summary"].endswith("first")
    assert sent["payload"]["severity"] == "critical"
    assert sent["payload"]["custom_details"]["further_events"] == 2


def test_what_comes_after_a_resolve_triggers_again(service, server):
    build(server).write([error(), run("succeeded"), error()])
    assert [action for action, _ in actions(service)] == ["trigger", "resolve", "trigger"]


def test_a_run_event_that_is_none_counts_by_its_level(service, server):
    broken = delivery(Event.new("a.run", {"cls_type": "run", "outcome": "so-so"}, level="ERROR"))
    build(server).write([broken])
    assert [action for action, _ in actions(service)] == ["trigger"]


@pytest.mark.parametrize("odd", [{"exit_code": None}, {"streams": None}, {"records": "ten"}, {"command": 7}])
def test_a_run_with_another_field_wrong_counts_by_its_outcome(service, server, odd):
    ends = [{"cls_type": "run", "outcome": outcome, "duration": 1, **odd} for outcome in ("failed", "succeeded")]
    build(server).write([delivery(Event.new("tap-stripe.run", end, level="INFO")) for end in ends])
    assert [action for action, _ in actions(service)] == ["trigger", "resolve"]


@pytest.mark.parametrize("text", ["x" * 2_000_000, '"\\' * 1_000_000, "😀" * 500_000, "\1" * 500_000])
def test_a_huge_event_is_shortened_to_what_is_taken(service, server, text):
    build(server).write([error(text, note=text)])
    (sent,) = service.accepted
    assert sent["payload"]["custom_details"]["payload_shortened"].startswith('{"cls_type":"log"')


def test_an_event_that_is_nested_too_deep_to_be_data_is_told_as_text(service, server):
    raw = msgspec.Raw(b'{"message":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    build(server).write([delivery(Event.new("a.b", raw, level="ERROR"))])
    assert service.accepted[0]["payload"]["summary"] == "a.b"


def test_what_is_refused_is_rejected_and_the_rest_goes_on(service, server):
    server.will(Answer(400, b'{"status":"invalid event","errors":["JSON parse error"]}'))
    batch = [error(application="a"), error(application="b", level="DEBUG"), error(application="a"), error()]
    refusal = refused(build(server), batch)
    assert sorted(refusal.rejected) == [0, 2]
    assert refusal.remaining == []
    assert not refusal.retryable
    assert "JSON parse error" in refusal.rejected[0]
    assert list(service.open) == ["balog/tap-stripe"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_was_not_taken_comes_again(service, server, status):
    server.will(Answer(202), Answer(status, headers={"Retry-After": "7"}))
    batch = [error(application="a"), error(application="b"), error(application="b"), error(level="INFO"), error()]
    refusal = refused(build(server), batch)
    assert refusal.retryable
    assert refusal.retry_after == 7
    assert refusal.remaining == [1, 2, 4]


def test_a_refused_key_is_no_fault_of_the_events_and_is_not_said(server, monkeypatch):
    monkeypatch.setenv("PAGERDUTY_KEY", "f" * 32)
    server.respond = lambda request: Answer(400, b"Invalid routing key: " + b"f" * 32)
    refusal = refused(build(server), [error()])
    assert refusal.retryable
    assert "routing_key" in str(refusal)
    assert "ffff" not in str(refusal)


def test_an_answer_of_something_else_is_trouble(server):
    server.respond = lambda request: Answer(200, b"<html>Welcome to the hotel</html>")
    assert refused(build(server), [error()], "not 202").retryable


def test_an_alert_triggers_acknowledges_and_resolves_by_its_key(service, server):
    sink = build(server)
    sink.write([alert_delivery(1), alert_delivery(2)])
    assert list(service.open) == ["m1|tap-shop|orders", "m2|tap-shop|orders"]
    sink.write([alert_delivery(1, "acknowledged", sequence=2), alert_delivery(1, "resolved", sequence=3)])
    assert [action for action, _ in actions(service)] == ["trigger", "trigger", "acknowledge", "resolve"]
    assert list(service.open) == ["m2|tap-shop|orders"]


def test_alerts_of_one_incident_have_one_group(service, server):
    build(server).write([alert_delivery(1), alert_delivery(2, severity="critical", value="late")])
    first, second = (sent["payload"] for sent in service.accepted)
    assert first["group"] == second["group"] == "tap-shop@2026-11-24T06:00:00Z"
    assert (first["severity"], second["severity"]) == ("error", "critical")
    assert first["summary"] == "m1 firing: No success for 1 h."
    assert (first["source"], first["component"], first["class"]) == ("tap-shop", "orders", "freshness")
    assert service.accepted[0]["links"] == [{"href": "https://runs.example.com/r1", "text": "Evidence"}]


def test_a_repeat_of_an_alert_opens_no_incident_again(service, server):
    sink = build(server)
    sink.write(alert_life())
    sink.write([alert_delivery()])
    sink.write([alert_delivery(), *alert_life(2), alert_delivery(2)])
    assert service.open == {}


@pytest.mark.parametrize("state", ["ok", "pending", "no_data", "learning", "silenced"])
def test_other_states_change_no_incident(service, server, state):
    sink = build(server)
    sink.write([alert_delivery(state=state)])
    assert service.accepted == []


def test_an_alert_that_is_not_of_its_type_counts_by_its_level(service, server):
    build(server).write([alert_delivery(sequence="many")])
    assert [action for action, _ in actions(service)] == ["trigger"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(max_size=400), link=st.none() | st.text())
def test_any_alert_makes_a_request_that_is_taken(service, server, text, link):
    fields = dict.fromkeys(("monitor", "kind", "key", "incident", "reason", "value"), text)
    sink = build(server)
    sink.write([alert_delivery(**fields, labels={text: text}, evidence={"runs": [text], "link": link})])
    sink.close()
    assert service.accepted[-1]["event_action"] == "trigger"


def test_the_preview_shows_no_key(server):
    text_of_it = PagerDutySinkConfig(routing_key=Secret(env="NOT_SET")).preview(alert_delivery().event)
    assert '"dedup_key": "m1|tap-shop|orders"' in (text_of_it or "")


@pytest.mark.parametrize("before", range(140, 205, 4))
def test_no_part_of_the_key_is_said_wherever_an_answer_is_cut(server, before):
    server.respond = lambda request: Answer(400, b"x" * before + ROUTING_KEY.encode())
    assert ROUTING_KEY[:4] not in str(refused(build(server), [error()]))


def test_a_probe_triggers_nothing(service, server):
    build(server).probe()
    assert service.accepted == []
    server.stop()
    with pytest.raises(SinkError, match="cannot connect"):
        build(server).probe()


payloads = st.dictionaries(st.sampled_from(["cls_type", "message", "outcome", "command", "x"]) | st.text(), JSON)
contexts = st.dictionaries(st.sampled_from(["application", "fqdn", "run_id"]) | st.text(), JSON)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    payload=payloads | st.builds(lambda p: {**p, "cls_type": "log"}, payloads),
    context=contexts,
    channel=st.text(min_size=1, max_size=1000),
)
def test_any_event_makes_a_request_that_is_taken(service, server, payload, context, channel):
    event = Event.new(channel, payload, level="ERROR", context=context)
    sink = build(server)
    sink.write([delivery(event)])
    sink.close()
    assert service.accepted[-1]["payload"]["custom_details"]["event"] == event.header.id
