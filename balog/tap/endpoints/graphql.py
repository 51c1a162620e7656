"""Streams of GraphQL: the query is built from the schema and the selected properties.

Errors of an answer fail the stream, are retried, or leave records with nulls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from balog.common.text import one_line
from balog.tap.catalog.entry import PropertySelection
from balog.tap.endpoints.endpoint import ENDPOINT_SETTINGS, TEXT, EndpointStream, Values, is_map, values_at
from balog.tap.endpoints.graphql_query import (
    Variable,
    build_query,
    nested,
    parse_field,
    parse_path,
    parse_variable,
    selection_of,
    variables_in,
)
from balog.tap.errors import SourceError, TapError
from balog.tap.http.outcomes import HttpError, headers_of
from balog.tap.http.retries import Policy
from balog.tap.paging.named import Paging, named_paging
from balog.tap.paging.pages import pages

if TYPE_CHECKING:
    from balog.tap.streams.context import Context
    from balog.tap.streams.settings import Checks


def _is_fields(value: Any) -> bool:
    return is_map(value) and all(field is None or isinstance(field, str) for field in value.values())


_CONNECTION = "cursor:pageInfo.endCursor more=pageInfo.hasNextPage param=after size_param=first"


class GraphQLStream(EndpointStream):
    """A stream of a GraphQL field. Only the selected properties are queried.

    ::

        @tap.stream()
        class Issues(GraphQLStream):
            field = "repository(owner: $owner, name: $name).issues(filterBy: {since: $since})"
            variables = {
                "owner: String!": "{config.owner}",
                "name: String!": "{config.name}",
                "since: DateTime": "{bookmark}",
            }
            paging = "connection size=100"
            replication_key = "updatedAt"

    The tap's client is a ``balog.tap.http.Client``, or has its method ``request``.

    Attributes:
        field: the path of fields that leads to the records, with their arguments.
        variables: by declaration (``name: Type``) the value, a text with placeholders or any JSON. A variable whose
            placeholders have no value is not sent, such as ``{bookmark}`` on a first run. ``"after: Cursor": None``
            sets the type of a parameter of paging, which is otherwise ``String`` or ``Int!``.
        items: the path of the records below the field: ``nodes``, which is the default of a connection,
            ``edges.node``; None means that the field itself is a list, or one record.
        paging: ``connection``, ``cursor:PATH``, ``offset size=100`` or ``page``, see
            ``balog.tap.paging.named``; paths are relative to the field, and parameters are its arguments.
        fields: by property (``author.name`` for one in an object) the field that it comes from, with arguments; None
            does not query it.
        path: the path of the endpoint, below the client's base URL.

    Errors beside data leave properties null, with a WARNING; a record that is lost fails the stream.
    """

    field: str = ""
    variables: Mapping[str, Any] = {}
    paging: str | None = None
    fields: Mapping[str, str | None] = {}
    path: str = "graphql"
    templates: ClassVar[tuple[str, ...]] = ("variables",)
    own_settings: ClassVar[Checks] = {
        **ENDPOINT_SETTINGS,
        "field": TEXT,
        "fields": (_is_fields, "a dict: for each property the field that it comes from, or None"),
        "paging": TEXT,
        "path": TEXT,
        "variables": (is_map, "a dict by declaration, such as 'since: DateTime'"),
    }

    def __init__(self, name: str = "", *, place: str = "", **settings: Any) -> None:
        super().__init__(name, place=place, **settings)
        if not self.field:
            raise TapError(f"{self.title}: has no field; set field=, as in field='viewer.issues'")
        try:
            self._paging = _paging_of(self.paging)
            self._paging_types = _types_of(self._paging)
            self._steps = parse_path(self.field)
            self._variables = {each.name: each for each in map(parse_variable, self.variables)}
            for text in filter(None, self.fields.values()):
                parse_field(text)
            self._check_variables()
        except ValueError as error:
            raise TapError(f"{self.title}: {error}") from None
        self._is_connection = "pageInfo.endCursor" in self._paging.paths
        if self.items is None and self._is_connection:
            self.items = "nodes"

    def check(self, settings: Mapping[str, Any], has_client: bool) -> None:
        """Check that the schema is not inferred, which would need a query, and see ``EndpointStream``."""
        super().check(settings, has_client)
        if self.schema == "inferred":
            raise TapError(f"{self.title}: schema='inferred': a query needs the names of fields; use graphql_type(…)")

    def _requested(self, client: Any, context: Context, values: Values) -> Iterator[list[Any]]:
        """Yield the pages of records of the field."""
        variables = {parse_variable(name).name: value for name, value in self.filled("variables", values).items()}
        for each in self._variables.values():
            if each.type.endswith("!") and variables.get(each.name) is None:
                raise SourceError(f"the variable ${each.name} of type {each.type} has no value")
        paging = self._paging
        query, policy, errors = self._query(context), getattr(client, "policy", None) or Policy(), _PartialErrors()

        def fetch(position: Any) -> dict[str, Any]:
            document = {"query": query, "variables": {**variables, **paging.params(position)}}
            body = self._send(client, policy, document)
            errors.of_page = errors_of(body)
            page = self._page(body, context)
            if not page["items"]:  # such a page is not yielded, but may have errors
                list(errors.kept([], context.log))
            return page

        for page in pages(fetch, paging.next, first=paging.first, items="items", may_repeat=self.may_repeat):
            yield from errors.kept(page, context.log)

    def _send(self, client: Any, policy: Policy, document: dict[str, Any]) -> dict[str, Any]:
        for attempt in policy.attempts(self.path):
            with attempt:
                answer = client.request("POST", self.path, json=document, is_repeatable=True, allow=(400, 422))
                return body_of(answer)
        raise AssertionError  # the last attempt raises its error

    def _page(self, body: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return the page's records as ``items``, and the field's value, in which paging finds its paths.

        Raises:
            SourceError: the answer has no records at their path.
        """
        value: Any = body["data"]
        for step in self._steps:
            value = value.get(step.key) if isinstance(value, Mapping) else None
        items = values_at(value, self.items or "")
        if isinstance(items, dict) and self.paging is None:
            items = [items]
        if not isinstance(items, list):
            errors = errors_of(body)
            path = ".".join([*(step.key for step in self._steps), *([self.items] if self.items else [])])
            raise SourceError(f"{path} is not a list of records; the source answered {summary(errors)}")
        if self._is_connection and not isinstance(value.get("pageInfo"), Mapping):
            raise SourceError(f"{self._steps[-1].key} has no pageInfo, so the next page is not known")
        return {"items": items, "field": value}

    def _query(self, context: Context) -> str:
        """Return the query of a catalog's entry."""
        arguments = ", ".join(f"{name}: ${name}" for name in self._paging_types)
        own = {name: Variable(name, kind) for name, kind in self._paging_types.items()}
        declared = {**own, **self._variables}
        try:
            selection = selection_of(PropertySelection(context.entry).schema, self.fields, tuple(self.from_parent))
        except ValueError as error:
            raise TapError(f"{self.title}: {error}") from None
        for name in reversed([*filter(None, (self.items or "").split("."))]):
            selection = f"{{ {name} {selection} }}"
        if asked := self._paging.paths:
            selection = f"{selection[:-1]}{nested(asked)} }}"
        return build_query(self.name, declared.values(), self._steps, arguments, selection)

    def _check_variables(self) -> None:
        """Check that each variable is declared, and used.

        Raises:
            ValueError: one is not.
        """
        for name in self._variables.keys() & self._paging_types.keys():
            if self.variables[next(text for text in self.variables if parse_variable(text).name == name)] is not None:
                raise ValueError(f"the variable {name!r} is set by paging; its value here must be None")
        texts = [self.field, *filter(None, self.fields.values())]
        used = set().union(*map(variables_in, texts))
        for name in sorted(used - self._variables.keys()):
            raise ValueError(f"${name} is not declared; add '{name}: Type' to variables")
        for name in sorted(self._variables.keys() - used - self._paging_types.keys()):
            raise ValueError(f"the variable {name!r} is not used in field or fields")


