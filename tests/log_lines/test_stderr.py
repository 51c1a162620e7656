import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.redaction import Redactor
from balog.event import Event, decode, encode
from balog.log_lines import LineAssembler

DATA = Path(__file__).parent.parent / "data"


def events_of(data: bytes, application: str = "tap-x") -> list[Event]:
    assembler = LineAssembler(application, {"process": 7})
    return assembler.feed(data) + assembler.close()


def gist(event: Event) -> tuple:
    payload = event.payload
    if payload["cls_type"] == "metric":
        return event.level, payload["type"], payload["metric"], payload["value"]
    return event.level, payload["message"]


class TestRealTaps:
    def test_singer_python(self):
        """Given what a tap on singer-python printed, then metrics are metrics and the traceback is one event's."""
        events = events_of((DATA / "singer-python.stderr.log").read_bytes())
        assert [gist(event) for event in events] == [
            ("INFO", "Starting sync of stream weather"),
            ("INFO", "timer", "http_request_duration", 0.010109663009643555),
            ("INFO", "timer", "http_request_duration", 0.010094404220581055),
            ("INFO", "timer", "http_request_duration", 0.010099649429321289),
            ("INFO", "counter", "record_count", 1461),
            ("INFO", "timer", "job_duration", 0.044080495834350586),
            ("INFO", "timer", "http_request_duration", 4.76837158203125e-06),
            ("ERROR", "sync failed"),
            ("CRITICAL", "HTTP 500 from source"),
        ]
        failure = events[7].payload
        assert failure["exception"] == {"type": "RuntimeError", "message": "HTTP 500 from source"}
        assert failure["exc_text"].startswith("Traceback (most recent call last):\n  File")
        assert failure["exc_text"].endswith("\nRuntimeError: HTTP 500 from source")

    def test_loguru_with_values_in_its_traceback(self):
        """Given what loguru prints by default, with an empty line before the error, then all frames are there."""
        trace = (
            'Traceback (most recent call last):\n\n> File "/a.py", line 5, in <module>\n    f(0)\n    └ <function>\n\n'
            '  File "/a.py", line 3, in f\n    return 1/x\n           └ 0\n\nZeroDivisionError: division by zero'
        )
        line = "2026-11-28 13:30:34.136 | {} | __main__:<module>:7 - {}\n"
        text = line.format("ERROR   ", "it broke") + trace + "\n" + line.format("INFO    ", "after")
        broken, after = events_of(text.encode())
        assert (broken.payload["message"], broken.payload["exc_text"]) == ("it broke", trace)
        assert broken.payload["exception"] == {"type": "ZeroDivisionError", "message": "division by zero"}
        assert gist(after) == ("INFO", "after")

    @pytest.mark.parametrize(
        ("value", "field"), [("NaN", "NaN"), ("[-Infinity]", ["-Infinity"]), (r'"\ud800"', "?"), ("1e999", "Infinity")]
    )
    def test_json_that_only_python_writes_is_a_record_of_its_own(self, value, field):
        _, event = events_of(b'INFO:root:J\n{"level": "CRITICAL", "msg": "odd", "v": %b}\n' % value.encode())
        assert gist(event) == ("CRITICAL", "odd")
        assert event.payload.get("fields", {}).get("v") == field

    def test_what_meltano_has_a_tap_print(self):
        """Given bare messages, as Meltano sets up a tap that it runs, then metrics are metrics all the same."""
        point = b'{"type":"counter","metric":"record_count","value":3,"tags":{"stream":"users","pid":7,"context":{}}}'
        events = events_of(b"Beginning sync of 'users'\nMETRIC: " + point + b"\nMETRIC: none\n  done\n")
        assert [gist(event) for event in events] == [
            ("INFO", "Beginning sync of 'users'"),
            ("INFO", "counter", "record_count", 3),
            ("INFO", "METRIC: none\n  done"),
        ]

    def test_pipelinewise(self):
        """Given what a tap of PipelineWise printed, then levels, metrics and lines of SQL are told apart."""
        events = events_of((DATA / "pipelinewise.stderr.log").read_bytes())
        assert [gist(event)[2:] for event in events if event.payload["cls_type"] == "metric"] == [
            ("record_count", 3),
            ("record_count", 25),
        ]
        assert {event.header.channel for event in events} == {"tap-x.tap_postgres", "tap-x.singer"}
        assert gist(events[0]) == ("INFO", "Selected streams: ['public-cities', 'public-people'] ")
        (one, other) = [event.payload["message"] for event in events if "SELECT" in event.payload.get("message", "")]
        assert one.endswith(
            'FROM "public"."cities"\n                                     ORDER BY xmin::text ASC with itersize 20000'
        )
        assert other.count("\n") == 2

    @pytest.mark.parametrize("form", ["singer-sdk", "singer-sdk.json"])
    def test_singer_sdk_as_text_and_as_json(self, form):
        events = events_of((DATA / f"{form}.stderr.log").read_bytes(), "tap-jsonl")
        assert len(events) == 11
        assert gist(events[10]) == ("INFO", "counter", "record_count", 3376)
        assert gist(events[9])[:3] == ("INFO", "timer", "sync_duration")
        assert gist(events[7]) == (
            "WARNING",
            "Stream is assumed to be unsorted, progress is not resumable if interrupted",
        )
        assert [event.header.channel for event in events[1:3]] == ["tap-jsonl", "tap-jsonl.airports"]
        assert events[10].header.channel == "tap-jsonl.singer_sdk.metrics"
        assert events[0].header.context == {"application": "tap-jsonl", "process": 7}

    def test_times_are_taken_from_the_line(self):
        (event,) = events_of((DATA / "singer-sdk.json.stderr.log").read_bytes().splitlines()[0])
        assert event.header.timestamp == datetime.fromtimestamp(1795162731.0623424, timezone.utc)
        (event,) = events_of(b"2026-11-20 08:18:50,473 | INFO     | tap-x | hello\n")
        assert event.header.timestamp == datetime(2026, 11, 20, 8, 18, 50, 473000).astimezone()

    def test_a_record_of_endless_lines_is_given_in_parts(self):
        lines = [b"ERROR failed", *[b"x" * 200_000] * 12]
        messages = [event.payload["message"] for event in events_of(b"\n".join(lines))]
        assert len(messages) > 1
        assert sum(message.count("x") for message in messages) == 2_400_000
        assert max(map(len, messages)) < 1_500_000

    def test_fields_of_the_sdk_are_kept(self):
        events = events_of((DATA / "singer-sdk.json.stderr.log").read_bytes())
        assert events[7].payload["fields"] == {"thread_name": "MainThread", "replication_key": "_sdc_last_modified"}

    def test_an_exception_of_the_sdk_becomes_data_and_text(self):
        line = (
            b'{"level":"error","logger_name":"tap-x","ts":1.0,"message":"boom","extra":{},"exception":'
            b'{"type":"ApiError","module":"tap_x.client","message":"500","traceback":'
            b'[{"filename":"c.py","function":"get","lineno":3,"line":"  raise ApiError(500)\\n"}]}}\n'
        )
        (event,) = events_of(line)
        assert event.payload["exception"] == {"type": "tap_x.client.ApiError", "message": "500"}
        assert event.payload["exc_text"] == (
            "Traceback (most recent call last):\n"
            '  File "c.py", line 3, in get\n    raise ApiError(500)\ntap_x.client.ApiError: 500'
        )

    def test_a_line_of_a_source_of_mage(self):
        value = {"caller": "Titanic", "level": "INFO", "message": "Synced stream completed.", "timestamp": 1666313420}
        value.update(tags={"stream": "passengers", "records": 891}, uuid="3e46", type="LOG")
        line = f"INFO [2022-10-21T00:50:20.607364] {json.dumps(value)}\n".encode()
        (event,) = events_of(line)
        assert gist(event) == ("INFO", "counter", "record_count", 891)
        assert event.payload["tags"] == {"stream": "passengers"}
        (event,) = events_of(line.replace(b"completed", b"started"))
        assert gist(event) == ("INFO", "Synced stream started.")
        assert event.payload["fields"]["caller"] == "Titanic"


