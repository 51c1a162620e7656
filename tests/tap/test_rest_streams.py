"""Streams of REST endpoints: what they request and yield, and which settings are refused."""

# ruff: noqa: RUF012  # settings in the bodies of classes, as users write them

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from balog.tap import GraphQLStream, RestStream, Stream, Tap
from balog.tap.endpoints.endpoint import Template, Values
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Response
from balog.tap.paging.named import named_paging
from balog.tap.records.output import RecordWriter
from balog.testing import capture_events
from tests.tap.syncs import Messages, Ran, sync


class Fake:
    """A client that keeps its requests and answers by a function of path, query and body."""

    def __init__(self, answer: Callable[[str, dict[str, Any], Any], Any]) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, dict[str, Any], Any]] = []

    def request(self, verb: str, path: str, params: Any = None, *, allow: Any = (), json: Any = None, **_: Any) -> Any:
        self.requests.append((verb, path, dict(params or {}), json))
        found = self.answer(path, dict(params or {}), json)
        return found if isinstance(found, Response) else response(found)


def response(document: Any, status: int = 200, **headers: str) -> Response:
    return Response(status, headers, json.dumps(document).encode(), "https://api.example.com/v1/rows")


def tap_of(client: Any, **config: Any) -> Tap:
    tap = Tap("tap-rest", config_spec=list(config) or None)
    tap.client(lambda _: client)
    return tap


def rows_of(client: Any, **settings: Any) -> Ran:
    """Run a tap with one stream."""
    tap = tap_of(client)
    tap.add(RestStream("rows", path="rows", **settings))
    return sync(tap)


IDS = list(range(1, 8))
ROWS = [{"id": number, "updated": f"2026-01-{number:02}T00:00:00Z"} for number in IDS]


