"""A callback at work: what its endpoint gets, and what becomes of events that it does not take."""

import json
import threading
from datetime import datetime, timedelta, timezone

import pytest

from balog.common.errors import ConfigError, TopicError
from balog.common.secrets import Secret
from balog.event import encode
from balog.service.jobs.callbacks import consumer
from balog.sinks.base import Retrying
from balog.topics import Message
from balog.topics.local import LocalTopic
from tests.stand_ins.callbacks import KEYS
from tests.stand_ins.http_server import Answer
from tests.waiting import wait_for

standardwebhooks = pytest.importorskip("standardwebhooks", reason="standardwebhooks is not installed")


def posted(server):
    return [request.headers["webhook-id"] for request in list(server.requests)]


def all_done(house, job, count):
    wait_for(lambda: job.status().done == count)
    wait_for(lambda: house.group(job.name).pending == 0)


def number(request):
    return json.loads(request.body)["payload"]["n"]


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for n, key in enumerate(KEYS):
        monkeypatch.setenv(f"HOOK_KEY_{n}", key)


class TestRequests:
    def test_each_event_is_posted_once_under_its_id(self, house, receiver):
        ids = house.numbered(100)
        job = house.start(receiver.url)
        all_done(house, job, 100)
        assert sorted(posted(receiver)) == sorted(ids)
        status = job.status()
        assert (status.state, status.taken, status.failed, status.dead, status.error) == ("running", 100, 0, 0, "")

    def test_with_one_request_at_once_they_keep_the_order_of_the_topic(self, house, receiver):
        ids = house.numbered(100)
        all_done(house, house.start(receiver.url, concurrency=1), 100)
        assert posted(receiver) == ids

    def test_several_requests_are_under_way_at_once(self, house, receiver):
        met = threading.Barrier(4, timeout=30)
        receiver.respond = lambda request: (met.wait(), Answer())[1]
        house.numbered(8)
        all_done(house, house.start(receiver.url, concurrency=4), 8)

    def test_only_those_that_meet_the_condition(self, house, receiver):
        ids = house.numbered(10)
        job = house.start(receiver.url, where="payload.n >= 7")
        all_done(house, job, 10)
        assert sorted(posted(receiver)) == sorted(ids[7:])

    def test_those_that_come_later_and_a_topic_that_does_too(self, house, receiver):
        job = house.start(receiver.url)
        ids = house.numbered(1)
        all_done(house, job, 1)
        ids += house.numbered(1)
        all_done(house, job, 2)
        assert posted(receiver) == ids

    def test_headers_and_a_url_that_is_a_secret(self, house, receiver, monkeypatch):
        monkeypatch.setenv("HOOK_URL", f"{receiver.url}/hooks/s3cret-s3cret-s3cret")
        monkeypatch.setenv("HOOK_TOKEN", "Bearer t0ken")
        receiver.will(Answer(500, b"s3cret"))
        house.numbered(1)
        headers = {"X-Team": "data", "Authorization": Secret(env="HOOK_TOKEN")}
        all_done(house, house.start(Secret(env="HOOK_URL"), headers=headers), 1)
        sent = receiver.requests[0]
        assert (sent.headers["X-Team"], sent.headers["Authorization"]) == ("data", "Bearer t0ken")
        assert house.said[0] == ("callback partner: $HOOK_URL answered 500; trying again, its events stay in the topic")

    def test_what_is_no_event_is_a_dead_letter_and_stops_nothing(self, house, receiver):
        house.home.topic("orders").publish([Message("LGx", b'{"half')])
        house.numbered(1)
        job = house.start(receiver.url)
        all_done(house, job, 1)
        [letter] = house.dead()
        assert letter.reason.startswith("not an event: ")
        assert job.status().dead == 1

    def test_a_secret_that_is_not_there_is_told_at_the_start(self, house, receiver):
        with pytest.raises(ConfigError, match="NOT_THERE is not set") as caught:
            house.start(receiver.url, secrets=(Secret(env="NOT_THERE"),))
        assert caught.value.path == "secrets[0]"


