"""``balog filter`` as it is called; what it does with events is tested in ``tests/analytics/test_spark_filter.py``."""

import json

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.event import Event, decode, encode
from balog.topics import Message, open_topics

FILTER = {"name": "big", "sources": ["orders", "returns"], "to": "out", "where": "payload.n >= 2"}


@pytest.fixture
def call(tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.chdir(tmp_path)
    for name in ("d", "bad"):
        filters = [FILTER | ({} if name == "d" else {"where": "payload.n >"})]
        (tmp_path / f"{name}.json").write_text(json.dumps({"filters": filters}))
    return lambda *words: CliRunner().invoke(main, ["filter", *words])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["big", "--config", "none.json"], "none.json"),
        (["small", "--config", "d.json"], "d.json: $.filters: no filter 'small'; there are big"),
        (["big", "--config", "bad.json", "--topics", "local:t"], "bad.json: $.filters[0].where: "),
        (["big", "--config", "d.json"], "the filter reads its sources from topics; give --topics URL"),
        (["big", "x", "--config", "d.json"], "the filter writes to a topic; give --topics URL"),
        (["big", "--config", "d.json", "--topics", "nonsense"], "nonsense"),
        (["big", "--config", "d.json", "--topics", "local:t"], "none of the sources exists: orders, returns"),
        (["big", "x", "--config", "d.json", "--to", "a"], "x: no such file or folder"),
    ],
)
def test_wrong_use_is_told_before_spark_starts(call, words, problem, monkeypatch):
    monkeypatch.setattr("balog.analytics.session", lambda *_, **__: pytest.fail("Spark was started"))
    done = call(*words)
    assert done.exit_code in (1, 2), done.output
    assert problem in done.stderr.splitlines()[-1]


@pytest.mark.spark
def test_events_go_from_topics_to_a_topic(call, spark, tmp_path, monkeypatch):
    monkeypatch.setattr("balog.analytics.session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    events = [Event.new("shop", {"cls_type": "order", "n": n}) for n in range(4)]
    with open_topics(f"local:{tmp_path}/t") as home:
        home.topic("orders").publish([Message(event.header.id, encode(event)) for event in events])
        done = call("big", "--config", "d.json", "--topics", home.url)
        assert done.exit_code == 0, done.output
        assert done.stdout == "2 events wanted, 2 written to topic out, 0 refused\n"
        assert "no events yet in returns" in done.stderr
        found = {decode(one.body).header.id for one in home.topic("out").peek(10)}
    assert found == {event.header.id for event in events[2:]}
