"""Handlers of the top-level ``consumers/`` as `balog consume` runs them, at real peers: S3, Prometheus."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from balog.event import Event
from balog.testing import assert_no_dead_letters, publish
from balog.topics import open_topics
from tests.services.servers.process import free_port
from tests.services.servers.prometheus import running_prometheus
from tests.services.servers.s3 import KEY, SECRET, running_s3
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.stand_ins.pagerduty import ROUTING_KEY, PagerDuty

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
TOPIC = "singer-events"


def consume(module: str, url: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    package = f"consumers.{module}" if module else "consumers"
    command = [sys.executable, "-m", "balog", "consume", package, "--topics", url, *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def count(value: int, stream: str) -> dict[str, Any]:
    tags = {"stream": stream}
    return {"cls_type": "metric", "type": "counter", "metric": "record_count", "value": value, "tags": tags}


def archived(bucket: Path) -> list[str]:
    lines: list[str] = []
    for path in sorted(bucket.glob(f"events/{TOPIC}/date=*/*.jsonl.gz")):
        lines += gzip.decompress(path.read_bytes()).decode().splitlines()
    return sorted(json.loads(line)["header"]["id"] for line in lines)


def test_an_archive_in_s3_gets_every_event_though_the_server_was_away(tmp_path: Path) -> None:
    """Given an S3 that is down, then events are acked, wait in staging, and are uploaded by the next run."""
    url, staged = f"local:{tmp_path / 'topics'}", tmp_path / "state"
    with running_s3(tmp_path / "s3") as server:
        bucket = server.bucket("lake")
        settings = ["--set", "archive=s3://lake/events", "--until-empty"]
        environment = {
            "AWS_ENDPOINT_URL_S3": server.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # S3Proxy knows no trailing checksums
            "XDG_STATE_HOME": str(staged),
        }
        with open_topics(url) as home:
            first = [event.header.id for event in publish(home, TOPIC, *({"n": n} for n in range(100)))]
            done = consume("archive", url, *settings, **environment)
            said, _ = done.communicate(timeout=60)
            assert done.returncode == 0, said
            assert archived(bucket) == sorted(first)

            server.stop()
            second = [event.header.id for event in publish(home, TOPIC, *({"n": n} for n in range(50)))]
            done = consume("archive", url, *settings, **environment)
            said, _ = done.communicate(timeout=120)
            assert "in the staging folder; the next sink" in said
            assert SECRET not in said

            server.up()
            third = [event.header.id for event in publish(home, TOPIC, {"n": -1})]
            done = consume("archive", url, *settings, **environment)
            said, _ = done.communicate(timeout=60)
            assert done.returncode == 0, said
            assert archived(bucket) == sorted(first + second + third)
            assert_no_dead_letters(home)


def test_a_prometheus_scrapes_what_the_handler_counted(tmp_path: Path) -> None:
    url, port = f"local:{tmp_path / 'topics'}", free_port()
    with running_prometheus(tmp_path, [port]) as prometheus, open_topics(url) as home:
        publish(home, TOPIC, count(1000, "users"), count(7, "orders"))
        handling = consume("metrics", url, "--set", f"prometheus=127.0.0.1:{port}")
        try:
            query = ("record_count_total", "stream")
            wanted = {("users",): 1000.0, ("orders",): 7.0}
            assert prometheus.wait_for(*query, until=lambda found: found == wanted) == wanted
            publish(home, TOPIC, count(500, "users"))
            assert prometheus.wait_for(*query, until=lambda found: found[("users",)] == 1500.0)[("users",)] == 1500.0
        finally:
            handling.send_signal(signal.SIGTERM)
            said, _ = handling.communicate(timeout=60)
        assert handling.returncode == 0, said
        assert_no_dead_letters(home)


def runs_of(pipelines: int) -> list[Event]:
    """Reports of runs: each pipeline fails and then succeeds again, but the last, which stays failed."""
    events = []
    for number in range(pipelines):
        for outcome in ["failed", "succeeded"][: 1 if number == pipelines - 1 else 2]:
            report = {"cls_type": "run", "outcome": outcome, "exit_code": 0, "duration": 1.0, "command": "tap"}
            context = {"application": f"tap-{number}", "run_id": f"tap-{number}"}
            events.append(Event.new("tap.run", report, level="INFO", context=context))
    return events


def act(url: str, folder: Path) -> list[str]:
    """Let all handlers act on reports of runs in a home, see that each peer has what it should; the open incidents."""
    pagerduty, called = PagerDuty(), []

    def respond(request: Request) -> Answer:
        if request.path.startswith("/v2/"):
            return pagerduty(request)
        called.append(request.headers["webhook-id"])
        return Answer(503 if len(called) % 5 == 1 else 200)  # not always well

    events = runs_of(10)
    with open_topics(url) as home:
        publish(home, TOPIC, *events)
    with HttpStandIn(respond) as server:
        settings = {
            "archive": folder / "events",
            "prometheus": folder / "balog.prom",
            "pagerduty": server.url,
            "webhook": f"{server.url}/runs",
        }
        pairs = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        environment = {"PAGERDUTY_ROUTING_KEY": ROUTING_KEY, "WEBHOOK_SECRET": "whsec_" + "A" * 43 + "="}
        handling = consume(
            *("", url, *pairs, "--until-empty", "--concurrency", "4", "--ledger", f"sqlite:{folder / 'ledger'}"),
            **environment,
        )
        said, _ = handling.communicate(timeout=240)
    assert handling.returncode == 0, said
    ids = sorted(event.header.id for event in events)
    assert archived(folder) == ids
    assert set(called) == set(ids)
    assert 'runs_total{outcome="failed"} 10.0' in (folder / "balog.prom").read_text()
    return list(pagerduty.open)


def test_all_of_them_act_on_one_topic(tmp_path: Path) -> None:
    assert act(f"local:{tmp_path}/topics", tmp_path) == ["balog/tap-9"]
