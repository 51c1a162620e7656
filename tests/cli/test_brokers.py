"""``broker-statsd`` and its like: the config is the sink's alone."""

import json
import shutil
import socket
import subprocess
import sysconfig
from pathlib import Path

import pytest

from balog.cli.shared.brokers import SINGLE_SINKS
from balog.event import Event
from balog.singer import write_log

SCRIPTS = Path(sysconfig.get_path("scripts"))
RECORD = b'{"type": "RECORD", "stream": "users", "record": {"id": 1}}\n'


def command(name):
    path = SCRIPTS / f"broker-{name}"
    assert path.exists() or shutil.which(f"broker-{name}"), "install the package again: pip install -e ."
    return str(path)


@pytest.fixture
def statsd():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        yield server


def metric(value):
    payload = {"cls_type": "metric", "type": "counter", "metric": "rows", "value": value, "tags": {}}
    return write_log(Event.new("a", payload))


def test_brokers_in_a_row_each_feed_their_sink(statsd, tmp_path):
    """Given ``tap | broker-statsd | broker-statsd | …``, then LOG goes on until one strips it."""
    port = statsd.getsockname()[1]
    (tmp_path / "first.json").write_text(json.dumps({"host": "127.0.0.1", "port": port, "prefix": "first"}))
    (tmp_path / "second.json").write_text(
        json.dumps({"host": "127.0.0.1", "port": port, "prefix": "second", "strip": True})
    )
    data = RECORD + metric(3) + RECORD
    for name in ("first", "second"):
        done = subprocess.run(
            [command("statsd"), "--config", str(tmp_path / f"{name}.json")], input=data, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
        data = done.stdout
    assert data == RECORD * 2
    came = sorted(statsd.recv(65536).strip() for _ in range(2))
    assert [line.split(b":")[0] for line in came] == [b"first.rows", b"second.rows"]


REQUIRED = {
    "datadog": {"agent": {"host": "localhost"}},
    "pagerduty": {"routing_key": {"env": "BALOG_TEST_KEY"}},
    "prometheus": {"textfile": {"path": "balog.prom"}},
}


@pytest.mark.parametrize("name", SINGLE_SINKS)
def test_a_config_that_is_refused_is_one_line_by_its_own_name(name, tmp_path, monkeypatch):
    """Given one mistake, then one line: the settings that the sink requires are there."""
    monkeypatch.setenv("BALOG_TEST_KEY", "0123456789abcdef0123456789abcdef")
    (tmp_path / "c.json").write_text(json.dumps({"nonsense": 1, **REQUIRED.get(name, {})}))
    done = subprocess.run([command(name), "--config", str(tmp_path / "c.json")], input=b"", capture_output=True)
    assert done.returncode == 2
    said = done.stderr.decode().splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"broker-{name}: {tmp_path}/c.json: $")


def test_a_setting_that_is_refused_when_it_is_built_has_its_place(tmp_path):
    (tmp_path / "c.json").write_text('{"routing_key": {"env": "BALOG_TEST_NO_SUCH_KEY"}}')
    done = subprocess.run([command("pagerduty"), "--config", str(tmp_path / "c.json")], input=b"", capture_output=True)
    assert done.returncode == 2
    assert b"c.json: $.routing_key: the environment variable BALOG_TEST_NO_SUCH_KEY is not set" in done.stderr
