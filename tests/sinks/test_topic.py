import os

import pytest

from balog.event import Event, encode
from balog.sinks import Delivery, SinkError, TopicSinkConfig


def build(folder):
    return TopicSinkConfig(url=f"local:{folder}", topic="events").build()


def test_a_probe_makes_nothing_and_delivers_nothing(tmp_path):
    sink = build(tmp_path / "not" / "yet")
    sink.open()
    sink.probe()
    sink.close()
    assert list(tmp_path.iterdir()) == []


def test_a_probe_of_a_topic_that_is_there_reads_it(tmp_path):
    sink = build(tmp_path)
    event = Event.new("a.b", {"n": 1})
    sink.write([Delivery(event, encode(event))])
    sink.probe()
    sink.close()
    (file,) = tmp_path.glob("*.sqlite")
    file.write_bytes(b"no database at all, but a long enough text" * 200)
    broken = build(tmp_path)
    with pytest.raises(SinkError, match=r"events\.sqlite"):
        broken.probe()
    broken.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="no topic can be made there"):
        build(tmp_path / "file" / "topics").probe()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(SinkError, match="give another url"):
        build(tmp_path / "topics").probe()
