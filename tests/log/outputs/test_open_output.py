from pathlib import Path
from typing import Any

import msgspec
import pytest

import balog
from balog.common.errors import ConfigError
from balog.log.outputs import open_output
from balog.log.outputs.file import FileOutput
from balog.log.outputs.queued import QueuedOutput
from balog.sinks.store import StoreSinkConfig

FORMS = (
    "there are console, singer, stderr, logging, file:PATH, local:PATH?topic=NAME, "
    "sqs:REGION?topic=NAME, kafka:HOST:PORT?topic=NAME, "
    "store:PATH?topic=NAME, https://SERVICE?token_env=NAME&spool=PATH&sync=SECONDS, or "
    "a sink's config as an object"
)


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    output = open_output(f"file:{tmp_path}/app.jsonl")

    assert isinstance(output, FileOutput)
    assert output.path == f"{tmp_path}/app.jsonl"


@pytest.mark.parametrize(
    "where",
    [
        "local:{}",
        "local:{}?topic=orders",
        "store:{}?topic=orders",
        {"type": "topic", "url": "local:{}", "topic": "orders"},
    ],
)
def test_a_topic_or_a_sink_has_a_queue_before_it(where: Any, tmp_path: Path) -> None:
    if isinstance(where, str):
        where = where.format(tmp_path)

    assert isinstance(open_output(where), QueuedOutput)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("paper", f"no output 'paper'; {FORMS}"),
        ("", f"no output ''; {FORMS}"),
        ("file:", f"no output 'file:'; {FORMS}"),
        ("carrier-pigeon:home", f"no output 'carrier-pigeon:'; {FORMS}"),
        ("file:a?max_bytes=1", "output 'file:a': no option 'max_bytes'; logrotate rotates files"),
        ("file:a?x", "output 'file:a': after ? come options like name=value, joined by &"),
        ("local:a?group=x", "output 'local:a': no option 'group'; there is topic"),
        (
            "http://h:1?tokn=x",
            "output 'http://h:1': no option 'tokn'; there are token_env, token_file, ca_file, spool, sync",
        ),
        ("http://h:1?sync=1", "output 'http://h:1': sync is the window of a spool; give spool=PATH too"),
        ("http://h:1?spool=x&sync=soon", "output 'http://h:1': sync is seconds, not 'soon'"),
        ("https://u:p@h", "url: has credentials in the URL; give them by the environment or a file"),
        (
            "https://h?token_env=BALOG_TEST_NOWHERE",
            "token: the environment variable BALOG_TEST_NOWHERE is not set; it should hold the secret",
        ),
        ({"type": "paper"}, "$.type: invalid value 'paper'"),
        ({"type": "topic", "url": "local:a"}, "$: object missing required field `topic`"),
        (
            {"type": "topic", "url": "x:a", "topic": "t"},
            "'x:a': no topics of kind 'x'; expected local:PATH, sqs:REGION, kafka:HOST:PORT",
        ),
        ({}, "$: object missing required field `type`"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(where: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_output(where)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    "where",
    [
        "sqs:https://user:s3cret@host",
        "kafka:user:s3cret@host:9092?topic=a",
        "kafka:host:9092?sasl.password=s3cret&topic=a",
        "file:a?token=s3cret",
        "local:a?password=s3cret",
    ],
)
def test_a_refusal_says_no_secret(where: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_output(where)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("is_entry", [False, True])
def test_the_config_of_a_sink_may_be_an_object(is_entry: bool, tmp_path: Path) -> None:
    sink = StoreSinkConfig(path=str(tmp_path), topic="t")
    balog.configure(output={"to": sink, "where": "level = 'INFO'"} if is_entry else [sink], application="a")
    balog.get_logger("a").info("x")
    balog.flush()
    assert list(tmp_path.glob("t/**/*"))


def test_a_structure_that_writes_is_an_output_and_no_config() -> None:
    written: list[object] = []
    output = msgspec.defstruct("Output", [], namespace={"write": lambda self, text: written.append(text)})()
    balog.configure(output=output, application="a")
    balog.get_logger("a").info("x")
    assert written
