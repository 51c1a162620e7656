"""Tables that the service writes, as jobs: at stand-ins for the databases. The real one is in ``tests/services``."""

import pytest

from balog.common import plugins
from balog.common.errors import BalogError, ConfigError
from balog.common.secrets import Secret
from balog.service.control import check
from balog.service.document import ClickHouseTable, ControlDocument, YTsaurusTable
from balog.service.jobs import engine_job as engine_jobs
from balog.service.jobs.tables import TableJob
from balog.sinks import Retrying
from tests.service.serving import publish
from tests.stand_ins.clickhouse import ClickHouseStandIn
from tests.stand_ins.ytsaurus import YTsaurusStandIn
from tests.waiting import wait_for

TOKEN = "only-of-this-test"

pytestmark = pytest.mark.usefixtures("sink_packages")


@pytest.fixture
def server():
    with ClickHouseStandIn() as server:
        yield server


@pytest.fixture
def start(home):
    jobs = []

    def start(config):
        jobs.append(TableJob(config, home.url, lambda line: None))
        jobs[-1].start()
        return jobs[-1]

    yield start
    for job in jobs:
        job.stop(5)


def table(server, **options):
    return ClickHouseTable(
        **{
            "name": "live",
            "sources": ("orders",),
            "url": server.url,
            "retry": Retrying(first=0.01, longest=0.05),
            **options,
        }
    )


class TestJob:
    def test_events_of_several_topics_go_into_their_tables(self, home, server, start):
        publish(home, "orders", {"cls_type": "order", "n": 1}, {"cls_type": "order", "n": 0})
        publish(home, "payments", {"cls_type": "payment", "n": 2})
        job = start(table(server, sources=("orders", "payments"), where="payload.n > 0"))
        wait_for(lambda: job.status().done == 3)
        assert sorted((row[""], row["n"]) for row in server.rows) == [("order", 1), ("payment", 2)]

    def test_a_row_that_does_not_fit_is_a_dead_letter_with_the_reason(self, home, server, start):
        publish(home, "orders", *({"cls_type": "order", "n": n} for n in (1, "x", 3)))
        job = start(table(server))
        wait_for(lambda: job.status().done + job.status().dead == 3)
        assert [row["n"] for row in server.rows] == [1, 3]
        [letter] = home.topic("orders").dead_letters("table.live")
        assert "$.payload.n: is text" in letter.reason

    def test_a_server_that_is_away_is_waited_for_and_told_of(self, home, server, start):
        server.stop()
        publish(home, "orders", {"cls_type": "order", "n": 1})
        job = start(table(server))
        wait_for(lambda: "cannot connect" in job.status().error)
        server.start()
        wait_for(lambda: job.status().done == 1)
        assert (job.status().error, job.status().dead) == ("", 0)

    def test_rows_go_to_ytsaurus(self, home, start, monkeypatch):
        monkeypatch.setenv("BALOG_TEST_TOKEN", TOKEN)
        publish(home, "orders", {"cls_type": "order", "n": 1})
        with YTsaurusStandIn(TOKEN) as cluster:
            job = start(
                YTsaurusTable(
                    name="long",
                    sources=("orders",),
                    proxy=cluster.url,
                    path="//home/x",
                    token=Secret(env="BALOG_TEST_TOKEN"),
                )
            )
            wait_for(lambda: job.status().done == 1)
            assert list(cluster.tables) == ["//home/x/order"]

    def test_a_package_that_is_not_there_is_named(self, home, server, monkeypatch):
        monkeypatch.setattr(plugins, "_found", lambda group: {})
        with pytest.raises(BalogError, match=r"pip install \./plugins/balog-clickhouse$"):
            TableJob(table(server), home.url, print)

    def test_a_secret_that_is_not_there_is_told_at_the_start(self, home, server):
        job = TableJob(table(server, password=Secret(env="BALOG_TEST_NO_SUCH")), home.url, print)
        with pytest.raises(ConfigError, match="BALOG_TEST_NO_SUCH is not set"):
            job.start()

    def test_a_run_that_ends_in_trouble_is_begun_again(self, home, server, start, tmp_path, monkeypatch):
        """Given a topic's file that is damaged, when it is put right, then the job goes on."""
        monkeypatch.setattr(engine_jobs, "FIRST_PAUSE", 0.05)
        (tmp_path / "orders.sqlite").write_bytes(b"no database" * 1000)
        job = start(table(server))
        wait_for(lambda: "orders" in job.status().error)
        assert job.status().state == "running"
        (tmp_path / "orders.sqlite").unlink()
        publish(home, "orders", {"cls_type": "order", "n": 1})
        wait_for(lambda: job.status().done == 1)
        assert job.status().error == ""

    def test_a_stopped_job_counts_what_it_did(self, home, server, start):
        publish(home, "orders", {"cls_type": "order", "n": 1})
        job = start(table(server))
        wait_for(lambda: job.status().done == 1)
        job.stop(5)
        status = job.status()
        assert (status.state, status.taken, status.done) == ("stopped", 1, 1)


URL = "http://localhost:8123"


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (ClickHouseTable(name="x", sources=("a",), url=URL, where="payload."), "where"),
        (ClickHouseTable(name="x", sources=("a",), url="https://user:secret@host"), "url"),
        (
            YTsaurusTable(name="x", sources=("a",), proxy="http://u:secret@h", path="//x", token=Secret(env="T")),
            "proxy",
        ),
    ],
)
def test_what_can_t_be_is_told_with_its_place(config, path):
    (problem,) = check(ControlDocument(tables=(config,)))
    assert problem.path == f"$.tables[0].{path}"
    assert "secret" not in str(problem)