def paged(size: int) -> Callable[[str, dict[str, Any], Any], Any]:
    """Answer as a server that supports every kind of paging, three rows at a time unless asked for another number."""

    def answer(path: str, params: dict[str, Any], body: Any) -> Any:
        given = {**params, **(body or {})}
        if "?" in path:
            given["cursor"] = path.partition("cursor=")[2]
        if "offset" in given:
            start = int(given["offset"])
        elif "page" in given:
            start = (int(given["page"]) - 1) * size
        elif "after" in given:
            start = int(given["after"])
        else:
            start = int(given.get("cursor") or 0)
        end = start + size
        more = end < len(ROWS)
        url = f"/v1/rows?cursor={end}"
        return response(
            {
                "data": ROWS[start:end],
                "meta": {"next": str(end) if more else None, "pages": -(-len(ROWS) // size), "url": more and url},
                "more": more,
            },
            **({"link": f'<{url}>; rel="next"'} if more else {}),
        )

    return answer


@pytest.mark.parametrize("size", [1, 3, 7, 10])
@pytest.mark.parametrize(
    "paging",
    [
        "cursor:meta.next",
        "cursor:meta.next param=cursor more=more",
        "last:id",
        "last:id more=more size=SIZE",
        "offset size=SIZE",
        "page size=SIZE",
        "page",
        "page total=meta.pages",
        "link",
        "url:meta.url",
    ],
)
def test_every_paging_by_name_reads_all_rows_once(paging: str, size: int) -> None:
    client = Fake(paged(size))

    assert rows_of(client, items="data", paging=paging.replace("SIZE", str(size))).ids() == IDS
    if "size" in paging:
        assert {request[2].get("limit", request[2].get("per_page")) for request in client.requests} == {size}


def test_a_class_of_a_child_stream() -> None:
    def answer(path: str, params: dict[str, Any], body: Any) -> Any:
        if path == "customers":
            return [{"id": "a/1", "name": "x"}, {"id": 2, "name": None}]
        return {"data": [{"id": 1, "updated": "2026-01-05T00:00:00Z"}], "next": None}

    client = Fake(answer)
    tap = tap_of(client)

    @tap.stream()
    class Customers(RestStream):
        path = "customers"
        key_properties = ["name"]
        schema = {"type": "object", "properties": {"name": {"type": ["null", "string"]}}}

    @tap.stream()
    class CustomerOrders(RestStream):
        path = "customers/{id}/orders"
        params = {"updated_since": "{bookmark}", "status": "any"}
        items, paging, parent = "data", "cursor:next", Customers
        from_parent = {"name": "id"}
        replication_key = "updated"

    first = sync(tap)

    assert list(tap.streams) == ["customers", "customer_orders"]
    assert [unquote(path) for _, path, _, _ in client.requests] == [
        "customers",
        "customers/a/1/orders",
        "customers/2/orders",
    ]
    assert client.requests[1][1] == "customers/a%2F1/orders"
    assert client.requests[1][2] == {"status": "any"}
    assert [record["name"] for record in first.records("customer_orders")] == ["a/1", "2"]
    assert first.state["bookmarks"]["customer_orders"]["updated"] == "2026-01-05T00:00:00Z"

    client.requests.clear()
    sync(tap, first.state)

    assert client.requests[2][2] == {"updated_since": "2026-01-05T00:00:00Z", "status": "any"}


def test_placeholders_of_all_kinds() -> None:
    client = Fake(lambda path, params, body: [])
    tap = tap_of(client, site="", limits={"rows": 0}, nothing="")
    tap.add(
        RestStream(
            "rows",
            path="sites/{config.site}/rows",
            verb="POST",
            body={
                "filter": [{"since": "{bookmark:unix}", "ms": "{bookmark:unix_ms}"}, "{bookmark:date}"],
                "size": "{config.limits.rows}",
                "text": "from {bookmark:%d.%m.%Y} for {config.site}",
                "fields": "{selected}",
                "braces": "{{x}}",
                "none": None,
                "missing": "{config.nothing}",
                "start": "{start_date}",
            },
            replication_key="updated",
            key_properties=["id"],
        )
    )
    state = {"bookmarks": {"rows": {"updated": "2026-01-05T06:00:00.250Z"}}}
    sync(tap, state, config={"site": "a b", "limits": {"rows": 50}, "start_date": "2025-01-01T00:00:00Z"})

    verb, path, params, body = client.requests[0]
    assert (verb, path, params) == ("POST", "sites/a%20b/rows", {})
    seconds = datetime(2026, 1, 5, 6, tzinfo=timezone.utc).timestamp()
    assert body == {
        "filter": [{"since": seconds, "ms": seconds * 1000 + 250}, "2026-01-05"],
        "size": 50,
        "text": "from 05.01.2026 for a b",
        "fields": "_sdc_deleted_at,created,id,name,parent_id,updated",
        "braces": "{x}",
        "none": None,
        "start": "2025-01-01T00:00:00Z",
    }


def test_the_body_of_a_search_gets_the_paging() -> None:
    client = Fake(paged(3))

    assert rows_of(client, verb="POST", body={"q": "x"}, items="data", paging="cursor:meta.next size=3").ids() == IDS
    assert [body for *_, body in client.requests] == [
        {"q": "x", "limit": 3},
        {"q": "x", "limit": 3, "cursor": "3"},
        {"q": "x", "limit": 3, "cursor": "6"},
    ]


def test_a_function_of_a_page_is_a_paging_too() -> None:
    client = Fake(paged(3))

    def following(page: Any) -> Any:
        return {"cursor": page.at("meta.next"), "extra": 1} if page.at("more") else None

    assert rows_of(client, items="data", paging=following).ids() == IDS
    assert client.requests[1][2] == {"cursor": "3", "extra": 1}


def test_one_record_statuses_without_records_and_answers_without_a_list() -> None:
    answers: dict[str, Any] = {"me": {"user": {"id": 9}}, "gone": response({}, 404), "odd": {"data": "text"}}
    tap = tap_of(Fake(lambda path, params, body: answers[path]))
    tap.add(RestStream("me", path="me", items="user"))
    tap.add(RestStream("gone", path="gone", empty_on=(404,)))
    tap.add(RestStream("odd", path="odd", items="data"))
    ran = sync(tap)

    assert ran.records() == [{"id": 9}]
    assert ran.code == 1
    assert ran.failures == ["odd: the response has no records at 'data'"]


def test_a_replaced_table_has_a_version_that_is_activated() -> None:
    ran = rows_of(Fake(lambda path, params, body: [{"id": 1}]), replaces=True, key_properties=["id"])

    assert ran.shape() == ["SCHEMA rows", "ACTIVATE_VERSION rows", "rows 1", "ACTIVATE_VERSION rows"]


def test_a_parent_without_the_field_of_a_path_fails_the_child() -> None:
    tap = tap_of(Fake(lambda path, params, body: [{"id": 1}]))
    tap.add(RestStream("parents", path="parents", key_properties=["id"]))
    tap.add(RestStream("rows", path="parents/{owner.id}/rows", parent="parents"))
    ran = sync(tap)

    assert ran.failures == [
        "rows: the path 'parents/{owner.id}/rows' needs 'owner.id': expected a text or a number, as in an id"
    ]
    assert ran.ids("parents") == [1]


@pytest.mark.parametrize(
    ("value", "segment"),
    [(7.0, "7"), (Decimal("12.00"), "12"), (1.5, "1.5"), ("a/b", "a%2Fb"), ("", "''"), (".", "'.'"), ("..", "'..'")],
)
def test_values_of_a_path(value: Any, segment: str) -> None:
    values = Values(None, {"id": value})  # type: ignore[arg-type]
    if segment.startswith("'"):
        with pytest.raises(SourceError, match=re.escape(f"'p/{{id}}' needs 'id': {segment} can't be part of a path")):
            Template("p/{id}").fill_path(values)
    else:
        assert Template("p/{id}").fill_path(values) == f"p/{segment}"


def rest(has_client: bool = True, **settings: Any) -> Callable[[], Any]:
    def declare() -> Any:
        tap = tap_of(None, site="")
        tap.make_client = tap.make_client if has_client else None
        tap.add(RestStream("rows", **{"path": "rows", "schema": {"type": "object"}, **settings}))
        tap.link()

    return declare


def in_class(**body: Any) -> Callable[[], Any]:
    def declare() -> Any:
        tap_of(None).stream("rows")(type("Rows", (RestStream,), {"__module__": __name__, "path": "rows", **body}))

    return declare


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (rest(path=""), "path='': expected a text"),
        (lambda: RestStream("rows"), "has no path; set path=, as in path='v1/orders'"),
        (rest(pathh="x"), "there is no setting 'pathh'; did you mean 'path'?"),
        (in_class(pagingg="link"), "there is no setting 'pagingg'; did you mean 'paging'?"),
        (rest(path="a/{id}"), "{id} is a field of the parent's record, and the stream has no parent"),
        (rest(path="a/{bookmrk}"), "set parent= or for_each=; did you mean 'bookmark'?"),
        (rest(path="a/{id!r}"), "path: 'a/{id!r}': {id} is not a placeholder; expected {bookmark}"),
        (rest(path="a/{id.__class__[0]}"), "is not a placeholder"),
        (rest(path="a/{"), "write {{ and }} for braces"),
        (rest(params={"a": "{now:soon}"}), "params: '{now:soon}': 'soon' is not a format"),
        (rest(params=["a"]), "params=['a']: expected a dict"),
        (
            rest(params={"a": "{config.sight}"}),
            "{config.sight}: the config has no setting 'sight'; did you mean 'site'?",
        ),
        (rest(body={"a": 1}), "a body needs verb='POST'"),
        (rest(verb="PUT"), "verb='PUT': expected GET or POST"),
        (rest(paging="curser:next"), "paging='curser:next': there is no paging 'curser'; did you mean 'cursor'?"),
        (rest(paging="cursor"), "'cursor' needs the path of the cursor, as in 'cursor:…'"),
        (rest(paging="link:next"), "'link' has no ':next'"),
        (rest(paging="offset"), "'offset' needs size=, as in 'offset size=100'"),
        (rest(paging="page size=0"), "size=0: expected a whole number, at least 1"),
        (rest(paging="page sise=5"), "'page' has no option 'sise'; did you mean 'size'?"),
        (rest(paging="page size"), "'size': expected NAME=VALUE, each name once"),
        (rest(from_parent={"a": "id"}), "from_parent= needs parent= or for_each="),
        (rest(empty_on=(200,)), "expected a tuple of statuses from 400"),
        (rest(replaces=True, replication_key="x"), "replaces= is for streams without replication_key"),
        (rest(for_each=list, bookmark_of=lambda record: 1), "for_each= and bookmark_of= exclude each other"),
        (rest(for_each=lambda nobody: []), "its function has a parameter 'nobody'"),
        (rest(has_client=False), "sends requests; declare the tap's client with @tap.client"),
    ],
)
def test_wrong_settings_are_refused_before_anything_runs(declare: Callable[[], Any], reason: str) -> None:
    with pytest.raises(TapError) as found:
        declare()

    assert reason in str(found.value)
    assert str(found.value).startswith("stream 'rows' (")
    assert "\n" not in str(found.value)


