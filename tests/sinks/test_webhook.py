"""The webhook sink: what a receiver gets, how it is signed, and what each refusal leads to."""

import base64
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.sinks.webhook import WebhookSinkConfig
from tests.stand_ins.batches import batch_of as deliveries
from tests.stand_ins.batches import ids, numbered, refused
from tests.stand_ins.http_server import Answer

standardwebhooks = pytest.importorskip("standardwebhooks", reason="standardwebhooks is not installed")

KEYS = ["whsec_" + base64.b64encode(bytes([n]) * 32).decode() for n in range(2)]


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for number, key in enumerate(KEYS):
        monkeypatch.setenv(f"HOOK_KEY_{number}", key)


def signed(*numbers):
    return tuple(Secret(env=f"HOOK_KEY_{number}") for number in numbers)


class TestRequests:
    def test_an_event_a_request(self, http_server, opened):
        batch = deliveries({"cls_type": "x", "text": "größe"}, {"n": 2})
        opened(WebhookSinkConfig(url=f"{http_server.url}/hook/?k=1")).write(batch)
        assert [request.body for request in http_server.requests] == [body for _, body in batch]
        assert [request.headers["webhook-id"] for request in http_server.requests] == ids(batch)
        assert {request.path for request in http_server.requests} == {"/hook/?k=1"}
        assert {request.headers["Content-Type"] for request in http_server.requests} == {"application/json"}
        assert http_server.connections == 1

    def test_a_batch_a_request_as_an_array(self, http_server, opened):
        batch = numbered(100)
        opened(WebhookSinkConfig(url=http_server.url, per="batch")).write(batch)
        [request] = http_server.requests
        assert json.loads(request.body) == [json.loads(body) for _, body in batch]
        assert request.headers["Content-Type"] == "application/json"

    def test_a_batch_has_the_same_id_when_it_comes_again_and_another_has_another(self, http_server, opened):
        http_server.will(Answer(503))
        sink = opened(WebhookSinkConfig(url=http_server.url, per="batch"))
        batch, other = numbered(3), numbered(3)
        refused(sink, batch)
        sink.write(batch)
        sink.write(other)
        first, again, another = [request.headers["webhook-id"] for request in http_server.requests]
        assert first == again != another

    def test_headers_plain_and_secret(self, http_server, opened, tmp_path):
        (tmp_path / "token").write_text("Bearer t0ken\n")
        headers = {"X-Team": "data", "Authorization": Secret(file=str(tmp_path / "token"))}
        opened(WebhookSinkConfig(url=http_server.url, headers=headers)).write(numbered(1))
        sent = http_server.requests[0].headers
        assert (sent["X-Team"], sent["Authorization"]) == ("data", "Bearer t0ken")

    def test_the_url_may_be_a_secret(self, http_server, opened, monkeypatch):
        monkeypatch.setenv("HOOK_URL", f"{http_server.url}/services/T000/B000/s3cret-s3cret-s3cret")
        http_server.respond = lambda request: Answer(403, request.path.encode())
        config = WebhookSinkConfig(url=Secret(env="HOOK_URL"))
        assert config.name == "webhook $HOOK_URL"
        assert "s3cret" not in str(refused(opened(config), numbered(1)))