class TestSignatures:
    def test_the_reference_library_verifies_them(self, house, receiver):
        house.publish([{"cls_type": "order", "text": "größe\n"}])
        all_done(house, house.start(receiver.url, secrets=(Secret(env="HOOK_KEY_0"),)), 1)
        [request] = receiver.requests
        verify = standardwebhooks.Webhook(KEYS[0]).verify
        verify(request.body, dict(request.headers))
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            verify(request.body + b" ", dict(request.headers))

    def test_a_retry_has_the_same_id_and_a_signature_that_still_holds(self, house, receiver):
        receiver.will(Answer(500), Answer(503))
        [id] = house.numbered(1)
        all_done(house, house.start(receiver.url, secrets=(Secret(env="HOOK_KEY_0"),)), 1)
        assert posted(receiver) == [id] * 3
        for request in receiver.requests:
            standardwebhooks.Webhook(KEYS[0]).verify(request.body, dict(request.headers))

    def test_a_key_is_changed_while_it_runs_and_no_receiver_misses_an_event(
        self, house, receiver, tmp_path, monkeypatch
    ):
        """Given a file with the new key that is put beside the old one, then from some time on the new one signs."""
        monkeypatch.setattr("balog.service.jobs.callbacks.endpoint.REREAD_SECONDS", 0.05)
        new, old = tmp_path / "new", tmp_path / "old"
        new.write_text(KEYS[0])
        old.write_text(KEYS[0])
        job = house.start(receiver.url, secrets=(Secret(file=str(new)), Secret(file=str(old))))

        def verifies(key):
            sent = len(receiver.requests)
            house.numbered(1)
            wait_for(lambda: len(receiver.requests) > sent)
            request = receiver.requests[sent]
            standardwebhooks.Webhook(KEYS[0]).verify(request.body, dict(request.headers))
            try:
                standardwebhooks.Webhook(key).verify(request.body, dict(request.headers))
            except standardwebhooks.WebhookVerificationError:
                return False
            return True

        assert not verifies(KEYS[1])
        new.write_text(KEYS[1])
        wait_for(lambda: verifies(KEYS[1]))
        new.write_text("no key")
        wait_for(lambda: "secrets[0]: is not a key" in job.status().error)
        assert verifies(KEYS[1])


