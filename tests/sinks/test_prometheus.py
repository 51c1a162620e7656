import http.client
import os
import socket
import stat
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from balog.common.errors import ConfigError
from balog.common.secrets import Secret
from balog.event import Event
from balog.sinks.base import SinkError
from balog.sinks.measuring import scrape_server
from balog.sinks.measuring.scraping import Listen
from balog.sinks.prometheus import PrometheusSinkConfig, Pushgateway, Textfile
from tests.stand_ins import batches
from tests.stand_ins.batches import deliver, refused
from tests.stand_ins.http_server import Answer
from tests.waiting import wait_for


def metric(*parts, **tags):
    return deliver(batches.metric(*parts, **tags))[0]


def values(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


@pytest.fixture
def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def scrape(port, path="/metrics", **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode(), answer.headers


def is_answered(port):
    try:
        return bool(scrape(port))
    except (OSError, http.client.HTTPException):
        return False


class TestListening:
    def test_a_scrape_gets_what_has_come_so_far(self, port, opened):
        config = PrometheusSinkConfig(listen=Listen(port=port), prefix="taps", tags={"env": "prod"})
        assert config.name == f"prometheus 127.0.0.1:{port}"
        sink = opened(config)
        sink.open()
        sink.write([metric(stream="a"), metric("gauge", "depth", 3)])
        assert values(scrape(port)[0]) == {
            ("taps_record_count_total", ("env", "prod"), ("stream", "a")): 1,
            ("taps_depth", ("env", "prod")): 3,
        }
        sink.write([metric(value=2, stream="a")])
        assert values(scrape(port)[0])[("taps_record_count_total", ("env", "prod"), ("stream", "a"))] == 3
        sink.close()
        with pytest.raises(OSError):
            scrape(port)

    def test_a_prometheus_gets_the_format_that_it_asks_for(self, port, opened):
        sink = opened(PrometheusSinkConfig(listen=Listen(port=port)))
        sink.write([metric()])
        text, headers = scrape(port, Accept="application/openmetrics-text;version=1.0.0")
        assert headers["Content-Type"].startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")
        assert scrape(port)[1]["Content-Type"].startswith("text/plain")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            scrape(port, "/secrets")

    def test_a_port_that_is_taken_is_said_and_taken_once_it_is_free(self, port):
        sink = PrometheusSinkConfig(listen=Listen(port=port)).build()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            other.listen()
            with pytest.raises(
                SinkError, match=rf"cannot listen at 127\.0\.0\.1:{port}: Address already in use"
            ) as refusal:
                sink.open()
            assert refusal.value.retryable
        sink.open()
        sink.close()

    def test_a_client_that_says_nothing_holds_up_nobody_and_leaves(self, port, monkeypatch, capfd, opened):
        monkeypatch.setattr(scrape_server._Handler, "timeout", 0.2)
        sink = opened(PrometheusSinkConfig(listen=Listen(port=port)))
        sink.write([metric()])
        silent = socket.create_connection(("127.0.0.1", port), timeout=10)
        rude = socket.create_connection(("127.0.0.1", port), timeout=10)
        rude.sendall(b"\x00\xff garbage\r\n\r\n")
        assert values(scrape(port)[0]) == {("record_count_total",): 1}
        assert silent.recv(100) == b"", "it was hung up on"
        rude.close()
        silent.close()
        sink.close()
        assert capfd.readouterr().err == ""

    def test_more_clients_than_there_is_room_for_are_hung_up_on(self, port, monkeypatch, opened):
        monkeypatch.setattr(scrape_server, "_MAX_CLIENTS", 2)
        sink = opened(PrometheusSinkConfig(listen=Listen(port=port)))
        sink.write([metric()])
        silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(2)]
        wait_for(lambda: not is_answered(port))
        for one in silent:
            one.close()
        wait_for(lambda: is_answered(port))

    def test_ipv6(self):
        assert PrometheusSinkConfig(listen=Listen(host="::1", port=9)).name == "prometheus [::1]:9"


class TestPushing:
    def config(self, server, **options):
        return PrometheusSinkConfig(pushgateway=Pushgateway(url=server.url, job="taps", **options))

    def test_each_batch_pushes_all_that_there_is(self, http_server):
        sink = self.config(http_server).build()
        sink.open()
        sink.write([metric(stream="a")])
        sink.write(deliver(Event.new("a", {})))
        sink.write([metric(value=4, stream="a")])
        sink.close()
        first, second = http_server.requests
        assert (first.method, first.path) == ("PUT", "/metrics/job/taps")
        assert first.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert values(first.body.decode()) == {("record_count_total", ("stream", "a")): 1}
        assert values(second.body.decode()) == {("record_count_total", ("stream", "a")): 5}

    def test_the_group_is_in_the_path(self, http_server):
        sink = self.config(http_server, grouping={"site": "a b/c", "none": "", "instance": "ü"}).build()
        sink.write([metric()])
        (push,) = http_server.requests
        assert push.path == "/metrics/job/taps/site@base64/YSBiL2M=/none@base64/=/instance/%C3%BC"

    def test_the_password_is_sent_and_never_said(self, http_server, monkeypatch):
        monkeypatch.setenv("PUSH_PASSWORD", "Basic hunter2")
        config = self.config(http_server, headers={"Authorization": Secret(env="PUSH_PASSWORD")})
        sink = config.build()
        http_server.will(Answer(status=401, body=b"no"))
        error = refused(sink, [metric()], "401")
        assert error.retryable
        assert "hunter2" not in str(error) + repr(config) + config.name
        assert [request.headers["Authorization"] for request in http_server.requests] == ["Basic hunter2"]

    @pytest.mark.parametrize(
        "trouble", [Answer(status=503), Answer(trouble="reset"), Answer(trouble="half", body=b"x" * 99)]
    )
    def test_what_was_not_taken_comes_again_and_counts_once(self, http_server, trouble):
        sink = self.config(http_server).build()
        sink.write([metric()])
        http_server.will(trouble, trouble)
        for _ in range(2):
            error = refused(sink, [metric(value=10), metric("timer", "t", -1), metric("gauge", "new", 1)])
            assert error.retryable
            assert list(error.rejected) == [1]
            assert error.remaining == [0, 2]
        sink.write([metric(value=10), metric("gauge", "new", 1)])
        assert values(http_server.requests[-1].body.decode()) == {("record_count_total",): 11, ("new",): 1}

    def test_retry_after_is_handed_on_and_a_400_is_the_batches_fault(self, http_server):
        sink = self.config(http_server).build()
        http_server.will(Answer(status=429, headers={"Retry-After": "7"}), Answer(status=400, body=b"inconsistent"))
        error = refused(sink, [metric()])
        assert (error.retryable, error.retry_after) == (True, 7.0)
        assert not refused(sink, [metric()], "inconsistent").retryable


class TestTextfile:
    def test_the_file_is_whole_readable_by_all_and_the_only_one(self, tmp_path):
        path = tmp_path / "balog.prom"
        config = PrometheusSinkConfig(textfile=Textfile(path=str(path)))
        assert config.name == f"prometheus {path}"
        sink = config.build()
        sink.open()
        old = os.umask(0o077)
        try:
            sink.write([metric()])
            sink.write([metric(value=2)])
        finally:
            os.umask(old)
        sink.close()
        assert values(path.read_text()) == {("record_count_total",): 3}
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert os.listdir(tmp_path) == ["balog.prom"]

    def test_a_folder_that_is_not_there_is_said(self, tmp_path):
        sink = PrometheusSinkConfig(textfile=Textfile(path=str(tmp_path / "no" / "x.prom"))).build()
        with pytest.raises(SinkError, match="is no folder that exists") as refusal:
            sink.open()
        assert str(tmp_path) in str(refusal.value)
        refused(sink, [metric()], "No such file")

    def test_a_write_that_fails_leaves_the_last_file_and_counts_once(self, tmp_path, monkeypatch):
        path = tmp_path / "balog.prom"
        sink = PrometheusSinkConfig(textfile=Textfile(path=str(path))).build()
        sink.write([metric()])
        monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        refused(sink, [metric(value=5)], "No space left")
        assert os.listdir(tmp_path) == ["balog.prom"]
        assert values(path.read_text()) == {("record_count_total",): 1}
        monkeypatch.undo()
        sink.write([metric(value=5)])
        assert values(path.read_text()) == {("record_count_total",): 6}


class TestConfig:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "expected one of listen, pushgateway and textfile"),
            ({"listen": Listen(port=1), "textfile": Textfile(path="/x.prom")}, "expected one of"),
            ({"listen": Listen(port=1), "buckets": (1.0, 1.0)}, "buckets: expected numbers that ascend"),
            ({"textfile": Textfile(path="/x/y.txt")}, "textfile.path: the node exporter reads only"),
            ({"pushgateway": Pushgateway(url="ftp://host.org", job="x")}, "pushgateway.url: is not a URL"),
            (
                {"pushgateway": Pushgateway(url="http://h", job="x", grouping={"a-b": "c"})},
                "pushgateway.grouping: 'a-b'",
            ),
            (
                {"pushgateway": Pushgateway(url="http://h", job="x", headers={"Authorization": Secret(env="NOT_SET")})},
                "pushgateway.headers.Authorization: the environment variable NOT_SET is not set",
            ),
        ],
    )
    def test_what_cannot_be_is_refused_with_its_place(self, options, message):
        with pytest.raises(ConfigError) as refusal:
            PrometheusSinkConfig(**options).build()
        assert str(refusal.value).startswith(message)


def test_events_that_are_no_metrics_of_prometheus_are_refused_and_the_rest_counts(tmp_path):
    path = tmp_path / "x.prom"
    sink = PrometheusSinkConfig(textfile=Textfile(path=str(path))).build()
    batch = [metric(value=2), metric("gauge", value=1), metric("gauge", "record_count_total"), metric("timer", "t", -1)]
    error = refused(sink, batch)
    assert not error.retryable
    assert sorted(error.rejected) == [1, 2, 3]
    assert error.remaining == []
    assert values(path.read_text()) == {("record_count_total",): 2}
