"""A service picks up versions while it runs."""

import json
import threading
import time
from contextlib import contextmanager

import pytest

from balog.common.errors import ConfigError, TopicError
from balog.common.storage import StorageError
from balog.service.control import applier, open_control
from balog.service.control.applier import Applier
from balog.service.control.folder import open_version_cache
from balog.service.document import ControlDocument
from balog.service.jobs import JobStatus
from tests.waiting import wait_for


class FakeJob:
    def __init__(self, kind, config, bench):
        self.kind, self.name, self.config, self.bench = kind, config.name, config, bench
        self.state = "stopped"

    def check(self):
        if self.config.name in self.bench.refusing:
            raise ConfigError("the environment variable KEY is not set", path="secrets")

    def start(self):
        self.state = "running"
        self.bench.log.append(f"start {self.name}")

    def stop(self, deadline):
        self.state = "stopped"
        self.bench.log.append(f"stop {self.name}")

    def status(self):
        return JobStatus(name=self.name, kind=self.kind, state=self.state)


class Bench:
    """A store, and services at it whose parts only note what is asked of them."""

    def __init__(self, place):
        self.place = place
        self.control = open_control(place)
        self.log, self.said = [], []
        self.applied = []
        self.refusing = set()
        self.apply_error = None
        self.kept = None

    def push(self, document, base=None):
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.control.push(data, who="ann", message="", base=base)

    def apply(self, document):
        if self.apply_error:
            raise self.apply_error
        self.applied.append(document)
        self.log.append("route")

    @contextmanager
    def service(self, name="one", poll=0.02, control=None):
        applier = Applier(
            control or open_control(self.place),
            name,
            make_job=lambda kind, config: FakeJob(kind, config, self),
            apply=self.apply,
            say=self.said.append,
            poll=poll,
            drain=1.0,
            cache=self.kept,
        )
        applier.start()
        try:
            yield applier
        finally:
            applier.stop()


@pytest.fixture
def bench(tmp_path):
    made = Bench(str(tmp_path))
    yield made
    made.control.close()


def unreachable_while(place):
    """Return a version store that cannot be reached while the event, which is set, stays so."""
    control, away = open_control(place), threading.Event()
    head = control.head

    def fail():
        if away.is_set():
            raise StorageError("s3://x: no answer")
        return head()

    away.set()
    control.head = fail
    return control, away


def callbacks(*names, **more):
    return {"callbacks": [{"name": name, "source": "a", "url": "https://example.com/", **more} for name in names]}


