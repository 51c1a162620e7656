"""The program of ``docs/how-to/log-with-sentry.md`` with the real sentry_sdk and a transport that records."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.services.hosts import run_in, write_page_files

RECORDED = """
import functools, json, runpy, sys
import sentry_sdk
from sentry_sdk.transport import Transport

class Recording(Transport):
    def capture_envelope(self, envelope):
        for item in envelope.items:
            if item.type == "event":
                print(json.dumps(item.payload.json))

sentry_sdk.init = functools.partial(  # the integrations of every library here take seconds to import
    sentry_sdk.init, dsn="https://key@sentry.example/1", transport=Recording, auto_enabling_integrations=False
)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
BOTH_WAYS = """
import logging, sentry_sdk, balog
from balog.log.stdlib import install
sentry_sdk.init()
balog.configure(["stderr", "logging"])
install()
logging.getLogger("library").error("of the library")
balog.get_logger("own").error("of the program", password="hunter2-secret")
"""


def sentry_events(folder: Path, program: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run a program. Return the events that Sentry got and those on stderr."""
    done = run_in(folder, sys.executable, "-c", RECORDED, program, BALOG_CONFIG="")
    return [json.loads(line) for line in done.stdout.splitlines()], [json.loads(s) for s in done.stderr.splitlines()]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What Sentry got of the page's program, which wrote three events on stderr."""
    folder = tmp_path_factory.mktemp("sentry")
    write_page_files("log-with-sentry.md", folder, "report.py")
    at_sentry, on_stderr = sentry_events(folder, "report.py")
    assert [event["header"]["channel"] for event in on_stderr] == ["report", "report", "report.rejected"]
    return at_sentry


def test_each_error_is_one_event_with_its_exception(reported: list[dict[str, Any]]) -> None:
    average, rejected = reported
    assert (average["logger"], average["level"]) == ("report", "error")
    (exception,) = average["exception"]["values"]
    assert (exception["type"], exception["value"]) == ("ZeroDivisionError", "division by zero")
    assert exception["stacktrace"]["frames"][-1]["context_line"].strip() == "print(3 / 0)"
    assert "exception" not in rejected
    assert rejected["logger"] == "report.rejected"


def test_earlier_events_are_breadcrumbs_in_order(reported: list[dict[str, Any]]) -> None:
    _, rejected = reported
    crumbs = rejected["breadcrumbs"]["values"]
    assert [(crumb["message"], crumb["level"]) for crumb in crumbs] == [("started", "info"), ("no average", "error")]


def test_context_and_payload_are_extras(reported: list[dict[str, Any]]) -> None:
    _, rejected = reported
    assert rejected["extra"]["context"]["customer"] == 7
    assert rejected["extra"]["payload"]["rows"] == 2


def test_records_and_events_arrive_once_and_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(BOTH_WAYS)
    at_sentry, on_stderr = sentry_events(tmp_path, "both.py")
    texts = ["of the library", "of the program"]
    assert [event["logentry"]["message"] for event in at_sentry] == texts
    assert [event["payload"]["message"] for event in on_stderr] == texts
    assert "hunter2" not in json.dumps(at_sentry)
