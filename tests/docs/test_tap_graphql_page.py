"""The page about streams of GraphQL: its tap runs against a server, and its query is the one that is sent."""

import json
import re
import subprocess
from pathlib import Path

from balog.tap.endpoints import GraphQLStream
from tests.documentation import docs_page, reader_environment
from tests.stand_ins.graphql_server import Issues
from tests.stand_ins.http_server import HttpStandIn

ROOT = Path(__file__).parents[2]
TEXT = docs_page("tap-graphql.md").read_text(encoding="utf-8")
HOW_TO = docs_page("write-a-graphql-tap.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```", HOW_TO + TEXT, re.DOTALL | re.MULTILINE)


def test_its_tap_runs_and_sends_the_query_that_it_shows(tmp_path: Path) -> None:
    environment = {**reader_environment(), "PYTHONPATH": str(ROOT)}
    [[_, name, code], [_, _, commands], [_, _, shown], [_, _, query]] = BLOCKS
    issues = Issues()

    def run(text: str) -> str:
        command = ["bash", "-e", "-o", "pipefail", "-c", text]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
        return ran.stdout

    with HttpStandIn(issues.respond) as server:
        (tmp_path / name).write_text(code.replace("https://api.example.com", server.url), encoding="utf-8")
        assert run(commands) == shown

        catalog = json.loads((tmp_path / "catalog.json").read_text())
        [stream] = catalog["streams"]
        for entry in stream["metadata"]:
            path = [part for part in entry["breadcrumb"] if part != "properties"]
            is_wanted = path in ([], ["title"], ["author"], ["author", "login"])
            entry["metadata"]["selected"] = is_wanted
        (tmp_path / "catalog.json").write_text(json.dumps(catalog))
        run(f"python {name} --config config.json --catalog catalog.json > second.jsonl")
        assert issues.documents[-1]["query"] == query.strip()


def test_it_has_all_settings() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", TEXT, re.MULTILINE)
    assert set(GraphQLStream.own_settings) <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}
