"""The packages of the pages on plug-ins work as they stand there."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from balog.event import Event, encode
from balog.topics import Message, open_topics
from tests.documentation import docs_page
from tests.programs import run_program
from tests.stand_ins.http_server import HttpStandIn
from tests.stand_ins.packages import install

PAGES = "".join(
    docs_page(f"{name}.md").read_text()
    for name in (
        "write-a-sink", "test-a-sink", "write-a-hook", "write-a-ledger", "write-a-redaction-rule", "write-a-dialect",
    )
)  # fmt: skip
MODULES = dict(re.findall(r"```\w+ (\S+)\n(.*?)```", PAGES, re.DOTALL))
HANDLERS = """
from balog.consumers import consumer_config

@consumer_config(topic="orders")
def ship(settings, event):
    print(event.payload["n"])
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*arguments: str, feed: str = "", code: int = 0, **environment: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        variables = {**os.environ, "PYTHONPATH": path, **environment}
        return run_program(sys.executable, "-m", *arguments, cwd=tmp_path, env=variables, feed=feed, code=code)

    return run


@pytest.fixture
def orders(tmp_path: Path) -> None:
    """A topic with two orders, and a package that ships them."""
    (tmp_path / "team.py").write_text(HANDLERS)
    events = [Event.new("shop", {"cls_type": "order", "n": number}) for number in range(2)]
    with open_topics(f"local:{tmp_path / 'topics'}") as topics:
        topics.topic("orders").publish([Message(event.header.id, encode(event)) for event in events])


@pytest.fixture
def ntfy() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server


def test_a_sink_is_added_by_the_recipe(run: Run, tmp_path: Path, ntfy: HttpStandIn) -> None:
    install(tmp_path, "balog-ntfy", MODULES["balog_ntfy.py"], "balog.sinks", "ntfy = balog_ntfy:NtfySinkConfig")
    config = tmp_path / "broker.json"
    config.write_text(json.dumps({"sinks": [{"type": "ntfy", "topic": "pipelines", "url": ntfy.url}]}))
    line = '{"type": "LOG", "level": "ERROR", "value": {"message": "no rows"}}\n'

    assert "of balog-ntfy 1.2" in " ".join(run("balog", "--help").stdout.split())
    run("balog", "check", str(config), "--connect")
    assert run("balog", "broker", "--config", str(config), feed=line).stdout == line

    (tmp_path / "rows.py").write_text(MODULES["rows.py"].replace('"topic"', f'"url": {ntfy.url!r}, "topic"'))
    run("rows")

    bodies = [json.loads(request.body) for request in ntfy.requests if request.body]
    assert bodies == [{"topic": "pipelines", "message": "no rows"}] * 2


def test_the_sink_of_the_page_keeps_the_contract(run: Run, tmp_path: Path) -> None:
    (tmp_path / "balog_ntfy.py").write_text(MODULES["balog_ntfy.py"])
    (tmp_path / "test_balog_ntfy.py").write_text(MODULES["test_balog_ntfy.py"])

    assert re.search(r"\b1\d passed", run("pytest", "-p", "no:cacheprovider", "test_balog_ntfy.py").stdout)


def test_a_hook_observes_a_run(run: Run, tmp_path: Path, orders: None) -> None:
    install(tmp_path, "balog-slow", MODULES["balog_slow.py"], "balog.hooks", "slow = balog_slow:SlowHandlers")
    consume = ("balog", "consume", "team", "--topics", "local:topics", "--until-empty", "--hook")

    assert "of balog-slow 1.2" in " ".join(run("balog", "--help").stdout.split())
    assert "no consumer hook 'slo' is installed; did you mean 'slow'?" in run(*consume, "slo", code=2).stderr
    done = run(*consume, "slow", SLOW_SECONDS="0")

    assert done.stdout == "0\n1\n"
    assert done.stderr.count("slow: team.ship took 0.0 s for 1 events") == 2
    assert "balog: 2 slow calls" in done.stderr


def test_a_ledger_keeps_the_results_of_handlers(run: Run, tmp_path: Path, orders: None) -> None:
    install(tmp_path, "balog-lines", MODULES["balog_lines.py"], "balog.ledgers", "lines = balog_lines:open_lines")
    consume = ("balog", "consume", "team", "--topics", "local:topics", "--until-empty", "--ledger")

    assert "lines:…" in run(*consume, "line:x", code=2).stderr
    assert "lines: names no file" in run(*consume, "lines:", code=2).stderr
    handlers = HANDLERS.replace('"orders"', '"orders", retries=0')
    (tmp_path / "team.py").write_text(handlers + "    raise ValueError('no address')\n")
    run(*consume, "lines:ledger.jsonl", code=1)
    entries = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert {(group, consumer) for group, _, consumer, _ in entries} == {("balog", "orders/team.ship")}
    assert {event for _, event, _, reason in entries if "no address" in reason} == {event for _, event, _, _ in entries}