class TestMetricsBelowAPrefix:
    @pytest.mark.parametrize(
        "line",
        [
            'INFO:tap-dimdate:INFO METRIC: {"type": "counter", "metric": "record_count", "value": 3, '
            '"tags": {"a": "b"}}',
            "INFO:tap-dimdate:INFO METRIC: {'type': 'counter', 'metric': 'record_count', 'value': 3, "
            "'tags': {'a': 'b'}}",
            "2026-01-01 00:00:00,000 - singer - INFO - METRIC: "
            '{"type":"counter","metric":"record_count","value":3,"tags":{"a":"b"}}',
            '{"level":"info","msg":"METRIC: {\\"type\\":\\"counter\\",\\"metric\\":\\"record_count\\",\\"value\\":3,'
            '\\"tags\\":{\\"a\\":\\"b\\"}}"}',
        ],
    )
    def test_it_is_a_metric(self, line):
        (event,) = events_of(line.encode() + b"\n")
        assert (gist(event), event.payload["tags"]) == (("INFO", "counter", "record_count", 3), {"a": "b"})


class TestLinesOfOthers:
    @pytest.mark.parametrize(
        ("line", "level", "logger", "message"),
        [
            ("[2026-01-01 00:00:00,000] {client.py:12} ERROR - boom", "ERROR", None, "boom"),
            ("2026-01-01 00:00:00 [scrapy.core] ERROR: boom", "ERROR", "scrapy.core", "boom"),
            ("12:00:00.123 [main] ERROR com.acme.Tap - boom", "ERROR", "com.acme.Tap", "boom"),
            ("26/01/01 00:00:00 ERROR Utils: boom", "ERROR", None, "Utils: boom"),
            ("2026-01-01T00:00:00.000000Z ERROR boom", "ERROR", None, "boom"),
            ("2026-01-01T00:00:00.000Z\tERROR\tboom", "ERROR", None, "boom"),
            ("INFO:     Started", "INFO", None, "Started"),
            ("Level 35:x:boom", "WARNING", "x", "boom"),
            ("ERROR:https://example.com is down", "ERROR", None, "https://example.com is down"),
            ("time=2026-01-01T00:00:00Z level=ERROR msg=boom", "ERROR", None, "boom"),
            ("level=error msg=boom order=7 retrying", "ERROR", None, "boom"),
            ("level=error msg=boom order=7 it's", "ERROR", None, "level=error msg=boom order=7 it's"),
            ("level=error msg='boom' level", "ERROR", None, "'boom'"),
            ('{"severity":"EMERGENCY","message":"boom","logger":"x"}', "CRITICAL", "x", "boom"),
            ('{"version":"1.1","short_message":"boom","level":3,"timestamp":1767225600.5}', "ERROR", None, "boom"),
            ('{"severity_number":17,"body":"boom"}', "ERROR", None, "boom"),
            ('{"log":{"level":"error","logger":"x"},"message":"boom"}', "ERROR", "x", "boom"),
            ('{"@t":"2026-01-01T00:00:00Z","@m":"boom","@l":"Error"}', "ERROR", None, "boom"),
            ('{"event":"boom","timestamp":"2026-01-01T00:00:00Z"}', "INFO", None, "boom"),
        ],
    )
    def test_level_logger_and_message(self, line, level, logger, message):
        (event,) = events_of(line.encode())
        assert (event.level, event.payload["message"]) == (level, message)
        assert event.header.channel == f"tap-x.{logger}" if logger else "tap-x"

    @pytest.mark.parametrize(
        "line",
        [
            "2026-01-01 was a good day",
            "2026-01-01 00:00:00 loaded ERROR codes",
            '{"message": "boom"}',
            '{"id": 1, "level": 3}',
            "Note: this is text",
            "Total: 3 of level=error",
            "Failed with level=error msg=boom",
            "[3, 4]",
        ],
    )
    def test_text_stays_text(self, line):
        (event,) = events_of(line.encode())
        assert (event.level, event.payload["message"]) == ("INFO", line)


