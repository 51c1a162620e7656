import base64
import gzip
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard

from balog.common.errors import TopicError
from balog.event import Event, encode
from balog.service.document import ControlDocument, EventStream
from balog.service.service import Service
from balog.service.settings import RequestLimits, ServiceConfig
from balog.topics import Message
from balog.topics.memory import MemoryTopics
from tests.service.serving import Asked, put_schema, serving
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    limits = RequestLimits(body_bytes=50_000, inflated_bytes=100_000, event_bytes=5_000, events=100, depth=8)
    with serving(tmp_path_factory.mktemp("service"), limits) as asked:
        yield asked


def order(**fields):
    return {"cls_type": "order", "version": "1.0.0", "price": 1, **fields}


def test_a_payload_alone_becomes_an_event_that_is_stored_before_it_is_acked(service):
    status, answer = service.post(order(note="alone"))

    assert (status, answer["accepted"], answer["stores"]) == (202, 1, {"topics": 1})
    [event] = [one for one in service.stored("order") if one.payload.get("note") == "alone"]
    assert answer["items"] == [{"id": event.header.id, "status": 202, "store": "topics"}]
    assert (event.header.channel, event.level) == ("order", "INFO")


def test_curl_s_own_content_type_is_taken_for_json(service):
    assert service.post(order(), content_type="application/x-www-form-urlencoded")[0] == 202


def test_a_payload_without_a_version_gets_that_of_the_latest(service):
    _, answer = service.post({"cls_type": "order", "price": 3})

    [event] = [one for one in service.stored("order") if one.header.id == answer["items"][0]["id"]]
    assert event.version == "1.0.0"


def test_a_whole_event_is_kept_as_it_is_and_stored_once(service):
    event = Event.new("shop.sales", order(note="whole"), level="WARNING")

    first = service.post(encode(event))[1]["items"]
    second = service.post(encode(event))[1]["items"]

    assert first == [{"status": 202, "id": event.header.id, "store": "topics"}]
    assert second == [{**first[0], "duplicate": True}]
    assert [one for one in service.stored("order") if one.header.id == event.header.id] == [event]


@pytest.mark.parametrize(
    ("mark", "kind"), [("[,]", "application/json"), (" \n ", "application/x-ndjson")], ids=["array", "lines"]
)
def test_each_item_of_many_has_its_own_answer_in_their_order(service, mark, kind):
    items = [json.dumps(one) for one in (order(), order(price="dear"), order())]

    status, answer = service.post((mark[0] + mark[1].join(items) + mark[2]).encode(), content_type=kind)

    assert (status, answer["accepted"], answer["refused"]) == (202, 2, 1)
    assert [item["status"] for item in answer["items"]] == [202, 422, 202]
    assert [problem["path"] for problem in answer["items"][1]["problems"]] == ["$.price"]


def test_only_what_failed_is_told_when_asked_so(service):
    _, answer = service.post([order(), 5, order()], "?items=failed")

    assert [(item["index"], item["status"]) for item in answer["items"]] == [(1, 422)]
    assert answer["accepted"] == 2


def test_a_line_that_is_no_json_is_refused_alone(service):
    status, answer = service.post(json.dumps(order()).encode() + b'\n{"cls_', content_type="application/x-ndjson")

    assert status == 202
    assert [item["status"] for item in answer["items"]] == [202, 422]


