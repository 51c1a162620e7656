"""The state machine against a table, and against a clock that walks second by second."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from balog.watch.state_machine import Lifecycle, Timing

# state -> (after bad, after ok, after learning, after no_data), without any time to wait
TABLE = {
    "ok": ("firing", "ok", "learning", "no_data"),
    "learning": ("firing", "ok", "learning", "no_data"),
    "no_data": ("firing", "ok", "learning", "no_data"),
    "resolved": ("firing", "resolved", "learning", "no_data"),
    "firing": ("firing", "resolved", "resolved", "firing"),
}
SIGNALS = ("bad", "ok", "learning", "no_data")


@given(st.lists(st.sampled_from(SIGNALS), max_size=40))
def test_without_times_it_is_the_table(signals: list[Any]) -> None:
    life, state = Lifecycle(), "ok"
    for number, signal in enumerate(signals):
        life.change(signal, number * 10_000.0, Timing())
        state = TABLE[state][SIGNALS.index(signal)]
        assert life.state == state


def oracle(steps: list[tuple[int, Any]], timing: Timing, end: int) -> list[tuple[int, str]]:
    """Walk second by second: a signal at a second comes after what the clock does in it."""
    state, bad, good, fired = "ok", 0, None, list[int]()
    seen = [(0, "ok")]
    by_second: dict[int, list[Any]] = {}
    for second, signal in steps:
        by_second.setdefault(second, []).append(signal)
    for now in range(end + 1):
        for signal in [None, *by_second.get(now, [])]:
            if signal == "bad":
                if good is not None:
                    fired = [*fired, now][-timing.firings :]
                good = None
                if state not in ("pending", "firing"):
                    state, bad = "pending", now
                    seen.append((now, state))
            elif signal == "ok" and state == "firing":
                good = now if good is None else good
            elif signal == "ok":
                state = "resolved" if state == "resolved" else "ok"
            elif signal == "learning":
                state, good = ("resolved", None) if state == "firing" else ("learning", good)
            elif signal == "no_data" and state != "firing":
                state = "no_data"
            if state == "pending" and now - bad >= timing.pending:
                state = "firing"
                fired = [*fired, now][-timing.firings :]
            if state == "firing" and good is not None:
                often = len([one for one in fired if good - timing.within < one]) >= timing.firings
                if now - good >= (timing.within if often else timing.resolve_after):
                    state, good = "resolved", None
            seen.append((now, state))
    changes = [seen[0]]
    for now, state in seen[1:]:
        if state != changes[-1][1]:
            changes.append((now, state))
    return [one for one in changes if not (one[1] == "pending" and not timing.pending)]


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 120), st.sampled_from(SIGNALS)), max_size=25),
    pending=st.sampled_from([0, 5, 20]),
    resolve_after=st.sampled_from([0, 7]),
    firings=st.integers(2, 4),
    within=st.sampled_from([15, 60]),
)
def test_with_times_it_is_what_a_clock_shows(
    steps: list[tuple[int, Any]], pending: int, resolve_after: int, firings: int, within: int
) -> None:
    timing = Timing(pending, resolve_after, firings, within)
    life = Lifecycle()
    steps = sorted(steps, key=lambda step: step[0])
    seen = [(0, "ok")]

    def note(now: int) -> None:
        if life.state != seen[-1][1]:
            seen.append((now, life.state))

    for second, signal in [*steps, (300, None)]:
        while (due := life.deadline(timing)) is not None and due <= second:
            life.change(None, due, timing)
            note(int(due))
        life.change(signal, second, timing)
        note(second)
    assert seen == oracle(steps, timing, 300)


def test_a_flapping_series_stays_firing_until_it_is_calm() -> None:
    timing, life, states = Timing(0, 0, 3, 600), Lifecycle(), []
    for minute in range(12):
        life.change("bad" if minute % 2 == 0 else "ok", minute * 60.0, timing)
        states.append(life.state)
    assert states[:6] == ["firing", "resolved", "firing", "resolved", "firing", "firing"]
    assert set(states[6:]) == {"firing"}
    assert life.deadline(timing) == 11 * 60 + 600
