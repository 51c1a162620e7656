import pytest

from balog.sinks.measuring import statsd_lines


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
    monkeypatch.setattr(statsd_lines, "time", clock)
    return clock


def test_what_comes_faster_is_held_back(clock):
    limit = statsd_lines.RateLimit(1000.0)
    for _ in range(5000):
        limit.wait()
    assert clock.slept == pytest.approx(5.0, abs=0.02)


def test_a_few_may_come_at_once(clock):
    limit = statsd_lines.RateLimit(1000.0)
    for _ in range(9):
        limit.wait()
    assert clock.slept == 0


def test_what_was_not_used_is_not_saved_up(clock):
    limit = statsd_lines.RateLimit(1000.0)
    limit.wait()
    clock.now += 60
    for _ in range(1000):
        limit.wait()
    assert clock.slept == pytest.approx(1.0, abs=0.02)


def test_what_comes_slowly_is_never_held_back(clock):
    limit = statsd_lines.RateLimit(1000.0)
    for _ in range(100):
        limit.wait()
        clock.now += 0.002
    assert clock.slept == 0