class _PartialErrors:
    """The errors beside data, page by page, and the records that they leave."""

    def __init__(self) -> None:
        self.of_page: list[dict[str, Any]] = []
        self._count = 0
        self._warn_from = 1

    def kept(self, page: list[Any], log: Any) -> Iterator[list[Any]]:
        """Yield the records of a page.

        Raises:
            SourceError: the errors fail the stream; the records before the first that is lost were yielded.
        """
        errors = self.of_page
        if None in page:
            if before := page[: page.index(None)]:
                yield before
            why = f"the source answered {summary(errors)}" if errors else "the source returned null for it"
            raise SourceError(f"a record is lost: {why}")
        if errors:
            self._warn(errors, log)
        if page:
            yield page

    def _warn(self, errors: list[dict[str, Any]], log: Any) -> None:
        self._count += len(errors)
        if self._count >= self._warn_from:  # each time that there are twice as many
            self._warn_from = 2 * self._count
            log.warning(f"properties are null: {summary(errors)}; {self._count} errors so far", errors=self._count)


def _types_of(paging: Paging) -> dict[str, str]:
    """Return the GraphQL types of the parameters of paging by name.

    Numbers are in each request, and a variable of type ``Int!`` may also stand where the source wants ``Int``.
    """
    position = {paging.param: "String" if paging.first is None else "Int!"} if paging.param else {}
    return {**dict.fromkeys(paging.fixed, "Int!"), **position}