class TestUncaught:
    TRACE = b"Traceback (most recent call last):\n  File a\nError: x\n"

    @pytest.mark.parametrize(
        "head", [b"INFO sync", b"DEBUG:tap-x:sync", b"INFO sync\nmore of it", b"/a/x.py:4: UserWarning: old\n  warn()"]
    )
    def test_a_traceback_after_info_is_an_event_of_its_own(self, head):
        (one, other) = events_of(head + b"\n" + self.TRACE)
        assert "exc_text" not in one.payload
        assert (gist(other), other.payload["exception"]["type"]) == (("ERROR", "Error: x"), "Error")

    @pytest.mark.parametrize("level", ["WARNING", "ERROR"])
    def test_one_that_was_logged_belongs_to_its_record(self, level):
        (event,) = events_of(f"{level} retrying\n".encode() + self.TRACE)
        assert (gist(event), event.payload["exc_text"] + "\n") == ((level, "retrying"), self.TRACE.decode())

    def test_one_that_begins_in_the_main_module_makes_an_error_of_a_warning(self):
        (event,) = events_of(b"WARNING odd\n" + self.TRACE.replace(b"File a", b'File "a.py", line 1, in <module>'))
        assert (gist(event), event.payload["exception"]["type"]) == (("ERROR", "odd"), "Error")

    def test_a_second_one_is_not_of_the_same_record(self):
        (one, other) = events_of(b"ERROR failed\n" + self.TRACE + self.TRACE)
        assert (gist(one)[1], gist(other)[1]) == ("failed", "Error: x")