def test_the_ledger_of_the_page_keeps_the_contract(run: Run, tmp_path: Path) -> None:
    (tmp_path / "balog_lines.py").write_text(MODULES["balog_lines.py"])
    (tmp_path / "test_balog_lines.py").write_text(
        "import pytest\n"
        "from balog_lines import LinesLedger\n"
        "from balog.testing.contracts import LedgerContract\n\n\n"
        "class TestLines(LedgerContract):\n"
        "    @pytest.fixture\n"
        "    def open_ledger(self, tmp_path):\n"
        "        return lambda window=None: LinesLedger(tmp_path / 'ledger.jsonl')\n"
    )

    run("pytest", "-p", "no:cacheprovider", "test_balog_lines.py")


def test_a_redaction_rule_hides_what_it_names(run: Run, tmp_path: Path) -> None:
    install(tmp_path, "balog-iban", MODULES["balog_iban.py"], "balog.redaction", "iban = balog_iban:iban")
    config = tmp_path / "logger.json"
    config.write_text(MODULES["logger.json"])
    event = "to_iban='x-of-ann', note='by DE89 3704 0044 0532 0130 00 now'"
    program = f"import balog; balog.get_logger('shop').info('paid', {event})"
    (tmp_path / "shop.py").write_text(program)

    run("balog", "check", "--for", "logger", str(config))
    shown = run("shop", BALOG_CONFIG=str(config)).stderr

    assert "by [redacted] now" in shown
    assert "x-of-ann" not in shown  # longer than what an id can have by chance
    config.write_text('{"redact": {"rules": ["ibann"]}}')
    refused = run("balog", "check", "--for", "logger", str(config), code=2).stderr
    assert "no redaction rule 'ibann' is installed; did you mean 'iban'?" in refused


def test_a_dialect_reads_a_tap_s_lines(run: Run, tmp_path: Path) -> None:
    install(tmp_path, "balog-glog", MODULES["balog_glog.py"], "balog.dialects", "glog = balog_glog:glog")
    config = tmp_path / "run.json"
    config.write_text(MODULES["run.json"])
    tap = "import sys; print('W1120 07:46:12.123456 4711 source.cc:12] no rows', file=sys.stderr)"

    run("balog", "check", "--for", "run", str(config))
    run("balog", "run", "--config", str(config), "--", sys.executable, "-c", tap)

    dumped = run("balog", "topics", "describe", "logs", "--topics", "local:topics", "--json")
    assert json.loads(dumped.stdout)
    with open_topics(f"local:{tmp_path / 'topics'}") as topics:
        bodies = [received.body for received in topics.topic("logs").receive("test", 100)]
    [event] = [event for body in bodies if (event := json.loads(body))["payload"].get("message") == "no rows"]
    assert event["header"]["level"] == "WARNING"
    config.write_text('{"dialects": ["log"], "sinks": []}')
    refused = run("balog", "check", "--for", "run", str(config), code=2).stderr
    assert "no stderr dialect 'log' is installed; did you mean 'glog'?" in refused
    assert "$.dialects[0]" in refused


@pytest.mark.parametrize("wrong", ["'INFO'", "LogLine(level='LOUD')", "LogLine(logger=7)", "exit(9)"])
def test_a_wrong_dialect_is_reported_once_and_costs_no_line(run: Run, tmp_path: Path, wrong: str) -> None:
    code = f"from balog.log_lines.line import LogLine\n\n\ndef odd(line):\n    return {wrong}\n"
    install(tmp_path, "balog-odd", code, "balog.dialects", "odd = balog_odd:odd")
    config = tmp_path / "run.json"
    config.write_text('{"dialects": ["odd"], "sinks": [{"type": "topic", "url": "local:topics", "topic": "logs"}]}')
    tap = "import sys; print('ERROR one: first\\nERROR one: last', file=sys.stderr)"

    done = run("balog", "run", "--config", str(config), "--", sys.executable, "-c", tap)

    assert done.stderr.count("dialect 'odd' failed, now and maybe again") == 1
    with open_topics(f"local:{tmp_path / 'topics'}") as topics:
        payloads = [json.loads(one.body)["payload"] for one in topics.topic("logs").receive("test", 100)]
    assert [payload.get("message", payload["cls_type"]) for payload in payloads] == ["one: first", "one: last", "run"]


@pytest.mark.parametrize("wrong", ["iban = balog_iban:nothing", "iban = balog_other:iban"])
def test_a_wrong_redaction_rule_leaves_the_others(run: Run, tmp_path: Path, wrong: str) -> None:
    install(tmp_path, "balog-iban", MODULES["balog_iban.py"], "balog.redaction", wrong, "good = balog_iban:iban")
    config = tmp_path / "logger.json"
    rules = {"emails": True, "rules": ["iban", "good"], "extra_keys": ["size"], "extra_patterns": ["(", "order [a-z]+"]}
    config.write_text(json.dumps({"output": "stderr", "redact": rules}))
    (tmp_path / "shop.py").write_text(
        "import balog; balog.get_logger('shop').info('order abc of ann@example.com', to_iban='x-of-ann', size=44)"
    )

    complaint, line = run("shop", BALOG_CONFIG=str(config)).stderr.splitlines()

    assert "balog_" in complaint
    assert complaint.endswith("; going on with its valid redaction rules alone")
    payload = json.loads(line)["payload"]
    assert payload["message"] == "[redacted] of [redacted]"
    assert payload["fields"] == {"to_iban": "[redacted]", "size": "[redacted]"}