def _paging_of(text: str | None) -> Paging:
    if text is None:
        return Paging(lambda page: None)
    kind, _, options = text.strip().partition(" ")
    if kind == "connection":
        sized = options if "size=" in options else f"size=100 {options}"
        text = f"{_CONNECTION} {sized}"
    elif kind.partition(":")[0] not in ("cursor", "offset", "page"):
        raise ValueError(f"paging={text!r}: expected connection, cursor:PATH, offset or page")
    try:
        return named_paging(text, "field")
    except ValueError as error:
        raise ValueError(f"paging={text!r}: {error}") from None


_RATE_LIMITED = frozenset({"RATELIMITED", "RATELIMITEXCEEDED", "RATELIMIT", "THROTTLED", "TOOMANYREQUESTS", "429"})


class RateLimitedError(SourceError):
    """The source answered that requests come too fast. A retry helps.

    Attributes:
        headers: those of the answer.
    """

    def __init__(self, reason: str, headers: Mapping[str, str]) -> None:
        super().__init__(reason, retryable=True, fault="rate limit")
        self.headers = headers


def body_of(answer: Any) -> dict[str, Any]:
    """Return the body of an answer that has data, or raise the error that it has instead.

    Raises:
        RateLimitedError: requests come too fast.
        HttpError: the answer has an error status, and no errors of GraphQL.
        SourceError: the answer has no data.
    """
    status = getattr(answer, "status", 200)
    try:
        body = answer.json()
    except SourceError:
        if status >= 400:
            raise HttpError(f"the source answered {status} without GraphQL errors", answer) from None
        raise
    if not isinstance(body, dict):
        raise SourceError("the source answered JSON that is not a GraphQL response: expected an object with data")
    errors = errors_of(body)
    if any(_is_rate_limited(error) for error in errors):
        raise RateLimitedError(f"the source answered {summary(errors)}", headers_of(answer))
    if isinstance(body.get("data"), dict):
        return body
    if errors:
        raise SourceError(f"the source answered {summary(errors)}")
    raise SourceError(f"the source answered {status} without data and without errors of GraphQL")


def errors_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the errors of a body; one that is not an object is a message."""
    errors = body.get("errors") or []
    errors = errors if isinstance(errors, list) else [errors]
    return [error if isinstance(error, dict) else {"message": str(error)} for error in errors]


def summary(errors: list[dict[str, Any]]) -> str:
    """Return errors as one line: the first one's message, code and path, and how many others there are."""
    if not errors:
        return "no error"
    first = errors[0]
    message = first.get("message")
    text = one_line(message)[:200] if isinstance(message, str) else ""
    code, steps = _code(first), first.get("path")
    path = ".".join(map(str, steps))[:200] if isinstance(steps, list) else ""
    line = f"{text or 'an error without a message'}{f' ({code})' if code else ''}{f' at {path}' if path else ''}"
    return line if len(errors) == 1 else f"{line}, and {len(errors) - 1} other errors"


def _code(error: Mapping[str, Any]) -> str:
    extensions = error.get("extensions")
    extensions = extensions if isinstance(extensions, Mapping) else {}
    for code in (extensions.get("code"), error.get("type"), extensions.get("type"), extensions.get("classification")):
        if isinstance(code, (str, int)) and not isinstance(code, bool):
            return str(code)[:60]
    return ""


def _is_rate_limited(error: Mapping[str, Any]) -> bool:
    return "".join(char for char in _code(error).upper() if char.isalnum()) in _RATE_LIMITED