def test_a_parent_by_class_must_be_of_one_stream() -> None:
    tap = tap_of(None)

    @tap.stream("one", "two")
    class Many(RestStream):
        path = "many"
        schema = {"type": "object"}

    tap.add(RestStream("rows", path="rows", parent=Many, schema={"type": "object"}))
    with pytest.raises(TapError, match="parent=Many: expected a class of one stream; it is one of 2"):
        tap.link()


def test_for_each_item_has_a_bookmark_of_its_own() -> None:
    shops: Any = [{"code": "a"}, {"code": "b"}]
    rows = {"a": ["2026-01-03", "2026-01-01"], "b": ["2026-01-02"]}

    def answer(path: str, params: dict[str, Any], body: Any) -> Any:
        code = path.split("/")[1]
        since = params.get("since", "")
        return [{"id": number, "updated": day} for number, day in enumerate(rows.get(code, [])) if day >= since[:10]]

    client = Fake(answer)
    tap = tap_of(client)

    def branches(config: Any) -> Any:
        return shops

    @tap.stream()
    class Sales(RestStream):
        path = "shops/{code}/sales"
        params = {"since": "{bookmark}"}
        for_each, each_key = branches, "code"
        from_parent = {"name": "code"}
        replication_key = "updated"

    first = sync(tap, config={"start_date": "2026-01-02"})
    assert first.records() == [
        {"id": 0, "updated": "2026-01-03T00:00:00Z", "name": "a"},
        {"id": 0, "updated": "2026-01-02T00:00:00Z", "name": "b"},
    ]
    assert first.state["bookmarks"]["sales"]["sales"] == {
        "a": {"updated": "2026-01-03"},
        "b": {"updated": "2026-01-02"},
    }

    shops.append({"code": "c"})
    rows["c"] = ["2026-01-02"]
    client.requests.clear()
    second = sync(tap, first.state, config={"start_date": "2026-01-02"})
    asked = [params["since"] for _, _, params, _ in client.requests]
    assert asked == ["2026-01-03", "2026-01-02", "2026-01-02T00:00:00Z"]
    assert second.ids() == [0, 0, 0]


