"""The ledger in Redis with Debian's Redis: the contract, expiry, TLS, passwords, and a server that dies."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from balog.common.errors import TopicError
from balog.consumers import Consumer, ConsumerHub, Engine
from balog.consumers.ledgers.factory import open_ledger as open_url
from balog.consumers.ledgers.ledger import DEFAULT_WINDOW, Ledger, LedgerEntry
from balog.event import Event, encode
from balog.testing.contracts import DurableLedgerContract, OpenLedger
from balog.topics import Message
from balog.topics.local import LocalTopics
from tests.services.servers.redis import PASSWORD, RedisServer, running_redis

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis"), authority) as server:
        yield server


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_PASSWORD", PASSWORD)


@pytest.fixture
def url(shared: RedisServer) -> str:
    return f"redis://127.0.0.1:{shared.port}/0?password.env=LEDGER_PASSWORD"


@pytest.fixture
def client(shared: RedisServer):
    import redis

    with redis.Redis(port=shared.port, password=PASSWORD) as client:
        client.flushall()
        yield client


class TestRedisLedger(DurableLedgerContract):
    @pytest.fixture
    def open_ledger(self, url: str, client: object) -> Iterator[OpenLedger]:
        opened = []

        def open(window: float = DEFAULT_WINDOW):
            opened.append(open_url(f"{url}&window={window}"))
            return opened[-1]

        yield open
        for ledger in opened:
            ledger.close()

    def test_an_entry_expires_after_the_window_and_a_later_one_begins_anew(self, open_ledger, client) -> None:
        ledger = open_ledger(100)
        ledger.record("g", [LedgerEntry("LGa", "one")])
        (key,) = client.keys("balog:ledger:g:*")
        assert 98 <= client.ttl(key) <= 100
        client.expire(key, 5)
        ledger.record("g", [LedgerEntry("LGa", "two")])
        assert 98 <= client.ttl(key) <= 100
        client.pexpire(key, 0)
        assert not ledger.known("g", ["LGa"])

    def test_a_group_s_name_can_t_reach_into_another_s_keys(self, open_ledger) -> None:
        ledger = open_ledger()
        ledger.record("a", [LedgerEntry("b:LGa", "one")])
        assert not ledger.known("a:b", ["LGa"])


def test_tls_is_spoken_and_the_certificate_verified(
    shared: RedisServer, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    place = f"rediss://localhost:{shared.tls_port}/1?password.env=LEDGER_PASSWORD"
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    ledger = open_url(place)
    ledger.record("g", [LedgerEntry("LGa", "one")])
    assert ledger.known("g", ["LGa"]) == {"LGa": {"one": ""}}
    ledger.close()
    with pytest.raises(TopicError, match="certificate"):  # it is made out to localhost
        open_url(place.replace("localhost", "127.0.0.1")).known("g", ["LGa"])
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(TopicError, match="certificate verify failed"):
        open_url(place).known("g", ["LGa"])


@pytest.mark.parametrize("wrong", ["hunter2", None])
def test_a_wrong_password_is_for_good_and_not_shown(shared: RedisServer, wrong: str | None, tmp_path: Path) -> None:
    source = ""
    if wrong:
        (tmp_path / "secret").write_text(f"{wrong}\n")
        source = f"?password.file={tmp_path}/secret"
    ledger = open_url(f"redis://127.0.0.1:{shared.port}/0{source}")
    with pytest.raises(TopicError, match=rf"ledger redis 127\.0\.0\.1:{shared.port}/0") as caught:
        ledger.known("g", ["LGa"])
    ledger.close()
    assert not caught.value.retryable
    assert str(caught.value).endswith("; check the user and the password: ?username=NAME&password.env=VARIABLE")
    assert "hunter2" not in str(caught.value) + repr(ledger) + repr(vars(ledger))


def test_a_password_that_was_changed_in_its_file_is_read_anew(shared: RedisServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yet")
    ledger = open_url(f"redis://127.0.0.1:{shared.port}/0?password.file={secret}")
    with pytest.raises(TopicError):
        ledger.known("g", ["LGa"])
    secret.write_text(PASSWORD)
    assert not ledger.known("nobody", ["LGa"])
    ledger.close()


def test_a_server_that_dies_is_out_of_reach_for_a_while_and_has_kept_all(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        ledger = open_url(f"redis://127.0.0.1:{server.port}/0?password.env=LEDGER_PASSWORD")
        ledger.record("g", [LedgerEntry("LGa", "one")])
        server.stop()
        for use in (lambda: ledger.known("g", ["LGa"]), lambda: ledger.record("g", [LedgerEntry("LGb", "one")])):
            with pytest.raises(TopicError) as caught:
                use()
            assert caught.value.retryable
        server.start()
        ledger.record("g", [LedgerEntry("LGc", "one")])
        assert set(ledger.known("g", ["LGa", "LGb", "LGc"])) == {"LGa", "LGc"}
        ledger.close()


def test_without_the_package_the_extra_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['redis'] = None\n"
        "from balog.consumers.ledgers.factory import open_ledger\n"
        "try: open_ledger('redis://one/0')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("MissingExtraError the ledger redis needs packages")
    assert "[redis]'" in done.stdout


class TestEngines:
    """Two engines, as on two machines, that share a Redis."""

    @pytest.fixture
    def home(self, tmp_path: Path) -> Iterator[LocalTopics]:
        with LocalTopics(tmp_path / "topics") as home:
            event = Event.new("c", {})
            home.topic("orders").publish([Message(event.header.id, encode(event))])
            yield home

    def engine(self, home: LocalTopics, ledger: Ledger, good: object, worse: object, **options: object) -> Engine:
        hub = ConsumerHub()
        hub.add(Consumer(good, "orders", name="good"))
        hub.add(Consumer(worse, "orders", name="worse", backoff=0.2))
        return Engine(hub, home, ledger=ledger, **options)

    def test_who_succeeded_on_one_does_not_run_again_on_the_other(self, home, url: str, client: object) -> None:
        calls = []

        def good(settings: object, event: object) -> None:
            calls.append("good")

        def worse(settings: object, event: object) -> None:
            calls.append("worse")
            if calls.count("worse") == 1:
                first.stop()
                raise ValueError("not on this machine")

        ledgers = [open_url(url), open_url(url)]
        first = self.engine(home, ledgers[0], good, worse)
        first.run()
        assert calls == ["good", "worse"]
        counts = self.engine(home, ledgers[1], good, worse).run(until_empty=True)
        assert calls == ["good", "worse", "worse"]
        assert counts.succeeded == 1
        for ledger in ledgers:
            ledger.close()

    def test_while_redis_is_away_nothing_is_acked_and_then_all_goes_on(self, home, tmp_path: Path) -> None:
        with running_redis(tmp_path) as server:
            ledger = open_url(f"redis://127.0.0.1:{server.port}/0?password.env=LEDGER_PASSWORD")
            calls = []

            def worse(settings: object, event: object) -> None:
                calls.append("worse")
                if calls.count("worse") == 1:
                    server.stop()
                    threading.Timer(1.0, server.start).start()
                    raise ValueError("and the ledger is away when this is to be noted")
                made.stop()

            made = self.engine(home, ledger, lambda settings, event: calls.append("good"), worse)
            made.run()
            ledger.close()
        assert calls == ["good", "worse", "worse"]
        assert home.topic("orders").group_state("balog").pending == 0
