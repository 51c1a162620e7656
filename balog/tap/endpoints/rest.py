"""Streams of REST endpoints: a path, parameters, the path of the records, and how pages follow each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from balog.tap.endpoints.endpoint import ENDPOINT_SETTINGS, TEXT, EndpointStream, Values, is_map
from balog.tap.errors import SourceError, TapError
from balog.tap.paging.named import Paging, named_paging
from balog.tap.paging.pages import Page, pages

if TYPE_CHECKING:
    from balog.tap.streams.context import Context
    from balog.tap.streams.settings import Checks


def _is_statuses(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(status) is int and 400 <= status < 600 for status in value)


class RestStream(EndpointStream):
    """A stream of a REST endpoint.

    ::

        @tap.stream()
        class Orders(RestStream):
            path = "customers/{id}/orders"
            params = {"updated_since": "{bookmark}"}
            items = "data"
            paging = "cursor:next_cursor"
            parent = Customers
            replication_key = "updated_at"

    The tap's client is a ``balog.tap.http.Client``, or has its method ``request``.

    Attributes:
        path: the path of the endpoint, below the client's base URL, with placeholders.
        params: the parameters of the query by name. One whose placeholders have no value is left out, such as
            ``{bookmark}`` on a first run.
        verb: the HTTP method, ``GET`` or ``POST``.
        body: the JSON body of a ``POST``, with placeholders in its texts. Paging then adds its parameters here.
        paging: how pages follow each other, see ``balog.tap.paging.named``. A function of a ``Page`` returns
            the parameters of the next page as a dict, or its URL as a text; None at the end. Without paging there is
            one request, and its response may be a single record.
        empty_on: statuses that mean "no records", such as 404 for a parent that was deleted meanwhile.
    """

    path: str = ""
    params: Mapping[str, Any] = {}
    verb: str = "GET"
    body: Mapping[str, Any] | None = None
    paging: str | Callable[[Page], Any] | None = None
    empty_on: tuple[int, ...] = ()
    templates: ClassVar[tuple[str, ...]] = ("path", "params", "body")
    own_settings: ClassVar[Checks] = {
        **ENDPOINT_SETTINGS,
        "body": (is_map, "a dict"),
        "empty_on": (_is_statuses, "a tuple of statuses from 400, such as (404,)"),
        "paging": (lambda value: isinstance(value, str) or callable(value), "a text, or a function of a page"),
        "params": (is_map, "a dict"),
        "path": TEXT,
        "verb": (lambda value: value in ("GET", "POST"), "GET or POST"),
    }

    def __init__(self, name: str = "", *, place: str = "", **settings: Any) -> None:
        super().__init__(name, place=place, **settings)
        if not self.path:
            raise TapError(f"{self.title}: has no path; set path=, as in path='v1/orders'")
        if self.body is not None and self.verb != "POST":
            raise TapError(f"{self.title}: a body needs verb='POST'")
        try:
            self._paging = named_paging(self.paging) if isinstance(self.paging, str) else None
        except ValueError as error:
            raise TapError(f"{self.title}: paging={self.paging!r}: {error}") from None
        if callable(self.paging):
            self._paging = Paging(self.paging)

    def _requested(self, client: Any, context: Context, values: Values) -> Iterator[list[Any]]:
        """Yield the pages of records of the endpoint."""
        url = self.filled_path("path", values)
        params, body = self.filled("params", values), self.filled("body", values)

        def fetch(position: Any) -> Any:
            target, query, document = self._request(position, url, params, body)
            options = {} if document is None else {"json": document, "is_repeatable": True}
            answer = client.request(self.verb, target, query, allow=tuple(self.empty_on), **options)
            if answer.status in self.empty_on:
                raise _NoRecordsError
            return answer

        with suppress(_NoRecordsError):
            yield from self._pages(fetch)

    def _pages(self, fetch: Callable[[Any], Any]) -> Iterator[list[Any]]:
        paging = self._paging
        if paging is not None:
            yield from pages(fetch, paging.next, first=paging.first, items=self.items, may_repeat=self.may_repeat)
            return
        page = Page(fetch(None), None, 1, self.items)
        records = page.at(self.items) if self.items else page.body
        if not isinstance(records, (list, dict)):
            raise SourceError(f"the response has no records at {self.items or 'its top level'!r}")
        if records:
            yield records if isinstance(records, list) else [records]

    def _request(self, position: Any, url: str, params: dict[str, Any], body: Any) -> tuple[str, Any, Any]:
        """Return the URL, query and body of the request for a position."""
        paging = self._paging
        if paging is None:
            return url, params, body
        if paging.param is None and isinstance(position, str):  # a URL, which has all parameters
            return position, None, body
        more = {**paging.fixed, **position} if isinstance(position, dict) else paging.params(position)
        if body is not None:
            return url, params, {**body, **more}
        return url, {**params, **more}, None


class _NoRecordsError(Exception):
    """The response has a status of ``empty_on``."""
