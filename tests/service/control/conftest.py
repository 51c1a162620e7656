"""A real service, and what its control has to do with."""

import json
from contextlib import contextmanager

import pytest
import urllib3

from balog.event import Event, encode
from balog.service.api.tokens import add_token, make_token
from balog.service.service import Service
from balog.service.settings import ServiceConfig
from tests.waiting import wait_for


class ControlledService:
    """A service, with what its tests send to it."""

    def __init__(self, folder, tokens=None, control=True):
        self.config = ServiceConfig(
            topics=f"local:{folder / 'topics'}",
            control=str(folder / "control") if control else None,
            name="service one",
            listen=":0",
            tokens=str(tokens) if tokens else None,
            unknown_types="accept",
            drain=5.0,
        )
        self.said = []
        self.token = None

    def __getattr__(self, name):
        return getattr(self.service, name)

    @contextmanager
    def running(self):
        with Service(self.config, say=self.said.append) as self.service:
            yield self

    def send(self, events):
        body = b"\n".join(encode(event) for event in events)
        headers = {"Content-Type": "application/x-ndjson"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        answer = urllib3.request("POST", self.url + "/v1/events", body=body, headers=headers)
        assert answer.status == 202, answer.data

    def send_orders(self, count, **payload):
        body = {"cls_type": "order", "version": "1.0.0", **payload}
        self.send([Event.new("shop", {**body, "n": number}) for number in range(count)])


class Api:
    """A client that says what it gets: status, and JSON."""

    def __init__(self, url, token=None):
        self._pool = urllib3.PoolManager(headers={"Authorization": f"Bearer {token}"} if token else {})
        self._url = url

    def __call__(self, method, path, body=None, **options):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        answer = self._pool.request(method, self._url + path, body=data, retries=False, **options)
        return answer.status, json.loads(answer.data)


@pytest.fixture
def controlled(tmp_path):
    with ControlledService(tmp_path).running() as running:
        yield running


@pytest.fixture
def api(controlled):
    return Api(controlled.url)


@pytest.fixture
def guarded(tmp_path):
    """A service with tokens, and the token of each right."""
    path = tmp_path / "tokens.json"
    tokens = {}
    for right in ("send", "read", "configure"):
        tokens[right], entry = make_token(f"who-may-{right}", (right,))
        add_token(path, entry)
    controlled = ControlledService(tmp_path, tokens=path)
    controlled.token = tokens["send"]
    with controlled.running() as running:
        yield running, tokens


@pytest.fixture
def make_controlled():
    return ControlledService


@pytest.fixture
def make_api():
    return Api


@pytest.fixture
def until():
    return wait_for
