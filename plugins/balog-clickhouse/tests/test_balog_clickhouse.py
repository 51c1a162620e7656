"""The sink clickhouse: its contract, newer versions than the real server, and faults at an unlucky moment."""

import json
import sys
from datetime import datetime, timezone

import pytest
from balog_clickhouse import ClickHouseSinkConfig
from balog_clickhouse.table import MOST_COLUMNS, Dialect, Mismatch, Table, column_of_schema, column_of_value, quoted
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.delivery.attempt import attempt
from balog.event import Event
from balog.sinks import SinkError
from balog.testing.contracts import SinkContract
from balog.testing.contracts.sinks import SECRET, SECRET_NAME
from tests.contracts.sink_peers import HttpPeer
from tests.stand_ins.batches import batch_of
from tests.stand_ins.clickhouse import ClickHouseStandIn
from tests.stand_ins.http_server import Answer

AT = datetime(2026, 11, 20, 7, 46, 12, 123456, tzinfo=timezone.utc)


@pytest.fixture
def server():
    with ClickHouseStandIn(version="24.8.4.13") as server:
        yield server


@pytest.fixture
def sink(server):
    sink = ClickHouseSinkConfig(url=server.url).build()
    sink.open()
    yield sink
    sink.close()


def deliveries(*payloads, **changes):
    return batch_of(*payloads, channel="shop", **{"timestamp": AT, **changes})


class ClickHousePeer(HttpPeer):
    def __init__(self, root):
        super().__init__(root, ClickHouseStandIn(version="24.8.4.13", password=SECRET))
        self.config = ClickHouseSinkConfig(url=self.server.url, password=Secret(env=SECRET_NAME))

    def expected(self, batch):
        return {
            event.header.id: (event.cls_type, event.payload["n"], round(event.header.timestamp.timestamp() * 1e6))
            for event, _ in batch
        }

    def arrived(self):
        rows = [row for row in self.server.rows if row[""] != "untyped"]
        assert len({row["id"] for row in rows}) == len(rows), "an event was written twice"
        return {row["id"]: (row[""], row["n"], row["timestamp_us"]) for row in rows}

    def refuse(self, event):
        self.server.faults[event.header.id] = (27, "Cannot parse input: (at row {row})")


class TestContract(SinkContract):
    refuses = True
    has_secret = True

    @pytest.fixture
    def peer(self, tmp_path):
        peer = ClickHousePeer(tmp_path)
        yield peer
        peer.close()


class TestRepeats:
    def test_a_batch_that_comes_again_is_there_once(self, server):
        batch = deliveries({"cls_type": "order", "n": 1}, {"cls_type": "order", "n": 2})
        for _ in range(2):
            sink = ClickHouseSinkConfig(url=server.url).build()
            sink.write(batch)
            sink.close()
        assert len({row["id"] for row in server.rows}) == 2

    @pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 413, 422, 429, 500, 503])
    def test_every_status_is_retried(self, server, sink, status):
        server.respond = lambda request: Answer(status)
        with pytest.raises(SinkError) as caught:
            sink.write(deliveries({"cls_type": "order", "n": 1}))
        assert caught.value.retryable


class TestVersions:
    def test_a_newer_server_gets_finer_types(self, server, sink):
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        columns = server.tables["order"]
        assert columns["timestamp"] == "DateTime64(6, 'UTC')"
        assert columns["channel"] == "LowCardinality(String)"
        assert server.rows[0]["timestamp"] == "2026-11-20 07:46:12.123456"

    def test_an_insert_is_never_answered_before_it_is_written(self, server, sink):
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        [insert] = [request.path for request in server.requests if "INSERT" in request.path]
        assert "async_insert=0" in insert

    def test_an_old_server_is_asked_for_nothing_that_it_does_not_know(self, server, sink):
        server.version = "18.16.1"
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        assert server.tables["order"]["timestamp"] == "DateTime('UTC')"
        assert server.rows[0]["timestamp"] == "2026-11-20 07:46:12"


