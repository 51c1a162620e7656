"""Filters in the service: what they take, what they make, and that a kill loses and doubles nothing."""

import os
import signal
import subprocess
import sys

import pytest

from balog.common.errors import ConfigError
from balog.event import decode, encode
from balog.service.document import ControlDocument, Filter
from balog.service.jobs.filters import FilterJob, filter_problems
from balog.topics import Message
from tests.service.serving import publish
from tests.waiting import wait_for

KILLED = """
import sys, time
from balog.service.document import Filter
from balog.service.jobs import filters

filters.BATCH = filters.Batching(events=100, age=0.05)
config = Filter(name="big", sources=("orders",), to="out", select={"n": "payload.n"}, cls_type="x")
filters.FilterJob(config, sys.argv[1], print, lease=0.5).start()
time.sleep(60)
"""


@pytest.fixture
def run(home):
    """Run a filter until it is through with so many events, and give its last status."""
    jobs = []

    def run(config, until):
        jobs.append(FilterJob(config, home.url, print))
        jobs[-1].start()
        wait_for(lambda: jobs[-1].status().done + jobs[-1].status().dead >= until)
        jobs[-1].stop(5)
        return jobs[-1].status()

    yield run
    for job in jobs:
        job.stop(5)


def read(home, topic):
    return [decode(one.body) for one in home.topic(topic).peek(10_000)] if home.topic(topic).exists() else []


def config(**options):
    return Filter(**{"name": "big", "sources": ("orders",), "to": "out", **options})


class TestJob:
    def test_it_takes_what_meets_the_condition_as_it_is(self, home, run):
        events = publish(home, "orders", *({"cls_type": "order", "n": n} for n in range(10)))
        status = run(config(where="payload.n >= 7"), 10)
        assert [encode(one) for one in read(home, "out")] == [encode(one) for one in events[7:]]
        assert (status.taken, status.done, status.failed, status.dead) == (10, 10, 0, 0)

    def test_it_merges_topics(self, home, run):
        ids = {one.header.id for topic in "abc" for one in publish(home, topic, *({"n": n} for n in range(50)))}
        run(config(sources=("a", "b", "c")), 150)
        found = [one.header.id for one in read(home, "out")]
        assert sorted(found) == sorted(ids)

    def test_it_selects_parts(self, home, run):
        (event,) = publish(home, "orders", {"cls_type": "order", "n": 7, "lines": [1, 2]})
        run(config(select={"first": "payload.lines[0]"}, cls_type="first", version="1.0.0"), 1)
        (made,) = read(home, "out")
        assert made.payload == {"cls_type": "first", "version": "1.0.0", "first": 1}
        assert made.header.timestamp == event.header.timestamp

    def test_who_does_all_again_doubles_nothing(self, home, run):
        publish(home, "orders", *({"n": n} for n in range(20)))
        selecting = config(select={"n": "payload.n"}, cls_type="x")
        run(selecting, 20)
        home.topic("orders").seek("filter.big", "earliest")
        run(selecting, 20)
        assert len(read(home, "out")) == 20

    def test_a_topic_that_is_not_there_yet_is_waited_for(self, home, run):
        publish(home, "orders", {"n": 1})
        assert run(config(sources=("orders", "later")), 1).done == 1

    def test_what_is_no_event_becomes_a_dead_letter_and_holds_up_nothing(self, home, run):
        home.topic("orders").publish([Message("x", b"no event")])
        publish(home, "orders", {"n": 1})
        status = run(config(), 2)
        assert (status.done, status.dead) == (1, 1)
        assert [letter.id for letter in home.topic("orders").dead_letters("filter.big")] == ["x"]

    def test_what_came_after_the_stop_is_lag(self, home, run):
        publish(home, "orders", {"n": 1})
        job = FilterJob(config(), home.url, print)
        job.start()
        wait_for(lambda: job.status().lag == 0 and job.status().done == 1)
        job.stop(5)
        assert job.status().state == "stopped"
        publish(home, "orders", {"n": 2})
        assert home.topic("orders").group_state("filter.big").lag == 1

    def test_a_filter_of_its_own_topic_is_refused(self, home):
        with pytest.raises(ConfigError, match="circulate forever"):
            FilterJob(config(to="orders"), home.url, print)

    def test_a_killed_one_loses_and_doubles_nothing(self, home, run, tmp_path):
        """Given a filter that is killed three times at work, when it is through, then each event is there once.

        After a kill, each event of its batch is handled alone, with three fsyncs. The batches are of 100, because with
        1000 a busy disk needs minutes for them.
        """
        publish(home, "orders", *({"cls_type": "order", "n": n} for n in range(300)))
        topic = home.topic("out")
        for least in (1, 100, 200):
            process = subprocess.Popen([sys.executable, "-c", KILLED, home.url])
            try:
                wait_for(lambda least=least: topic.exists() and topic.describe().messages >= least)
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
        selecting = config(select={"n": "payload.n"}, cls_type="x")
        job = FilterJob(selecting, home.url, print)
        job.start()
        wait_for(lambda: home.topic("orders").group_state("filter.big").pending == 0)
        job.stop(5)
        assert sorted(one.payload["n"] for one in read(home, "out")) == list(range(300))


class TestChecking:
    def faults(self, *filters):
        return [(fault.path, fault.reason) for fault in filter_problems(ControlDocument(filters=filters))]

    def test_filters_one_behind_the_other_are_well(self):
        assert self.faults(config(), config(name="next", sources=("out", "other"), to="end")) == []

    def test_an_expression_that_is_none_is_told_with_its_place(self):
        ((path, reason),) = self.faults(config(select={"n": "payload.n +"}, cls_type="x"))
        assert path == "$.filters[0].select.n"
        assert "column" in reason

    @pytest.mark.parametrize(
        ("ways", "members", "path"),
        [
            ([("a", "a")], "a", "$.filters[0].to"),
            ([("a", "b"), ("b", "a")], "ab", "$.filters[0].to"),
            ([("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")], "abc", "$.filters[1].to"),
        ],
    )
    def test_a_circle_is_told(self, ways, members, path):
        ((found, reason),) = self.faults(*(config(name=f"f{n}", sources=(a,), to=b) for n, (a, b) in enumerate(ways)))
        first, *steps = reason.removeprefix("its events would circulate forever: ").split(" → ")
        assert (found, sorted(steps), steps[-1]) == (path, [*members], first)
        assert {*zip([first, *steps], steps)} <= {*ways}

    def test_a_spark_filter_counts_in_a_circle(self):
        found = self.faults(config(sources=("a",), to="b", engine="spark"), config(name="x", sources=("b",), to="a"))
        assert len(found) == 1