def test_keys_of_a_state_that_nothing_uses_are_a_warning_and_stay(tap: Tap) -> None:
    settings: Any = {"key_properties": ["id"], "replication_key": "updated"}
    tap.sync("orders", for_each=lambda: [1], **settings)(lambda item: [{"id": item, "updated": "2026-01-01T00:00:00Z"}])

    @tap.stream("notes")
    def notes(context: Any) -> Any:
        context.keep("count", (context.kept("count") or 0) + 1)
        yield {"id": 1}

    state = {"bookmarks": {"orders": {"shops": {"1": {"updated": "x"}}}, "notes": {"count": 1, "position": 2}}}
    with capture_events() as events:
        ran = sync(tap, state)
    warnings = [event.payload for event in events if event.level == "WARNING"]
    assert [(each["message"], each["fields"]) for each in warnings] == [
        ("The state has keys that the stream does not use; they are kept", {"keys": ["shops"]})
    ]
    assert ran.state["bookmarks"]["orders"]["shops"] == {"1": {"updated": "x"}}
    assert ran.state["bookmarks"]["notes"]["count"] == 2


def test_sync_sets_the_function_of_a_declared_stream(tap: Tap) -> None:
    tap.add(Stream("rows", key_properties=["id"]))

    @tap.sync("rows")
    def rows(config: Any) -> Any:
        yield {"id": 4}

    assert sync(tap).ids() == [4]
    with pytest.raises(TapError, match="is declared already; set lookback there, not in sync"):
        tap.sync("rows", lookback=1)(rows)
    with pytest.raises(TapError, match="did you mean 'config'"):
        tap.sync("rows")(lambda confg: None)


def test_schemas_are_inferred_from_records(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"site": "x"}')

    def answer(path: str, params: dict[str, Any], body: Any) -> Any:
        if path == "parents":
            return [{"id": 1}, {"id": 2}]
        assert params == {"site": "x"}
        return [{"id": 1, "at": "2026-01-01T00:00:00Z", "n": 1.5 if "2" in path else None}]

    tap = tap_of(Fake(answer), site="x")
    tap.add(RestStream("parents", path="parents", key_properties=["id"], schema="inferred"))
    child: Any = {"path": "parents/{id}/rows", "params": {"site": "{config.site}"}, "parent": "parents"}
    tap.add(RestStream("rows", key_properties=["id"], schema="inferred", **child))
    with pytest.raises(SystemExit) as done:
        tap.run(["--config", str(tmp_path / "config.json"), "--discover"])

    out, err = capfd.readouterr()
    assert done.value.code == 0, err
    schemas = {stream["tap_stream_id"]: stream["schema"]["properties"] for stream in json.loads(out)["streams"]}
    assert schemas == {
        "parents": {"id": {"type": "integer"}},
        "rows": {
            "id": {"type": "integer"},
            "at": {"type": ["null", "string"], "format": "date-time"},
            "n": {"type": ["null", "number"]},
        },
    }


