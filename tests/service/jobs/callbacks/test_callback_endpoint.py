"""The other side of a callback: whom it may reach, and what a hostile answer can do."""

import gzip
import json
import socket
import ssl
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.service.document import Callback
from balog.service.jobs.callbacks import check_callback
from balog.service.jobs.callbacks.endpoint import Endpoint
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.waiting import wait_for


def callback(url, **options):
    return Callback(**{"name": "partner", "source": "orders", "url": url, "timeout": 5.0, **options})


@pytest.fixture
def endpoints():
    made = []

    def make(url, **options):
        made.append(Endpoint(callback(url, **options)))
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.close()


@pytest.fixture
def names(monkeypatch):
    """Names that resolve to what the test says, one list of addresses a question; what was asked is kept."""
    answers, asked, real = {}, [], socket.getaddrinfo

    def resolve(host, port, *arguments, **options):
        if host not in answers:
            return real(host, port, *arguments, **options)
        asked.append(host)
        found = answers[host]
        addresses = found.pop(0) if len(found) > 1 else found[0]
        return [one for address in addresses for one in real(address, port, *arguments, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    resolve.answers, resolve.asked = answers, asked
    return resolve


class TestPrivateAddresses:
    @pytest.mark.parametrize(
        "host",
        ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254", "[fd00::1]", "[64:ff9b::7f00:1]"],
    )
    def test_one_in_the_url_is_refused_before_anything_runs(self, host):
        with pytest.raises(ConfigError, match=r"is an address of .*set private: true") as caught:
            check_callback(callback(f"https://{host}:8080/"))
        assert caught.value.path == "url"
        check_callback(callback(f"https://{host}:8080/", private=True))

    def test_one_in_a_url_that_is_a_secret_is_refused_at_the_start(self, monkeypatch):
        monkeypatch.setenv("HOOK_URL", "https://127.0.0.1/s3cret")
        with pytest.raises(ConfigError, match="is an address of this machine") as caught:
            Endpoint(callback(Secret(env="HOOK_URL")))
        assert "s3cret" not in str(caught.value)

    @pytest.mark.parametrize(
        "host", ["2130706433", "0x7f000001", "017700000001", "127.1", "0x7f.1", "0", "127.0.0.1.", "localhost."]
    )
    def test_no_other_spelling_of_an_address_gets_there(self, endpoints, receiver, host):
        refusal = endpoints(f"http://{host}:{receiver.port}/").post("LG1", b"{}")
        assert "cannot connect: " in refusal.reason
        assert receiver.connections == 0

    @given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
    def test_none_of_this_machine_s_does(self, b, c, d):
        with pytest.raises(ConfigError, match="this machine"):
            check_callback(callback(f"http://127.{b}.{c}.{d}/"))

    @given(
        st.text(max_size=60) | st.from_regex(r"https?://[\[\]@:%.\w-]{1,30}(/\S{0,10})?", fullmatch=True), st.booleans()
    )
    def test_whatever_the_url_is_it_is_taken_or_refused_in_one_line_without_it(self, url, private):
        refused = None
        try:
            check_callback(callback(url, private=private))
        except ConfigError as error:
            refused = error
        assert refused is None or (refused.path == "url" and "\n" not in str(refused))

    @pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"]])
    def test_a_name_that_leads_to_one_is_refused_when_it_is_connected_to(self, endpoints, receiver, names, addresses):
        names.answers["hooks.example"] = [addresses]
        refusal = endpoints(f"http://hooks.example:{receiver.port}/").post("LG1", b"{}")
        assert refusal.reason == (
            f"hooks.example:{receiver.port}: cannot connect: the host has an address of this machine; if that is "
            "meant, set private: true in its callback"
        )
        assert receiver.connections == 0

    def test_a_name_that_changes_its_mind_is_asked_only_once_a_connection(
        self, endpoints, receiver, names, monkeypatch
    ):
        """Given a name that is public when looked at and private a moment later, then the former is connected to."""
        connected = []

        class Watched(socket.socket):
            def connect(self, place):
                connected.append(place[0])
                raise ConnectionRefusedError(111, "Connection refused")

        names.answers["hooks.example"] = [["93.184.216.34"], ["127.0.0.1"]]
        monkeypatch.setattr("balog.common.http.guarded_pool.socket.socket", Watched)
        refusal = endpoints(f"http://hooks.example:{receiver.port}/").post("LG1", b"{}")
        assert refusal.reason.endswith("Connection refused")
        assert (connected, names.asked) == (["93.184.216.34"], ["hooks.example"])
        assert receiver.connections == 0

    def test_a_redirect_to_one_is_not_followed(self, endpoints, receiver, other):
        receiver.will(Answer(307, headers={"Location": f"{other.url}/"}))
        refusal = endpoints(receiver.url, private=True).post("LG1", b"{}")
        assert refusal.status == 307
        assert other.requests == []

    def test_the_environment_s_proxy_is_not_asked(self, endpoints, receiver, other, monkeypatch):
        monkeypatch.setenv("http_proxy", other.url)
        monkeypatch.setenv("no_proxy", "")
        assert endpoints(receiver.url, private=True).post("LG1", b"{}") is None
        assert len(receiver.requests) == 1
        assert other.connections == 0

    def test_the_next_address_of_a_name_is_tried(self, endpoints, receiver, names):
        names.answers["hooks.example"] = [["127.9.9.9", "127.0.0.1"]]
        endpoint = endpoints(f"http://hooks.example:{receiver.port}/", private=True)
        assert endpoint.post("LG1", b"{}") is None
        assert receiver.requests[0].headers["Host"] == f"hooks.example:{receiver.port}"

    def test_a_name_that_is_none(self, endpoints):
        assert "cannot connect: " in endpoints("http://nowhere.invalid/").post("LG1", b"{}").reason


class TestTls:
    @pytest.fixture
    def authority(self):
        return pytest.importorskip("trustme", reason="trustme is not installed").CA()

    def serve(self, authority, tmp_path, name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        asked = []
        context.sni_callback = lambda connection, host, _: asked.append(host)
        ca_file = tmp_path / "authority.pem"
        authority.cert_pem.write_to_path(str(ca_file))
        return HttpStandIn(tls=context), str(ca_file), asked

    def test_the_certificate_is_the_name_s_though_the_address_is_connected_to(
        self, endpoints, authority, tmp_path, names
    ):
        names.answers["hooks.example"] = [["127.0.0.1"]]
        server, ca_file, asked = self.serve(authority, tmp_path, "hooks.example")
        with server:
            endpoint = endpoints(f"https://hooks.example:{server.port}/", private=True, ca_file=ca_file)
            assert [endpoint.post(f"LG{n}", b"{}") for n in range(3)] == [None] * 3
            assert (asked, server.connections) == (["hooks.example"], 1)
            assert server.requests[0].headers["Host"] == f"hooks.example:{server.port}"
            endpoint.close()

    @pytest.mark.parametrize("is_known", [True, False], ids=["another's", "of an unknown authority"])
    def test_another_certificate_is_refused(self, endpoints, authority, tmp_path, names, is_known):
        names.answers["hooks.example"] = [["127.0.0.1"]]
        server, ca_file, _ = self.serve(authority, tmp_path, "other.example" if is_known else "hooks.example")
        with server:
            url = f"https://hooks.example:{server.port}/"
            endpoint = endpoints(url, private=True, ca_file=ca_file if is_known else None)
            assert "certificate or TLS was refused" in endpoint.post("LG1", b"{}").reason
            assert server.requests == []

    def test_a_file_of_authorities_that_is_none(self, tmp_path):
        with pytest.raises(ConfigError, match="No such file") as caught:
            Endpoint(callback("https://example.com/", ca_file=str(tmp_path / "none.pem")))
        assert caught.value.path == "ca_file"


class Raw:
    """A server that answers with bytes of its own, at its own pace, until it is closed."""

    def __init__(self, *parts, pause=0.0):
        self.parts, self.pause = parts, pause
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with self.listener:
            self.listener.settimeout(0.05)
            while not self.over.is_set():
                try:
                    connection, _ = self.listener.accept()
                except TimeoutError:
                    continue
                with connection:
                    try:
                        connection.settimeout(5)
                        connection.recv(65536)
                        for part in self.parts:
                            connection.sendall(part)
                            if self.over.wait(self.pause):
                                break
                    except OSError:
                        pass  # it was cut

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class TestHostileAnswers:
    def post(self, endpoint):
        found = []
        thread = threading.Thread(target=lambda: found.append(endpoint.post("LG1", b"{}")))
        thread.start()
        wait_for(lambda: endpoint.abort() or not thread.is_alive())
        return found[0]

    def test_one_that_never_comes(self, endpoints, receiver):
        receiver.respond = lambda request: Answer(trouble="hang")
        refusal = self.post(endpoints(receiver.url, private=True, timeout=0.1))
        assert refusal.reason == f"{receiver.url[7:]}: no answer in time"

    def test_one_that_is_put_off_without_an_end(self, endpoints):
        """Given an endpoint that is never silent for as long as the timeout, then the request is cut even so."""
        with Raw(*([b"HTTP/1.1 100 Continue\r\n\r\n"] * 10_000), pause=0.02) as server:
            refusal = self.post(endpoints(server.url, private=True, timeout=0.2))
        assert refusal.reason.startswith(f"{server.url[7:]}: the connection broke")

    @pytest.mark.parametrize(
        ("begin", "rest", "timeout"),
        [
            (b"HTTP/1.1 200 OK\r\n", [b"X: y\r\n"] * 10_000, 0.2),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", [b"x"] * 10_000, 0.2),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123", [], 1.0),
        ],
        ids=["headers without an end", "a body without an end", "half a body"],
    )
    def test_one_that_was_begun_with_200_is_enough(self, endpoints, begin, rest, timeout):
        with Raw(begin, *rest, pause=0.02) as server:
            assert self.post(endpoints(server.url, private=True, timeout=timeout)) is None

    def test_a_huge_one_is_left_unread_and_its_connection_not_used_again(self, endpoints, receiver):
        receiver.respond = lambda request: Answer(200, b"x" * (32 << 20))
        endpoint = endpoints(receiver.url, private=True)
        assert [endpoint.post(f"LG{n}", b"{}") for n in range(2)] == [None] * 2
        assert receiver.connections == 2

    def test_a_bomb_is_not_unpacked(self, endpoints, receiver):
        receiver.respond = lambda request: Answer(500, gzip.compress(b"0" * (64 << 20)), {"Content-Encoding": "gzip"})
        refusal = endpoints(receiver.url, private=True).post("LG1", b"{}")
        assert refusal.reason == f"{receiver.url[7:]} answered 500"

    @pytest.mark.parametrize(
        "answer",
        [b"", b"\0" * 100, b"HTTP/1.1 abc\r\n\r\n", b"SSH-2.0-OpenSSH_9.9\r\n", b"HTTP/1.1 200" + b"a" * 70_000],
    )
    def test_what_is_no_http(self, endpoints, answer):
        with Raw(answer) as server:
            assert self.post(endpoints(server.url, private=True, timeout=1.0)) is not None

    def test_nothing_of_an_answer_is_repeated(self, endpoints, receiver):
        receiver.respond = lambda request: Answer(500, json.dumps({"iam": "role-s3cret"}).encode())
        assert endpoints(receiver.url, private=True).post("LG1", b"{}").reason == f"{receiver.url[7:]} answered 500"

    def test_a_kept_connection_that_was_closed_meanwhile_is_opened_again(self, endpoints, receiver):
        endpoint = endpoints(receiver.url, private=True)
        assert endpoint.post("LG1", b"{}") is None
        receiver.stop()
        receiver.start()
        assert endpoint.post("LG2", b"{}") is None
