"""Titles and texts of alerts, and which alerts are sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.sinks.alerts.alert_sink import AlertSinkOptions, LatestChanges
from balog.sinks.alerts.alert_text import AlertTemplate, facts, read_alert
from tests.stand_ins.alerts import alert_event


def render(text, longest=200, **changes):
    alert = read_alert(alert_event(**changes))
    assert alert is not None
    return AlertTemplate(text, "title").render(alert, longest)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{state}: {monitor} {series}", "firing: m1 tap-shop / orders"),
        ("{value} ({expected})", "4500 (at most 3600)"),
        ("{pipeline}/{stream}/{labels.stream}/{labels.none}", "tap-shop/orders/orders/"),
        ("{{{severity}}} {runs} {link}", "{error} r1 https://runs.example.com/r1"),
        ("{labels}", "pipeline=tap-shop, stream=orders"),
        ("two\nlines of {kind}", "two\nlines of freshness"),
    ],
)
def test_a_template_has_fields_of_the_alert(template, text):
    assert render(template) == text


@pytest.mark.parametrize(
    ("band", "text"), [((1, None), "at least 1"), ((1, 2.5), "1 to 2.5"), ((None, None), "-"), (None, "-")]
)
def test_expected_is_said_in_words(band, text):
    expected = band and {"low": band[0], "high": band[1]}
    assert render("{expected}-", expected=expected).replace(f"{text}-", text) == text


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{monitr}", "did you mean 'monitor'"),
        ("{monitor", "single {"),
        ("monitor}", "single }"),
        ("{reason.x}", "only labels have parts"),
        ("{reason!r}", "single {"),
        ("{0}", "single {"),
    ],
)
def test_a_wrong_template_is_an_error_of_the_config(template, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        AlertTemplate(template, "title")
    assert caught.value.path == "title"


def test_values_cannot_break_lines_or_fill_in_fields():
    text = render("{monitor}: {reason}", reason="a\nBcc: {key}\r\n\0b", monitor="{key}")
    assert text == "{key}: a Bcc: {key} b"


@settings(max_examples=200, deadline=None)
@given(
    reason=st.text(st.characters(exclude_categories=["Cs"])),
    longest=st.integers(1, 60),
    literal=st.text("ab {}", max_size=5).map(lambda text: text.replace("{", "{{").replace("}", "}}")),
)
def test_a_text_is_never_empty_or_too_long(reason, longest, literal):
    text = render(f"{literal}{{reason}}{{reason}}", longest, reason=reason)
    assert 1 <= len(text) <= longest
    assert text.isprintable()


def test_what_escaping_adds_is_never_cut_through():
    alert = read_alert(alert_event(reason="<" * 100))
    assert alert is not None
    for longest in range(1, 400):
        text = AlertTemplate("{reason}", "t").render(alert, longest, lambda value: value.replace("<", "&lt;"))
        assert len(text) <= longest
        assert text.replace("&lt;", "").strip("…") == ""


def test_the_facts_are_short_and_on_one_line():
    alert = read_alert(alert_event(value="x\n" * 10_000, evidence={"runs": ["r"] * 1000}))
    assert alert is not None
    found = facts(alert)
    assert list(found) == ["Severity", "Value", "Expected", "Started", "Runs"]
    assert max(map(len, found.values())) <= 500


@pytest.mark.parametrize(
    ("state", "previous", "states", "is_sent"),
    [
        ("firing", "ok", ("firing",), True),
        ("firing", "silenced", ("firing",), True),
        ("resolved", "firing", ("firing", "resolved"), True),
        ("resolved", "silenced", ("firing", "resolved"), False),
        ("resolved", "silenced", ("resolved", "silenced"), True),
        ("pending", "ok", ("firing",), False),
        ("acknowledged", "firing", ("firing", "resolved"), False),
        ("no_data", "ok", ("no_data",), True),
        ("ok", "no_data", ("no_data",), True),
        ("ok", "learning", ("firing", "no_data"), False),
    ],
)
def test_a_sink_takes_the_states_that_it_names(state, previous, states, is_sent):
    options = AlertSinkOptions(states=states)
    assert options.takes(alert_event(state=state, previous=previous)) is is_sent


def test_other_events_are_not_taken():
    assert not AlertSinkOptions().takes(alert_event(cls_type="log"))
    assert not AlertSinkOptions().takes(alert_event(sequence="many"))


change = st.tuples(st.sampled_from("ab"), st.integers(1, 6))


@settings(max_examples=100, deadline=None)
@given(sent=st.lists(st.lists(change, max_size=5), max_size=6))
def test_repeats_and_older_changes_are_dropped(sent):
    """Each change arrives once and in order; the oracle is the running maximum of each key."""
    latest, largest = LatestChanges(), {"a": 0, "b": 0}
    for batch in sent:
        alerts = [read_alert(alert_event(key=key, sequence=number)) for key, number in batch]
        chosen = latest.select(alert for alert in alerts if alert)
        expected = []
        for key, number in batch:
            if number > largest[key]:
                largest[key] = number
                expected.append((key, number))
        assert [(alert.key, alert.sequence) for alert in chosen] == expected
        for alert in chosen:
            latest.record(alert)


def test_a_watcher_that_counts_from_1_again_is_heard():
    latest = LatestChanges()
    first, again = (
        read_alert(alert_event(sequence=n, since=s))
        for n, s in ((9, "2026-01-01T00:00:00Z"), (1, "2026-01-02T00:00:00+01:00"))
    )
    assert first
    assert again
    latest.record(first)
    assert latest.is_new(again)
    latest.record(again)
    assert not latest.is_new(again)
