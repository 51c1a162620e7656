"""What a service refused: mended, sent again, and done only when it was taken."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.common.errors import EventError
from balog.event import Event, decode, encode
from balog.filters import Expression
from balog.service import ServiceClient
from balog.service.failed_event_replay import FailedEventReplay, repair
from balog.topics import Message, open_topics
from balog.topics.redrive import Patch
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.stand_ins.service import ServiceStandIn

TO_NUMBER = {"payload.price": "CAST(payload.price AS DOUBLE)"}


class Strict(ServiceStandIn):
    """Refuses orders whose price is no number."""

    def __call__(self, request: Request) -> Answer:
        for line in request.body.splitlines():
            event = decode(line)
            if isinstance(event.payload.get("price"), str):
                self.refused[event.header.id] = (422, [{"path": "$.payload.price", "reason": "expected a number"}])
            else:
                self.refused.pop(event.header.id, None)
        assert request.path.endswith("failed=drop") or request.method == "GET"
        return super().__call__(request)


@pytest.fixture
def service():
    return Strict()


@pytest.fixture
def server(service):
    with HttpStandIn(service) as server:
        yield server


@pytest.fixture
def url(tmp_path):
    return f"local:{tmp_path}/topics"


@pytest.fixture
def topic(url):
    with open_topics(url) as home:
        yield home.topic("failed_events")


def publish(topic, *events):
    topic.publish([Message(event.header.id, encode(event)) for event in events])


def failed(data: bytes, *, form: str = "json", **more: Any) -> Event:
    payload = {
        "cls_type": "failed_event",
        "version": "1.0.0",
        "data": base64.b64encode(data).decode(),
        "form": form,
        "problems": [{"path": "$.price", "reason": "expected a number"}],
        **more,
    }
    return Event.new("failed_events", payload, level="WARNING")


def order(price: Any) -> bytes:
    return json.dumps({"cls_type": "order", "version": "1.0.0", "price": price}).encode()


class TestMend:
    def test_a_payload_becomes_an_event_with_the_id_that_it_had(self) -> None:
        event = repair(failed(order("1.5"), event="LGabc"), Patch(compute=TO_NUMBER))

        assert (event.header.id, event.header.channel, event.payload["price"]) == ("LGabc", "order", 1.5)

    def test_without_an_id_it_gets_the_same_one_each_time(self) -> None:
        one = failed(order("1.5"))

        assert repair(one, Patch()).header.id == repair(one, Patch()).header.id
        assert repair(one, Patch()).header.id != repair(failed(order("1.5")), Patch()).header.id

    def test_a_whole_event_stays_itself(self) -> None:
        event = Event.new("a.b", {"cls_type": "order", "price": "2"}, level="ERROR")

        mended = repair(failed(encode(event)), Patch(compute=TO_NUMBER))

        assert mended.header == event.header
        assert mended.payload["price"] == 2.0

    @pytest.mark.parametrize("price", ["1e999", "-1e999", "NaN", "dear"])
    def test_a_computed_number_that_is_not_finite_leaves_the_member_as_it_was(self, price: str) -> None:
        event = repair(failed(order(price)), Patch(compute=TO_NUMBER))

        assert event.payload["price"] == price

    @pytest.mark.parametrize(
        ("event", "said"),
        [
            (failed(b'{"cls_type": "order", "price": 1e999}'), "cannot be read"),
            (failed(b'{"cls_type": "order", "note": "\\ud800"}'), "not a JSON object|cannot be read"),
            (failed(b"{half"), "not a JSON object"),
            (failed(b"[1]"), "not a JSON object"),
            (failed(b"\xff"), "not a JSON object"),
            (failed(b"\x08\x01", form="protobuf"), "protobuf"),
            (failed(b'{"a": 1}'), "unknown field"),
            (Event.new("a", {"data": "not base64!", "form": "json"}), "not a failed_event"),
            (Event.new("a", {"cls_type": "order"}), "not a failed_event"),
        ],
    )
    def test_what_makes_no_event_is_told(self, event: Event, said: str) -> None:
        with pytest.raises(EventError, match=said):
            repair(event, Patch(["payload.x=1"]))


class TestReplay:
    @pytest.fixture
    def replay(self, topic, server):
        """Replay what is in the topic; give the counts, and each failure that was reported."""
        with ServiceClient(server.url) as client:

            def replay(patch=None, where=None):
                told, where = [], where and Expression(where)
                replaying = FailedEventReplay(
                    topic, client, patch or Patch(), where, lambda event: None, lambda *failure: told.append(failure)
                )
                return replaying.run(), told

            yield replay

    def test_what_is_taken_is_done_and_the_rest_stays_for_a_better_patch(self, service, topic, replay):
        publish(topic, failed(order("1.5")), failed(order("dear")), failed(b"{half"))

        counts, told = replay(Patch(compute=TO_NUMBER))
        assert (counts.sent, counts.refused, counts.invalid) == (1, 1, 1)
        assert [reason.split(":")[0] for _, reason in told] == ["$.payload.data", "422 $.payload.price"]

        counts, _ = replay(Patch(["payload.price=0"]))
        assert (counts.sent, counts.refused, counts.invalid) == (1, 0, 1)

        assert sorted(decode(body).payload["price"] for body in service.events.values()) == [0, 1.5]

    def test_only_those_that_were_asked_for(self, service, topic, replay):
        publish(topic, failed(order(1), type="order"), failed(order(2), type="refund"))

        counts, _ = replay(where="payload.type = 'refund'")

        assert (counts.sent, counts.filtered) == (1, 1)
        assert [decode(body).payload["price"] for body in service.events.values()] == [2]

    def test_more_than_a_batch_ends(self, service, topic, replay):
        publish(topic, *(failed(order(n if n % 2 else "dear")) for n in range(500)))

        counts, _ = replay()

        assert (counts.sent, counts.refused) == (250, 250)
        assert len(service.events) == 250


class TestCommand:
    def invoke(self, *words):
        return CliRunner().invoke(main, ["replay", *words])

    @pytest.fixture(autouse=True)
    def one(self, topic):
        publish(topic, failed(order("1.5"), event="LGone"))

    @pytest.fixture
    def patch(self, tmp_path):
        (tmp_path / "patch.json").write_text(json.dumps({"compute": TO_NUMBER}))
        return str(tmp_path / "patch.json")

    def test_a_dry_run_shows_the_event_and_sends_nothing(self, url, service, patch):
        done = self.invoke("--failed", url, "--patch", patch, "--dry-run")

        assert done.exit_code == 0
        assert decode(done.stdout.strip()).payload["price"] == 1.5
        assert "1 event would be sent" in done.stderr
        assert service.events == {}

    def test_it_sends_and_says_how_it_ended(self, url, service, server, patch):
        done = self.invoke("--failed", url, "--service", server.url)
        assert done.exit_code == 1
        assert "stays: 422 $.payload.price: expected a number" in done.stderr

        done = self.invoke("--failed", url, "--service", server.url, "--patch", patch)
        assert done.exit_code == 0, done.stderr
        assert list(service.events) == ["LGone"]

    def test_the_token_is_the_environment_s(self, url, server, monkeypatch):
        monkeypatch.setenv("BALOG_TOKEN", "from-environment")

        self.invoke("--failed", url, "--service", server.url)

        assert server.requests[0].headers["authorization"] == "Bearer from-environment"

    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("spool", "--patch", "p"),
            ("spool", "--failed", "local:x"),
            ("--failed", "local:x", "--dead"),
            ("--failed", "local:x"),
        ],
    )
    def test_what_does_not_go_together_is_wrong_use(self, words):
        assert self.invoke(*words).exit_code == 2
