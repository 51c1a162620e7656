"""The pages about streams of endpoints: their taps run against a server, and they have all settings."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from balog.tap.endpoints import BulkStream, GraphQLStream, RestStream
from balog.tap.endpoints.bulk_job import BulkJob
from balog.tap.paging.named import named_paging
from balog.tap.streams.settings import SETTINGS
from tests.documentation import Block, blocks, page_text, run_block, run_page, run_task
from tests.stand_ins.graphql_server import Issues
from tests.stand_ins.http_server import HttpStandIn
from tests.stand_ins.job_server import Jobs


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("taps", SETTINGS),
        ("tap-rest", RestStream.own_settings),
        ("tap-graphql", GraphQLStream.own_settings),
        ("tap-bulk", BulkStream.own_settings),
    ],
)
def test_a_page_has_all_settings(page: str, settings: object) -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", page_text(page), re.MULTILINE)
    assert set(settings) <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_pagings_of_the_page_exist() -> None:
    pagings = re.findall(r'^\| `"([^"]+)"` \|', page_text("tap-rest"), re.MULTILINE)
    assert len(pagings) == 6
    for text in pagings:
        named_paging(text)


def test_the_class_of_the_page_runs(tmp_path: Path) -> None:
    (printed,) = run_page("taps.md", tmp_path)
    assert '"table":"DEALS"' in printed


def test_the_sources_of_schemas_on_the_page_exist(tmp_path: Path) -> None:
    page = blocks(page_text("tap-schemas"))
    for block in page:
        if block.name:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
    code = [block.text for block in page if block.language == "python"]
    assert len(code) == 3
    run_block(Block("python", "", 0, "\n".join(code)), tmp_path)


def test_a_bulk_tap_runs(tmp_path: Path) -> None:
    rows = [{"id": number, "name": "x", "updated": f"2026-01-{number:02}T00:00:00Z"} for number in range(1, 8)]
    jobs = Jobs(rows, polls=0)
    with HttpStandIn(jobs.respond) as server:
        jobs.host = server.url
        assert run_task("write-a-bulk-tap.md", tmp_path, server.url)
    assert list(jobs.jobs) == ["1"]


def test_the_state_of_a_bulk_stream_is_that_of_the_code() -> None:
    [state] = [json.loads(block.text) for block in blocks(page_text("tap-bulk")) if block.language == "json"]
    job = state["bookmarks"]["orders"]["job"]
    assert msgspec.to_builtins(msgspec.convert(job, BulkJob, strict=True)) == {
        k: v for k, v in job.items() if k != "attempt"
    }


def test_a_graphql_tap_runs_and_sends_the_query_that_the_page_shows(tmp_path: Path) -> None:
    issues = Issues()
    with HttpStandIn(issues.respond) as server:
        assert run_task("write-a-graphql-tap.md", tmp_path, server.url)

        catalog = json.loads((tmp_path / "catalog.json").read_text())
        [stream] = catalog["streams"]
        for entry in stream["metadata"]:
            path = [part for part in entry["breadcrumb"] if part != "properties"]
            is_wanted = path in ([], ["title"], ["author"], ["author", "login"])
            entry["metadata"]["selected"] = is_wanted
        (tmp_path / "catalog.json").write_text(json.dumps(catalog))
        run_block(Block("sh", "", 0, "python tap_issues.py --config config.json --catalog catalog.json"), tmp_path)
    [query] = [block.text for block in blocks(page_text("tap-graphql"))]
    assert issues.documents[-1]["query"] == query.strip()
