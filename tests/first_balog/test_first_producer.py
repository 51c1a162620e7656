"""Programs that log with the first balog, version 1.2.3: each documented behaviour, as it is now."""

import io
import json
import logging
from typing import Any

import pytest

import balog
from balog.event import Event, encode
from balog.formatters import SchemaFormatter
from balog.testing import Events

METRICS = {
    "cls_type": "metrics",
    "values": [{"name": "total", "value": 123}, {"name": "succeeded", "value": 456}, {"name": "failed", "value": 789}],
}


class TestLogger:
    def test_configure_needs_no_arguments(self) -> None:
        """Programs called ``configure()`` before they logged."""
        balog.configure()

    def test_ids_begin_with_two_letters(self, events: Events) -> None:
        """An id is ``LG`` and 22 letters and digits, as long as before."""
        balog.get_logger("a").info("b", payload=METRICS)

        identifier = events.one().header.id
        assert identifier.startswith("LG")
        assert len(identifier) == len("LGmeY3XBdJ561L5onT1UiyJN")
        assert identifier.isalnum()

    def test_numbers_of_metrics_stay_numbers(self, events: Events) -> None:
        """The first balog wrote ``"123.0"``; ``float()`` reads both."""
        balog.get_logger("a").info("b", payload=METRICS)

        assert [float(value["value"]) for value in events.one()["payload"]["values"]] == [123.0, 456.0, 789.0]


class TestThroughTheStandardLibrary:
    def test_a_handler_with_the_formatter_writes_the_event(self) -> None:
        """``configure(output="logging")`` is what ``configure()`` was."""
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(SchemaFormatter())
        logger = logging.getLogger("first.program")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        balog.configure(output="logging")
        try:
            balog.get_logger("first.program").info("done", payload=METRICS)
            balog.flush()
        finally:
            balog.configure()
            logger.removeHandler(handler)

        written = json.loads(stream.getvalue())
        assert written["payload"] == METRICS
        assert written["header"]["channel"] == "first.program.done"


class TestEventAsPayload:
    def test_an_event_is_written_as_it_is(self, events: Events) -> None:
        """An event is not put into another event."""
        made = Event.new("shop.paid", {"cls_type": "invoice"}, level="WARNING", context={"fqdn": "elsewhere"})

        balog.get_logger("a").info("forwarded", payload=made)

        assert encode(events.one()) == encode(made)

    def test_emit_writes_it_likewise(self, events: Events) -> None:
        """``emit`` has the same payloads as a logger."""
        made = Event.new("shop.paid", {"cls_type": "invoice"})

        balog.emit("ERROR", "a.b", made)

        assert encode(events.one()) == encode(made)

    def test_secrets_in_it_are_redacted(self, events: Events) -> None:
        """What leaves the process is redacted, from wherever it comes."""
        balog.get_logger("a").info("b", payload=Event.new("c", {"password": "hunter2"}))

        assert b"hunter2" not in encode(events.one())

    def test_levels_of_its_channel_apply(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The event's own channel decides, not the logger's."""
        balog.configure(output="stderr", levels={"shop.*": "ERROR"})
        try:
            balog.get_logger("a").warning("b", payload=Event.new("shop.paid", {}, level="WARNING"))
            balog.get_logger("a").warning("b", payload=Event.new("till.open", {}, level="WARNING"))
        finally:
            balog.configure()

        written = [json.loads(line)["header"]["channel"] for line in capsys.readouterr().err.splitlines()]
        assert written == ["till.open"]


class TestFormatter:
    """The standard library's records, by ``balog.formatters.SchemaFormatter``."""

    @staticmethod
    def formatted(name: str, level: int, message: str, *args: object, **options: Any) -> dict[str, Any]:
        made = logging.LogRecord(name, level, "service.py", 1, message, args, options.get("exc_info"))
        return json.loads(SchemaFormatter().format(made))  # type: ignore[no-any-return]

    def test_the_channel_is_the_name_of_the_standard_librarys_logger(self) -> None:
        """The root logger's records have the channel ``root``."""
        assert self.formatted("root", logging.INFO, "Hello %s", "world")["header"]["channel"] == "root"
        assert self.formatted("a.b", logging.INFO, "foo")["header"]["channel"] == "a.b"

    @pytest.mark.parametrize(
        ("level", "severity"),
        [(10, "DEBUG"), (20, "INFO"), (30, "WARNING"), (40, "ERROR"), (50, "CRITICAL")],
    )
    def test_the_payload_is_a_log_with_message_and_severity(self, level: int, severity: str) -> None:
        """The keys of the first balog are there, beside newer ones; the severity is in upper case, as a level."""
        payload = self.formatted("root", level, "Hello %s", "world")["payload"]

        assert payload.items() >= {"cls_type": "log", "message": "Hello world", "severity": severity}.items()

    def test_an_exception_is_text_in_exc_text(self) -> None:
        """The traceback as the standard library prints it."""
        error = ValueError("test")

        payload = self.formatted("root", 40, "test exec", exc_info=(ValueError, error, None))["payload"]

        assert "ValueError: test" in payload["exc_text"]

    def test_a_record_that_is_an_event_stays_as_it_is(self) -> None:
        """The first balog's logger wrote its events through the standard library."""
        made = Event.new("a.b", {"x": 1})

        assert self.formatted("c", 20, encode(made).decode()) == json.loads(encode(made))
