"""Taps that others made, each ready to run on data of this machine: command, config, environment."""

from __future__ import annotations

import csv
import json
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.programs import environment_without, run_program
from tests.services.servers.elasticmq import bare_client
from tests.services.servers.moto import running_moto
from tests.services.servers.postgres import Database, PostgresServer

__all__ = ["MORE_TAPS", "TAPS", "RealTap", "prepared"]

ROOT = Path(__file__).parents[2]
PEOPLE = 300
TOKEN = "glpat-only-of-this-test"


@dataclass(frozen=True)
class RealTap:
    """How one tap is run.

    Attributes:
        script: the program's file, if the environment has only its Python.
        by: by ``tap_stream_id`` the replication key of a stream that its catalog leaves to be chosen.
    """

    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)
    script: Path | None = None


def people() -> list[dict[str, Any]]:
    """Records with what taps and targets differ in: nulls, decimals, times, objects, letters beyond ASCII."""
    return [
        {
            "id": number,
            "name": f"Zoë {number}" if number % 3 else None,
            "price": round(1.1 * number, 2),
            "is_new": number % 2 == 0,
            "place": {"x": number, "tags": ["a", "b"]},
            "updated_at": f"2026-11-20T{number // 60:02}:{number % 60:02}:12Z",
        }
        for number in range(1, PEOPLE + 1)
    ]


def installed(name: str, program: str) -> str:
    """Give the path of a program of one of the Makefile's environments; skip where it is not."""
    if not (ROOT / ".demo" / name / "installed").exists():
        pytest.skip(f".demo/{name} is not installed: run make test-parts")
    return str(ROOT / ".demo" / name / "bin" / program)


@contextmanager
def _jsonl(folder: Path, postgres: Any) -> Iterator[RealTap]:
    (folder / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in people()))
    config = {"path": str(folder / "people.jsonl"), "stream_name": "people", "primary_keys": ["id"]}
    yield RealTap(config)


@contextmanager
def _weather(folder: Path, postgres: Any) -> Iterator[RealTap]:
    for year in (2024, 2025):
        days = [
            {"date": f"{year}-01-{day:02}", "precipitation": 0.5, "temp_max": 3.5, "weather": "rain"}
            for day in range(1, 31)
        ]
        (folder / f"{year}.jsonl").write_text("".join(json.dumps(day) + "\n" for day in days))
    config = {"source": str(folder / "{year}.jsonl"), "years": [2024, 2025]}
    yield RealTap(config, script=ROOT / "demo" / "tap_weather.py")


def _fill(database: Database) -> None:
    rows = json.dumps(people())
    database.run(
        f"""
        CREATE TABLE people (id integer PRIMARY KEY, name text, price numeric(10, 2), is_new boolean, place jsonb,
                             updated_at timestamptz NOT NULL);
        INSERT INTO people SELECT * FROM json_populate_recordset(NULL::people, $json${rows}$json$);
        CREATE TABLE cities (code text PRIMARY KEY, founded date, area double precision);
        INSERT INTO cities VALUES ('BER', '1237-10-28', 891.1), ('ZRH', NULL, 87.88), ('KRK', '1257-06-05', 326.85);
        """
    )


@contextmanager
def _postgres(folder: Path, postgres: Any) -> Iterator[RealTap]:
    server: PostgresServer = postgres()
    database = server.database("source_sdk")
    _fill(database)
    config = {**database.config, "filter_schemas": ["public"]}
    yield RealTap(config, by={"public-people": "updated_at"})


@contextmanager
def _postgres_pipelinewise(folder: Path, postgres: Any) -> Iterator[RealTap]:
    server: PostgresServer = postgres()
    database = server.database("source_pipelinewise")
    _fill(database)
    config = {**database.config, "port": str(database.port), "dbname": database.name, "filter_schemas": "public"}
    config["default_replication_method"] = "FULL_TABLE"
    yield RealTap(config, by={"public-people": "updated_at"})


