"""Events and version conditions of the first balog: ``data/`` has the output of version 1.2.3, run by Python 2.7.

``written.jsonl`` are lines of its logger and its formatter. ``versions.json`` has the facility versions that each
condition of a consumer matched.
"""

import json
import logging
from datetime import datetime
from logging.config import fileConfig
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import ConfigError
from balog.consumers import Consumer
from balog.event import Event, decode, encode
from balog.formatters import SchemaFormatter

DATA = Path(__file__).parent / "data"
LINES = (DATA / "written.jsonl").read_text(encoding="utf-8").splitlines()
VERSIONS: dict[str, Any] = json.loads((DATA / "versions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("line", LINES)
def test_each_event_is_read_without_a_loss(line: str) -> None:
    """All keys and values are those of the line."""
    written, event = json.loads(line), decode(line)

    assert event.schema == "0.0.1"
    assert event["payload"] == written["payload"]
    assert event["header"]["id"] == written["header"]["id"]
    assert event["header"]["channel"] == written["header"]["channel"]
    assert event["header"]["timestamp"] == datetime.fromisoformat(written["header"]["timestamp"])
    assert decode(encode(event)).payload == written["payload"]


@pytest.mark.parametrize("condition", sorted(VERSIONS["matched"]))
def test_conditions_on_versions_match_the_same_ones(condition: str) -> None:
    """Also those of two parts, in the condition and in the event."""
    consumer = Consumer(lambda event: None, "t", version=condition)

    matched = [version for version in VERSIONS["versions"] if consumer.match_event({"schema": version})]

    assert matched == VERSIONS["matched"][condition]


@pytest.mark.parametrize(
    ("version", "matched"),
    [
        ((">=1.0.1", "<2.0"), ["1.0.1", "1.0.2", "1.0.999", "1.0.1001", "1.1", "1.1.0", "1.2.3", "1.999999"]),
        ("==1.0", ["1.0", "1.0.0"]),
        (">=1.0.1,<=1.1", ["1.0.1", "1.0.2", "1.0.999", "1.0.1001", "1.1", "1.1.0"]),
        ("==1.0.*", ["1.0", "1.0.0", "1.0.1", "1.0.2", "1.0.999", "1.0.1001"]),
    ],
)
def test_several_conditions_must_all_hold(version: Any, matched: list[str]) -> None:
    """In a tuple as before, or in one text."""
    consumer = Consumer(lambda event: None, "t", version=version)
    versions = [one for one in VERSIONS["versions"] if one not in ("1.2", "1.2.2", "1.2.4")]

    assert [one for one in versions if consumer.match_event({"schema": one})] == matched


class TestKeys:
    """An event in a handler was a dict; its keys still work."""

    EVENT = Event.new("a.b", {"cls_type": "metrics", "values": []}, level="ERROR", context={"fqdn": "host"})

    def test_keys_are_those_of_the_json(self) -> None:
        """``id``, ``channel``, ``timestamp``, ``level``, ``composition`` and ``context``."""
        written = json.loads(encode(self.EVENT))

        assert list(self.EVENT) == list(self.EVENT.keys()) == list(written)
        assert list(self.EVENT.header) == list(written["header"])

    def test_values_are_those_of_the_attributes(self) -> None:
        """Payload and context are plain dicts."""
        assert self.EVENT["payload"] is self.EVENT.payload
        assert self.EVENT["header"]["context"]["fqdn"] == "host"
        assert self.EVENT["schema"] == "0.1.0"

    def test_it_converts_to_a_dict(self) -> None:
        """``dict(event)`` is one level, as of any mapping."""
        assert dict(self.EVENT)["payload"] == {"cls_type": "metrics", "values": []}

    @pytest.mark.parametrize("key", ["open_content", "raw_payload", "cls_type", 0, None])
    def test_another_key_is_an_error(self, key: Any) -> None:
        """Attributes that are no keys of the JSON are none here."""
        assert key not in self.EVENT
        assert self.EVENT.get(key, "none") == "none"
        with pytest.raises(KeyError):
            self.EVENT[key]

    def test_an_old_event_has_no_level(self) -> None:
        """Facility 0.0.1 has none."""
        header = decode(LINES[0])["header"]

        assert "level" not in header
        assert header.get("level") is None


def test_the_formatter_ignores_a_layout(tmp_path: Path) -> None:
    """A logging.conf of the first balog has one for each formatter."""
    config = tmp_path / "logging.conf"
    config.write_text(
        "[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=f\n[logger_root]\nhandlers=h\n"
        "[handler_h]\nclass=StreamHandler\nformatter=f\nargs=()\n"
        "[formatter_f]\nclass=balog.formatters.SchemaFormatter\nformat=%(message)s\n"
    )
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        fileConfig(config, disable_existing_loggers=False)
        formatter = root.handlers[0].formatter
    finally:
        root.handlers[:], root.level = before

    assert isinstance(formatter, SchemaFormatter)
    record = logging.LogRecord("a", 20, "f", 1, "hi", None, None)
    assert decode(formatter.format(record)).payload["message"] == "hi"
    with pytest.raises(ConfigError, match="no format 'jsn'"):
        SchemaFormatter("jsn")
