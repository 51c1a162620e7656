"""The control's part of a service on a real server: its routes, its page, and the parts that they ask."""

import asyncio
import json
import threading
import time
from contextlib import asynccontextmanager, contextmanager

import pytest
import urllib3

from balog.delivery.control.applying import Applier
from balog.delivery.control.opening import open_store
from balog.delivery.control.watching import Count
from balog.delivery.control_api import routes
from balog.delivery.inspection import Inspector
from balog.delivery.intake import Intake
from balog.delivery.making import job_maker
from balog.delivery.meters import Meters
from balog.delivery.placing import Accepted
from balog.delivery.settings import ServiceConfig
from balog.delivery.tokens import Tokens, add_token, make_token
from balog.event import Event, encode
from balog.topics import open_topics

GATE = 30.0


class Desk:
    """What the control's routes need of a service, put together as a service does."""

    def __init__(self, folder, tokens=None, control=True, name="desk one"):
        place = str(folder / "control") if control else None
        self.config = ServiceConfig(topics=f"local:{folder / 'topics'}", control=place, name=name)
        self.started = time.monotonic()
        self.said = []
        self.topics = open_topics(self.config.topics)
        self.tokens = Tokens(tokens) if tokens else None
        self.control = open_store(place) if control else None
        self.meters = Meters()
        self.inspector = Inspector(self.topics)
        self.intake = Intake(self.topics)
        self.applier = Applier(
            self.control,
            name,
            make_job=job_maker(self.config, self.said.append),
            apply=self.intake.apply,
            count=self.count,
            publish=lambda event: self.send([event]),
            say=self.said.append,
            poll=0.1,
            drain=5.0,
        )
        self.url = ""

    def count(self):
        outcomes = self.meters.outcomes().items()
        done = sum(count for (_, status, _), count in outcomes if status == "202")
        failed = sum(count for (_, status, _), count in outcomes if status in ("422", "503"))
        return Count(done, failed)

    def send(self, events):
        """Put events through the durable path, as a request does."""
        accepted = [Accepted(event, encode(event)) for event in events]
        placed = asyncio.run_coroutine_threadsafe(self.intake.put(accepted), self._loop).result(GATE)
        for one in placed:
            self.meters.placed({(one.stream, one.status, one.store): 1})
        return placed

    def send_orders(self, count, **payload):
        body = {"cls_type": "order", "version": "1.0.0", **payload}
        return self.send([Event.new("shop", {**body, "n": number}) for number in range(count)])

    @contextmanager
    def running(self):
        import uvicorn
        from starlette.applications import Starlette

        @asynccontextmanager
        async def life(app):
            self._loop = asyncio.get_running_loop()
            await self.intake.start()
            await asyncio.to_thread(self.applier.start)
            yield
            await asyncio.to_thread(self.applier.stop)
            await asyncio.to_thread(self.inspector.close)
            await self.intake.stop(5.0)

        app = Starlette(routes=routes(self), lifespan=life)
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + GATE
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.should_exit = True
            thread.join(GATE)
            self.topics.close()
            if self.control is not None:
                self.control.close()


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
def desk(tmp_path):
    with Desk(tmp_path).running() as running:
        yield running


@pytest.fixture
def api(desk):
    return Api(desk.url)


@pytest.fixture
def guarded(tmp_path):
    """A desk with tokens, and the token of each right."""
    path = tmp_path / "tokens.json"
    tokens = {}
    for right in ("send", "read", "configure"):
        tokens[right], entry = make_token(f"who-may-{right}", (right,))
        add_token(path, entry)
    with Desk(tmp_path, tokens=path).running() as running:
        yield running, tokens


@pytest.fixture
def make_desk():
    return Desk


@pytest.fixture
def make_api():
    return Api


@pytest.fixture
def until():
    def wait(condition):
        deadline = time.monotonic() + GATE
        while not (found := condition()):
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.01)
        return found

    return wait
