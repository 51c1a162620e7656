"""Test programs that log, and handlers that act on events.

::

    def test_a_sync_logs_its_number_of_rows(events):
        sync()
        events.assert_logged(channel="tap.users.*", cls_type="app.job", rows=3)
        events.assert_none(level="ERROR")


    def test_a_failed_run_is_reported(topics, capsys):
        publish(topics, "singer-events", {"cls_type": "run", "outcome": "failed", ...})
        run_until_empty(myhandlers, topics)
        assert_no_dead_letters(topics)
        assert "failed" in capsys.readouterr().out


    def test_orders_match_their_schema(micro):
        shop.sell(service=micro.url)
        micro.assert_no_failed_events()
        assert len(micro.events("order")) == 1

``events``, ``topics`` and ``micro`` are pytest fixtures of balog. Without pytest, use ``with capture_events() as
events:``, ``with MemoryTopics() as topics:`` and ``with Micro("schemas") as micro:``.
"""

from typing import TYPE_CHECKING

from balog.common.lazy_exports import deferred
from balog.testing.captured_events import Events, capture_events
from balog.testing.handler_runs import assert_no_dead_letters, publish, run_until_empty

if TYPE_CHECKING:
    from balog.service.micro import Micro
    from balog.topics.memory import MemoryTopics

__all__ = [
    "Events",
    "MemoryTopics",
    "Micro",
    "assert_no_dead_letters",
    "capture_events",
    "publish",
    "run_until_empty",
]

__getattr__ = deferred(globals(), {"MemoryTopics": "balog.topics.memory", "Micro": "balog.service.micro"})
