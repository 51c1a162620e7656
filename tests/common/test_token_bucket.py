"""A token bucket admits its rate over time and a burst at once, and saves nothing beyond it."""

from hypothesis import given
from hypothesis import strategies as st

from balog.common import token_bucket
from balog.common.token_bucket import TokenBucket

AMOUNTS = st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 20)), min_size=1, max_size=50)


@given(rate=st.floats(0.1, 1000), burst=st.floats(0, 50), steps=AMOUNTS)
def test_it_is_a_bucket_that_is_refilled_step_by_step(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    now = 1000.0
    bucket = TokenBucket(rate, burst, lambda: now)
    level = burst
    for pause, amount in steps:
        now += pause
        level = min(level + pause * rate, burst) - amount
        wait = bucket.take(amount)
        assert abs(wait - max(-level, 0) / rate) < 1e-6 * (1 + wait)
        assert abs(bucket.available - level) < 1e-6 * (1 + abs(level))


def test_datagrams_above_the_rate_wait_until_a_burst_is_there(monkeypatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(token_bucket.time, "sleep", slept.append)
    limit = TokenBucket(1000.0, 10, lambda: 5.0)
    for _ in range(11):
        limit.wait()
    assert [round(seconds, 6) for seconds in slept] == [0.011]
