"""The ids of late."""

from balog.service.intake.recent_ids import RecentIds


def test_the_last_half_is_known_for_sure_and_never_more_than_the_limit() -> None:
    recent = RecentIds(100)
    recent.add("t", "topics", [f"id{n}" for n in range(1000)])
    assert all(recent.store_of("t", f"id{n}") == "topics" for n in range(950, 1000))
    assert sum(recent.store_of("t", f"id{n}") is not None for n in range(1000)) <= 100


def test_an_id_in_another_topic_is_another_event() -> None:
    recent = RecentIds()
    recent.add("t", "topics", ["a"])
    assert [recent.store_of(topic, "a") for topic in ("u", "t")] == [None, "topics"]
    recent.add("t", "fallback", ["a"])
    assert recent.store_of("t", "a") == "fallback"
