"""For tests of programs that log, and of handlers that act on events.

::

    def test_a_sync_says_how_many_rows(events):
        sync()
        events.assert_logged(channel="tap.users.*", cls_type="app.job", rows=3)
        events.assert_none(level="ERROR")


    def test_a_failed_run_is_told(topics, capsys):
        publish(topics, "singer-events", {"cls_type": "run", "outcome": "failed", ...})
        run_until_empty(myhandlers, topics)
        assert_no_dead_letters(topics)
        assert "failed" in capsys.readouterr().out

``events`` and ``topics`` are pytest fixtures that come with balog; without pytest, ``with capture_events() as events:``
and ``with MemoryTopics() as topics:`` are the same.
"""

from balog.testing.capturing import Events, capture_events
from balog.testing.consuming import assert_no_dead_letters, publish, run_until_empty
from balog.topics.memory import MemoryTopics

__all__ = ["Events", "MemoryTopics", "assert_no_dead_letters", "capture_events", "publish", "run_until_empty"]