@pytest.mark.parametrize(
    ("payload", "path", "told"),
    [
        (order(deep=[{"n": -(10**309)}]), "$.deep[0].n", "this number is out of range: no double can hold it"),
        ({"cls_type": "ordre", "price": 1}, "$.cls_type", "did you mean 'order'?"),
        ({"cls_type": "order", "version": "9.0.0", "price": 1}, "$.version", "there are 1.0.0"),
        ({"cls_type": "order", "version": 1, "price": 1}, "$.version", "text"),
        ({"cls_type": 7}, "$.cls_type", "text"),
        ({"cls_type": ""}, "$.cls_type", "name of a type"),
        ({"price": 1}, "$", "payload with cls_type"),
        ([], "$", "object"),
        ("x" * 6000, "$", "limit"),
        ({"cls_type": "order", "price": 1, "deep": [[[[[[[[[]]]]]]]]]}, "$", "deeper than 8"),
    ],
)
def test_what_is_no_event_is_refused_with_the_place_and_what_would_do(service, payload, path, told):
    status, answer = service.post([payload])

    assert status == (413 if told == "limit" else 422)
    [problem] = answer["items"][0]["problems"]
    assert problem["path"] == path
    assert told in problem["reason"]
    assert "0" * 9 not in problem["reason"]


@pytest.mark.parametrize(
    "item",
    [
        b'{"cls_type":"order","version":"1.0.0","price":1e999}',
        b'{"cls_type":"order","version":"1.0.0","price":1' + b"0" * 309 + b"}",
        b'{"cls_type":"order","version":"1.0.0","price":1,"deep":[{"n":-' + b"9" * 309 + b"}]}",
        b'{"cls_type":"order","version":"1.0.0","price":1,"note":"\\ud800"}',
        b'{"cls_type":"order","version":"1.0.0","price":1,"note":"\xff"}',
        b'{"cls_type":"order","version":"1.0.0","price":1,"note":"\x00"}',
        b'{"cls_type":"order","version":"1.0.0","price":NaN}',
    ],
)
def test_what_no_reader_could_read_later_is_refused(service, item):
    before = len(service.stored("order"))

    status, answer = service.post(item, content_type="application/x-ndjson")

    assert (status, answer["accepted"]) == (422, 0)
    assert len(service.stored("order")) == before


def test_many_digits_in_a_text_or_a_fraction_are_taken(service):
    body = b'{"cls_type":"order","version":"1.0.0","price":1.%b,"note":"%b"}' % (b"7" * 400, b"7" * 400)

    assert service.post(body)[1]["accepted"] == 1


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"[]", {}, 400),
        (b'{"cls_type":', {}, 400),
        (b"\xff\xfe", {}, 400),
        (gzip.compress(b"[" * 90_000, mtime=0), {"content_encoding": "gzip"}, 400),
        (b"[" * 40_000, {}, 400),
        (b"\n\n", {"content_type": "application/x-ndjson"}, 400),
        (b"<x/>", {"content_type": "text/xml"}, 415),
        (b"{}", {"content_encoding": "br"}, 415),
        (b"{}", {"content_encoding": "zstd"}, 400),
        (b" " * 50_001, {}, 413),
        (b"[" + b",".join([b"1"] * 101) + b"]", {}, 413),
        (b"1\n" * 101, {"content_type": "application/x-ndjson"}, 413),
        (b"{}", {"idempotency_key": "k" * 201}, 400),
        (b"{}", {"content_type": "application/x-protobuf"}, 400),
    ],
)
def test_a_request_that_is_none_is_refused_as_a_whole(service, body, headers, status):
    found, answer = service.post(body, **headers)

    assert found == status
    assert answer.keys() == {"problem", "path"}


def test_a_parameter_that_nobody_knows_is_refused(service):
    assert service.post(order(), "?item=failed")[0] == 400


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_compressed_bodies_are_taken_and_a_bomb_and_a_cut_off_body_refused(service, encoding, pack):
    body = json.dumps([order()] * 5).encode()

    assert service.post(pack(body), content_encoding=encoding)[1]["accepted"] == 5
    assert service.post(pack(b" " * 30_000_000), content_encoding=encoding)[0] == 413
    assert service.post(pack(body)[:-9], content_encoding=encoding)[0] == 400
    wait_for(lambda: service.service.request_budget.used == 0)


def test_the_same_key_gives_the_same_events_and_another_body_others(service):
    def send(payload, key="k1"):
        return service.post([payload], idempotency_key=key)[1]["items"][0]

    first = send(order(note="a"))

    assert send(order(note="a")) == {**first, "duplicate": True}
    assert send(order(note="b"))["id"] != first["id"]
    assert send(order(note="a"), "k2")["id"] != first["id"]


