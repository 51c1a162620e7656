import pytest

from balog.sinks import pacing


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now, slept = 100.0, 0.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            assert seconds > 0
            self.now += seconds
            self.slept += seconds

    clock = Clock()
    monkeypatch.setattr(pacing, "time", clock)
    return clock


def test_what_comes_faster_is_held_back(clock):
    pace = pacing.Pace(1000.0)
    for _ in range(5000):
        pace.wait()
    assert clock.slept == pytest.approx(5.0, abs=0.02)


def test_a_few_may_come_at_once(clock):
    pace = pacing.Pace(1000.0)
    for _ in range(9):
        pace.wait()
    assert clock.slept == 0


def test_what_was_not_used_is_not_saved_up(clock):
    pace = pacing.Pace(1000.0)
    pace.wait()
    clock.now += 60
    for _ in range(1000):
        pace.wait()
    assert clock.slept == pytest.approx(1.0, abs=0.02)


def test_what_comes_slowly_is_never_held_back(clock):
    pace = pacing.Pace(1000.0)
    for _ in range(100):
        pace.wait()
        clock.now += 0.002
    assert clock.slept == 0
