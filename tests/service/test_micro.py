"""The whole service in one process: what a test or a CI job sees of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
from click.testing import CliRunner

from balog.cli import main
from balog.common.errors import ConfigError
from balog.service import ServiceClient
from balog.service.document import ControlDocument, EventStream
from balog.service.micro import Micro
from tests.service.serving import ORDER as ORDER_SCHEMA
from tests.service.serving import put_schema

pytest_plugins = ["pytester"]

ORDER = {"cls_type": "order", "version": "1.0.0", "price": 1}
REFUSED = {"cls_type": "order", "version": "1.0.0", "price": "dear"}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    put_schema(tmp_path / "schemas", "order", "1.0.0", ORDER_SCHEMA)
    return tmp_path / "schemas"


def test_events_are_there_and_what_is_refused_is_told(registry: Path) -> None:
    with Micro(registry) as micro:
        assert [ack.status for ack in micro.client.send([ORDER, REFUSED])] == [202, 422]

        [order] = micro.events("order")
        [failed] = micro.failed()

        assert order.payload == ORDER
        assert (failed.type, failed.type_version, failed.problems[0].path) == ("order", "1.0.0", "$.payload.price")
        with pytest.raises(AssertionError, match=r"(?s)1 failed event:.*order 1\.0\.0: \$\.payload\.price"):
            micro.assert_no_failed_events()


def test_what_is_refused_is_counted_under_its_stream_and_shown_without_control_characters(registry: Path) -> None:
    document = ControlDocument(streams=(EventStream(name="sales", types=("order",)),))
    with Micro(registry, document) as micro:
        micro.client.send([REFUSED, {**REFUSED, "note": "\x1b[2J\u202e"}, {"cls_type": "novel\x1b[31m"}])
        (line, hostile, novel) = [str(one) for one in micro.failed()]
        counts = micro._service.metrics.outcomes()

    assert line.startswith("order 1.0.0: $.payload.price")
    assert all(text.isprintable() for text in (line, hostile, novel))
    assert "novel\N{REPLACEMENT CHARACTER}[31m" in novel
    assert counts == {("sales", "422", ""): 2, ("", "422", ""): 1}


@pytest.mark.parametrize(
    ("body", "status"), [(b"{bad", 400), (b'"q\\ud800"', 400), (b'{"a": "%b"}' % (b"x" * (1 << 20)), 413)]
)
def test_what_no_failed_event_can_keep_is_rejected_too(registry: Path, body: bytes, status: int) -> None:
    with Micro(registry) as micro:
        micro.client.send([ORDER])
        micro.assert_no_failed_events()
        answer = urllib3.request("POST", f"{micro.url}/v1/events", body=body)
        assert (answer.status, micro.failed()) == (status, [])
        with pytest.raises(AssertionError, match=f"1 rejected with {status}"):
            micro.assert_no_failed_events()
        micro.reset()
        micro.assert_no_failed_events()


def test_a_body_that_is_rejected_whole_fails_the_command() -> None:
    code = "import os, urllib3; urllib3.request('POST', os.environ['BALOG_SERVICE'] + '/v1/events', body=b'{bad')"
    done = CliRunner().invoke(main, ["micro", "--", sys.executable, "-c", code])
    assert (done.exit_code, "0 events accepted, 1 rejected" in done.stderr) == (1, True)


def test_without_a_registry_unknown_types_are_taken() -> None:
    with Micro() as micro:
        micro.client.send([{"cls_type": "novel", "n": 1}])

        assert [event.payload["n"] for event in micro.events("novel")] == [1]
        micro.assert_no_failed_events()


def test_after_a_reset_only_later_events_are_there(registry: Path) -> None:
    with Micro(registry) as micro:
        micro.client.send([ORDER, REFUSED])
        micro.reset()
        micro.client.send([{**ORDER, "price": 2}])

        assert [event.payload["price"] for event in micro.events()] == [2]
        assert micro.failed() == []


def test_a_document_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text('{"streams": [{"name": "a", "wher": "x"}]}')

    with pytest.raises(ConfigError, match=r"wher.*did you mean 'where'") as refused:
        Micro(document=path)
    assert str(path) in str(refused.value)


def test_every_problem_of_a_document_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text('{"streams": [{"name": "a", "wher": "x", "types": "b"}], "zzz": 1}')

    done = CliRunner().invoke(main, ["micro", "--document", str(path), "--", "true"])

    assert done.exit_code == 2
    wanted = ["$.streams[0]: there is no field 'wher'", "$.streams[0].types: ", "$: there is no field 'zzz'"]
    for words in wanted:
        assert f"balog micro: {path}: {words}" in done.output


def test_data_that_is_kept_is_there_again(tmp_path: Path) -> None:
    for number in range(2):
        with Micro(data=tmp_path / "data") as micro:
            micro.client.send([{**ORDER, "n": number}])
            assert [event.payload["n"] for event in micro.events()] == list(range(number + 1))


class TestFixture:
    @pytest.fixture
    def project(self, pytester: pytest.Pytester, registry: Path) -> pytest.Pytester:
        pytester.makeini(f"[pytest]\nbalog_registry = {registry}\n")
        return pytester

    def test_a_test_sees_its_own_events_alone(self, project: pytest.Pytester) -> None:
        project.makepyfile(
            f"""
            import pytest

            @pytest.mark.parametrize("n", [1, 2])
            def test_one(micro, n):
                micro.client.send([{ORDER!r}] * n)
                assert len(micro.events("order")) == n
                micro.assert_no_failed_events()

            def test_two(micro):
                micro.client.send([{REFUSED!r}])
                micro.assert_no_failed_events()
            """
        )

        done = project.runpytest_inprocess("-p", "no:cacheprovider")

        done.assert_outcomes(passed=2, failed=1)
        done.stdout.fnmatch_lines(["*1 failed event:*", "*$.payload.price*"])


class TestCommand:
    def test_what_is_in_the_folder_already_is_not_this_command_s(self, registry: Path, tmp_path: Path) -> None:
        document = tmp_path / "document.json"
        document.write_text('{"filters": [{"name": "all", "sources": ["order"], "to": "copy"}]}')
        words = ["micro", "--registry", str(registry), "--document", str(document), "--data", str(tmp_path / "data")]
        program = (
            "import os, time; from balog.service import ServiceClient\n"
            "with ServiceClient(os.environ['BALOG_SERVICE']) as client: client.send([{}])\n"
            "time.sleep(1)"
        )
        before = CliRunner().invoke(main, [*words, "--", sys.executable, "-c", program.format(REFUSED)])
        assert before.exit_code == 1
        assert "rejected: order 1.0.0: $.payload.price" in before.stderr

        done = CliRunner().invoke(main, [*words, "--", sys.executable, "-c", program.format(ORDER)])

        assert "1 event accepted (order 1), 0 rejected" in done.stderr
        assert done.exit_code == 0

    def test_the_command_s_own_code_is_the_end_s(self) -> None:
        done = CliRunner().invoke(main, ["micro", "--", sys.executable, "-c", "raise SystemExit(7)"])

        assert done.exit_code == 7

    def test_a_command_that_is_not_there_is_one_line(self) -> None:
        done = CliRunner().invoke(main, ["micro", "--", "/nowhere/at/all"])

        assert done.exit_code == 1
        assert "/nowhere/at/all cannot be run: No such file" in done.stderr

    def test_without_a_command_it_tells_what_is_refused_until_it_is_stopped(self, registry: Path) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "balog", "micro", "--registry", str(registry), "--listen", ":0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stderr is not None
        with child:
            url = child.stderr.readline().split("; ")[0].rpartition(" ")[2]
            with ServiceClient(url) as client:
                client.send([ORDER, REFUSED])
            told = child.stderr.readline()
            child.send_signal(signal.SIGTERM)
            rest = child.stderr.read()

        assert "rejected: order 1.0.0: $.payload.price" in told
        assert "1 event accepted (order 1), 1 rejected" in rest
        assert child.returncode == 1


def test_a_registry_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="schmas: no such folder of schemas"):
        Micro(registry=tmp_path / "schmas")