def test_what_was_refused_is_kept_with_its_bytes_and_every_fault(service):
    item = b'{"cls_type":"order", "version":"1.0.0", "note":5}'
    service.post(item)

    [failed] = [one.payload for one in service.stored("failed_events") if base64.b64decode(one.payload["data"]) == item]
    assert {problem["path"] for problem in failed["problems"]} == {"$.note", "$"}
    assert (failed["type"], failed["type_version"], failed["form"]) == ("order", "1.0.0", "json")


def test_probes_and_metrics_tell_what_happened(service):
    service.post(order())

    assert service.ask("GET", "/health").json()["status"] == "alive"
    assert service.ask("GET", "/ready").json() == {"status": "ready", "problems": []}
    text = service.ask("GET", "/metrics").data.decode()
    assert 'balog_service_requests_total{path="/v1/events",status="202"}' in text
    assert 'balog_service_events_total{status="202",store="topics",stream="order"}' in text
    assert "balog_service_request_seconds_bucket" in text
    assert re.search(r"^balog_service_body_bytes_total [1-9]", text, re.MULTILINE)
    assert re.search(r"^balog_service_in_flight 0.0$", text, re.MULTILINE)


def test_another_path_or_method_is_refused_in_the_one_form(service):
    assert (service.ask("GET", "/v1/event").status, service.ask("PUT", "/v1/events").status) == (404, 405)
    assert service.ask("GET", "/v1/events").json().keys() == {"problem", "path"}
    assert service.ask("POST", "/health").status == 405


def test_a_new_version_is_taken_at_once_and_a_deleted_one_is_unknown_as_soon_as_it_is_looked_for(tmp_path: Path):
    event = {"cls_type": "new", "version": "1.0.0"}
    with serving(tmp_path) as asked:
        asked.service.registry._listing._max_age = 0  # the second that a miss is remembered
        assert asked.post(event)[0] == 422
        put_schema(tmp_path / "schemas", "new", "1.0.0", {"type": "object"})
        assert asked.post(event)[0] == 202
        asked.service.registry._listing._max_age = float("inf")
        (tmp_path / "schemas" / "new" / "1.0.0.json").unlink()
        asked.service.registry.refresh()
        asked.service.reader.forget()
        status, answer = asked.post(event)

    assert status == 422
    assert "knows no type 'new'" in answer["items"][0]["problems"][0]["reason"]


def test_a_registry_that_hangs_holds_up_nobody_whose_types_are_known(tmp_path: Path):
    with serving(tmp_path) as asked:
        large = [order(note="x" * 1000)] * 100
        assert asked.post(large)[0] == 202
        may_go_on, real = threading.Event(), asked.service.registry.validator

        def hang(*given):
            may_go_on.wait(60)
            return real(*given)

        asked.service.registry.validator = hang
        with ThreadPoolExecutor(40) as clients:
            try:
                waiting = [clients.submit(asked.post, {"cls_type": "made_up"}) for _ in range(40)]
                wait_for(lambda: asked.service.request_budget.used >= 40 * len('{"cls_type": "made_up"}'))
                with Asked(asked.service).http as another:
                    answer = another.request("POST", asked.service.url + "/v1/events", json=large, timeout=20)

                assert answer.status == 202
            finally:
                may_go_on.set()
            assert {one.result()[0] for one in waiting} == {422}


def test_unknown_types_are_taken_where_the_config_says_so(tmp_path: Path):
    with serving(tmp_path, unknown_types="accept") as asked:
        assert asked.post([{"cls_type": "free", "version": "7.1.0"}, order(price="x")])[1]["accepted"] == 1


class Down(MemoryTopics):
    """A home that takes nothing, or only what is for ``good``."""

    def topic(self, name):
        topic = super().topic(name)
        if name == "good":
            return topic

        def publish(messages: list[Message]) -> int:
            raise TopicError("the disk is full")

        topic.publish = topic.publish_new = publish  # type: ignore[method-assign,assignment]
        return topic


