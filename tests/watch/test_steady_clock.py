"""The clock for deadlines over steps of the wall clock."""

from balog.watch.steady_clock import SETTLE_SECONDS, SteadyClock


class Clocks:
    def __init__(self) -> None:
        self.wall, self.monotonic = 1_000_000.0, 50.0

    def pass_time(self, seconds: float, step: float = 0.0) -> None:
        self.wall += seconds + step
        self.monotonic += seconds


def make() -> tuple[Clocks, SteadyClock]:
    clocks = Clocks()
    return clocks, SteadyClock(lambda: clocks.wall, lambda: clocks.monotonic)


def test_it_follows_the_wall_and_its_small_corrections() -> None:
    clocks, clock = make()
    for _ in range(100):
        clocks.pass_time(10, step=0.05)
        assert clock.now() == clocks.wall


def test_a_step_that_goes_back_is_never_seen() -> None:
    clocks, clock = make()
    clocks.pass_time(1, step=86400)
    assert clock.now() == 1_000_001.0
    clocks.pass_time(5, step=-86400)
    assert clock.now() == clocks.wall == 1_000_006.0
    clocks.pass_time(SETTLE_SECONDS * 2)
    assert clock.now() == clocks.wall


def test_a_step_that_lasts_is_believed_in_either_direction() -> None:
    for step in (7200.0, -7200.0):
        clocks, clock = make()
        clocks.pass_time(1, step=step)
        assert clock.now() == 1_000_001.0
        clocks.pass_time(SETTLE_SECONDS - 1)
        assert clock.now() == 1_000_000.0 + SETTLE_SECONDS
        clocks.pass_time(1)
        assert clock.now() == clocks.wall
        clocks.pass_time(1)
        assert clock.now() == clocks.wall
