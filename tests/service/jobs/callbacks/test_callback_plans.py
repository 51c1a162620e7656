"""What is decided without a network: what a request carries, when the next one is, and when there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.service.document import Callback
from balog.service.jobs.callbacks.consumer import LONGEST, THRESHOLD, Breaker, dead_letter_reason, next_delay
from balog.sinks.base import Retrying
from balog.topics import Received
from tests.waiting import Clock


def callback(**options):
    return Callback(name="partner", source="orders", url="https://example.com/", **options)


def message(attempts=1, published=0.0, body=b"{}", id="LG1"):
    return Received(id, body, f"receipt-{id}", attempts, published)


class TestDelays:
    def test_they_double_up_to_the_longest_with_full_jitter(self):
        config = callback(retry=Retrying(first=2.0, longest=60.0))
        for attempts, most in [(1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (100_000, 60)]:
            delays = [next_delay(config, message(attempts), None, 1.0, attempts) for _ in range(50)]
            assert 0 <= min(delays) < most / 2 < max(delays) <= most

    def test_retry_after_is_kept_to_when_it_is_longer(self, monkeypatch):
        monkeypatch.setattr("random.random", lambda: 0.5)
        config = callback(retry=Retrying(first=2.0, longest=2.0))
        assert next_delay(config, message(), 100.0, 0.0, 1) == 100.0
        assert next_delay(config, message(), 0.5, 0.0, 1) == 1.0

    def test_the_last_attempt_is_when_its_time_is_over(self, monkeypatch):
        monkeypatch.setattr("random.random", lambda: 0.5)
        config = callback(retry=Retrying(first=3600.0, longest=3600.0), give_up=10_000.0)
        assert next_delay(config, message(9, published=1000.0), None, 10_900.0, 9) == 100.0
        assert next_delay(config, message(9, published=1000.0), None, 11_000.0, 9) is None

    def test_an_old_event_that_was_redriven_has_three_attempts_even_so(self):
        config = callback(give_up=10.0)
        tried = [next_delay(config, message(attempts), None, 1e6, attempts) is not None for attempts in (1, 2, 3)]
        assert tried == [True, True, False]

    @given(
        st.integers(1, 10**6),
        st.floats(0, 1e7),
        st.floats(0, 1e7),
        st.floats(0.01, 3600),
        st.none() | st.floats(0, 3600),
    )
    def test_every_delay_is_a_time_that_a_topic_can_keep(self, attempts, published, now, first, retry_after):
        config = callback(retry=Retrying(first=first, longest=3600.0))
        delay = next_delay(config, message(attempts, published), retry_after, now, attempts)
        assert delay is None or (retry_after or 0) <= delay <= max(3600.0, retry_after or 0)

    def test_a_dead_letter_says_when_and_after_how_many_attempts(self):
        said = dead_letter_reason(message(7, published=0.0), "example.com answered 500", 7200.0)
        assert said == "given up 2.0 h after it came, 7 attempts: example.com answered 500"


class TestBreaker:
    @pytest.fixture(autouse=True)
    def longest_delays(self, monkeypatch):
        monkeypatch.setattr("random.random", lambda: 1.0)

    def make(self):
        clock = Clock(100.0)
        return Breaker(4.0, clock), clock

    def fail(self, breaker, clock, times):
        for _ in range(times):
            clock.now += 0.001
            breaker.fail(clock.now)

    def test_failures_in_a_row_open_it_and_a_success_closes_it(self):
        breaker, clock = self.make()
        self.fail(breaker, clock, THRESHOLD - 1)
        breaker.succeed()
        self.fail(breaker, clock, THRESHOLD - 1)
        assert (breaker.is_open, breaker.wait) == (False, 0.0)
        self.fail(breaker, clock, 1)
        assert breaker.is_open
        assert breaker.wait == 4.0
        breaker.succeed()
        assert not breaker.is_open

    def test_the_time_between_probes_grows_up_to_a_minute(self):
        breaker, clock = self.make()
        self.fail(breaker, clock, THRESHOLD)
        for most in (8, 16, 32, LONGEST, LONGEST):
            clock.now += 100
            self.fail(breaker, clock, 1)
            assert breaker.wait == pytest.approx(most, abs=0.01)

    def test_requests_that_were_under_way_together_count_as_one_failed_probe(self):
        breaker, _ = self.make()
        for _ in range(64):
            breaker.fail(99.0)
        assert breaker.wait <= 4.0

    def test_retry_after_holds_back_at_once(self):
        breaker, clock = self.make()
        breaker.fail(clock.now, 30.0)
        assert (breaker.is_open, breaker.wait) == (False, 30.0)
