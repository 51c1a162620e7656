import time

from balog.broker.stopwatch import Stopwatch


def test_time_inside_is_added_up_and_time_outside_is_not():
    watch = Stopwatch()
    for _ in range(2):
        with watch:
            time.sleep(0.02)
        spent = watch.seconds
        time.sleep(0.02)
        assert watch.seconds == spent
    assert watch.seconds >= 0.04


def test_what_still_goes_on_is_seen():
    watch = Stopwatch()
    with watch:
        time.sleep(0.02)
        early = watch.seconds
        assert early >= 0.02
        time.sleep(0.02)
        assert watch.seconds >= early + 0.02
