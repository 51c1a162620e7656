import json
import string
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from balog.tap import Tap
from balog.tap.credentials import periodic
from balog.tap.errors import SourceError, TapError
from balog.tap.http import Client, Policy, Response
from balog.tap.http.outcomes import HttpError
from balog.tap.paging.named import by_last
from balog.tap.paging.pages import links
from balog.tap.patterns import Next, by_cursor, by_link, by_offset, by_page, by_url, concurrently, date_windows, pages
from tests.stand_ins.http_server import Answer, HttpStandIn

ROWS = [{"id": number} for number in range(25)]


class Answered(NamedTuple):
    """A response with a status."""

    status_code: int


def flat(found: Any) -> list[Any]:
    return [record for page in found for record in page]


def by_slices(rows: list[Any], size: int, make: Callable[[list[Any], int, bool], Any]) -> Callable[[int | None], Any]:
    def fetch(position: int | None) -> Any:
        start = position or 0
        return make(rows[start : start + size], start + size, start + size < len(rows))

    return fetch


@pytest.mark.parametrize("end", ["false", "False", "0", "", 0, None, False])
@pytest.mark.parametrize("next", [by_cursor("next", more="has_more"), by_last("id", more="has_more")])
def test_a_flag_for_further_pages_may_be_a_text(next: Next, end: Any) -> None:
    fetch = by_slices(
        ROWS, 10, lambda rows, after, more: {"data": rows, "next": after, "has_more": "true" if more else end}
    )
    position = {None: 0, 9: 10, 19: 20}
    asked = pages(lambda at: fetch(position.get(at, at)), next, items="data")
    assert flat(asked) == ROWS


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("where", ["header", "body"])
def test_by_url(where: str, relative: bool) -> None:
    with HttpStandIn() as server, Client(server.url) as client, requests.Session() as session:
        target = ("" if relative else server.url) + "/contacts?page=2"
        said = {"next": target} if where == "body" else {}
        header = {"Link": f'<{target}>; rel="next"'} if where == "header" else {}
        next = by_link() if where == "header" else by_url("next")
        for fetch in (
            lambda url: client.get(url or "/contacts"),
            lambda url: session.get(url or f"{server.url}/contacts", timeout=10),
        ):
            server.will(
                Answer(200, json.dumps({**said, "data": [1]}).encode(), header),
                Answer(200, b'{"data":[2],"next":null}'),
            )
            assert flat(pages(fetch, next, items="data")) == [1, 2]
        assert [request.path for request in server.requests] == ["/contacts", "/contacts?page=2"] * 2


def test_an_empty_page_in_the_middle_is_passed_over() -> None:
    given = iter([{"d": [1], "n": "a"}, {"d": [], "n": "b"}, {"d": [2], "n": ""}])
    assert list(pages(lambda cursor: next(given), by_cursor("n"), items="d")) == [[1], [2]]


def test_the_same_cursor_with_the_same_page_is_an_error() -> None:
    found = pages(lambda cursor: {"d": [cursor], "n": "a"}, by_cursor("n"), items="d")
    assert next(found) == [None]
    assert next(found) == ["a"]
    with pytest.raises(SourceError, match="page 3 has the position and the content of page 2"):
        next(found)


def test_one_cursor_for_all_pages_as_a_scroll_has_it_is_no_error(events: Any) -> None:
    rows = iter([[1], [2], [3], []])

    def fetch(cursor: str | None) -> dict[str, Any]:
        found = next(rows)
        return {"d": found, "n": "scroll-id" if found else None}

    assert flat(pages(fetch, by_cursor("n"), items="d")) == [1, 2, 3]
    assert events == []


def test_cursors_in_a_circle_are_an_error() -> None:
    circle = {None: "a", "a": "b", "b": "c", "c": "a"}
    found = pages(lambda cursor: {"d": [cursor], "n": circle[cursor]}, by_cursor("n"), items="d")
    with pytest.raises(SourceError, match="page 5 has the position and the content of page 2"):
        list(found)


def test_a_queue_that_is_read_at_one_address_may_give_equal_pages() -> None:
    given = iter([{"d": [1], "n": "/queue"}] * 5 + [{"d": [], "n": None}])
    found = pages(lambda url: next(given), by_cursor("n"), first="/queue", items="d", may_repeat=True)
    assert list(found) == [[1]] * 5


def test_equal_pages_under_other_cursors_arrive_with_a_warning(events: Any) -> None:
    """Given a log of one toggled row, then all pages arrive; the warning comes whenever twice as many did."""
    toggles = [{"id": 1, "on": number % 2 == 0} for number in range(200)]
    assert flat(pages(lambda offset: toggles[offset : offset + 2], by_offset(2), first=0)) == toggles
    assert "page 2 has the same content as page 1" in events[0].payload["message"]
    assert [event.level for event in events] == ["WARNING"] * 6


def test_equal_pages_are_an_error_where_they_may_not_be() -> None:
    found = pages(lambda number: ROWS[:3], by_page(), first=1, may_repeat=False)
    assert next(found) == ROWS[:3]
    with pytest.raises(SourceError, match="page 2 has the same content as page 1"):
        next(found)


def test_equal_pages_pass_in_silence_where_they_may_be(events: Any) -> None:
    given = iter([[{"x": 1}], [{"x": 1}], []])
    assert len(flat(pages(lambda number: next(given), by_page(), first=1, may_repeat=True))) == 2
    assert events == []


