"""The sink clickhouse at a real ClickHouse: tables that grow, each event once, refusals, a server that is killed."""

import math
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from balog_clickhouse import ClickHouseSinkConfig

from balog.common.secrets import Secret
from balog.delivery.attempt import attempt
from balog.event import Event, encode
from balog.service.document import ClickHouseTable
from balog.service.jobs.tables import TableJob
from balog.sinks import Retrying, SinkError
from balog.topics import Message, open_topics
from tests.services.servers.clickhouse import PASSWORD, running_clickhouse
from tests.stand_ins.batches import batch_of
from tests.waiting import wait_for

pytestmark = [pytest.mark.service, pytest.mark.usefixtures("sink_packages")]

AT = datetime(2026, 11, 20, 7, 46, 12, 123456, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_clickhouse(tmp_path_factory.mktemp("clickhouse")) as server:
        yield server


@pytest.fixture
def database(server, request):
    name = "".join(char if char.isalnum() else "_" for char in request.node.name)[:80]
    server.ask(f"CREATE DATABASE `{name}`")
    return name


@pytest.fixture
def sinks(server, database, monkeypatch):
    monkeypatch.setenv("BALOG_TEST_PASSWORD", PASSWORD)
    made = []

    def make(**options):
        credentials = {"user": "balog", "password": Secret(env="BALOG_TEST_PASSWORD")}
        config = ClickHouseSinkConfig(**{"url": server.url, "database": database, **credentials, **options})
        made.append(config.build())
        made[-1].open()
        return made[-1]

    yield make
    for sink in made:
        sink.close()


@pytest.fixture
def rows(server, database):
    def rows(table, what="*", more=""):
        return server.ask(f"SELECT {what} FROM `{database}`.`{table}` FINAL {more} FORMAT JSONEachRow")

    return rows


def deliveries(*payloads, **changes):
    return batch_of(*payloads, channel="shop.orders", **{"timestamp": AT, **changes})


class TestTables:
    def test_an_event_is_a_row_of_its_type_s_table(self, sinks, rows):
        payload = {
            "cls_type": "order",
            "n": 7,
            "price": 1.5,
            "paid": True,
            "note": "größe '\\` \0\n",
            "lines": [{"a": 1}],
        }
        (one,) = deliveries(payload, context={"run_id": "r1", "application": "shop", "other": 1})
        sinks().write([one])
        assert rows("order") == [
            {
                "id": one.event.header.id,
                "timestamp": "2026-11-20 07:46:12",
                "timestamp_us": str(int(AT.timestamp()) * 1_000_000 + 123456),
                "channel": "shop.orders",
                "level": "INFO",
                "run_id": "r1",
                "application": "shop",
                "payload_recovered": None,
                "n": 7,
                "price": 1.5,
                "paid": 1,
                "note": "größe '\\` \0\n",
                "lines": '[{"a":1}]',
            }
        ]

    def test_a_new_field_is_a_new_column(self, sinks, rows):
        sink = sinks()
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        sink.write(deliveries({"cls_type": "order", "n": 2, "colour": "red"}, {"cls_type": "order", "size": 3}))
        found = rows("order", "n, colour, size", "ORDER BY n")
        assert {(row["n"], row["colour"], row["size"]) for row in found} == {
            (1, None, None),
            (2, "red", None),
            (None, None, 3),
        }

    def test_two_sinks_make_the_same_columns_at_once(self, sinks, rows):
        barrier = threading.Barrier(4)

        def write(sink, number):
            barrier.wait()
            sink.write(deliveries({"cls_type": "order", "n": number, "a": 1, "b": 2, "c": 3}))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, [sinks() for _ in range(4)], range(4)))
        assert len(rows("order", "n, a, b, c")) == 4

    def test_a_table_that_was_dropped_is_made_anew(self, server, database, sinks, rows):
        sink = sinks()
        first, second = deliveries({"cls_type": "order", "n": 1}, {"cls_type": "order", "n": 2})
        sink.write([first])
        server.ask(f"DROP TABLE `{database}`.`order`")
        with pytest.raises(SinkError) as caught:
            sink.write([second])
        assert caught.value.retryable
        sink.write([second])
        assert [row["n"] for row in rows("order")] == [2]

    def test_names_are_never_statements(self, server, database, sinks, rows):
        sinks().write(
            deliveries(
                {"cls_type": "x`; DROP TABLE y; --", "n": 1},
                {"cls_type": "a.b-c", "n`) VALUES (1": 1, "'; SELECT": 2, "n": 3},
                {"cls_type": "a.b-c", "payload_recovered": 1, "id": "7", "n": "'); DROP TABLE"[:0] or 4},
            )
        )
        assert {row["name"] for row in server.ask(
            f"SELECT name FROM system.tables WHERE database = '{database}' FORMAT JSONEachRow"
        )} == {"untyped", "a.b-c"}  # fmt: skip
        kept = {row["n"]: row["payload_recovered"] for row in rows("a.b-c")}
        assert kept == {3: '{"n`) VALUES (1":1,"\'; SELECT":2}', 4: '{"payload_recovered":1,"id":"7"}'}

    def test_years_that_a_column_can_t_hold_become_its_bounds(self, sinks, rows):
        sink = sinks()
        sink.write(deliveries({"cls_type": "order", "n": 1}, timestamp=datetime(2999, 1, 1, tzinfo=timezone.utc)))
        sink.write(deliveries({"cls_type": "order", "n": 2}, timestamp=datetime(1950, 1, 1, tzinfo=timezone.utc)))
        found = {row["n"]: (row["timestamp"], int(row["timestamp_us"]) // 10**6) for row in rows("order")}
        assert found[1] == ("2105-12-31 23:59:59", int(datetime(2999, 1, 1, tzinfo=timezone.utc).timestamp()))
        assert found[2][1] == int(datetime(1950, 1, 1, tzinfo=timezone.utc).timestamp())

    def test_a_batch_may_span_many_months(self, sinks, rows):
        batch = [
            one
            for month in range(200)
            for one in deliveries({"cls_type": "order", "n": month}, timestamp=AT - timedelta(days=31 * month))
        ]
        sinks().write(batch)
        assert rows("order", "count() AS n") == [{"n": "200"}]


class TestOnce:
    def test_an_event_that_comes_twice_is_there_once(self, sinks, rows):
        batch = deliveries(*({"cls_type": "order", "n": number} for number in range(100)))
        sink = sinks()
        sink.write(batch)
        sink.write(batch[40:])
        sinks().write(batch[:60])
        assert rows("order", "count() AS n, uniqExact(id) AS ids") == [{"n": "100", "ids": "100"}]

    def test_a_server_that_is_killed_while_a_job_writes_loses_and_doubles_nothing(
        self, server, database, rows, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("BALOG_TEST_PASSWORD", PASSWORD)
        url = f"local:{tmp_path}"
        events = [Event.new("shop", {"cls_type": "order", "n": number}) for number in range(3000)]
        config = ClickHouseTable(
            name="orders",
            sources=("orders",),
            url=server.url,
            database=database,
            user="balog",
            password=Secret(env="BALOG_TEST_PASSWORD"),
            retry=Retrying(first=0.05, longest=0.2),
        )
        lines = []
        job = TableJob(config, url, lines.append)
        with open_topics(url) as home:
            topic = home.topic("orders")
            job.start()
            try:
                for number in range(0, 3000, 500):
                    topic.publish([Message(one.header.id, encode(one)) for one in events[number : number + 500]])
                    if number in (500, 1500):
                        wait_for(lambda least=number - 500: job.status().done > least)
                        server.kill()
                    if number in (1000, 2000):
                        wait_for(lambda: job.status().error)
                        server.start()
                wait_for(lambda: job.status().done == 3000)
            finally:
                job.stop(5)
        assert job.status().dead == 0
        assert rows("order", "count() AS n, uniqExact(id) AS ids") == [{"n": "3000", "ids": "3000"}]


class TestRefusals:
    def test_a_value_of_another_type_is_refused_alone(self, sinks, rows):
        sink = sinks()
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        batch = deliveries(
            {"cls_type": "order", "n": 2}, {"cls_type": "order", "n": "two"}, {"cls_type": "order", "n": 3}
        )
        outcome = attempt(sink.write, batch)
        assert outcome.dead == {1: "$.payload.n: is text, and the column is Nullable(Float64)"}
        assert sorted(row["n"] for row in rows("order")) == [1, 2, 3]

    @pytest.mark.parametrize(
        ("kind", "good", "bad"),
        [
            ("Nullable(Date)", "2026-01-02", "never"),
            ("Enum8('None' = 0, 'a' = 1)", "a", "b"),
            ("Nullable(UUID)", "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "none"),
            ("Nullable(FixedString(2))", "ab", "abc"),
        ],
    )
    def test_what_the_server_finds_in_a_column_of_one_s_own_is_refused_alone(
        self, server, sinks, rows, database, kind, good, bad
    ):
        sink = sinks()
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        server.ask(f"ALTER TABLE `{database}`.`order` ADD COLUMN own {kind}")
        batch = deliveries(*({"cls_type": "order", "n": n, "own": own} for n, own in enumerate((good, bad), 2)))
        outcome = attempt(sinks().write, batch)
        assert list(outcome.dead) == [1]
        assert {row["n"]: str(row["own"]) for row in rows("order", "n, toString(own) AS own")} == {1: "None", 2: good}

    def test_doubles_differ_at_most_in_the_last_bit_and_amounts_not_at_all(self, sinks, rows):
        """Given a server of 18.16, which reads some doubles inexactly, then the page's words on it are true."""
        chance = random.Random(1)
        given = {
            n: (chance.random() * 10 ** chance.randint(-5, 9), chance.randint(0, 10**9) / 100) for n in range(3000)
        }
        sinks().write(deliveries(*({"cls_type": "sum", "n": n, "x": x, "y": y} for n, (x, y) in given.items())))
        found = {int(row["n"]): (row["x"], row["y"]) for row in rows("sum", "n, x, y")}
        assert {n: y for n, (_, y) in found.items()} == {n: y for n, (_, y) in given.items()}
        assert all(abs(x - given[n][0]) <= math.ulp(given[n][0]) for n, (x, _) in found.items())
        assert 0 < sum(x != given[n][0] for n, (x, _) in found.items()) < 3000 / 10

    def test_a_probe_succeeds_where_rows_can_be_written(self, sinks):
        sinks().probe()

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"password": None}, "assword"),
            ({"database": "nowhere"}, "this user sees no database 'nowhere'; create it first"),
            ({"user": "reader", "password": None}, r"this user may only read \(readonly = 1\)"),
        ],
    )
    def test_a_probe_tells_who_could_not_write(self, sinks, options, reason):
        with pytest.raises(SinkError, match=reason):
            sinks(**options).probe()
