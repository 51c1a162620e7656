"""Streams that a tap finds when it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Stream, Tap
from balog.tap.errors import TapError
from balog.tap.schema.types import integer, obj, string
from tests.tap.programs import Ran

ROW = obj({"id": integer(null=False), "name": string(), "changed": integer()})


def rows() -> Any:
    return []


def catalog_of(ran: Ran) -> dict[str, Any]:
    return {entry["tap_stream_id"]: entry for entry in json.loads(ran.out)["streams"]}


def ids(ran: Ran) -> list[tuple[str, int]]:
    return [(each["stream"], each["record"]["id"]) for each in ran.of("RECORD")]


def complaints(ran: Ran) -> list[str]:
    return [line for line in ran.lines if not line.startswith("{")]


class Table(Stream):
    key_properties = ["id"]  # noqa: RUF012

    def records(self, client: Any, context: Any) -> Any:
        yield from client.rows(self.name, context)


class Source:
    def __init__(self, *tables: str) -> None:
        self.tables = tables
        self.asked: list[tuple[str, Any]] = []

    def rows(self, name: str, context: Any) -> Any:
        self.asked.append((name, context.bookmark))
        if name not in self.tables:
            raise RuntimeError(f"there is no table {name}")
        return [{"id": number, "name": name, "changed": number} for number in range(int(context.bookmark or 1), 4)]


def make(source: Source, **settings: Any) -> Tap:
    """A tap with one declared stream and those that the source has."""
    tap = Tap("tap-cool")
    tap.calls = []  # type: ignore[attr-defined]
    tap.client(lambda config: source)

    @tap.stream("declared", schema=ROW, key_properties=["id"])
    def declared() -> Any:
        yield {"id": 0, "name": "declared", "changed": 0}

    @tap.discover(**settings)
    def tables(client: Any, context: Any) -> Any:
        tap.calls.append(context.wanted)  # type: ignore[attr-defined]
        for name in client.tables:
            yield Table(name, schema=ROW, replication_keys=["changed"], metadata={(): {"table-name": name}})

    return tap


def written(folder: Path, document: Any, name: str = "catalog.json") -> str:
    (folder / name).write_text(json.dumps(document))
    return str(folder / name)


def selected(catalog: dict[str, Any], *names: str, **metadata: Any) -> dict[str, Any]:
    for entry in catalog["streams"]:
        top = next(each["metadata"] for each in entry["metadata"] if not each["breadcrumb"])
        top["selected"] = entry["tap_stream_id"] in names
        top.update({key.replace("_", "-"): value for key, value in metadata.items()})
    return catalog


def discovered(capture: Any, tap: Tap, *names: str, **metadata: Any) -> dict[str, Any]:
    """Return the catalog that a tap discovers, with a selection."""
    return selected(json.loads(Ran(capture, tap, "--discover").out), *names, **metadata)


class TestFound:
    def test_the_catalog_has_declared_and_found_streams(self, capfd: Any) -> None:
        ran = Ran(capfd, make(Source("orders", "people")), "--discover")

        assert (ran.code, list(catalog_of(ran))) == (0, ["declared", "orders", "people"])
        top = catalog_of(ran)["orders"]["metadata"][0]["metadata"]
        assert top["valid-replication-keys"] == ["changed"]
        assert top["table-name"] == "orders"
        assert "forced-replication-method" not in top

    def test_a_sync_without_a_catalog_reads_all(self, capfd: Any) -> None:
        ran = Ran(capfd, make(Source("orders")))

        assert (ran.code, ids(ran)) == (0, [("declared", 0), ("orders", 1), ("orders", 2), ("orders", 3)])

    def test_a_catalog_of_declared_streams_needs_no_call(self, capfd: Any, tmp_path: Path) -> None:
        tap = make(Source("orders"))
        catalog = discovered(capfd, tap, "declared")
        tap.calls.clear()  # type: ignore[attr-defined]

        ran = Ran(capfd, tap, "--catalog", written(tmp_path, catalog))

        assert (ran.code, ids(ran), tap.calls) == (0, [("declared", 0)], [])  # type: ignore[attr-defined]

    def test_a_catalog_that_selects_a_found_stream_calls_with_its_name(self, capfd: Any, tmp_path: Path) -> None:
        tap = make(Source("orders", "people"))
        path = written(tmp_path, discovered(capfd, tap, "people"))

        ran = Ran(capfd, tap, "--catalog", path)

        assert {name for name, _ in ids(ran)} == {"people"}
        assert tap.calls == [None, {"people"}]  # type: ignore[attr-defined]

    def test_a_reader_needs_no_call_and_obeys_the_users_replication_key(self, capfd: Any, tmp_path: Path) -> None:
        source = Source("orders", "people")
        tap = make(source, reader=Table)
        chosen = {"replication_key": "changed", "replication_method": "INCREMENTAL"}
        path = written(tmp_path, discovered(capfd, tap, "orders", **chosen))
        state = written(tmp_path, {"bookmarks": {"orders": {"changed": 3}}}, "state.json")

        ran = Ran(capfd, tap, "--catalog", path, "--state", state)

        assert (ran.code, ids(ran)) == (0, [("orders", 3)])
        assert len(tap.calls) == 1  # type: ignore[attr-defined]
        assert source.asked == [("orders", 3)]

    def test_a_state_of_streams_that_were_not_looked_for_is_accepted(self, capfd: Any, tmp_path: Path) -> None:
        tap = make(Source("orders", "people"), reader=Table)
        path = written(tmp_path, discovered(capfd, tap, "orders"))
        state = written(tmp_path, {"bookmarks": {"old": {"changed": 3}}}, "state.json")

        assert Ran(capfd, tap, "--catalog", path, "--state", state).code == 0

    def test_functions_are_readers_and_arguments_too(self, capfd: Any, tap: Tap) -> None:
        def read(config: Any, context: Any) -> Any:
            yield {"id": len(context.stream), "name": "", "changed": 0}

        @tap.discover
        def find() -> Any:
            return [Stream(name, records=read, schema=ROW) for name in ("a", "bb")]

        assert ids(Ran(capfd, tap)) == [("a", 1), ("bb", 2)]

    def test_after_and_metadata_reach_found_streams(self, capfd: Any) -> None:
        tap = make(Source("orders"))
        tap.after("orders")(lambda record: None if record["id"] == 2 else {**record, "name": "!"})

        ran = Ran(capfd, tap)
        assert [record for record in ran.records if record["id"]] == [
            {"id": 1, "name": "!", "changed": 1},
            {"id": 3, "name": "!", "changed": 3},
        ]

    def test_a_found_stream_may_have_a_declared_parent(self, capfd: Any) -> None:
        tap = make(Source())
        tap.finder = None

        @tap.discover
        def find() -> Any:
            yield Stream("lines", parent="declared", schema=ROW, records=lambda parent: [{**parent, "id": 7}])

        assert ids(Ran(capfd, tap)) == [("declared", 0), ("lines", 7)]

    def test_about_mentions_it(self, capfd: Any) -> None:
        assert json.loads(Ran(capfd, make(Source()), "--about", "--format", "json").out)["finds_streams"] is True


class TestFailures:
    def test_a_source_that_fails_is_one_line_and_the_others_go_on(self, capfd: Any) -> None:
        tap = make(Source())
        tap.finder = None

        @tap.discover
        def find() -> Any:
            yield Table("orders", schema=ROW)
            raise ConnectionError("no route to\nthe host")

        for arguments in (["--discover"], []):
            ran = Ran(capfd, tap, *arguments)
            assert ran.code == 1
            assert "CRITICAL @tap.discover: ConnectionError: no route to the host" in complaints(ran)
            assert "declared" in ran.out

    def test_a_failure_is_why_the_catalogs_streams_are_not_there(self, capfd: Any, tmp_path: Path) -> None:
        tap = make(Source("orders"))
        catalog = discovered(capfd, tap, "orders")
        catalog["streams"] = catalog["streams"][1:]
        tap.finder = None

        @tap.discover
        def find() -> Any:
            raise ConnectionError("refused")

        ran = Ran(capfd, tap, "--catalog", written(tmp_path, catalog))
        assert (ran.code, ran.out) == (1, "")
        assert complaints(ran) == ["tap-cool: @tap.discover: ConnectionError: refused"]

    def test_a_selected_stream_that_has_gone_fails_the_run(self, capfd: Any, tmp_path: Path) -> None:
        path = written(tmp_path, discovered(capfd, make(Source("orders")), "declared", "orders"))

        ran = Ran(capfd, make(Source()), "--catalog", path)

        assert (ran.code, ids(ran)) == (1, [("declared", 0)])
        assert "CRITICAL orders: it is selected in " in ran.err
        assert "but @tap.discover does not find it; run --discover again" in ran.err

    @pytest.mark.parametrize(
        ("found", "reason"),
        [
            (["declared"], "there is a stream of this name already"),
            (["a", "a"], "there is a stream of this name already"),
            (["a\nb"], "expected a text of at most 255 printable characters"),
            (["a" * 256], "expected a text of at most 255 printable characters"),
        ],
    )
    def test_names_are_checked(self, capfd: Any, found: list[str], reason: str) -> None:
        ran = Ran(capfd, make(Source(*found)), "--discover")

        assert (ran.code, ran.out, len(complaints(ran))) == (1, "", 1)
        assert reason in complaints(ran)[0]

    @pytest.mark.parametrize("result", ["orders", [{"name": "orders"}]])
    def test_what_is_not_a_stream_is_refused(self, capfd: Any, result: Any, tap: Tap) -> None:
        tap.discover(lambda: result)

        ran = Ran(capfd, tap, "--discover")

        assert (ran.code, len(complaints(ran))) == (1, 1)
        assert "expected " in complaints(ran)[0]

    def test_streams_without_end_are_refused(self, capfd: Any, monkeypatch: Any, tap: Tap) -> None:
        monkeypatch.setattr("balog.tap.streams.discovery.MAX_STREAMS", 50)

        @tap.discover
        def find() -> Any:
            number = 0
            while True:
                number += 1
                yield Table(f"t{number}", schema=ROW)

        ran = Ran(capfd, tap, "--discover")
        assert (ran.code, ran.out) == (1, "")
        assert "it finds more than 50 streams" in complaints(ran)[0]

    def test_an_invalid_config_is_reported_when_discovery_needs_it(self, capfd: Any) -> None:
        tap = Tap("tap-cool", config_spec=["url"])
        tap.discover(lambda config: [])

        ran = Ran(capfd, tap, "--discover")

        assert (ran.code, complaints(ran)) == (
            2,
            ["tap-cool: config: $: the field 'url' is missing; set it in --config or TAP_COOL_URL"],
        )

    def test_wrong_parameters_and_a_second_function_are_refused_at_the_declaration(self, tap: Tap) -> None:
        with pytest.raises(TapError, match=r"parameter 'parent'; it may ask for client, config, context"):
            tap.discover(lambda parent: [])
        tap.discover(list)
        with pytest.raises(TapError, match="the tap has one already"):
            tap.discover(list)
        with pytest.raises(TapError, match="expected a subclass"):
            Tap("tap-cool").discover(reader=dict)(list)

    def test_a_name_that_only_a_declaration_has_is_a_warning(self, capfd: Any) -> None:
        tap = make(Source("orders"))
        tap.after("ordres")(lambda record: record)

        ran = Ran(capfd, tap)

        assert ran.code == 0
        assert "There is no stream 'ordres', which a declaration names; did you mean 'orders'?" in ran.err


class TestLateDeclarations:
    @pytest.mark.parametrize("is_discovery", [True, False])
    @pytest.mark.parametrize("kind", ["stream", "add", "schema", "substream", "discover"])
    def test_the_client_cannot_declare(self, capfd: Any, kind: str, is_discovery: bool, tap: Tap) -> None:
        first = tap.stream("first", schema=(lambda client, name: client() and ROW) if is_discovery else ROW)(
            lambda client: []
        )
        tap.stream("second", schema=ROW)(lambda client: [])

        declarations = {
            "stream": lambda: tap.stream("late", schema=ROW)(rows),
            "add": lambda: tap.add(Table("late", schema=ROW)),
            "schema": lambda: tap.schema("first", ROW),
            "substream": lambda: first.substream("late", schema=ROW)(lambda parent: []),
            "discover": lambda: tap.discover(list),
        }

        @tap.client
        def client(config: Any) -> Any:
            declarations[kind]()
            return "client"

        ran = Ran(capfd, tap, *(["--discover"] if is_discovery else []))

        assert (ran.code, len(complaints(ran))) == (1, 1)
        assert "test_tap_discovery.py" in complaints(ran)[0]
        assert "find streams at run time in a function with @tap.discover" in complaints(ran)[0]

    def test_declarations_are_possible_again_after_a_run(self, capfd: Any) -> None:
        tap = make(Source())
        Ran(capfd, tap)
        tap.stream("late", schema=ROW)(rows)
        assert "late" in catalog_of(Ran(capfd, tap, "--discover"))


class TestSettings:
    def test_replication_keys_exclude_a_replication_key(self) -> None:
        with pytest.raises(TapError, match="has a replication_key and replication_keys; set one of them"):
            Table("orders", schema=ROW, replication_key="changed", replication_keys=["changed"])

    def test_replication_keys_must_be_in_the_schema(self, capfd: Any, tap: Tap) -> None:
        tap.add(Table("orders", schema=ROW, replication_keys=["when"]))

        ran = Ran(capfd, tap, "--discover")

        assert (ran.code, len(complaints(ran))) == (1, 1)
        assert "'when' must be in its schema" in complaints(ran)[0]

    def test_log_based_can_be_chosen_if_there_is_a_log(self, capfd: Any, tmp_path: Path) -> None:
        methods = []

        def read(context: Any) -> Any:
            methods.append(context.entry.replication_method)
            return []

        for has_log in (True, False):
            tap = Tap("tap-cool")
            tap.add(Stream("orders", records=read, schema=ROW, has_log=has_log, replication_keys=["changed"]))
            path = written(tmp_path, discovered(capfd, tap, "orders", replication_method="LOG_BASED"))
            assert Ran(capfd, tap, "--catalog", path).code == 0
        assert methods == ["LOG_BASED", "FULL_TABLE"]
