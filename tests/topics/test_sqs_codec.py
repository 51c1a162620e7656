"""What SQS carries of a message: any bytes, by text and attributes that every server takes; and what others send."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import TopicError
from balog.event import Event, encode
from balog.topics.sqs import packing as codec
from balog.topics.sqs.claim_check import Pointer, read_pointer, write_pointer
from balog.topics.sqs.packing import Packing, message_group, read_receipt, token

HANDLE = "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a"


def is_xml_char(char: str) -> bool:
    """XML 1.0, production 2, which the SQS API reference quotes for what a body may have."""
    number = ord(char)
    return number in (0x9, 0xA, 0xD) or 0x20 <= number <= 0xD7FF or 0xE000 <= number <= 0xFFFD or number >= 0x10000


NAMES = st.text(min_size=1, max_size=20).filter(lambda text: all(is_xml_char(char) and char != "\r" for char in text))


def raw(text: str, attributes: codec.Attributes | None = None, **system: str) -> dict[str, object]:
    return {
        "MessageId": "sqs-1",
        "ReceiptHandle": HANDLE,
        "Body": text,
        "Attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1800000000123", **system},
        "MessageAttributes": attributes or {},
    }


@pytest.fixture
def packing() -> Packing:
    return Packing("orders", "topic orders", None)


@given(st.binary())
def test_any_bytes_travel_as_characters_that_sqs_takes(body: bytes) -> None:
    text, attributes = codec.encode_body(body)
    assert text
    assert all(is_xml_char(char) and char != "\r" for char in text)
    assert codec.decode_body(text, attributes) == body


@given(st.text(min_size=1))
def test_text_that_sqs_takes_travels_as_it_is(text: str) -> None:
    body = text.encode("utf-8", "surrogatepass")
    carried, attributes = codec.encode_body(body)
    taken = all(is_xml_char(char) and char != "\r" for char in text)
    assert (carried == text and not attributes) if taken else attributes


@given(NAMES, st.binary(max_size=50), st.none() | NAMES)
def test_a_message_that_is_packed_and_unpacked_is_the_same(id: str, body: bytes, key: str | None) -> None:
    packing = Packing("orders", "topic orders", None)
    encoded = packing.pack(id, body, key)
    received = packing.unpack(raw(encoded.text, encoded.attributes))
    assert (received.id, received.body, received.key) == (id, body, key)
    assert packing.repack(received, read_receipt(received)) == encoded


@pytest.mark.parametrize("name", ["", "a\0", "\r", "\udcff", "\ufffe"])
def test_an_id_that_sqs_can_not_carry_is_refused_for_good(packing: Packing, name: str) -> None:
    with pytest.raises(TopicError, match="can't be sent by SQS") as caught:
        packing.pack(name, b"", None)
    assert not caught.value.retryable


def test_an_empty_key_is_none(packing: Packing) -> None:
    assert packing.pack("a", b"", "").attributes.keys() == packing.pack("a", b"", None).attributes.keys()
    assert message_group("") == message_group(None)


@given(st.text(), st.dictionaries(st.sampled_from([codec.ENCODING, codec.CLAIM_SIZE, codec.ID]), st.text(), max_size=3))
def test_whatever_others_send_is_read_and_can_be_set_aside(text: str, values: dict[str, str]) -> None:
    packing = Packing("orders", "topic orders", None)
    attributes = {
        name: {"DataType": "String", "StringValue": value} for name, value in values.items() if value.isalnum()
    }
    received = packing.unpack(raw(text, attributes))
    encoded = packing.repack(received, read_receipt(received))
    assert packing.unpack(raw(encoded.text, encoded.attributes)).body == received.body


def test_a_message_of_others_has_the_id_of_its_event(packing: Packing) -> None:
    event = Event.new("tests", {"cls_type": "metrics"})
    assert packing.unpack(raw(encode(event).decode())).id == event.header.id


def test_a_message_that_is_no_event_has_the_id_that_sqs_gave_it(packing: Packing) -> None:
    received = packing.unpack(raw("hello"))
    assert (received.id, received.body, received.published) == ("sqs-1", b"hello", 1800000000.123)


def test_a_message_of_others_in_a_fifo_queue_has_its_group_as_key(packing: Packing) -> None:
    assert packing.unpack(raw("hello", MessageGroupId="customer 7")).key == "customer 7"


def test_base64_that_is_none_is_given_as_it_came_with_what_is_wrong(packing: Packing) -> None:
    attributes = {codec.ENCODING: {"DataType": "String", "StringValue": "base64"}}
    received = packing.unpack(raw("ä!", attributes))
    assert received.body == "ä!".encode()
    assert "base64" in read_receipt(received).problem


@pytest.mark.parametrize("text", ["{", "{}", '{"handle": 1}'])
def test_what_is_no_receipt_is_refused(packing: Packing, text: str) -> None:
    received = packing.unpack({**raw("hello"), "ReceiptHandle": text})
    with pytest.raises(TopicError, match="not a receipt of a queue") as caught:
        read_receipt(received)
    assert not caught.value.retryable


class TestSns:
    """The envelope of the SNS developer guide: 'HTTP/HTTPS notification JSON format', which queues get, too."""

    def envelope(self, message: str, **more: object) -> str:
        return json.dumps(
            {
                "Type": "Notification",
                "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
                "TopicArn": "arn:aws:sns:us-west-2:123456789012:MyTopic",
                "Subject": "My First Message",
                "Message": message,
                "Timestamp": "2012-05-02T00:54:06.655Z",
                "SignatureVersion": "1",
                "Signature": "EXAMPLEw6JRN...",
                **more,
            }
        )

    def test_the_message_is_taken_out_and_keeps_the_id_of_sns(self, packing: Packing) -> None:
        received = packing.unpack(raw(self.envelope("hello")))
        assert (received.id, received.body) == ("22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", b"hello")

    def test_an_event_in_it_keeps_its_own_id(self, packing: Packing) -> None:
        event = Event.new("tests", {"cls_type": "metrics"})
        received = packing.unpack(raw(self.envelope(encode(event).decode())))
        assert (received.id, received.body) == (event.header.id, encode(event))

    def test_attributes_in_it_are_those_of_the_message(self, packing: Packing) -> None:
        encoded = packing.pack("LG1", b"\0", "k")
        inside = {n: {"Type": a["DataType"], "Value": a["StringValue"]} for n, a in encoded.attributes.items()}
        received = packing.unpack(raw(self.envelope(encoded.text, MessageAttributes=inside)))
        assert (received.id, received.body, received.key) == ("LG1", b"\0", "k")

    def test_what_balog_published_is_never_taken_out_of_anything(self, packing: Packing) -> None:
        body = self.envelope("hello").encode()
        encoded = packing.pack("m1", body, None)
        assert packing.unpack(raw(encoded.text, encoded.attributes)).body == body

    @pytest.mark.parametrize(
        "text",
        [
            '{"Type": "SubscriptionConfirmation", "MessageId": "1", "TopicArn": "arn", "Message": "You have chosen"}',
            '{"Type": "Notification", "TopicArn": "arn"}',
            '{"Type": "Notification", "MessageId": 1, "TopicArn": "arn", "Message": {}}',
            '{"TopicArn": ' + "[" * 5000,
        ],
    )
    def test_what_only_looks_like_it_stays_as_it_is(self, packing: Packing, text: str) -> None:
        assert packing.unpack(raw(text)).body == text.encode()

    def test_an_envelope_with_odd_ids_can_still_be_set_aside(self, packing: Packing) -> None:
        odd = {codec.KEY: {"Type": "String", "Value": "\x00"}, codec.ENCODING: {"Type": "String", "Value": ""}}
        received = packing.unpack(raw(self.envelope("hello", MessageId="\x01", MessageAttributes=odd)))
        assert (received.id, received.key) == ("sqs-1", None)
        assert packing.repack(received, read_receipt(received)).text == "hello"


class TestPointers:
    def test_a_pointer_has_the_form_of_amazons_library(self) -> None:
        text = write_pointer(Pointer("bucket", "a/b"))
        assert json.loads(text) == [
            "software.amazon.payloadoffloading.PayloadS3Pointer",
            {"s3BucketName": "bucket", "s3Key": "a/b"},
        ]
        assert read_pointer(text) == Pointer("bucket", "a/b")

    def test_a_pointer_of_its_first_release_is_read(self) -> None:
        text = '["com.amazon.sqs.javamessaging.MessageS3Pointer",{"s3BucketName":"b","s3Key":"k"}]'
        assert read_pointer(text) == Pointer("b", "k")

    @pytest.mark.parametrize("text", ["", "[]", '["x", {"s3BucketName": "b", "s3Key": "k"}]', '["x"]', "[" * 9999])
    def test_nothing_else_is_a_pointer(self, text: str) -> None:
        assert read_pointer(text) is None

    def test_without_a_claim_check_the_body_is_the_pointer_and_the_receipt_says_why(self, packing: Packing) -> None:
        text = write_pointer(Pointer("bucket", "key"))
        received = packing.unpack(raw(text, {codec.CLAIM_SIZE: codec.number_attribute(9)}))
        receipt = read_receipt(received)
        assert received.body == text.encode()
        assert receipt.problem == "its body is in the bucket 'bucket', and no claim_check is set"
        assert receipt.handle == HANDLE
        assert packing.repack(received, receipt).attributes[codec.CLAIM_SIZE]["StringValue"] == "9"


def test_groups_and_tokens_are_what_sqs_takes() -> None:
    assert token("LG1") == "LG1"
    assert message_group(None) == message_group(None)
    for odd in ("ä", "a b", "x" * 129, "", "\udcff"):
        assert len(token(odd)) == 64
        assert token(odd).isalnum()
    assert token("a b") != token("a c")