class TestRetries:
    @pytest.mark.parametrize(
        ("answer", "posts"),
        [
            *((Answer(status, headers={"Location": "http://169.254.169.254/"}), 2) for status in (301, 400, 404, 429)),
            (Answer(500), 2),
            (Answer(200), 1),
            (Answer(299), 1),
            (Answer(200, b"x" * 1000, trouble="reset"), 2),
            (Answer(200, b"x" * 1000, trouble="close"), 2),
            (Answer(200, b"x" * 1000, trouble="half"), 1),  # an answer, as far as its status came
        ],
        ids=str,
    )
    def test_only_an_answer_of_2xx_will_do(self, house, receiver, answer, posts):
        receiver.will(answer)
        [id] = house.numbered(1)
        all_done(house, house.start(receiver.url), 1)
        assert posted(receiver) == [id] * posts

    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize("form", ["seconds", "date"])
    def test_retry_after_is_kept_to_for_all_of_its_events(self, house, receiver, status, form):
        """Given an endpoint that asks for an hour, then nothing more is posted there, and nothing is lost."""
        later = datetime.now(timezone.utc) + timedelta(hours=1)
        value = "3600" if form == "seconds" else later.strftime("%a, %d %b %Y %H:%M:%S GMT")
        receiver.will(Answer(status, headers={"Retry-After": value}))
        house.numbered(50)
        job = house.start(receiver.url, concurrency=1)
        wait_for(lambda: job.status().failed)
        wait_for(lambda: house.group().in_flight == 0)
        assert job.consumer.breaker.wait > 3500
        assert len(receiver.requests) == 1
        assert house.group().pending == 50

    def test_when_it_is_over_it_becomes_a_dead_letter_without_a_word_of_the_endpoint(self, house, receiver):
        receiver.respond = lambda request: Answer(500, b"the endpoint's own words")
        [id] = house.numbered(1)
        job = house.start(receiver.url, give_up=0.2)
        [letter] = wait_for(house.dead)
        assert letter.id == id
        assert letter.consumers == ("callback.partner",)
        assert letter.reason.startswith("given up 0.0 h after it came, ")
        assert letter.reason.endswith(f" attempts: {receiver.url[7:]} answered 500")
        assert letter.attempts == len(receiver.requests) >= 3
        wait_for(lambda: job.status().dead == 1)
        assert house.group().pending == 0

    def test_a_dead_letter_that_was_redriven_is_posted_again(self, house, receiver):
        receiver.respond = lambda request: Answer(500)
        [id] = house.numbered(1)
        job = house.start(receiver.url, give_up=0.1)
        wait_for(house.dead)
        receiver.respond = lambda request: Answer()
        assert house.home.topic("orders").redrive("callback.partner", lambda letter: letter.body) == 1
        wait_for(lambda: job.status().done == 1)
        assert set(posted(receiver)) == {id}

    def test_an_old_event_that_was_only_in_hand_when_processes_ended_has_three_attempts(self, house, receiver):
        receiver.respond = lambda request: Answer(500)
        [id] = house.numbered(1)
        topic, group = house.home.topic("orders"), "callback.partner"
        for _ in range(9):
            topic.release(group, topic.receive(group))
        house.start(receiver.url, give_up=0.001)
        wait_for(house.dead)
        assert posted(receiver) == [id] * 3

    @pytest.mark.parametrize("status", [400, 413, 422])
    def test_one_that_it_finds_fault_with_holds_up_no_other(self, house, receiver, status):
        receiver.respond = lambda request: Answer(status if number(request) == 3 else 200)
        ids = house.numbered(20)
        job = house.start(receiver.url)
        wait_for(lambda: job.status().done == 19)
        assert set(posted(receiver)) == set(ids)
        wait_for(lambda: house.group().pending == 1)


class TestBreaker:
    def test_a_dead_endpoint_slows_no_other(self, house, receiver, other):
        """Given one endpoint that hangs and one that is well, then the latter gets all of its events meanwhile."""
        receiver.respond = lambda request: Answer(trouble="hang")
        ids = house.numbered(200)
        dead = house.start(receiver.url, name="dead")
        wait_for(lambda: receiver.requests)
        healthy = house.start(other.url, name="healthy")
        all_done(house, healthy, 200)
        assert sorted(posted(other)) == sorted(ids)
        assert (dead.status().done, house.group("dead").pending) == (0, 200)

    def test_while_it_is_dead_nothing_is_spent_on_it_and_then_it_gets_all(self, house, receiver):
        """Given an endpoint that is away, then few events are tried, none is lost, and its return is noticed."""
        receiver.stop()
        ids = house.numbered(300)
        job = house.start(receiver.url)
        wait_for(lambda: job.consumer.breaker.is_open)
        wait_for(lambda: job.status().failed >= consumer.THRESHOLD + 2)
        status = job.status()
        assert status.error == f"{receiver.url[7:]}: cannot connect: Connection refused"
        assert status.failed < 50
        receiver.start()
        all_done(house, job, 300)
        assert sorted(set(posted(receiver))) == sorted(ids)
        assert job.status().error == ""
        assert house.said[0].endswith("Connection refused; trying again, its events stay in the topic")
        assert "callback partner: takes events again" in house.said

    def test_while_it_is_open_one_request_at_most_is_under_way(self, house, receiver):
        running, most, lock = [0], [0], threading.Lock()

        def respond(request):
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            threading.Event().wait(0.01)
            with lock:
                running[0] -= 1
            return Answer(500)

        receiver.respond = respond
        house.numbered(300)
        job = house.start(receiver.url, concurrency=16)
        wait_for(lambda: job.consumer.breaker.is_open and not job.consumer._sending)  # some may not have arrived yet
        tried = len(receiver.requests)
        most[0] = 0
        wait_for(lambda: len(receiver.requests) > tried + 3)
        assert most[0] == 1

    def test_old_events_of_a_dead_endpoint_die_without_being_asked_for_each(self, house, receiver):
        receiver.respond = lambda request: Answer(500)
        house.numbered(500)
        job = house.start(receiver.url, give_up=0.3, retry=Retrying(first=0.05, longest=0.1))
        wait_for(lambda: job.status().dead == 500)
        assert len(receiver.requests) < 200
        assert house.group().dead == 500