class TestTypes:
    def test_the_schema_says_what_a_column_is(self, server, tmp_path):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": ["number", "null"]}}}
        folder = tmp_path / "order"
        folder.mkdir(parents=True)
        (folder / "1.0.0.json").write_text(json.dumps(schema))
        sink = ClickHouseSinkConfig(url=server.url, registry=str(tmp_path)).build()
        sink.write(deliveries({"cls_type": "order", "n": 1, "x": 1, "more": 1}))
        sink.close()
        columns = server.tables["order"]
        assert (columns["n"], columns["x"], columns["more"]) == (
            "Nullable(Int64)",
            "Nullable(Float64)",
            "Nullable(Float64)",
        )

    def test_a_folder_of_schemas_that_is_not_there_is_refused(self, server, tmp_path):
        with pytest.raises(ConfigError, match="absent: no such folder of schemas") as caught:
            ClickHouseSinkConfig(url=server.url, registry=str(tmp_path / "absent")).build()
        assert caught.value.path == "registry"

    @pytest.mark.parametrize("schema", ["{", '{"properties": {"n": {"$ref": "no/1.0.0.json"}}}', None])
    def test_no_column_is_made_while_the_schema_can_t_be_read(self, server, tmp_path, schema):
        """Given a schema that is damaged, or a folder that is away, then the events wait for it."""
        folder = tmp_path / "schemas" / "order"
        folder.mkdir(parents=True)
        sink = ClickHouseSinkConfig(url=server.url, registry=str(folder.parent)).build()
        if schema is None:
            folder.parent.rename(tmp_path / "away")
        else:
            (folder / "1.0.0.json").write_text(schema)
        with pytest.raises(SinkError, match="the columns of order depend on its schema") as caught:
            sink.write(deliveries({"cls_type": "order", "n": 1}))
        sink.close()
        assert caught.value.retryable
        assert caught.value.remaining
        assert "n" not in server.tables.get("order", {})

    @pytest.mark.parametrize(
        ("value", "kind"),
        [(True, "UInt8"), (1, "Float64"), (1.5, "Float64"), (2**53 + 1, "Int64"), (2**64, "String"), ("a", "String"),
         ([1], "String"), ({}, "String")],
    )  # fmt: skip
    def test_a_value_says_what_a_column_is_where_there_is_no_schema(self, value, kind):
        assert column_of_value(value) == f"Nullable({kind})"

    @pytest.mark.parametrize(
        "schema", [True, {}, {"type": "object"}, {"type": ["string", "integer"]}, {"type": 7}, None]
    )
    def test_what_is_no_plain_value_is_text(self, schema):
        assert column_of_schema(schema) == "Nullable(String)"

    @pytest.mark.parametrize(
        ("kind", "value", "written"),
        [
            ("Nullable(Int64)", 2.0, 2),
            ("Nullable(Int64)", -(2**63), -(2**63)),
            ("UInt8", True, 1),
            ("LowCardinality(Nullable(String))", 7, "7"),
            ("Nullable(String)", {"a": [1]}, '{"a":[1]}'),
            ("Nullable(Float64)", 2**60, 2**60),
            ("Nullable(Bool)", False, False),
            ("Array(Int64)", [1, 2], [1, 2]),
            ("Nullable(Date)", "2026-01-02", "2026-01-02"),
        ],
    )
    def test_a_value_goes_into_a_column_that_can_hold_it(self, kind, value, written):
        assert row({"x": value}, x=kind)["x"] == written

    @pytest.mark.parametrize(
        ("kind", "value", "reason"),
        [
            ("Nullable(Int64)", 2**63, "is out of its range"),
            ("Nullable(Int64)", 1.5, "is a number"),
            ("Nullable(Int64)", "7", "is text"),
            ("UInt16", -1, "is out of its range"),
            ("Nullable(Float64)", True, "is true or false"),
            ("Nullable(Float64)", 2**53 + 1, "no double holds exactly"),
            ("Nullable(Float64)", [1], "is a list"),
            ("Bool", 1, "is a number"),
        ],
    )
    def test_a_value_that_its_column_would_change_is_refused(self, kind, value, reason):
        with pytest.raises(Mismatch, match=rf"\$\.payload\.x: .*{reason}.*, and the column is"):
            row({"x": value}, x=kind)

    def test_what_has_no_column_is_kept_as_text(self):
        assert json.loads(row({"a b": 1, "id": 2, "x": 3}, x="Int64")["payload_recovered"]) == {"a b": 1, "id": 2}

    def test_a_table_does_not_grow_without_end(self, server, sink):
        batch = deliveries(*({"cls_type": "wide", **{f"c{n}_{m}": 1 for m in range(100)}} for n in range(7)))
        sink.write(batch)
        assert sum(name.startswith("c") and "_" in name for name in server.tables["wide"]) == MOST_COLUMNS
        kept = sum(len(json.loads(row.get("payload_recovered", "{}"))) for row in server.rows)
        assert kept == 700 - MOST_COLUMNS