class TestAfterATraceback:
    TRACE = TestUncaught.TRACE

    @pytest.mark.parametrize(
        "line",
        [
            "{'consumer': False, 'limit': 3}",
            "Need help fixing this problem? Visit http://melta.no/ for troubleshooting steps.",
            "Done",
            "[1, 2]",
        ],
    )
    @pytest.mark.parametrize("head", ["", "CRITICAL failed\n", "INFO sync\n", "WARNING odd\n"])
    @pytest.mark.parametrize("gap", ["", "\n"])
    def test_a_line_that_is_no_part_of_it_is_an_event_of_its_own(self, head, gap, line):
        events = events_of(head.encode() + self.TRACE + f"{gap}{line}\nmore\n".encode())
        assert [gist(event) for event in events[-2:]] == [("INFO", line), ("INFO", "more")]
        assert events[-3].payload["exc_text"] == self.TRACE.decode().rstrip()

    @pytest.mark.parametrize(
        "message",
        [
            '(psycopg2.errors.UndefinedTable) relation "x" does not exist\nLINE 1: SELECT * FROM x\n'
            "                      ^\n\n[SQL: SELECT * FROM x]\n(Background on this error at: https://sqlalche.me/e/f4)",
            "2 validation errors for Config\nurl\n  Field required\nlimits.0\n  Input should be a number",
            "two lines\n  of text",
        ],
    )
    @pytest.mark.parametrize("head", ["", "CRITICAL failed\n"])
    def test_a_message_of_several_lines_is(self, head, message):
        trace = self.TRACE.decode().replace("x\n", f"{message}\n")
        (event, other) = events_of(f"{head}{trace}Done\n".encode())
        assert (event.payload["exc_text"] + "\n", gist(other)) == (trace, ("INFO", "Done"))
        assert event.payload["exception"] == {"type": "Error", "message": message}

    def test_one_that_rich_draws_ends_likewise(self):
        trace = "╭── Traceback (most recent call last) ──╮\n│ a.py:1 │\n╰──╯\nKeyError: 'id'"
        (event, other) = events_of(f"{trace}\n\nNeed help fixing this problem?\n".encode())
        assert (gist(event), event.payload["exc_text"]) == (("ERROR", "KeyError: 'id'"), trace)
        assert event.payload["exception"] == {"type": "KeyError", "message": "'id'"}
        assert gist(other) == ("INFO", "Need help fixing this problem?")