@pytest.fixture
def pauses(monkeypatch):
    """Let what could not be applied be tried again at once."""
    monkeypatch.setattr(applier, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(applier, "LONGEST_PAUSE", 0.02)


def test_a_service_without_versions_has_the_empty_document(bench):
    with bench.service() as applier:
        assert applier.document == ControlDocument()
        assert bench.applied == [ControlDocument()]
        assert applier.status().number == 0


def test_a_service_begins_with_the_newest_version(bench):
    bench.push(callbacks("a"))
    bench.push(callbacks("b"))
    with bench.service() as applier:
        assert applier.status().number == 2
        assert bench.log == ["start b", "route"]
    assert bench.log == ["start b", "route", "stop b"]


def test_what_is_pushed_is_picked_up_without_a_restart(bench):
    with bench.service() as applier:
        bench.push({"streams": [{"name": "orders"}]})
        wait_for(lambda: applier.status().number == 1)
        assert [stream.name for stream in bench.applied[-1].streams] == ["orders"]


def test_who_asks_waits_for_no_poll(bench):
    with bench.service(poll=600.0) as applier:
        bench.push({"streams": [{"name": "orders"}]})
        assert applier.await_version(1).number == 1


def test_only_what_changed_is_stopped_and_what_is_gone_ends_last(bench):
    bench.push(callbacks("same", "changed", "gone"))
    with bench.service() as applier:
        bench.log.clear()
        document = callbacks("same", "new")
        document["callbacks"] += callbacks("changed", timeout=5)["callbacks"]
        bench.push(document)
        wait_for(lambda: applier.status().number == 2)
        assert sorted(bench.log[:3]) == ["start changed", "start new", "stop changed"]
        assert bench.log.index("stop changed") < bench.log.index("start changed")
        assert bench.log[3:] == ["route", "stop gone"]
        assert [job.name for job in applier.status().jobs if job.state == "running"] == ["same", "new", "changed"]


def test_what_spark_runs_is_no_job_of_a_service(bench):
    by_spark = {"name": "f", "sources": ["a"], "to": "b", "engine": "spark"}
    bench.push({"filters": [by_spark], "tables": [{"type": "load", "name": "t", "sources": ["a"], "to": "lake"}]})
    with bench.service() as applier:
        assert applier.status().number == 1
        assert applier.status().jobs == []


@pytest.mark.parametrize(
    "bad",
    [
        {"filters": [{"name": "f", "sources": ["a"], "to": "a"}]},
        {"streams": [{"name": "s", "where": "("}]},
        {"stream": []},
        b"[]",
        callbacks("secretless"),
    ],
    ids=["cycle", "expression", "field", "no document", "secret"],
)
def test_a_version_that_can_not_be_applied_never_is_and_is_told(bench, bad):
    """Given one that got past every check, then the old one stays, jobs go on, and the status says why."""
    bench.push(callbacks("a"))
    bench.refusing.add("secretless")
    with bench.service() as applier:
        bench.push(bad)
        wait_for(lambda: applier.status().head == 2)
        status = applier.status()
        assert (status.number, status.state) == (1, "refused")
        assert status.reason.startswith("version 2: ")
        assert bench.log == ["start a", "route"]
        wait_for(lambda: bench.control.services()[0].state == "refused")
        bench.push(callbacks("a", "b"))
        wait_for(lambda: applier.status().number == 3)
        assert (applier.status().state, applier.status().reason) == ("applied", "")


def test_a_job_that_was_stopped_for_a_version_that_is_refused_goes_on_as_it_was(bench):
    bench.push(callbacks("a"))
    with bench.service() as applier:
        bench.log.clear()
        bench.apply_error = ConfigError("no")
        bench.push(callbacks("a", timeout=5))
        wait_for(lambda: applier.status().state == "refused")
        assert bench.log == ["stop a", "start a", "stop a", "start a"]
        (job,) = applier.status().jobs
        assert job.state == "running"


def test_a_service_that_starts_goes_back_to_what_it_can_apply(bench):
    bench.push(callbacks("a"))
    bench.push(callbacks("b"))
    bench.refusing.add("b")
    with bench.service() as applier:
        status = applier.status()
        assert (status.number, status.head, status.state) == (1, 2, "refused")
        assert "KEY is not set" in status.reason


def test_a_store_that_goes_away_stops_nothing(bench):
    bench.push(callbacks("a"))
    control, away = unreachable_while(bench.place)
    away.clear()
    with bench.service(control=control) as applier:
        away.set()
        wait_for(lambda: applier.status().reason == "s3://x: no answer")
        assert applier.status().number == 1
        bench.push(callbacks("b"))
        away.clear()
        wait_for(lambda: applier.status().number == 2)
        assert applier.status().reason == ""
    assert len([line for line in bench.said if "no answer" in line]) == 1


def test_a_service_does_not_begin_without_knowing_its_document(bench):
    control, _ = unreachable_while(bench.place)
    with pytest.raises(StorageError, match="no answer"), bench.service(control=control):
        pass


def test_a_service_begins_with_what_it_applied_last_while_its_place_can_not_be_read(bench, tmp_path):
    """Given a version that was kept, then a start without the store has it, and the next when the store is back."""
    bench.kept = open_version_cache(bench.place, None, f"local:{tmp_path / 'topics'}")
    bench.push(callbacks("a"))
    with bench.service():
        pass
    control, away = unreachable_while(bench.place)
    with bench.service(control=control) as applier:
        assert (applier.status().number, applier.document.callbacks[0].name) == (1, "a")
        assert any("starts with version 1, which was applied here last" in line for line in bench.said)
        bench.push(callbacks("b"))
        away.clear()
        wait_for(lambda: applier.status().number == 2)


def test_what_is_kept_is_of_one_place_and_may_be_broken(bench, tmp_path):
    home = f"local:{tmp_path / 'topics'}"
    bench.kept = open_version_cache(bench.place, "kafka:broker:9092", home)
    bench.push(callbacks("a"))
    with bench.service():
        pass
    assert bench.kept.read() == (bench.control.head(), bench.control.document(bench.control.head().sha))
    assert open_version_cache("another", home).read() is None
    assert open_version_cache(bench.place, "kafka:broker:9092") is None
    (file,) = (tmp_path / "topics" / ".control").iterdir()
    file.write_bytes(b"{")
    assert bench.kept.read() is None


def test_a_version_whose_secret_comes_later_is_applied_then(bench, pauses):
    """Given a refused version, then its job goes on meanwhile, it is said once, and it is applied without a push."""
    bench.push(callbacks("a"))
    with bench.service() as applier:
        bench.refusing.add("a")
        bench.push(callbacks("a", timeout=5))
        wait_for(lambda: applier.status().state == "refused")
        time.sleep(0.2)
        assert bench.log == ["start a", "route"]
        assert len([line for line in bench.said if "can't be applied" in line]) == 1
        bench.refusing.clear()
        wait_for(lambda: applier.status().number == 2)
        assert (applier.status().state, applier.status().reason) == ("applied", "")
    assert bench.log.count("stop a") == 2


def test_what_does_not_succeed_is_tried_less_and_less_often(bench, monkeypatch):
    """Given a trouble that lasts, then its jobs are not stopped and begun at every look."""
    monkeypatch.setattr("random.random", lambda: 1.0)  # no pause is short by chance
    bench.push(callbacks("a"))
    with bench.service(poll=0.01) as applier:
        bench.apply_error = TopicError("the home does not answer")
        bench.push(callbacks("a", timeout=5))
        wait_for(lambda: "does not answer" in applier.status().reason)
        time.sleep(0.5)
        assert bench.log.count("stop a") <= 4


def test_a_trouble_that_may_go_is_tried_again(bench, pauses):
    with bench.service() as applier:
        bench.apply_error = TopicError("the home does not answer")
        bench.push({"streams": [{"name": "x"}]})
        wait_for(lambda: "does not answer" in applier.status().reason)
        bench.apply_error = None
        wait_for(lambda: applier.status().number == 1)


def test_a_service_reports_what_it_applied_and_its_end(bench):
    bench.push(callbacks("a"))
    with bench.service("here"):
        wait_for(lambda: bench.control.services())
        (status,) = bench.control.services()
        assert (status.service, status.number, status.state) == ("here", 1, "applied")
        assert [job.name for job in status.jobs] == ["a"]
    (status,) = bench.control.services()
    assert status.state == "stopped"