@contextmanager
def _s3_csv(folder: Path, postgres: Any) -> Iterator[RealTap]:
    with running_moto(folder) as server:
        s3 = bare_client(server.endpoint, "s3")
        where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-central-1"}}
        s3.create_bucket(Bucket="tables", **where)
        _write_csv(folder / "tables" / "people.csv")
        s3.put_object(Bucket="tables", Key="people/1.csv", Body=(folder / "tables" / "people.csv").read_bytes())
        table = {"table_name": "people", "search_prefix": "people", "search_pattern": r".*\.csv"}
        config = {
            "start_date": "2020-01-01T00:00:00Z",
            "bucket": "tables",
            "aws_endpoint_url": server.endpoint,
            "aws_access_key_id": "only",
            "aws_secret_access_key": "of-this-test",
            "tables": [{**table, "key_properties": ["id"], "date_overrides": ["updated_at"]}],
        }
        keys = {"AWS_ACCESS_KEY_ID": "only", "AWS_SECRET_ACCESS_KEY": "of-this-test"}
        # It looks for the bucket at AWS first, whatever its config says: let it not get there.
        nowhere = {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1", "AWS_MAX_ATTEMPTS": "1"}
        yield RealTap(config, {**keys, **nowhere, "AWS_DEFAULT_REGION": "eu-central-1"})


class _Api(BaseHTTPRequestHandler):
    """People in pages of a hundred, and as much of GitLab's API as its tap asks for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        page = int(parse_qs(url.query).get("page", ["1"])[0])
        found = _people_page(page) if url.path == "/people" else _gitlab(url.path.removeprefix("/api/v4"), page)
        body = _feed_page() if url.path == "/feed" else json.dumps(found).encode()
        self.send_response(404 if found is None and url.path != "/feed" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Total-Pages", "2" if url.path.endswith("/commits") else "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def _people_page(page: int) -> dict[str, Any]:
    rows = [{**row, "place": row["place"]["x"]} for row in people()]
    return {"people": rows[(page - 1) * 100 : page * 100], "next_page": page + 1 if page * 100 < PEOPLE else None}


def _gitlab(path: str, page: int) -> Any:
    at = "2026-11-20T07:00:00.000Z"
    parts = path.strip("/").split("/")
    if parts[0] != "projects" or parts[1] not in ("1", "2"):
        return None
    project = int(parts[1])
    if len(parts) == 2:
        owner = {"id": 7, "name": "Ada", "username": "ada"}
        times = {"created_at": at, "last_activity_at": f"2026-11-2{project}T08:00:00.000Z"}
        return {"id": project, "name": f"project {project}", "owner": owner, "tag_list": [], **times}
    match parts[-1]:
        case "branches":
            return [{"name": "main", "merged": False, "protected": True, "commit": {"id": f"c{project}0"}}]
        case "commits":
            names = {"author_name": "Ada", "committer_name": "Ada", "message": "as said"}
            return [{"id": f"c{project}{page}{n}", "title": "t", **names, "created_at": at} for n in range(5)]
        case "issues":
            made = {"created_at": at, "updated_at": at, "labels": [], "assignee": None, "milestone": None}
            author = {"id": 7}
            return [{"id": project * 10 + n, "iid": n, "author": author, "title": "t", **made} for n in range(3)]
        case "milestones":
            times = {"created_at": at, "updated_at": at, "due_date": None, "start_date": None}
            return [{"id": project, "iid": 1, "project_id": project, "title": "1.0", "state": "active", **times}]
        case "users":
            return [{"id": 7, "username": "ada", "name": "Ada", "state": "active", "web_url": "", "avatar_url": None}]
    return None


@contextmanager
def _api() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Api) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@contextmanager
def _rest_api(folder: Path, postgres: Any) -> Iterator[RealTap]:
    stream = {"name": "people", "path": "/people", "primary_keys": ["id"], "replication_key": "updated_at"}
    with _api() as url:
        config = {
            "api_url": url,
            "pagination_request_style": "jsonpath_paginator",
            "next_page_token_path": "$.next_page",
            "streams": [{**stream, "records_path": "$.people[*]"}],
        }
        yield RealTap(config)


@contextmanager
def _gitlab_api(folder: Path, postgres: Any) -> Iterator[RealTap]:
    with _api() as url:
        start = "2020-01-01T00:00:00Z"
        config = {"api_url": f"{url}/api/v4", "private_token": TOKEN, "projects": "1 2", "start_date": start}
        yield RealTap(config)


@contextmanager
def _rest(folder: Path, postgres: Any) -> Iterator[RealTap]:
    kinds = {"id": "integer", "name": "string", "price": "number", "is_new": "boolean", "place": "integer"}
    properties: dict[str, Any] = {name: {"type": ["null", kind]} for name, kind in kinds.items()}
    properties["updated_at"] = {"type": ["null", "string"], "format": "date-time"}
    (folder / "people.json").write_text(json.dumps({"type": "object", "properties": properties}))
    with _api() as url:
        config = {
            "url": f"{url}/people?page={{current_page_one_base}}",
            "streams": "people",
            "schema_dir": str(folder),
            "catalog_dir": str(folder),
            "record_list_level": "$.people[*]",
            "primary_key": "id",
            "datetime_key": "updated_at",
            "start_datetime": "2020-01-01T00:00:00Z",
            "items_per_page": 100,
        }
        yield RealTap(config)


@contextmanager
def _csv_folder(folder: Path, postgres: Any) -> Iterator[RealTap]:
    _write_csv(folder / "tables" / "people.csv")
    yield RealTap({"filesystem": "local", "path": str(folder / "tables"), "read_mode": "one_stream_per_file"})


@contextmanager
def _spreadsheets(folder: Path, postgres: Any) -> Iterator[RealTap]:
    _write_csv(folder / "tables" / "people.csv")
    file = {"path": str(folder / "tables" / "*.csv"), "format": "csv", "table_name": "people", "primary_keys": ["id"]}
    yield RealTap({"files": [file]})


def _write_csv(path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "place"} for row in people()]
    path.parent.mkdir()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def _jsonfile(folder: Path, postgres: Any) -> Iterator[RealTap]:
    for number, row in enumerate(people()[:20]):
        (folder / f"{number}.person.json").write_text(json.dumps(row))
    yield RealTap({"paths": [str(folder / "*.person.json")], "stream_name": "people"})


@contextmanager
def _dbf(folder: Path, postgres: Any) -> Iterator[RealTap]:
    (folder / "tables").mkdir()
    (folder / "tables" / "people.dbf").write_bytes(_dbf_table())
    yield RealTap({"path": str(folder / "tables" / "people.dbf")})


def _dbf_table() -> bytes:
    """A table of dBASE III: an id of 6 digits and a name of 20 characters for each of the people."""
    rows = [f" {row['id']:>6}{(row['name'] or '').replace('ë', 'e'):<20}".encode() for row in people()]
    fields = [(b"ID", b"N", 6), (b"NAME", b"C", 20)]
    head = struct.pack("<4BIHH20x", 3, 126, 11, 20, len(rows), 32 + 32 * len(fields) + 1, 27)
    described = b"".join(struct.pack("<11sc4xBB14x", name, kind, size, 0) for name, kind, size in fields)
    return head + described + b"\r" + b"".join(rows) + b"\x1a"


@contextmanager
def _geo(folder: Path, postgres: Any) -> Iterator[RealTap]:
    features = [
        {
            "type": "Feature",
            "properties": {"id": row["id"], "name": row["name"]},
            "geometry": {"type": "Point", "coordinates": [row["id"] / 10, 47.5]},
        }
        for row in people()[:50]
    ]
    (folder / "people.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    file = {"paths": [str(folder / "people.geojson")], "table_name": "people", "primary_keys": ["id"]}
    yield RealTap({"files": [{**file, "expose_fields": ["id", "name"]}]})


@contextmanager
def _dimdate(folder: Path, postgres: Any) -> Iterator[RealTap]:
    yield RealTap({"start_date": "2026-01-01", "end_date": "2026-03-31"})


@contextmanager
def _feed(folder: Path, postgres: Any) -> Iterator[RealTap]:
    with _api() as url:
        fields = {"feed_fields": ["title"], "feed_entry_fields": ["id", "title", "link"]}
        config = {"feed_urls": [f"{url}/feed"], **fields, "feed_entry_replication_key": "published"}
        yield RealTap({**config, "start_date": "2020-01-01T00:00:00Z"})


def _feed_page() -> bytes:
    items = "".join(
        f"<item><guid>{row['id']}</guid><title>person {row['id']}</title><link>http://people.example/{row['id']}</link>"
        f"<pubDate>Fri, 20 Nov 2026 {row['id'] // 60:02}:{row['id'] % 60:02}:12 GMT</pubDate></item>"
        for row in people()[:50]
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>people</title>{items}</channel></rss>'.encode()


@contextmanager
def _singer_jsonl(folder: Path, postgres: Any) -> Iterator[RealTap]:
    properties = {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}
    schema = {"type": "object", "properties": properties}
    messages: list[dict[str, Any]] = [
        {"type": "SCHEMA", "stream": "people", "schema": schema, "key_properties": ["id"]}
    ]
    for row in people():
        messages.append({"type": "RECORD", "stream": "people", "record": {"id": row["id"], "name": row["name"]}})
    messages.append({"type": "STATE", "value": {}})
    (folder / "people.singer").write_text("".join(json.dumps(message) + "\n" for message in messages))
    yield RealTap({"source": "local", "local": {"folders": [str(folder)]}})


TAPS = {
    "tap-gitlab": _gitlab_api,
    "tap-jsonl": _jsonl,
    "tap-postgres": _postgres,
    "tap-postgres-pipelinewise": _postgres_pipelinewise,
    "tap-rest-api-msdk": _rest_api,
    "tap-s3-csv": _s3_csv,
    "tap-weather": _weather,
}
"""Those that CI verifies."""

MORE_TAPS = {
    "tap-csv-folder": _csv_folder,
    "tap-dbf": _dbf,
    "tap-dimdate": _dimdate,
    "tap-feed": _feed,
    "tap-geo": _geo,
    "tap-jsonfile": _jsonfile,
    "tap-rest-api": _rest,
    "tap-singer-jsonl": _singer_jsonl,
    "tap-spreadsheets": _spreadsheets,
}
"""Those that only ``make soak`` verifies: each adds an environment."""


@contextmanager
def prepared(name: str, folder: Path, postgres: Any) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Give a tap's command line, its config in the folder, and the environment to run it in.

    Args:
        name: of ``TAPS`` or ``MORE_TAPS``.
        folder: for its files; there is nothing else in it.
        postgres: called for a running server by those that need one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = installed(name, {"tap-postgres-pipelinewise": "tap-postgres", "tap-weather": "python"}.get(name, name))
    with (TAPS | MORE_TAPS)[name](folder, postgres) as tap:
        (folder / "config.json").write_text(json.dumps(tap.config))
        clean = environment_without("BALOG_", "AWS_")
        clean["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), clean["PATH"]])
        command = [program, *([str(tap.script)] if tap.script else []), "--config", str(folder / "config.json")]
        if tap.by:
            (folder / "catalog.json").write_text(json.dumps(_chosen(command, clean | tap.environment, tap.by)))
            command += ["--catalog", str(folder / "catalog.json")]
        yield command, clean | tap.environment


def _chosen(command: list[str], environment: dict[str, str], by: dict[str, str]) -> Any:
    """Discover, and choose all streams, some of them by a key."""
    catalog = json.loads(run_program(*command, "--discover", env=environment).stdout)
    for stream in catalog["streams"]:
        key = by.get(stream["tap_stream_id"])
        how = {"replication-method": "INCREMENTAL", "replication-key": key} if key else {}
        for item in stream["metadata"]:
            if not item["breadcrumb"]:
                item["metadata"] |= {"selected": True, **how}
        if key:
            stream |= {"replication_method": "INCREMENTAL", "replication_key": key}
    return catalog