class TestJoining:
    def test_a_chained_traceback_is_one_event(self):
        trace = (
            b"Traceback (most recent call last):\n  File a\nZeroDivisionError: x\n\n"
            b"During handling of the above exception, another exception occurred:\n\n"
            b"Traceback (most recent call last):\n  File b\n    y()\nfoo.BarError: zzz\n"
        )
        events = events_of(b"hello\n" + trace + b"next\n")
        assert [gist(event) for event in events] == [
            ("INFO", "hello"),
            ("ERROR", "foo.BarError: zzz"),
            ("INFO", "next"),
        ]
        assert events[1].payload["exc_text"].encode() + b"\n" == trace
        assert events[1].payload["exception"] == {"type": "foo.BarError", "message": "zzz"}

    def test_plain_lines_are_events_and_indented_ones_continue(self):
        events = events_of(b"one\ntwo\n  more\n\nthree")
        assert [gist(event)[1] for event in events] == ["one", "two\n  more", "three"]

    def test_a_message_of_many_lines_stays_together(self):
        (event, other) = events_of(b"INFO first\nsecond\nINFO other\n")
        assert (gist(event)[1], gist(other)[1]) == ("first\nsecond", "other")

    def test_flush_gives_the_record_in_hand(self):
        assembler = LineAssembler("tap-x")
        assert assembler.feed(b"INFO first\nINFO sec") == []
        assert [gist(event)[1] for event in assembler.flush()] == ["first"]
        assert [gist(event)[1] for event in assembler.feed(b"ond\n") + assembler.close()] == ["second"]

    def test_an_event_is_not_wrapped_twice(self):
        event = Event.new("mine.done", {"cls_type": "x"}, level="ERROR")
        (found,) = events_of(encode(event) + b"\n")
        assert found == event

    def test_a_line_without_end_is_cut_and_memory_stays_bounded(self):
        assembler = LineAssembler("tap-x")
        events = []
        for _ in range(100):
            events += assembler.feed(b"x" * 65536)
            assert len(assembler._lines._partial) <= 512 * 1024
        events += assembler.feed(b"\nINFO after\n") + assembler.close()
        assert len(events) == 2
        assert 256 * 1024 <= len(events[0].payload["message"]) <= 512 * 1024
        assert gist(events[1]) == ("INFO", "after")

    def test_endless_continuation_does_not_grow_one_event_for_ever(self):
        events = events_of(b"INFO start\n" + b"  more\n" * 5000)
        assert len(events) > 1
        assert sum(event.payload["message"].count("more") for event in events) == 5000


class TestAnything:
    @pytest.mark.parametrize(
        "line",
        [
            b"\xff\xfe\x00",
            b'INFO METRIC: {"type": "counter"',
            b'INFO METRIC: {"type": "counter", "metric": "x", "value": "many"}',
            b'INFO METRIC: {"type": "counter", "metric": "x", "value": true}',
            b'INFO METRIC: {"type": "counter", "metric": "x", "value": NaN}',
            b"INFO METRIC: " + b"[" * 50_000,
            b"INFO METRIC: {'type': 'counter', 'metric': 'x', 'value': __import__('os').getpid()}",
            b"INFO METRIC: {'type': 'counter', 'metric': 'x', 'value': 1e999}",
            b"INFO METRIC: {'type': 'counter', 'metric': 'x', 'value': 1, 'tags': {'a': {1, 2j}}}",
            b"INFO METRIC: {'a': " + b"(" * 9_000,
            b"INFO METRIC: {'value': " + b"-" * 9_000 + b"1}",
            b"INFO METRIC: {'" + b"x" * 20_000 + b"': 1}",
            b'INFO [2022-10-21T00:50:20] {"message": 1}',
            b'{"level":"info","message":"x","ts":1e300}',
            b'{"level":"info","message":"x","ts":"late"}',
            b'{"schema":"0.1.0","header":{}}',
            b"9999-99-99 99:99:99,999 | INFO | a | hello",
        ],
    )
    def test_odd_lines_are_log_events(self, line):
        (event,) = events_of(line + b"\n")
        assert event.cls_type == "log"

    @given(st.lists(st.binary(max_size=200)), st.integers(1, 64))
    def test_bytes_in_any_chunks_give_events_that_decode(self, lines, size):
        """Given any bytes in chunks of any size, then the same events come out as when they come at once."""
        data = b"\n".join(lines)
        assembler = LineAssembler("tap-x")
        events = [event for i in range(0, len(data), size) for event in assembler.feed(data[i : i + size])]
        events += assembler.close()
        assert [event.payload for event in events] == [event.payload for event in events_of(data)]
        for event in events:
            assert decode(encode(event)) == event


KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowhunter2\nhunter2AQEA\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "lines",
    [
        f"INFO uses\n{KEY}",
        "\n".join(f"INFO {line}" for line in KEY.split("\n")),
        f"plain\n{KEY}",
        f'ERROR x\nTraceback (most recent call last):\n  File "a.py", line 1, in b\nValueError: {KEY}',
        'WARNING password="first\nhunter2\nhunter2"',
        "INFO {'token': 'first\nhunter2' ok",
        'secret = """\nhunter2\n"""',
        "<password>\nhunter2\n</password>",
        *(
            f'Traceback (most recent call last):\n  File "a.py", line 1, in b\n{kind}: {text}'
            for kind in ("ValueError", "a.<locals>.B")
            for text in (
                "password='a\nhunter2\nhunter2'",
                'config password="abc\nhunter2"',
                'password = """\nhunter2\n"""',
                "<password>\nhunter2\n</password>",
                "password:\n  hunter2",
                "level=info msg=login password: hunter2",
                "level=info msg=login password: 'a\nhunter2'",
                "level=error msg=failed --password hunter2",
                "level=debug msg=sent Authorization: Bearer hunter2hunter2",
                "level=debug msg=sent Bearer hunter2hunter2",
            )
        ),
    ],
)
def test_a_secret_of_several_lines_is_one_event_that_redaction_recognizes(lines: str) -> None:
    assembler = LineAssembler("tap")
    events = [event for line in f"{lines}\nINFO done\n".splitlines(True) for event in assembler.feed(line.encode())]
    events += assembler.close()
    assert "hunter2" not in "".join(str(Redactor().redact(event.payload)) for event in events)
    assert events[-1].payload["message"] == "done"


@pytest.mark.parametrize("rest", [b'hunter2\n"\n', b'hunter2" user=bob\nINFO done\n'])
def test_a_secret_that_goes_on_after_a_pause_is_one_event(rest: bytes) -> None:
    assembler = LineAssembler("tap")
    assert assembler.feed(b'INFO first\nINFO password="a\n')[0].payload["message"] == "first"
    assert assembler.flush() == []
    events = assembler.feed(rest) + assembler.flush() + assembler.close()
    assert events[0].payload["message"].startswith('password="a\nhunter2')
    assert "hunter2" not in "".join(str(Redactor().redact(event.payload)) for event in events)


@pytest.mark.parametrize(
    "line", ['password="one" ok', "a -----BEGIN CERTIFICATE-----", 'name: "a', KEY.replace("\n", " ")]
)
def test_a_line_without_an_open_secret_takes_no_other(line: str) -> None:
    assembler = LineAssembler("tap")
    events = assembler.feed(f"INFO {line}\nINFO done\n".encode()) + assembler.close()
    assert [event.payload["message"] for event in events] == [line, "done"]


def test_a_secret_without_an_end_takes_a_hundred_lines() -> None:
    assembler = LineAssembler("tap")
    events = assembler.feed(b"-----BEGIN PRIVATE KEY-----\n" + b"line\n" * 103) + assembler.close()
    assert len(events) == 4


@pytest.mark.parametrize(
    "first",
    [
        "INFO:root:cannot read key: no start line: expecting -----BEGIN PRIVATE KEY-----",
        "INFO:root:config: {'token': 'abcdefgh...",
        "password='hunter2hunter2 (truncated)",
        'set cookie: "a=b',
        'password = """',
        "usage: login <password>",
        r"""{"level":"info","message":"password=\"abc"}""",
        r"""{"text":"password=\"abc"}""",
    ],
)
@pytest.mark.parametrize(
    "record",
    [
        "ERROR:root:row 1",
        "2024-01-02 03:04:05,678 - app - ERROR - row 1",
        '{"level":"error","message":"row 1"}',
        'Traceback (most recent call last):\n  File "a.py", line 1, in b\nValueError: row 1',
        "panic: row 1",
    ],
)
def test_a_record_ends_what_only_looks_like_the_start_of_a_secret(first: str, record: str) -> None:
    assembler = LineAssembler("tap")
    events = assembler.feed("\n".join([first, *[record] * 150, ""]).encode()) + assembler.close()
    assert [event.level == "INFO" for event in events] == [True] + [False] * 150