def row(payload, **columns):
    event = Event.new("shop", payload, timestamp=AT)
    return json.loads(Table(columns, Dialect((24, 8))).row(event))


@given(st.text(min_size=1))
def test_an_identifier_ends_where_it_should(name):
    text = quoted(name)
    inner = text[1:-1]
    at = 0
    while at < len(inner):  # as the server reads it
        assert inner[at] != "`"
        at += 2 if inner[at] == "\\" else 1
    assert at == len(inner)


class TestFaults:
    @pytest.mark.parametrize("code", [27, 53, 72])
    def test_rows_that_the_server_names_are_refused_alone(self, server, sink, code):
        batch = deliveries(*({"cls_type": "order", "n": n} for n in range(10)))
        for number in (2, 7):
            server.faults[batch[number].event.header.id] = (code, "can't: (at row {row})")
        outcome = attempt(sink.write, batch)
        assert (sorted(outcome.dead), outcome.left) == ([2, 7], [])
        assert [stored_row["n"] for stored_row in server.rows] == [0, 1, 3, 4, 5, 6, 8, 9]

    def test_rows_that_the_server_does_not_name_are_found(self, server, sink):
        batch = deliveries(*({"cls_type": "order", "n": n} for n in range(100)))
        for number in range(40, 80):
            server.faults[batch[number].event.header.id] = (27, "can't, I say not which")
        outcome = attempt(sink.write, batch)
        assert (sorted(outcome.dead), outcome.left) == (list(range(40, 80)), [])
        assert len(server.rows) == 60

    def test_the_answers_of_a_table_are_noted_before_the_next_table(self, server, sink, monkeypatch):
        batch = deliveries(*({"cls_type": kind, "n": 1} for kind in "aab"))
        server.faults[batch[1].event.header.id] = (27, "can't: (at row {row})")
        fit = sink._fit
        monkeypatch.setattr(sink, "_fit", lambda name, *rest: fit(name, *rest) if name == "a" else sys.exit())
        with pytest.raises(SystemExit):
            sink.write(batch)
        assert [delivery.refusal and "can't" in delivery.refusal for delivery in batch] == ["", True, None]

    def test_an_error_of_one_table_holds_up_no_other(self, server, sink):
        batch = deliveries({"cls_type": "a", "n": 1}, {"cls_type": "b", "n": 2})
        server.faults[batch[0].event.header.id] = (252, "Too many parts")
        with pytest.raises(SinkError, match="Too many parts") as caught:
            sink.write(batch)
        assert (caught.value.retryable, list(caught.value.remaining)) == (True, [0])
        assert [stored_row["n"] for stored_row in server.rows] == [2]

    def test_an_exception_with_status_200_is_an_error(self, server, sink):
        sink.write(deliveries({"cls_type": "order", "n": 1}))
        server.will(Answer(200, b"Code: 241, e.displayText() = DB::Exception: Memory limit exceeded"))
        with pytest.raises(SinkError, match="Memory limit") as caught:
            sink.write(deliveries({"cls_type": "order", "n": 2}))
        assert caught.value.retryable

    def test_another_server_is_recognized(self, server, sink):
        server.will(Answer(200, b"<html>"))
        with pytest.raises(SinkError, match="does not answer as ClickHouse does"):
            sink.write(deliveries({"cls_type": "order", "n": 2}))


class TestConfig:
    @pytest.mark.parametrize("url", ["http://localhost:8123/?user=x", "http://u:p@localhost:8123", "localhost"])
    def test_a_url_that_can_t_be_is_refused(self, url):
        with pytest.raises(ConfigError) as caught:
            ClickHouseSinkConfig(url=url).build()
        assert caught.value.path == "url"

    def test_the_password_is_in_no_error(self, server, monkeypatch):
        monkeypatch.setenv("BALOG_TEST_PASSWORD", "only-of-this-test")
        server.password = "another"
        sink = ClickHouseSinkConfig(url=server.url, password=Secret(env="BALOG_TEST_PASSWORD")).build()
        server.will(Answer(500, b"Code: 193, wrong password: only-of-this-test"))
        with pytest.raises(SinkError) as caught:
            sink.probe()
        sink.close()
        assert "only-of-this-test" not in str(caught.value)