class TestSignatures:
    @pytest.mark.parametrize("options", [{}, {"per": "batch"}])
    def test_the_reference_library_verifies_them(self, http_server, opened, options):
        opened(WebhookSinkConfig(url=http_server.url, secrets=signed(0), **options)).write(
            deliveries({"text": "größe\n"})
        )
        [request] = http_server.requests
        verify = standardwebhooks.Webhook(KEYS[0]).verify
        verify(request.body, dict(request.headers), json_parse=False)
        for change in [{"body": request.body + b" "}, {"id": "LGother"}, {"timestamp": "1"}]:
            headers = {k.lower(): v for k, v in request.headers.items()}
            headers.update({f"webhook-{name}": value for name, value in change.items() if name != "body"})
            with pytest.raises(standardwebhooks.WebhookVerificationError):
                verify(change.get("body", request.body), headers, json_parse=False)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
    @given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none()))
    def test_whatever_the_event(self, http_server, payload):
        sink = WebhookSinkConfig(url=http_server.url, secrets=signed(0)).build()
        sink.write(deliveries(payload))
        sink.close()
        request = http_server.requests[-1]
        read = standardwebhooks.Webhook(KEYS[0]).verify(request.body, dict(request.headers))
        assert read["payload"] == payload

    def test_each_of_several_keys_signs(self, http_server, opened):
        """Given a new key beside the old one, then receivers with either take what comes."""
        opened(WebhookSinkConfig(url=http_server.url, secrets=signed(0, 1))).write(numbered(1))
        [request] = http_server.requests
        assert len(request.headers["webhook-signature"].split()) == 2
        for key in KEYS:
            standardwebhooks.Webhook(key).verify(request.body, dict(request.headers))

    def test_without_a_key_nothing_is_signed(self, http_server, opened):
        opened(WebhookSinkConfig(url=http_server.url)).write(numbered(1))
        assert http_server.requests[0].headers["webhook-signature"] is None

    @pytest.mark.parametrize(
        ("key", "said"),
        [
            ("whsec_%%%", "is not a key"),
            ("whsk_" + base64.b64encode(b"x" * 32).decode(), "is not a key"),
            ("whsec_" + base64.b64encode(b"short").decode(), "5 bytes"),
        ],
    )
    def test_what_is_no_key_is_refused_without_showing_it(self, monkeypatch, key, said):
        monkeypatch.setenv("HOOK_KEY_0", key)
        with pytest.raises(ConfigError, match=said) as caught:
            WebhookSinkConfig(url="http://example.com", secrets=signed(1, 0)).build()
        assert caught.value.path == "secrets[1]"
        assert key not in str(caught.value)


class TestRefusals:
    def test_what_is_left_after_trouble_is_told(self, http_server, opened):
        http_server.will(Answer(), Answer(), Answer(429, headers={"Retry-After": "9"}))
        sink = opened(WebhookSinkConfig(url=http_server.url))
        batch = numbered(4)
        error = refused(sink, batch)
        assert (error.retryable, error.retry_after, list(error.remaining)) == (True, 9, [2, 3])
        sink.write([batch[index] for index in error.remaining])
        got = [request.headers["webhook-id"] for request in http_server.requests]
        assert got == [ids(batch)[index] for index in (0, 1, 2, 2, 3)]

    def test_a_refused_batch_is_given_back_to_look_for_the_event_in_it(self, http_server, opened):
        http_server.will(Answer(400))
        error = refused(opened(WebhookSinkConfig(url=http_server.url, per="batch")), numbered(3))
        assert not error.retryable
        assert (dict(error.rejected), error.remaining) == ({}, None)


class TestConfig:
    @pytest.mark.parametrize("name", ["Content-Length", "webhook-id", "Host", "content-TYPE"])
    def test_headers_of_the_sinks_own_are_refused(self, name):
        with pytest.raises(ConfigError, match="set by the sink") as caught:
            WebhookSinkConfig(url="http://example.com", headers={name: "1"}).build()
        assert caught.value.path == "headers"

    @pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "Cookie", "x-gitlab-token"])
    def test_a_header_that_is_a_secret_is_not_taken_in_plain(self, name):
        with pytest.raises(ConfigError, match="is a secret") as caught:
            WebhookSinkConfig(url="http://example.com", headers={name: "s3cret"}).build()
        assert caught.value.path == f"headers.{name}"
        assert "s3cret" not in str(caught.value)

    @pytest.mark.parametrize("url", ["http://user:s3cret@example.com", "http://[::1"])
    def test_a_name_can_be_given_of_any_url(self, url):
        assert "s3cret" not in WebhookSinkConfig(url=url).name
        with pytest.raises(ConfigError):
            WebhookSinkConfig(url=url).build()
