"""The example that consumers were designed by runs as it is written, from a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from balog.event import Event, encode
from balog.topics import Message, open_topics

HANDLERS = """
from balog.consumers import consumer_config

@consumer_config(topic='myproj-events-{env}', cls_type='metrics', version='<1.0')
def process_metrics(settings, event):
    print(settings['env'], event.payload['values'][0]['value'], flush=True)
"""

PROGRAM = """
from balog.consumers import ConsumerHub
from balog.consumers.local import LocalEngine
import yourpackage

settings = {'env': 'prod'}

class ConsumerOperator:
    def __init__(self, settings): self.settings = settings
    def get_topic(self, consumer): return consumer.topic.format(env=self.settings['env'])
    def process_event(self, consumer, event): return consumer.func(self.settings, event)

hub = ConsumerHub(); hub.scan(yourpackage)
LocalEngine(hub=hub, path='topics', consumer_operator=ConsumerOperator(settings)).run()
"""

EVENT = b"""{"schema": "0.0.1", "payload": {"cls_type": "metrics", "values": [{"name": "foo", "value": "1234.0"}]},
 "header": {"id": "LGk37Fo3xLLVx9GrfnyTuvBd", "channel": "tests", "timestamp": "2014-10-07T15:06:51.641083+00:00"}}"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_example_runs_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "yourpackage").mkdir()
    (tmp_path / "yourpackage" / "__init__.py").write_text(HANDLERS)
    (tmp_path / "program.py").write_text(PROGRAM)
    later = Event.new("tests", {"cls_type": "metrics", "values": [{"name": "foo", "value": 5}]})
    with open_topics(f"local:{tmp_path}/topics") as home:
        topic = home.topic("myproj-events-prod")
        topic.publish([Message("newer", encode(later)), Message("older", EVENT)])
    warnings = {**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"}
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=warnings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["prod 5\n", "prod 1234.0\n"]
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest, errors) == (0, "", "")
    with open_topics(f"local:{tmp_path}/topics") as home:
        state = home.topic("myproj-events-prod").group_state("balog")
        assert (state.pending, state.dead) == (0, 0)