@contextmanager
def down(**options):
    config = ServiceConfig(topics="local:unused", listen=":0", drain=0, **options)
    topics = Down()
    with patch("balog.service.api.context.open_topics", lambda url: topics), Service(config) as service:
        asked = Asked(service)
        yield asked
        asked.http.clear()


def test_503_when_no_store_takes_it_and_ready_says_so():
    with down() as asked:
        answer = asked.ask("POST", "/v1/events", b'{"cls_type":"log","message":"x"}')

        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert "the disk is full" in answer.json()["items"][0]["problems"][0]["reason"]
        assert asked.ask("GET", "/ready").status == 503


def test_what_is_refused_and_finds_no_store_is_counted():
    with down() as asked:
        status, _ = asked.post({"cls_type": "nope"})
        metrics = asked.ask("GET", "/metrics").data.decode()

    assert status == 422
    assert "balog_service_failed_unkept_total 1.0" in metrics


def test_one_topic_that_takes_nothing_makes_the_service_degraded_and_others_go_on():
    with down(unknown_types="accept") as asked:
        statuses = [asked.post({"cls_type": name})[0] for name in ("good", "bad")]
        ready = asked.ask("GET", "/ready")
        metrics = asked.ask("GET", "/metrics").data.decode()

    assert statuses == [202, 503]
    assert (ready.status, ready.json()) == (200, {"status": "degraded", "problems": ["the disk is full"]})
    assert "balog_service_ready 1.0" in metrics


def test_events_go_to_the_fallback_while_the_topics_fail(tmp_path: Path):
    with down(fallback=f"local:{tmp_path}") as asked:
        status, answer = asked.post({"cls_type": "log", "message": "x"})

    assert (status, answer["stores"]) == (202, {"fallback": 1})


def test_a_stream_that_is_too_fast_is_told_when_to_come_back_and_others_go_on(tmp_path: Path):
    with serving(tmp_path) as asked:
        asked.service.intake.apply(ControlDocument(streams=(EventStream(name="slow", types=("order",), rate=1.0),)))
        items = [order()] * 5 + [{"cls_type": "log", "message": "x"}]
        answer = asked.ask("POST", "/v1/events", json.dumps(items).encode())
        told = answer.json()["items"]
        again = asked.ask("POST", "/v1/events", json.dumps(items[:1]).encode())

    assert answer.status == 202
    assert [item["status"] for item in told] == [202, 429, 429, 429, 429, 202]
    assert {item["stream"] for item in told[1:5]} == {"slow"}
    assert int(answer.headers["Retry-After"]) >= max(item["retry_after"] for item in told[1:5]) > 0
    assert (again.status, again.headers["Retry-After"].isdigit()) == (429, True)


def test_a_fault_of_the_service_is_a_500_in_the_one_form_and_is_told_without_what_was_sent(tmp_path: Path):
    said: list[str] = []
    config = ServiceConfig(topics=f"local:{tmp_path}", listen=":0", drain=0)
    with Service(config, say=said.append) as service:

        def broken(*given, **named):
            raise KeyError("what was sent")

        asked = Asked(service)
        service.reader.read = broken
        service.applier.status = broken
        answers = [asked.ask("POST", "/v1/events", b'{"cls_type":"log"}') for _ in range(2)]
        answers.append(asked.ask("GET", "/v1/status"))
        metrics = asked.ask("GET", "/metrics").data.decode()
        asked.http.clear()

    assert [answer.status for answer in answers] == [500] * 3
    assert all(answer.json().keys() == {"problem", "path"} for answer in answers)
    assert len(said) == 2, "one that comes again and again is reported once"
    assert "POST /v1/events: KeyError" in said[0]
    assert "GET /v1/status: KeyError" in said[1]
    assert "what was sent" not in "".join(said)
    assert 'balog_service_requests_total{path="/v1/events",status="500"} 2.0' in metrics
