import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.event import Event
from balog.event.payload import ExceptionInfo, Frame, LogPayload, MetricPayload, RunPayload, log_payload
from balog.sinks.summary import stack_trace, summarize


def event(payload, channel="tap.sync"):
    return Event.new(channel, payload)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (log_payload("it  broke\n\tfor good\0", "ERROR"), "it broke for good"),
        (log_payload(" ", "ERROR", exception=ExceptionInfo(type="ValueError", message="no")), "ValueError: no"),
        (log_payload("", "ERROR", exc_text="Traceback …\nValueError: no"), "Traceback … ValueError: no"),
        (log_payload("", "ERROR"), "tap.sync"),
        (RunPayload(outcome="succeeded", duration=61.26, exit_code=0, command="tap"), "tap succeeded after 61.3 s"),
        (
            RunPayload(outcome="failed", duration=1, exit_code=137, command="tap"),
            "tap failed with exit code 137 after 1.0 s",
        ),
        (MetricPayload(type="gauge", metric="depth", value=2.5), "depth 2.5"),
        ({"cls_type": "order", "message": "paid"}, "paid"),
        ({"cls_type": "order", "message": 7}, "tap.sync: order"),
        ({"cls_type": "log", "message": 7}, "tap.sync: log"),
        ({}, "tap.sync"),
        (msgspec.Raw(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "tap.sync"),
    ],
)
def test_an_event_in_a_line(payload, said):
    assert summarize(event(payload)) == said


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_it_is_one_line_of_the_length_that_was_asked_for(text, longest):
    said = summarize(event(log_payload(text, "INFO")), longest)
    assert 1 <= len(said) <= longest
    assert said.isprintable()


def test_a_stack_trace_begins_with_the_first_cause():
    cause = ExceptionInfo(type="OSError", message="gone", frames=[Frame(file="a.py", line=3, function="f")])
    log = LogPayload(message="", exception=ExceptionInfo(type="ValueError", cause=cause))
    first = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nOSError: gone'
    joint = "The above exception was the direct cause of the following exception:"
    assert stack_trace(log) == f"{first}\n\n{joint}\n\nTraceback (most recent call last):\nValueError"


def test_a_stack_trace_that_came_as_text_is_taken():
    log = LogPayload(message="", exc_text="as it was", exception=ExceptionInfo(type="ValueError"))
    assert stack_trace(log) == "as it was"
    assert stack_trace(LogPayload(message="fine")) == ""
