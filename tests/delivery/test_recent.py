"""The ids of late."""

from balog.delivery.recent import RecentIds


def test_the_last_half_is_known_for_sure_and_never_more_than_the_limit() -> None:
    recent = RecentIds(100)
    recent.add("t", [f"id{n}" for n in range(1000)])
    assert all(recent.holds("t", f"id{n}") for n in range(950, 1000))
    assert sum(recent.holds("t", f"id{n}") for n in range(1000)) <= 100


def test_an_id_in_another_topic_is_another_event() -> None:
    recent = RecentIds()
    recent.add("t", ["a"])
    assert not recent.holds("u", "a")
    assert recent.holds("t", "a")
