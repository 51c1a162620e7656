"""The engine on SQS: the example that it was designed by, as it was written, and the credentials that it takes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import ConfigError, TopicError
from balog.consumers import Consumer, ConsumerHub
from balog.consumers.sqs import SQSEngine
from balog.event import Event, encode
from balog.topics import Message, Received, open_topics
from balog.topics.memory import MemoryTopic
from tests.consumers.runs import Scripted
from tests.services.servers.elasticmq import set_credentials
from tests.services.servers.moto import MotoServer, running_moto
from tests.waiting import wait_for

HANDLERS = """
from balog.consumers import consumer_config

@consumer_config(
    topic='myproj-events-{env}',
    cls_type='metrics',
    version='<1.0',
)
def process_metrics(settings, event):
    print(settings['api.sqs.queue_env'], event.payload['values'][0]['value'], flush=True)
"""

PROGRAM = '''
from __future__ import unicode_literals

from balog.consumers import ConsumerHub
from balog.consumers.sqs import SQSEngine

import yourpackage


class ConsumerOperator(object):

    def __init__(self, settings):
        self.settings = settings

    def get_topic(self, consumer):
        env = self.settings['api.sqs.queue_env']
        return consumer.topic.format(env=env)

    def process_event(self, consumer, event):
        return consumer.func(self.settings, event)


def process_events(settings):
    """Process log events in SQS

    """
    hub = ConsumerHub()
    hub.scan(yourpackage)
    consumer_op = ConsumerOperator(settings)
    engine = SQSEngine(
        hub=hub,
        region=settings['api.sqs.region'],
        aws_access_key_id=settings['api.sqs.aws_access_key_id'],
        aws_secret_access_key=settings['api.sqs.aws_secret_access_key'],
        consumer_operator=consumer_op,
    )
    engine.run()
'''

CALL = """
process_events({
    'api.sqs.queue_env': 'prod',
    'api.sqs.region': 'eu-central-1',
    'api.sqs.aws_access_key_id': 'AKIAIOSFODNN7EXAMPLE',
    'api.sqs.aws_secret_access_key': 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
})
"""

OLD_EVENT = b"""{"schema": "0.0.1", "payload": {"cls_type": "metrics", "values": [{"name": "foo", "value": "1234.0"}]},
 "header": {"id": "LGk37Fo3xLLVx9GrfnyTuvBd", "channel": "tests", "timestamp": "2014-10-07T15:06:51.641083+00:00"}}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    with running_moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


def test_the_example_runs_as_it_was_written_until_it_is_told_to_stop(
    tmp_path: Path, server: MotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_credentials(monkeypatch)
    with open_topics(server.url) as home:
        home.topic("myproj-events-prod").publish([Message("old", OLD_EVENT)])
    (tmp_path / "yourpackage").mkdir()
    (tmp_path / "yourpackage" / "__init__.py").write_text(HANDLERS)
    (tmp_path / "program.py").write_text(PROGRAM + CALL)
    environment = {**os.environ, "AWS_ENDPOINT_URL_SQS": server.endpoint, "HOME": str(tmp_path)}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del environment[name]
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "prod 1234.0\n"
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, ""), errors
    with open_topics(server.url) as home:
        state = home.topic("myproj-events-prod").group_state("balog")
        assert (state.pending, state.dead) == (0, 0)


def hub_of(topic: str, handled: list[str]) -> ConsumerHub:
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: handled.append(event.header.id), topic, name="c"))
    return hub


def test_each_event_is_handled_once_and_what_is_none_is_set_aside(
    tmp_path: Path, server: MotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_credentials(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    events = [Event.new("tests", {"cls_type": "x"}) for _ in range(25)]
    with open_topics(server.url) as home:
        topic = home.topic("mixed")
        topic.publish([Message(event.header.id, encode(event)) for event in events])
        topic.publish([Message("junk", b"\xff no event"), Message("again", encode(events[0]))])
        handled: list[str] = []
        engine = SQSEngine(hub_of("mixed", handled), "eu-central-1", endpoint=server.endpoint, pollers=3)
        counts = engine.run(until_empty=True)
        assert sorted(handled) == sorted(event.header.id for event in events)
        assert (counts.dead, topic.group_state("g").pending) == (1, 0)
        (letter,) = topic.dead_letters("g")
        assert (letter.id, letter.body, letter.group) == ("junk", b"\xff no event", "balog")
        assert "not an event" in letter.reason


def test_without_credentials_it_says_which_are_wanted(
    tmp_path: Path, server: MotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_credentials(monkeypatch)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    engine = SQSEngine(hub_of("x", []), "eu-central-1", endpoint=server.endpoint)
    with pytest.raises(TopicError, match="no AWS credentials; set AWS_ACCESS_KEY_ID") as caught:
        engine.run()
    assert not caught.value.retryable


def test_a_region_that_can_not_be_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="is not an AWS region"):
        SQSEngine(ConsumerHub(), "Frankfurt am Main")


class SlowQueue(MemoryTopic):
    """A queue that has its message only at the end of a long wait."""

    keeps_groups = False
    keeps_ids = False
    poll_timeout = 5.0

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = 30.0) -> list[Received]:
        time.sleep(min(wait, lease))
        return super().receive(group, limit, 0.0, lease)


def test_a_message_that_comes_at_the_end_of_the_wait_is_handled_within_its_lease(bench: Any) -> None:
    bench.orders.__class__ = SlowQueue
    ids = bench.publish({})
    handle = Scripted()
    with bench.running(handle, lease=2.0):
        wait_for(lambda: handle.ids, 20)
    assert handle.ids == ids
    with pytest.raises(ConfigError, match=r"a lease of 1.5 s is too short for SQS; expected at least 2 s"):
        bench.run(handle, lease=1.5)
