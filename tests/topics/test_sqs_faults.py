"""What SQS refuses: as a whole, entry by entry, for now or for good. boto3's own client, its answers put in."""

import io
import json
import logging
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3.session
import pytest
from botocore.response import StreamingBody
from botocore.stub import ANY, Stubber

from balog.common.errors import TopicError
from balog.topics import GivenUp, Message, Received
from balog.topics.sqs import SqsTopic, SqsTopics
from balog.topics.sqs import queue as queue_module
from balog.topics.sqs.dead_letters import dead_name
from balog.topics.sqs.packing import CLAIM_SIZE
from tests.stand_ins.http_server import Answer, HttpStandIn

URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def topics(sqs: Stubber, s3: "Stubber | None" = None, **options: Any) -> SqsTopics:
    """Return topics whose clients are those of the stubs."""
    home = SqsTopics("eu-central-1", **options)
    home._account._clients = {"sqs": sqs.client, **({"s3": s3.client} if s3 is not None else {})}
    return home


@pytest.fixture
def session() -> Any:
    return boto3.session.Session(
        aws_access_key_id="AKIAIOSFODNN7EXAMPLE", aws_secret_access_key=SECRET, region_name="eu-central-1"
    )


@pytest.fixture
def stub(session: Any) -> Iterator[Stubber]:
    with Stubber(session.client("sqs")) as stub:
        stub.add_response("get_queue_url", {"QueueUrl": URL})
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def s3(session: Any) -> Iterator[Stubber]:
    with Stubber(session.client("s3")) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def topic(stub: Stubber, s3: Stubber) -> SqsTopic:
    return topics(stub, s3, claim_check="s3://bucket").topic("orders")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    # Not ``time.sleep`` itself, which threads of other tests may call.
    monkeypatch.setattr(queue_module, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
    return pauses


def held(*handles: str) -> list[Received]:
    return [Received(f"m{handle}", b"", handle, 1, 0.0) for handle in handles]


def failed(number: int, code: str, *, ours: bool = True) -> dict[str, Any]:
    return {"Id": str(number), "Code": code, "SenderFault": ours, "Message": "why"}


def answer(failures: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Successful": [], "Failed": failures}


class TestEntries:
    def test_entries_that_sqs_failed_on_are_sent_again_and_no_others(
        self, stub: Stubber, topic: SqsTopic, no_pause: list[float]
    ) -> None:
        stub.add_response("get_queue_attributes", {"Attributes": {"MaximumMessageSize": "1048576"}})
        first = {
            "QueueUrl": URL,
            "Entries": [{"Id": str(n), "MessageBody": ANY, "MessageAttributes": ANY} for n in range(3)],
        }
        again = {"QueueUrl": URL, "Entries": [{"Id": "1", "MessageBody": "b1", "MessageAttributes": ANY}]}
        stub.add_response("send_message_batch", answer([failed(1, "InternalError", ours=False)]), first)
        stub.add_response("send_message_batch", answer([failed(1, "ThrottlingException")]), again)
        stub.add_response("send_message_batch", answer([]), again)
        assert topic.publish([Message(f"m{number}", f"b{number}".encode()) for number in range(3)]) == 3
        assert len(no_pause) == 2
        limits = [queue_module._BACKOFF.limit(failures) for failures in (1, 2)]
        assert all(0 <= pause <= limit for pause, limit in zip(no_pause, limits, strict=True))
        assert limits[0] < limits[1]

    def test_an_entry_that_is_refused_for_good_is_an_error_that_says_how_many(
        self, stub: Stubber, topic: SqsTopic
    ) -> None:
        stub.add_response("get_queue_attributes", {"Attributes": {}})
        stub.add_response("send_message_batch", answer([failed(1, "InvalidMessageContents")]))
        with pytest.raises(TopicError, match="1 of 2 messages not accepted: InvalidMessageContents: why") as caught:
            topic.publish([Message("a", b"a"), Message("b", b"b")])
        assert not caught.value.retryable

    def test_entries_that_fail_all_the_time_are_a_passing_error(self, stub: Stubber, topic: SqsTopic) -> None:
        for _ in range(6):
            stub.add_response("delete_message_batch", answer([failed(0, "InternalError", ours=False)]))
        with pytest.raises(TopicError, match="1 of 2 messages not accepted: InternalError: why; try again") as caught:
            topic.ack("g", held("a", "b"))
        assert caught.value.retryable

    @pytest.mark.parametrize(
        "code",
        ["ReceiptHandleIsInvalid", "AWS.SimpleQueueService.MessageNotInflight", "InvalidParameterValue"],
    )
    def test_receipts_that_expired_are_counted_out(self, stub: Stubber, topic: SqsTopic, code: str) -> None:
        stub.add_response("delete_message_batch", answer([failed(1, code)]))
        assert topic.ack("g", held("a", "b", "c")) == 2
        stub.add_response("change_message_visibility_batch", answer([failed(0, code), failed(1, code)]))
        assert topic.extend("g", held("a", "b")) == 0

    def test_one_bad_receipt_that_spoils_a_call_does_not_spoil_the_others(self, stub: Stubber, topic: SqsTopic) -> None:
        stub.add_client_error("delete_message_batch", "ReceiptHandleIsInvalid", "bad", 400)
        stub.add_response("delete_message_batch", answer([]))
        stub.add_client_error("delete_message_batch", "ReceiptHandleIsInvalid", "bad", 400)
        assert topic.ack("g", held("a", "b")) == 1

    def test_settling_goes_ten_at_a_time(self, stub: Stubber, topic: SqsTopic) -> None:
        for size in (10, 10, 3):
            entries = [{"Id": str(number), "ReceiptHandle": ANY, "VisibilityTimeout": 7} for number in range(size)]
            stub.add_response("change_message_visibility_batch", answer([]), {"QueueUrl": URL, "Entries": entries})
        assert topic.release("g", held(*map(str, range(23))), delay=6.2) == 23

    def test_a_stale_receipt_makes_no_dead_letter(self, stub: Stubber, topic: SqsTopic) -> None:
        stub.add_response("change_message_visibility_batch", answer([failed(0, "MessageNotInflight")]))
        assert topic.dead_letter("g", held("a"), "why") == 0


class TestWhole:
    @pytest.mark.parametrize(
        ("code", "status", "retryable", "said"),
        [
            ("AWS.SimpleQueueService.NonExistentQueue", 400, True, "no such queue"),
            ("QueueDoesNotExist", 400, True, "no such queue"),
            ("AWS.SimpleQueueService.QueueDeletedRecently", 400, True, "QueueDeletedRecently"),
            ("OverLimit", 400, True, "OverLimit"),
            ("ServiceUnavailable", 503, True, "ServiceUnavailable"),
            ("InternalFailure", 500, True, "InternalFailure"),
            ("RequestThrottled", 400, True, "RequestThrottled"),
            ("AccessDenied", 403, False, "access denied; allow it in the IAM policy: some text"),
            ("InvalidClientTokenId", 403, False, "credentials for wrong (InvalidClientTokenId)"),
            ("SignatureDoesNotMatch", 403, False, "check key, secret and session token"),
            ("ExpiredToken", 403, False, "session token has expired"),
            ("UnsupportedOperation", 400, False, "UnsupportedOperation"),
            ("KmsDisabled", 400, False, "KmsDisabled"),
        ],
    )
    def test_an_error_says_in_one_line_what_to_do_and_whether_to_try_again(
        self, stub: Stubber, topic: SqsTopic, code: str, status: int, retryable: bool, said: str
    ) -> None:
        stub.add_client_error("receive_message", code, "some\ntext", status)
        with pytest.raises(TopicError) as caught:
            topic.receive("g")
        assert said in str(caught.value)
        assert str(caught.value).startswith("topic orders (sqs:eu-central-1): ")
        assert "\n" not in str(caught.value)
        assert SECRET not in str(caught.value)
        assert caught.value.retryable is retryable
        assert caught.value.exit_code == (2 if said == "no such queue" else 1)

    def test_what_was_signed_is_not_shown(self, stub: Stubber, topic: SqsTopic) -> None:
        stub.add_client_error("receive_message", "SignatureDoesNotMatch", f"canonical string: {SECRET}", 403)
        with pytest.raises(TopicError) as caught:
            topic.receive("g")
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_a_queue_that_was_deleted_is_looked_for_again(self, stub: Stubber, topic: SqsTopic) -> None:
        stub.add_response("receive_message", {})
        stub.add_client_error("receive_message", "QueueDoesNotExist", "", 400)
        stub.add_client_error("get_queue_url", "QueueDoesNotExist", "", 400)
        assert topic.receive("g") == []
        with pytest.raises(TopicError, match=r"no such queue; it is made .*, unless the URL has create=no"):
            topic.receive("g")
        assert not topic.exists()

    def test_another_error_is_not_taken_for_a_missing_queue(self, session: Any) -> None:
        with Stubber(session.client("sqs")) as stub:
            stub.add_client_error("get_queue_url", "AccessDenied", "", 403)
            with pytest.raises(TopicError, match="access denied"):
                topics(stub).topic("orders").exists()


class TestOnTheWire:
    """What boto3 itself tries again, with a server that answers by script."""

    @pytest.fixture
    def server(self) -> Iterator[HttpStandIn]:
        with HttpStandIn(lambda request: self.found()) as server:
            yield server

    def found(self) -> Answer:
        return Answer(200, json.dumps({"QueueUrl": URL}).encode(), {"Content-Type": "application/x-amz-json-1.0"})

    def refuse(self, code: str, status: int = 400) -> Answer:
        return Answer(status, json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": "why"}).encode())

    def exists(self, server: HttpStandIn) -> bool:
        with SqsTopics("eu-central-1", "AKIAIOSFODNN7EXAMPLE", SECRET, endpoint=server.url) as home:
            return home.topic("orders").exists()

    def test_throttling_and_lost_connections_are_tried_again(self, server: HttpStandIn) -> None:
        server.will(self.refuse("RequestThrottled"), Answer(trouble="reset"), self.refuse("ServiceUnavailable", 503))
        assert self.exists(server)
        assert len(server.requests) == 4

    def test_what_is_refused_for_good_is_asked_once(self, server: HttpStandIn) -> None:
        server.will(self.refuse("AccessDenied", 403))
        with pytest.raises(TopicError, match="access denied") as caught:
            self.exists(server)
        assert not caught.value.retryable
        assert len(server.requests) == 1

    def test_throttling_that_does_not_end_may_pass_later(self, server: HttpStandIn) -> None:
        server.will(*[self.refuse("RequestThrottled")] * 4)
        with pytest.raises(TopicError, match="RequestThrottled: why") as caught:
            self.exists(server)
        assert caught.value.retryable
        assert self.exists(server)

    def test_an_answer_that_is_none_of_sqs_is_an_error_in_one_line(self, server: HttpStandIn) -> None:
        server.will(*[Answer(502, b"<html>\nbad gateway</html>")] * 4)
        with pytest.raises(TopicError) as caught:
            self.exists(server)
        assert caught.value.retryable
        assert "\n" not in str(caught.value)


class TestBodiesInS3:
    """The pointer of a large body, and what S3 may say of it."""

    def receive(self, stub: Stubber, attempts: int = 1, *, more: bool = False, key: str = "k") -> None:
        pointer = json.dumps(
            ["software.amazon.payloadoffloading.PayloadS3Pointer", {"s3BucketName": "bucket", "s3Key": key}]
        )
        size = {CLAIM_SIZE: {"DataType": "Number", "StringValue": "5"}}
        system = {"ApproximateReceiveCount": str(attempts), "SentTimestamp": "1800000000000"}
        found = [
            {"MessageId": "1", "ReceiptHandle": "h1", "Body": pointer, "MessageAttributes": size, "Attributes": system}
        ]
        if more:
            found.append({"MessageId": "2", "ReceiptHandle": "h2", "Body": "small", "Attributes": system})
        stub.add_response("receive_message", {"Messages": found})

    def test_a_body_that_may_not_be_read_is_waited_for_and_then_counts_as_lost(
        self, stub: Stubber, s3: Stubber, topic: SqsTopic, caplog: pytest.LogCaptureFixture
    ) -> None:
        for attempts in (1, 2, 3):
            self.receive(stub, attempts)
            s3.add_client_error("get_object", "AccessDenied", "", 403)
        with caplog.at_level(logging.WARNING, "balog.topics"):
            assert topic.receive("g") == topic.receive("g") == []
        assert "message 1 is left for later: its body at s3://bucket/k may not be read, or is not there" in caplog.text
        (received,) = topic.receive("g")
        assert received.body.startswith(b'["software')

    @pytest.mark.parametrize(
        ("code", "status"), [("InvalidObjectState", 403), ("KMS.DisabledException", 400), ("MethodNotAllowed", 405)]
    )
    def test_an_object_that_can_not_be_read_ends_nothing_but_its_message(
        self, stub: Stubber, s3: Stubber, topic: SqsTopic, code: str, status: int
    ) -> None:
        self.receive(stub, 3)
        s3.add_client_error("get_object", code, "", status)
        (received,) = topic.receive("g")
        assert f"S3 says {code.rpartition('.')[2]}" in received.receipt

    @pytest.mark.parametrize("code", ["InvalidAccessKeyId", "ExpiredToken", "NoSuchBucket"])
    def test_a_bucket_that_gives_nothing_to_us_is_no_fault_of_a_message(
        self, stub: Stubber, s3: Stubber, topic: SqsTopic, code: str
    ) -> None:
        self.receive(stub, 3)
        s3.add_client_error("get_object", code, "", 404 if code == "NoSuchBucket" else 403)
        with pytest.raises(TopicError) as caught:
            topic.receive("g")
        assert not caught.value.retryable

    @pytest.mark.parametrize("key", ["", "../other/secret", "claims/../../other/secret", "./k", "x" * 1025])
    def test_a_pointer_to_what_can_be_no_object_is_never_followed(
        self, stub: Stubber, topic: SqsTopic, key: str
    ) -> None:
        self.receive(stub, key=key)
        (received,) = topic.receive("g")  # without a get_object
        assert "which is no key of an object" in received.receipt

    def test_a_body_that_breaks_off_may_come_whole_later(self, stub: Stubber, s3: Stubber, topic: SqsTopic) -> None:
        self.receive(stub)
        s3.add_response("get_object", {"Body": StreamingBody(io.BytesIO(b"hel"), 5), "ContentLength": 5})
        with pytest.raises(TopicError, match="can't be reached: IncompleteReadError") as caught:
            topic.receive("g")
        assert caught.value.retryable

    def test_s3_that_fails_is_an_error_when_there_is_nothing_else(
        self, stub: Stubber, s3: Stubber, topic: SqsTopic
    ) -> None:
        """It keeps no other message back."""
        for more in (True, False):
            self.receive(stub, more=more)
            s3.add_client_error("get_object", "InternalError", "", 500)
        assert [message.body for message in topic.receive("g")] == [b"small"]
        with pytest.raises(TopicError, match="claim check: InternalError") as caught:
            topic.receive("g")
        assert caught.value.retryable

    def test_a_body_that_is_too_large_is_not_read(self, stub: Stubber, s3: Stubber, topic: SqsTopic) -> None:
        self.receive(stub)
        body = StreamingBody(io.BytesIO(b""), 0)
        s3.add_response("get_object", {"Body": body, "ContentLength": 10**10})
        (received,) = topic.receive("g")
        assert "10000000000 bytes; at most" in received.receipt

    @pytest.fixture
    def received(self, stub: Stubber, s3: Stubber, topic: SqsTopic) -> Received:
        self.receive(stub)
        s3.add_response("get_object", {"Body": StreamingBody(io.BytesIO(b"hello"), 5), "ContentLength": 5})
        (received,) = topic.receive("g")
        assert received.body == b"hello"
        return received

    def test_an_object_that_can_not_be_deleted_is_only_logged(
        self, stub: Stubber, s3: Stubber, topic: SqsTopic, received: Received, caplog: pytest.LogCaptureFixture
    ) -> None:
        stub.add_response("delete_message_batch", answer([]))
        s3.add_client_error("delete_object", "AccessDenied", "", 403)
        assert topic.ack("g", [received]) == 1
        assert "s3://bucket/k stays: topic orders" in caplog.text

    def test_the_object_stays_when_the_message_was_not_deleted(
        self, stub: Stubber, topic: SqsTopic, received: Received
    ) -> None:
        stub.add_response("delete_message_batch", answer([failed(0, "ReceiptHandleIsInvalid")]))
        assert topic.ack("g", [received]) == 0  # and no delete_object


class TestOneOrTheOther:
    """A message is deleted from one queue only when the other one has it."""

    DEAD = URL + "-dead"

    def find_dead_queue(self, stub: Stubber, failures: list[dict[str, Any]], attributes: dict[str, str]) -> None:
        """Answer what precedes the sending of dead letters."""
        stub.add_response("change_message_visibility_batch", answer(failures))
        stub.add_response("get_queue_attributes", {"Attributes": attributes})
        stub.add_response("get_queue_url", {"QueueUrl": self.DEAD})
        stub.add_response("get_queue_attributes", {"Attributes": attributes})

    def test_a_message_that_can_not_be_dead_lettered_stays(self, stub: Stubber, topic: SqsTopic) -> None:
        self.find_dead_queue(stub, [], {})
        stub.add_client_error("send_message_batch", "ServiceUnavailable", "", 503)
        with pytest.raises(TopicError, match="ServiceUnavailable"):
            topic.dead_letter("g", held("a"), "why")  # and no delete_message_batch

    def test_what_is_dead_lettered_in_one_call_is_deleted_from_its_queue_and_only_that(
        self, stub: Stubber, topic: SqsTopic
    ) -> None:
        self.find_dead_queue(stub, [failed(1, "MessageNotInflight")], {})
        stub.add_response("send_message_batch", answer([]), {"QueueUrl": self.DEAD, "Entries": [ANY, ANY]})
        entries = [{"Id": "0", "ReceiptHandle": "a"}, {"Id": "1", "ReceiptHandle": "c"}]
        stub.add_response("delete_message_batch", answer([]), {"QueueUrl": URL, "Entries": entries})
        given_up = [GivenUp(message, f"why {message.id}") for message in held("a", "b", "c")]
        assert topic.dead_letter_each("g", given_up) == 2

    @pytest.mark.parametrize(("size", "names"), [(4096, []), (3900, ["balog.topic", "balog.group", "balog.attempts"])])
    def test_what_others_sent_and_fills_its_queue_is_dead_lettered_with_what_fits(
        self, stub: Stubber, size: int, names: list[str]
    ) -> None:
        self.find_dead_queue(stub, [], {"MaximumMessageSize": "4096"})
        attributes = dict.fromkeys([*names, "balog.reason", "balog.id"] if names else [], ANY)
        entry = {"Id": "0", "MessageBody": "x" * size, "MessageAttributes": attributes}
        stub.add_response("send_message_batch", answer([]), {"QueueUrl": self.DEAD, "Entries": [entry]})
        stub.add_response("delete_message_batch", answer([]))
        topic = topics(stub).topic("orders")
        received = [Received("m", b"x" * size, "h", 1, 0.0)]
        assert topic.dead_letter("g", received, "why", consumers=["c"], traceback="t" * 20_000) == 1

    def test_a_letter_that_can_not_be_sent_back_stays(self, stub: Stubber, topic: SqsTopic) -> None:
        stub.add_response("get_queue_attributes", {"Attributes": {}})
        stub.add_response("get_queue_url", {"QueueUrl": self.DEAD})
        letter = {"MessageId": "1", "ReceiptHandle": "h", "Body": "x", "Attributes": {"SentTimestamp": "1"}}
        stub.add_response("receive_message", {"Messages": [letter]})
        stub.add_client_error("send_message_batch", "ServiceUnavailable", "", 503)
        back = {"Id": "0", "ReceiptHandle": "h", "VisibilityTimeout": 0}
        stub.add_response("change_message_visibility_batch", answer([]), {"QueueUrl": self.DEAD, "Entries": [back]})
        with pytest.raises(TopicError, match="ServiceUnavailable"):
            topic.redrive("g", lambda letter: letter.body)


class TestDeadQueues:
    @pytest.mark.parametrize(("name", "value"), [("balog.attempts", "9" * 5000), ("balog.consumers", "[" * 100_000)])
    def test_a_letter_of_others_with_odd_attributes_is_read_all_the_same(
        self, stub: Stubber, topic: SqsTopic, name: str, value: str
    ) -> None:
        stub.add_response("get_queue_attributes", {"Attributes": {}})
        stub.add_response("get_queue_url", {"QueueUrl": URL + "-dead"})
        attributes = {name: {"DataType": "String", "StringValue": value}}
        letter = {"MessageId": "1", "ReceiptHandle": "h", "Body": "x", "MessageAttributes": attributes}
        stub.add_response("receive_message", {"Messages": [letter]})
        stub.add_response("receive_message", {})
        stub.add_response("change_message_visibility_batch", answer([]))
        (read,) = topic.dead_letters("g")
        assert (read.body, read.attempts, read.consumers) == (b"x", 1, ())

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("orders", "orders-dead"), ("orders.fifo", "orders-dead.fifo"), ("x" * 75, "x" * 75 + "-dead")],
    )
    def test_a_queue_without_a_policy_has_one_of_its_own(self, name: str, expected: str) -> None:
        assert dead_name(name) == expected

    @pytest.mark.parametrize("name", ["x" * 76, "x" * 80, "x" * 75 + ".fifo"])
    def test_its_name_is_cut_where_it_would_be_too_long(self, name: str) -> None:
        other = name.replace("xxx", "xxy", 1)
        assert len(dead_name(name)) <= 80
        assert dead_name(name) != dead_name(other)
        assert dead_name(name).endswith("-dead.fifo" if name.endswith(".fifo") else "-dead")


class TestLimits:
    @pytest.mark.parametrize(("lease", "expected"), [(0.0, 0), (0.2, 1), (30.0, 30), (1e9, 43200), (-1.0, 0)])
    def test_leases_are_whole_seconds_within_what_sqs_takes(self, lease: float, expected: int) -> None:
        assert queue_module.seconds(lease) == expected

    def test_a_batch_is_cut_by_bytes(self, stub: Stubber, topic: SqsTopic) -> None:
        stub.add_response("get_queue_attributes", {"Attributes": {"MaximumMessageSize": "1048576"}})
        for size in (2, 2, 1):
            entries = [{"Id": str(n), "MessageBody": ANY, "MessageAttributes": ANY} for n in range(size)]
            stub.add_response("send_message_batch", answer([]), {"QueueUrl": URL, "Entries": entries})
        assert topic.publish([Message(f"m{n}", b"x" * 120_000) for n in range(5)]) == 5