class Lines(Messages):
    """An output that keeps the lines of records as they go to stdout."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def records(self, stream: str, version: int | None = None, *, refuse: Any = None, **_: Any) -> Any:
        return RecordWriter(lambda line: self.lines.extend(line.decode().splitlines()), stream, version, refuse)


NUMBER_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "number": {"type": "number"}, "text": {"type": "string"}},
}


def lines_of(stream: Callable[[], Stream], body: str, folder: Path) -> tuple[list[str], list[str]]:
    """Return the lines of the records of a body, and of the quarantine."""
    output = Lines()
    quarantine = folder / "quarantine.jsonl"
    quarantine.unlink(missing_ok=True)
    tap = tap_of(Fake(lambda *_: Response(200, {}, body.encode(), "https://api.example.com/v1/rows")))
    tap.add(stream())
    assert sync(tap, output=output, quarantine_file=str(quarantine)).failures == []
    return output.lines, quarantine.read_text().splitlines() if quarantine.exists() else []


def rest_stream() -> Stream:
    return RestStream("rows", path="rows", items="data.rows", key_properties=["id"], schema=NUMBER_SCHEMA)


def graphql_stream() -> Stream:
    return GraphQLStream("rows", field="rows", key_properties=["id"], schema=NUMBER_SCHEMA)


def digits_of(text: str) -> tuple[str, str, int]:
    """Return a number's sign, digits without zeros at both ends, and exponent, from its text alone."""
    mantissa, _, exponent = text.lower().partition("e")
    sign, (whole, _, fraction) = mantissa[:1].strip("0123456789"), mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "", "", 0
    return sign, kept, int(exponent or 0) - len(fraction) + len(digits) - len(kept)


numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@pytest.mark.parametrize("stream", [rest_stream, graphql_stream])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(numbers, min_size=1, max_size=5))
@example(texts=["1234567890123456789.25", "0.12345678901234567890", "1.10", "1e308", "-0", "-0.0", "0.0000001"])
def test_all_digits_of_numbers_come_to_stdout(stream: Callable[[], Stream], texts: list[str], tmp_path: Path) -> None:
    rows = ",".join(f'{{"id":{id},"number":{text},"text":{text}}}' for id, text in enumerate(texts))
    lines, quarantined = lines_of(stream, f'{{"data":{{"rows":[{rows}]}}}}', tmp_path)
    assert quarantined == []
    for line, text in zip(lines, texts, strict=True):
        number, string = re.search(r'"number":([^,]+),"text":"([^"]+)"', line).groups()  # type: ignore[union-attr]
        assert digits_of(number) == digits_of(string) == digits_of(text)
        if "e" not in text.lower() and text != "-0":
            assert string == text
            assert number == text or "E-" in number  # 0.0000001 is 1E-7


@pytest.mark.parametrize("stream", [rest_stream, graphql_stream])
@pytest.mark.parametrize("bad", ["NaN", "-Infinity", "1e400", "-1E+99999999999999999999", "9" * 5000, r'"\ud800"'])
def test_a_value_that_json_or_doubles_do_not_have_costs_its_record(
    stream: Callable[[], Stream], bad: str, tmp_path: Path
) -> None:
    name = "text" if bad.startswith('"') else "number"
    rows = f'{{"id":1,"number":1.50}},{{"id":2,"{name}":{bad}}},{{"id":3,"number":3}}'
    with capture_events() as events:
        lines, quarantined = lines_of(stream, f'{{"data":{{"rows":[{rows}]}}}}', tmp_path)
    assert [json.loads(line)["record"]["id"] for line in lines] == [1, 3]
    assert '"number":1.50' in lines[0]
    (row,) = quarantined
    assert json.loads(row)["raw"]
    (warning,) = [event.payload["message"] for event in events if "was set aside" in event.payload["message"]]
    assert ("half of a surrogate pair" if name == "text" else "$.number: is a number beyond") in warning


def test_names_of_pagings_are_parsed_once_and_say_what_they_send() -> None:
    paging = named_paging("page size=50 size_param=limit param=p first=0")

    assert paging.params(3) == {"limit": 50, "p": 3}
    assert paging.first == 0