@pytest.mark.parametrize("body", [{"data": None}, {}, [], "text", None, {"data": {"id": 1}}])
def test_no_list_of_records_is_an_error(body: Any) -> None:
    with pytest.raises(SourceError, match="page 1 has no list of records at 'data'"):
        list(pages(lambda cursor: body, by_cursor("next"), items="data"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: by_offset(0),
        lambda: by_page(-1),
        lambda: by_page("10"),  # type: ignore[arg-type]
        lambda: concurrently([], len, workers="4"),  # type: ignore[arg-type]
        lambda: Tap.every_n("5"),  # type: ignore[arg-type]
        lambda: Tap.every_seconds(float("nan")),
        lambda: Policy(tries="3"),  # type: ignore[arg-type]
        lambda: Client("http://x.example", rate="5"),  # type: ignore[arg-type]
        lambda: next(date_windows("2026-01-01", "2026-02-01", days="7")),  # type: ignore[arg-type]
        lambda: periodic(minutes=None),  # type: ignore[arg-type]
    ],
)
def test_numbers_that_cannot_be_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(TapError, match=r"expected a .*number"):
        make()


@given(st.integers(0, 60), st.integers(1, 20))
def test_pages_of_any_size_give_the_whole(count: int, size: int) -> None:
    rows = [{"id": number} for number in range(count)]
    fetch = by_slices(rows, size, lambda rows, after, more: {"data": rows, "next": after if more else None})
    assert flat(pages(fetch, by_cursor("next"), items="data")) == rows
    assert flat(pages(lambda offset: rows[offset : offset + size], by_offset(size), first=0)) == rows
    for next in (by_page(), by_page(size)):
        assert flat(pages(lambda n: rows[n * size - size : n * size], next, first=1)) == rows


class TestSmallerMaximum:
    """Sources that return fewer records than a page asks for."""

    @given(count=st.integers(0, 40), size=st.integers(1, 20), most=st.integers(1, 20), end=st.integers(0, 2))
    def test_no_record_is_lost(self, count: int, size: int, most: int, end: int) -> None:
        rows, length = [{"id": number} for number in range(count)], min(size, most)

        def after_end(found: list[Any]) -> Any:
            if not found and end and count:
                raise HttpError("answered 404", Answered(404))
            return found

        def after(last: int | None) -> list[Any]:
            start = 0 if last is None else last + 1
            return rows[start : start + length]

        whole = count % length == 0 and most >= size  # the source's last page is full, so the next one is asked for
        if end and whole:
            return
        assert flat(pages(lambda at: after_end(rows[at : at + length]), by_offset(size), first=0)) == rows
        assert flat(pages(lambda n: after_end(rows[n * length : n * length + length]), by_page(size), first=0)) == rows
        assert flat(pages(after, by_last("id", size))) == rows

    def test_a_source_that_ignores_positions_is_read_once(self) -> None:
        for next in (by_offset(10), by_page(10), by_last("id", 10)):
            assert flat(pages(lambda position: ROWS[:3], next, first=0)) == ROWS[:3]

    def test_a_page_that_is_shorter_than_another_needs_no_further_request(self) -> None:
        asked: list[tuple[int, int]] = []
        next = by_offset(10)
        for count in (4, 3, 2, 4):
            flat(pages(lambda at, count=count: asked.append((count, at)) or ROWS[at:count], next, first=0))
        assert asked == [(4, 0), (4, 4), (3, 0), (2, 0), (4, 0), (4, 4)]

    def test_another_failure_after_the_first_page_is_an_error(self) -> None:
        def fetch(position: int) -> Any:
            if position:
                raise HttpError("answered 500", Answered(500))
            return ROWS[:3]

        with pytest.raises(HttpError, match="500"):
            flat(pages(fetch, by_offset(10), first=0))


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('<https://x/2>; rel="next"', {"next": "https://x/2"}),
        ('</2>; rel=next, </9>; rel="last"', {"next": "https://h/2", "last": "https://h/9"}),
        ('</a,b;c>; title="x, y; rel=no"; REL="Next prev"', {"next": "https://h/a,b;c", "prev": "https://h/a,b;c"}),
        ("</1>; rel=next, </2>; rel=next", {"next": "https://h/1"}),
        ("</1>; rel=prev; rel=next", {"prev": "https://h/1"}),
        ("</1>", {}),
        ('</1>;;rel="next";', {"next": "https://h/1"}),
        ("garbage", {}),
        ("", {}),
    ],
)
def test_links_as_the_rfc_has_them(header: str, found: dict[str, str]) -> None:
    assert links(header, "https://h/0") == found


@given(st.text(string.printable, max_size=200))
def test_no_text_breaks_the_reading_of_links(header: str) -> None:
    assert isinstance(links(header), dict)


def test_a_long_circle_under_other_cursors_is_an_error() -> None:
    fetch = lambda at: {"data": [{"id": at % 50}], "next": at + 1}  # noqa: E731
    with pytest.raises(SourceError, match="page 52 has the same content as page 2"):
        list(pages(fetch, by_cursor("next"), first=0, items="data", may_repeat=False))


def test_a_page_that_is_like_one_long_ago_is_no_error() -> None:
    fetch = lambda at: {"data": [{"ok": at % 20 == 0 or at}], "next": at + 1 if at < 100 else None}  # noqa: E731
    assert len(list(pages(fetch, by_cursor("next"), first=0, items="data"))) == 101


@pytest.mark.parametrize("said", ["http://[", "//["])
def test_a_next_page_that_is_no_url(said: str) -> None:
    answer = Response(200, {}, json.dumps({"data": [1], "next": said}).encode(), "https://api.example.com/")
    with pytest.raises(SourceError, match="page 1 has no valid URL"):
        list(pages(lambda at: answer, by_url("next"), items="data"))
    assert links(f"<{said}>; rel=next", "https://api.example.com/") == {}
