"""Tests of ``balog.common.backoff``."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.backoff import Backoff, BackoffSequence


class TestBackoff:
    def test_the_limit_doubles_up_to_the_longest(self) -> None:
        backoff = Backoff(2.0, 60.0)
        limits = [backoff.limit(failures) for failures in (1, 2, 3, 5, 6, 100_000)]
        assert limits == [2, 4, 8, 32, 60, 60]

    def test_a_first_delay_above_the_longest_is_kept(self) -> None:
        assert Backoff(90.0, 60.0).limit(3) == 90.0

    def test_the_jitter_is_full(self) -> None:
        chances = iter([0.0, 0.25, 1.0])
        delays = [Backoff(1.0).delay(failures, chance=lambda: next(chances)) for failures in (1, 2, 3)]
        assert delays == [0.0, 0.5, 4.0]

    def test_a_hundred_that_failed_together_do_not_retry_together(self) -> None:
        delays = [Backoff(60.0).delay(1) for _ in range(100)]
        assert len(set(delays)) > 90
        assert min(delays) < 20 < 40 < max(delays)

    @pytest.mark.parametrize(("retry_after", "delay"), [(None, 4.0), (1.0, 4.0), (100.0, 100.0)])
    def test_a_longer_retry_after_is_kept_to(self, retry_after: float | None, delay: float) -> None:
        assert Backoff(4.0).delay(1, retry_after, chance=lambda: 1.0) == delay

    @given(st.integers(1, 10**6), st.floats(1e-6, 3600), st.floats(1e-6, 3600), st.floats(0, 1))
    def test_a_delay_is_within_its_limit(self, failures: int, first: float, longest: float, chance: float) -> None:
        backoff = Backoff(first, longest)
        assert 0 <= backoff.delay(failures, chance=lambda: chance) <= backoff.limit(failures) <= max(first, longest)


class TestBackoffSequence:
    def test_it_grows_with_each_failure_and_begins_again_after_a_reset(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(random, "random", lambda: 1.0)
        delays = BackoffSequence(Backoff(1.0, 5.0))
        assert [delays.next() for _ in range(4)] == [1, 2, 4, 5]
        delays.reset()
        assert [delays.next(), delays.next(30.0), delays.next()] == [1, 30, 4]