class TestTrouble:
    def test_a_topic_that_fails_is_waited_for_and_told(self, house, receiver, monkeypatch):
        def fail(*_):
            raise TopicError("the disk is away")

        job = house.start(receiver.url)
        with monkeypatch.context() as broken:
            broken.setattr(LocalTopic, "receive", fail)
            house.numbered(10)
            wait_for(lambda: job.status().error == "the disk is away")
        all_done(house, job, 10)
        assert job.status().error == ""
        assert house.said == ["callback partner: the disk is away; trying again"]

    def test_a_mistake_of_its_own_ends_nothing(self, house, receiver, monkeypatch):
        monkeypatch.setattr("balog.service.jobs.engine_job.FIRST_PAUSE", 0.05)
        receive, raised = LocalTopic.receive, []

        def fail_at_first(*arguments):
            if len(raised) < 5:
                raised.append(arguments)
                raise KeyError("a mistake")
            return receive(*arguments)

        monkeypatch.setattr(LocalTopic, "receive", fail_at_first)
        house.numbered(10)
        job = house.start(receiver.url)
        all_done(house, job, 10)
        assert any(line.startswith("callback partner: KeyError: 'a mistake'; restarts in ") for line in house.said)

    def test_a_dead_letter_is_an_event_of_its_own_unless_such_an_event_led_to_it(self, house, receiver, events):
        receiver.respond = lambda request: Answer(500)
        house.numbered(1)
        job = house.start(receiver.url, give_up=0.1)
        wait_for(lambda: job.status().dead == 1)
        [failure] = wait_for(lambda: [event for event in events if event.cls_type == "consumer_failure"])
        assert failure.payload["consumers"] == ["callback.partner"]
        house.home.topic("orders").publish([Message(failure.header.id, encode(failure))])
        wait_for(lambda: job.status().dead == 2)
        assert len([event for event in events if event.cls_type == "consumer_failure"]) == 1


class TestStop:
    def test_requests_under_way_are_waited_for_and_the_rest_is_given_back_untried(self, house, receiver):
        begun, go = threading.Event(), threading.Event()
        receiver.respond = lambda request: (begun.set(), go.wait(30), Answer())[2]
        house.numbered(100)
        job = house.start(receiver.url, concurrency=1)
        assert begun.wait(30)
        threading.Timer(0.2, go.set).start()
        job.stop(30)
        assert job.status().state == "stopped"
        assert job.status().done == 1
        state = house.group()
        assert (state.pending, state.in_flight) == (99, 0)
        received = house.home.topic("orders").receive("callback.partner", 100)
        assert {message.attempts for message in received} == {1}

    def test_what_takes_longer_than_the_deadline_is_cut_and_given_back(self, house, receiver):
        receiver.respond = lambda request: Answer(trouble="hang")
        house.numbered(3)
        job = house.start(receiver.url)
        wait_for(lambda: len(receiver.requests) == 3)
        job.stop(0.1)
        assert job.status().state == "stopped"
        state = house.group()
        assert (state.pending, state.in_flight) == (3, 0)

    def test_another_goes_on_where_it_was_stopped(self, house, receiver):
        ids = house.numbered(50)
        first = house.start(receiver.url, concurrency=1)
        wait_for(lambda: len(receiver.requests) > 5)
        first.stop(5)
        second = house.start(receiver.url, concurrency=1)
        wait_for(lambda: house.group().pending == 0)
        assert first.status().done + second.status().done == 50
        assert posted(receiver) == ids
