import email.utils
import http.client
import time
import urllib.error
from typing import Any

import botocore.exceptions
import httpx
import pytest
import requests
import urllib3

from balog.log import metrics
from balog.tap.errors import SourceError, TapError
from balog.tap.http import HttpError, Policy, retrying
from balog.tap.http.outcomes import endpoint_of, fault_of, is_lost, requested_wait
from balog.testing import capture_events


class Answer:
    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Clock:
    """A policy's time, in which nobody really waits."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.policy = Policy(sleep=self.sleep, clock=lambda: self.now, chance=lambda: 1.0, **settings)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def script(*outcomes: Any) -> Any:
    left = list(outcomes)

    def ask() -> Any:
        found = left.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    ask.left = left  # type: ignore[attr-defined]
    return ask


def test_a_function_is_called_again_until_it_answers() -> None:
    clock = Clock()
    busy, good = Answer(503), Answer(200)
    assert retrying(clock.policy)(script(ConnectionResetError(), busy, good))() is good
    assert clock.waits == [1, 2]
    assert busy.is_closed


def test_waits_grow_to_the_longest() -> None:
    clock = Clock(tries=6, longest=5)
    with pytest.raises(TimeoutError):
        clock.policy(script(*[TimeoutError()] * 6))()
    assert clock.waits == [1, 2, 4, 5, 5]


def test_the_jitter_is_full() -> None:
    waits: list[float] = []
    chances = iter([0.0, 0.25, 0.5])
    policy = Policy(sleep=waits.append, chance=lambda: next(chances))
    policy(script(*[TimeoutError()] * 3, "done"))()
    assert waits == [0, 0.5, 2]


def test_the_last_response_is_given_as_it_is() -> None:
    clock = Clock(tries=2)
    last = Answer(500)
    assert clock.policy(script(Answer(502), last))() is last
    assert not last.is_closed


def test_what_another_try_cannot_mend_is_tried_once() -> None:
    clock = Clock()
    refused = Answer(404)
    assert clock.policy(script(refused))() is refused
    with pytest.raises(KeyError):
        clock.policy(script(KeyError("id")))()
    assert clock.waits == []


def test_exceptions_of_a_source_s_own_are_tried_again_when_named() -> None:
    clock = Clock(also=(KeyError,))
    assert clock.policy(script(KeyError("id"), "done"))() == "done"


def test_an_interrupt_is_never_tried_again() -> None:
    clock = Clock(also=(Exception,))
    ask = script(KeyboardInterrupt(), "done")
    with pytest.raises(KeyboardInterrupt):
        clock.policy(ask)()
    assert ask.left == ["done"]


def test_retry_after_is_kept_to() -> None:
    clock = Clock()
    clock.policy(script(Answer(429, Retry_After="30"), Answer(200)))()
    assert clock.waits == [31]


def test_no_try_begins_after_the_total() -> None:
    clock = Clock(total=100)
    far = Answer(429, Retry_After="3600")
    assert clock.policy(script(far))() is far
    assert clock.waits == []


def checked(answer: Any) -> Any:
    """Do what ``raise_for_status`` of other libraries does."""
    if answer.status_code >= 400:
        raise HttpError(str(answer.status_code), answer, retryable=True)
    return answer


def test_attempts_as_blocks() -> None:
    clock = Clock()
    ask = script(Answer(500), TimeoutError(), Answer(200))
    asked = []
    for attempt in clock.policy.attempts("contacts"):
        with attempt:
            asked.append(1)
            answer = checked(ask())
    assert answer.status_code == 200
    assert len(asked) == 3


def test_the_last_attempt_s_failure_comes_out() -> None:
    clock = Clock(tries=2)

    def ask() -> None:
        for attempt in clock.policy.attempts():
            with attempt:
                checked(Answer(429))

    with pytest.raises(HttpError) as caught:
        ask()
    assert caught.value.status == 429
    assert clock.waits == [1]


def test_each_retry_is_an_event_and_a_count() -> None:
    clock = Clock()
    ask = script(Answer(503), Answer(200))
    with capture_events() as captured:
        for attempt in clock.policy.attempts("contacts"):
            with attempt:
                checked(ask())
        metrics.flush()
    points = [event.payload for event in captured if event.payload["cls_type"] == "metric"]
    tags = {"endpoint": "contacts", "http_status_code": 503}
    assert 1 in [point["value"] for point in points if point["tags"] == tags]
    (event,) = [event for event in captured if event.payload["cls_type"] == "log"]
    assert event.header.level == "WARNING"
    assert event.payload["fields"] == {
        "endpoint": "contacts",
        "http_status_code": 503,
        "fault": "503 Service Unavailable",
        "wait": 1.0,
        "attempt": 1,
    }


@pytest.mark.parametrize(
    "error",
    [
        requests.ConnectionError(),
        requests.ReadTimeout(),
        requests.exceptions.ChunkedEncodingError(),
        urllib3.exceptions.ProtocolError(),
        urllib3.exceptions.ReadTimeoutError(None, "", ""),  # type: ignore[arg-type]
        urllib3.exceptions.MaxRetryError(None, "", urllib3.exceptions.ProtocolError()),  # type: ignore[arg-type]
        urllib.error.URLError(ConnectionRefusedError()),
        urllib.error.URLError(TimeoutError()),
        BrokenPipeError(),
        http.client.RemoteDisconnected(),
        http.client.IncompleteRead(b""),
        httpx.ConnectError(""),
        httpx.ReadTimeout(""),
        httpx.RemoteProtocolError(""),
        botocore.exceptions.EndpointConnectionError(endpoint_url=""),
        botocore.exceptions.ReadTimeoutError(endpoint_url=""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_lost_connections_of_any_library_are_known(error: Exception) -> None:
    assert is_lost(error)
    assert Policy().is_retryable(error)


@pytest.mark.parametrize(
    "error",
    [
        requests.exceptions.SSLError(),
        requests.exceptions.InvalidURL(),
        httpx.UnsupportedProtocol(""),
        botocore.exceptions.SSLError(endpoint_url="", error=""),
        urllib3.exceptions.MaxRetryError(None, "", urllib3.exceptions.SSLError()),  # type: ignore[arg-type]
        ValueError(),
        FileNotFoundError(),
        SourceError("no"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_failures_are_not_lost_connections(error: Exception) -> None:
    assert not Policy().is_retryable(error)


def test_an_exception_s_status_counts_rather_than_its_type() -> None:
    gone = urllib.error.HTTPError("http://x", 503, "", {}, None)  # type: ignore[arg-type]
    bad = urllib.error.HTTPError("http://x", 400, "", {}, None)  # type: ignore[arg-type]
    assert Policy().is_retryable(gone)
    assert not Policy().is_retryable(bad)
    response = requests.Response()
    response.status_code = 502
    assert Policy().is_retryable(requests.HTTPError(response=response))


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (Answer(503, Retry_After="7"), 7),
        (Answer(503, Retry_After=" 1.5 "), 1.5),
        (Answer(503, Retry_After=email.utils.formatdate(NOW + 90, usegmt=True)), 90),
        (Answer(503, Retry_After=email.utils.formatdate(NOW - 90, usegmt=True)), 0),
        *(
            (Answer(503, Retry_After=text), None)
            for text in (
                "soon",
                "nan",
                "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
                "Mon, 99999999999999999999 Jan 2026 00:00:00 GMT",
                "Mon, 01 Jan 2026 00:00:00 +99999999999999999999",
            )
        ),
        (Answer(503, Retry_After="-5"), 0),
        (Answer(429, X_RateLimit_Reset=str(int(NOW) + 20)), 20),
        (Answer(429, X_RateLimit_Reset=str(int(NOW * 1000) + 20_000)), 20),
        (Answer(429, x_ratelimit_reset="20"), 20),
        (Answer(429, RateLimit_Reset="3"), 3),
        (Answer(403, X_RateLimit_Reset="20", X_RateLimit_Remaining="0"), 20),
        (Answer(403, X_RateLimit_Reset="20", X_RateLimit_Remaining="9"), None),
        (Answer(500, X_RateLimit_Reset="20"), None),
        (Answer(429, X_RateLimit_Reset="1e20"), None),
        (Answer(503), None),
        (TimeoutError(), None),
    ],
)
def test_what_the_other_side_asks_for(answer: Any, seconds: float | None) -> None:
    assert requested_wait(answer, NOW) == pytest.approx(seconds)


def test_a_forbidden_that_says_when_is_tried_again() -> None:
    clock = Clock()
    answer = Answer(403, X_RateLimit_Remaining="0", X_RateLimit_Reset=str(time.time() + 30))
    clock.policy(script(answer, Answer(200)))()
    assert 30 <= clock.waits[0] <= 31


def test_a_fault_says_nothing_of_the_url_or_the_body() -> None:
    error = requests.ConnectionError("HTTPConnectionPool(host='x'): /?token=s3cret")
    assert fault_of(error) == "ConnectionError"
    assert fault_of(urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))) == "Connection refused"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://api.example.com/v2/contacts?token=x#y", "/v2/contacts"),
        ("/v2/contacts/123/notes", "/v2/contacts/{id}/notes"),
        ("/x/0f8fad5b-d9cb-469f-a165-70867728950e", "/x/{id}"),
        ("https://api.example.com", "/"),
        ("/x/a1b2c3d4/y/bob@example.com/z/bob%40example.com", "/x/{id}/y/{id}/z/{id}"),
        ("/oauth2/v1.1/report12", "/oauth2/v1.1/report12"),
    ],
)
def test_an_endpoint_is_the_path_without_what_differs_each_time(url: str, endpoint: str) -> None:
    assert endpoint_of(url) == endpoint


@pytest.mark.parametrize("settings", [{"tries": 0}, {"first": 0}, {"longest": -1}, {"total": 0}, {"first": 1e9}])
def test_a_policy_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(TapError, match="retry policy"):
        Policy(**settings)
