"""Streams of GraphQL, against a server whose queries graphql-core parses, validates and executes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from graphql import parse, validate
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap import GraphQLStream, Tap
from balog.tap.catalog import CatalogEntry
from balog.tap.endpoints import graphql_type
from balog.tap.endpoints.graphql_query import parse_path
from balog.tap.errors import SchemaError, TapError
from balog.tap.http import Client, Policy
from balog.tap.schema import schema_of
from tests.stand_ins.graphql_server import SCHEMA, Issues
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.tap.syncs import sync

ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "title": {"type": ["null", "string"]},
        "updatedAt": {"type": "string", "format": "date-time"},
        "author": {
            "type": ["null", "object"],
            "properties": {"login": {"type": "string"}, "email": {"type": ["null", "string"]}},
        },
        "labels": {
            "type": "object",
            "properties": {
                "nodes": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
            },
        },
    },
}


@pytest.fixture
def source(server: HttpStandIn) -> Issues:
    source = Issues()
    server.respond = source.respond
    return source


def tap_of(server: HttpStandIn, **settings: Any) -> Tap:
    tap = Tap("tap-graph")
    waits = Policy(tries=4, first=0.001, longest=0.001)
    tap.client(lambda config: Client(server.url, policy=waits))
    declared = {"field": 'repository(owner: "ada").issues', "paging": "connection size=3", "schema": ROW, **settings}
    tap.add(GraphQLStream("issues", key_properties=["id"], **declared))
    return tap


IDS = [str(number) for number in range(1, 8)]


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"paging": "connection size=1"},
        {"paging": "connection size=7"},
        {"paging": "connection", "items": "edges.node"},
        {"field": "list", "paging": "offset size=3"},
        {"field": "list", "paging": "offset size=7"},
        {"field": "page", "paging": "page size=2"},
        {"field": "page", "paging": "page"},
        {"field": "slice", "items": "rows", "paging": "cursor:next", "variables": {"cursor: Cursor": None}},
    ],
    ids=str,
)
def test_every_paging_reads_all_records_once(server: HttpStandIn, source: Issues, declared: dict[str, Any]) -> None:
    ran = sync(tap_of(server, **declared))

    assert (ran.failures, ran.ids()) == ([], IDS)
    assert ran.records()[1] == {
        "id": "2",
        "title": "issue 2",
        "updatedAt": "2026-01-02T00:00:00Z",
        "author": {"login": "user2", "email": None},
        "labels": {"nodes": [{"name": "l0"}, {"name": "l1"}]},
    }


def test_only_selected_properties_are_queried(server: HttpStandIn, source: Issues) -> None:
    unselected = [("properties", "labels"), ("properties", "author", "properties", "email")]
    settings = {"replication_key": "updatedAt", "metadata": {path: {"selected": False} for path in unselected}}
    asked = {"fields": {"title": "body(format: $form)"}, "variables": {"form: String!": "md"}}
    ran = sync(tap_of(server, **settings, **asked))

    assert source.documents[0] == {
        "query": 'query issues($first: Int!, $after: String, $form: String!) { repository(owner: "ada") '
        "{ issues(first: $first, after: $after) { nodes { id title: body(format: $form) updatedAt author { login } } "
        "pageInfo { endCursor hasNextPage } } } }",
        "variables": {"form": "md", "first": 3},
    }
    assert ran.records()[0]["title"] == "md of 1"


def test_the_bookmark_is_a_variable(server: HttpStandIn, source: Issues) -> None:
    tap = tap_of(
        server,
        field="repository(owner: $owner).issues(since: $since, state: OPEN)",
        variables={"owner: String!": "{config.owner}", "since: DateTime": "{bookmark}"},
        replication_key="updatedAt",
        bookmark_strategy=Tap.every_n(1),
    )
    first = sync(tap, config={"owner": "ada"})
    assert source.documents[0]["variables"] == {"owner": "ada", "first": 3}
    assert first.state["bookmarks"]["issues"]["updatedAt"] == "2026-01-07T00:00:00Z"

    second = sync(tap, {"bookmarks": {"issues": {"updatedAt": "2026-01-06T00:00:00Z"}}}, config={"owner": "ada"})
    assert second.ids() == ["6", "7"]

    failed = sync(tap, config={"other": 1})
    assert failed.failures == ["issues: the variable $owner of type String! has no value"]


class TestPartialErrors:
    """Errors beside data."""

    @pytest.mark.parametrize("errors", [b'"oops"', b'["oops"]', b'{"message": "oops"}'])
    def test_errors_of_another_form_are_errors_too(
        self,
        server: HttpStandIn,
        source: Issues,
        errors: bytes,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        page = b'{"repository": {"issues": {"nodes": [], "pageInfo": {"hasNextPage": false}}}}'
        source.script = [Answer(200, b'{"data": ' + page + b', "errors": ' + errors + b"}")]
        sync(tap_of(server))

        assert "properties are null: oops" in capfd.readouterr().err + caplog.text

    def test_a_property_is_null_and_a_warning_says_why(
        self, server: HttpStandIn, source: Issues, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        source.broken = {("2", "title"), ("6", "title")}
        ran = sync(tap_of(server))

        assert ran.code == 0
        assert [record["title"] for record in ran.records()][:3] == ["issue 1", None, "issue 3"]
        err = capfd.readouterr().err + caplog.text
        assert (
            "properties are null: no title today (FORBIDDEN) at repository.issues.nodes.1.title; 1 errors so far" in err
        )

    def test_a_lost_record_fails_the_stream_after_those_before_it(self, server: HttpStandIn, source: Issues) -> None:
        source.broken = {("5", "id")}
        ran = sync(tap_of(server, replication_key="updatedAt", bookmark_strategy=Tap.every_n(1)))

        assert ran.ids() == ["1", "2", "3", "4"]
        assert ran.failures == [
            "issues: a record is lost: the source answered no id today (FORBIDDEN) at repository.issues.nodes.1.id"
        ]
        assert ran.state["bookmarks"]["issues"]["updatedAt"] == "2026-01-04T00:00:00Z"

    def test_a_lost_list_fails_the_stream(self, server: HttpStandIn, source: Issues) -> None:
        source.broken = {("", "issues")}
        ran = sync(tap_of(server))

        assert ran.failures == [
            "issues: repository.issues.nodes is not a list of records; the source answered the list is gone at "
            "repository.issues"
        ]

    def test_null_without_an_error_fails_the_stream(self, server: HttpStandIn, source: Issues) -> None:
        nobody = {"field": 'repository(owner: "nobody").issues'}
        assert sync(tap_of(server, **nobody)).failures == [
            "issues: repository.issues.nodes is not a list of records; the source answered no error"
        ]


class TestRateLimits:
    """Rate limits in answers of status 200."""

    @pytest.mark.parametrize(
        "error",
        [{"type": "RATE_LIMITED"}, {"extensions": {"code": "THROTTLED"}}, {"extensions": {"code": "rateLimited"}}],
    )
    def test_they_are_retried(self, server: HttpStandIn, source: Issues, error: dict[str, Any]) -> None:
        source.script = [Answer(200, json.dumps({"errors": [{"message": "slow down", **error}]}).encode())] * 3
        ran = sync(tap_of(server))

        assert (ran.code, ran.ids()) == (0, IDS)
        assert len(source.documents) == 6

    def test_they_fail_the_stream_when_the_tries_are_over(self, server: HttpStandIn, source: Issues) -> None:
        source.script = [Answer(200, b'{"errors": [{"message": "slow", "type": "RATE_LIMITED"}]}')] * 9

        assert sync(tap_of(server)).failures == ["issues: the source answered slow (RATE_LIMITED)"]


def _connection(info: bytes) -> Answer:
    return Answer(200, b'{"data": {"repository": {"issues": {"nodes": [{"id": "1"}]' + info + b"}}}}")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            Answer(200, b'{"errors": [{"message": "a\\u001b[1m\\nb"}, {}]}'),
            "the source answered a [1m b, and 1 other errors",
        ),
        (Answer(400, b'{"errors": [{"message": "bad"}]}'), "the source answered bad"),
        (Answer(400, b"<html>"), "the source answered 400 without GraphQL errors"),
        (Answer(200, b"[]"), "the source answered JSON that is not a GraphQL response: expected an object with data"),
        (Answer(200, b'{"data": null}'), "the source answered 200 without data and without errors of GraphQL"),
        (Answer(200, b'{"data": {}}'), "repository.issues.nodes is not a list of records"),
        (Answer(401, b"{}"), "POST /graphql answered 401 Unauthorized: {}"),
        (_connection(b""), "issues has no pageInfo, so the next page is not known"),
        (
            _connection(b', "pageInfo": {"hasNextPage": true, "endCursor": null}'),
            "field.pageInfo.hasNextPage says that there are more pages, but field.pageInfo.endCursor has no cursor",
        ),
        (
            _connection(b', "pageInfo": {"hasNextPage": true, "endCursor": ""}'),
            "field.pageInfo.hasNextPage says that there are more pages, but field.pageInfo.endCursor has no cursor",
        ),
    ],
)
def test_answers_without_data_are_one_line(server: HttpStandIn, source: Issues, answer: Answer, reason: str) -> None:
    source.script = [answer]
    [failure] = sync(tap_of(server)).failures

    assert failure.startswith(f"issues: {reason}")


def test_an_invalid_query_shows_the_source_s_reason(server: HttpStandIn, source: Issues) -> None:
    [failure] = sync(tap_of(server, fields={"title": "titel", "labels": None})).failures

    assert (
        failure
        == "issues: the source answered Cannot query field 'titel' on type 'Issue'. Did you mean 'title' or 'state'?"
    )


def test_children_get_variables_of_their_parents(server: HttpStandIn, source: Issues) -> None:
    tap = Tap("tap-graph")
    tap.client(lambda config: Client(server.url))
    owners = {"type": "object", "properties": {"login": {"type": "string"}}}
    tap.add(GraphQLStream("owners", field="viewer", schema=owners))
    tap.add(
        GraphQLStream(
            "issues",
            parent="owners",
            field="repository(owner: $owner).issues",
            variables={"owner: String!": "{login}"},
            paging="connection",
            schema={"type": "object", "properties": {"id": {}, "owner": {"type": "string"}}},
            from_parent={"owner": "login"},
        )
    )
    ran = sync(tap)

    assert ran.records("owners") == [{"login": "ada"}]
    assert ran.records("issues")[0] == {"id": "1", "owner": "ada"}


def test_schemas_come_from_introspection(server: HttpStandIn, source: Issues) -> None:
    client = Client(server.url)
    found = schema_of(graphql_type("Issue", scalars={"Cursor": {"type": "string"}}), lambda: client, "issues")

    assert found == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "title": {"type": ["null", "string"]},
            "state": {"type": "string"},
            "updatedAt": {"type": "string", "format": "date-time"},
            "score": {"type": ["null", "number"]},
            "author": {
                "type": ["null", "object"],
                "properties": {
                    "login": {"type": "string"},
                    "email": {"type": ["null", "string"]},
                    "secret": {"type": "string"},
                },
            },
            "labels": {"type": "object", "properties": {"totalCount": {"type": "integer"}}},
        },
    }
    deep = schema_of(graphql_type("Issue", depth=2), lambda: client, "issues")
    assert list(deep["properties"]["labels"]["properties"]["nodes"]["items"]["properties"]) == ["name", "color"]
    with pytest.raises(SchemaError, match=r"schema of issues: the source has no object type 'Isue'"):
        schema_of(graphql_type("Isue"), lambda: client, "issues")


def declared(**settings: Any) -> Callable[[], Any]:
    return lambda: GraphQLStream("issues", **settings)


def inferred() -> None:
    tap = Tap("tap-graph")
    tap.client(lambda config: None)
    tap.add(GraphQLStream("issues", field="x", schema="inferred"))
    tap.link()


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (declared(), "has no field; set field=, as in field='viewer.issues'"),
        (declared(field="a..b"), "'' is not a field"),
        (declared(field="a(x: 1"), "'a(x: 1' has a bracket without its partner"),
        (declared(field="a()"), "'a()' is not a field"),
        (declared(field="a b"), "'a b' is not a field"),
        (declared(field="a(x: $y)"), "$y is not declared; add 'y: Type' to variables"),
        (declared(field="a", variables={"y: Int": 1}), "the variable 'y' is not used in field or fields"),
        (declared(field="a", variables={"y": 1}), "'y' is not a variable; expected a name and a type"),
        (declared(field="a", paging="link"), "paging='link': expected connection, cursor:PATH, offset or page"),
        (declared(field="a", paging="connection sise=3"), "'cursor' has no option 'sise'; did you mean 'size'?"),
        (declared(field="a", paging="connection", variables={"after: X": "y"}), "'after' is set by paging"),
        (declared(field="a", fields={"x": "y z"}), "'y z' is not a field"),
        (declared(field="a", fields={"x": "T.y"}), "'T.y' is not a field"),
        (declared(feild="a"), "there is no setting 'feild'; did you mean 'field'?"),
        (inferred, "schema='inferred': a query needs the names of fields; use graphql_type(…)"),
    ],
)
def test_wrong_settings_are_refused_before_anything_runs(declare: Callable[[], Any], reason: str) -> None:
    with pytest.raises(TapError) as found:
        declare()

    assert reason in str(found.value)
    assert "\n" not in str(found.value)


def test_a_path_is_split_outside_of_arguments_and_texts() -> None:
    steps = parse_path('a(x: "b.c(", y: {z: [1.5]}).me: viewer . items(s: "\\".")')

    assert [(step.key, step.name) for step in steps] == [("a", "a"), ("me", "viewer"), ("items", "items")]


_issue = st.fixed_dictionaries(
    {},
    optional={name: st.just({}) for name in ("id", "title", "state", "updatedAt", "score")}
    | {
        "author": st.lists(st.sampled_from(["login", "email", "secret"]), min_size=1, unique=True).map(
            lambda names: {"type": "object", "properties": {name: {} for name in names}}
        ),
        "labels": st.just(
            {
                "properties": {
                    "nodes": {"type": ["null", "array"], "items": {"properties": {"name": {}}}},
                    "totalCount": {},
                }
            }
        ),
    },
)


@given(_issue, st.sampled_from(["connection", "connection size=5"]))
@settings(max_examples=40, derandomize=True)
def test_every_query_is_valid_to_a_server(properties: dict[str, Any], paging: str) -> None:
    """The reference implementation validates what is built, whatever is selected."""
    stream = GraphQLStream("my issues", field='repository(owner: "x").issues', paging=paging)
    entry = CatalogEntry(tap_stream_id="issues", stream="issues", schema={"type": "object", "properties": properties})

    class Given:
        """A context's entry."""

    Given.entry = entry  # type: ignore[attr-defined]
    assert validate(SCHEMA, parse(stream._query(Given))) == []  # type: ignore[arg-type]
