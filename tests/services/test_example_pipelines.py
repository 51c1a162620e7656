"""The three example taps: killed at random messages, all rows are in targets at the end; and singer-check-tap passes.

``make soak`` kills each twenty times, other runs kill a few once.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

from examples.shop_server import Shop
from tests.examples.test_tap_orders import config_of
from tests.examples.test_tap_sources import TABLES, fill
from tests.programs import run_program
from tests.services.real_taps import installed
from tests.services.servers.postgres import Database, PostgresServer, running_postgres

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
KILLS = 20 if os.environ.get("BALOG_SOAK") else 1

KILLED = """
import os, pathlib, subprocess, sys

tap = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
left = -1 if "--discover" in sys.argv else int(pathlib.Path(sys.argv[1]).read_text())
for line in tap.stdout:
    if left == 0:
        tap.kill()
        sys.stdout.buffer.flush()
        os.kill(os.getpid(), 9)
    sys.stdout.buffer.write(line)
    left -= 1
sys.exit(tap.wait())
"""
"""Runs a tap, and kills it after some messages; its target gets no half line."""

Rows = dict[tuple[str, ...], dict[str, str]]


@dataclass
class Example:
    """An example tap with its source.

    Attributes:
        name: the module below ``examples``.
        config: the tap's.
        keys: the keys of each stream.
        longest: kills come before so many messages.
        source: returns the rows of the source by stream.
        change: changes the source.
    """

    name: str
    config: dict[str, Any]
    keys: dict[str, tuple[str, ...]]
    longest: int
    source: Callable[[], dict[str, list[dict[str, Any]]]]
    change: Callable[[], None] = lambda: None

    def expected(self) -> dict[str, Rows]:
        return {stream: by_key(rows, self.keys[stream]) for stream, rows in self.source().items()}


def by_key(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> Rows:
    """The last row of each key, all values as texts: CSV has only those."""
    found = [{name: as_text(value) for name, value in row.items()} for row in rows]
    return {tuple(row[key] for key in keys): row for row in found}


def as_text(value: Any) -> str:
    text = "" if value is None else str(value)
    with suppress(InvalidOperation):
        return str(Decimal(text).normalize())
    with suppress(ValueError):
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).astimezone(timezone.utc).isoformat()
    return text


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg2")
    with running_postgres() as server:
        yield server


@contextmanager
def orders(folder: Path, postgres: PostgresServer) -> Iterator[Example]:
    keys = {"customers": ("id",), "orders": ("id",), "order_lines": ("order_id", "line")}
    with Shop(15) as shop:
        config = config_of(shop)
        yield Example(
            "tap_orders",
            config,
            keys,
            60,
            lambda: {
                "customers": list(shop.customers.values()),
                "orders": list(shop.orders.values()),
                "order_lines": [line for lines in shop.lines.values() for line in lines],
            },
            lambda: shop.touch(customers=3, orders=5),
        )


@contextmanager
def database(folder: Path, postgres: PostgresServer) -> Iterator[Example]:
    made = postgres.database("example")
    made.run(TABLES.replace("7000", "900"))
    keys = {"orders": ("shop", "id"), "people": ("id",), "adults": ("name",)}
    yield Example(
        "tap_postgres",
        {"url": made.url},
        keys,
        1200,
        lambda: {stream: made.ask(f"SELECT * FROM {stream}") for stream in keys},
    )


@contextmanager
def files(folder: Path, postgres: PostgresServer) -> Iterator[Example]:
    fill(folder / "in")
    origin = ("_sdc_source_file", "_sdc_source_lineno")

    def read() -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {"orders": [], "events": []}
        for path in sorted((folder / "in").iterdir()):
            lines = path.read_text().splitlines()
            rows = list(csv.DictReader(lines)) if path.suffix == ".csv" else list(map(json.loads, lines))
            found[path.name.partition("-")[0]] += [
                {**row, origin[0]: path.name, origin[1]: number} for number, row in enumerate(rows, 1)
            ]
        return found

    yield Example("tap_folder", {"path": str(folder / "in")}, {"orders": ("id",), "events": origin}, 900, read)


class Pipe:
    """``tap | target`` in a folder, from the last state that the target wrote."""

    def __init__(self, folder: Path, example: Example, postgres: PostgresServer) -> None:
        self.folder, self.example = folder, example
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("BALOG_")}
        self.environment["PYTHONPATH"] = str(ROOT)
        (folder / "killed.py").write_text(KILLED)
        (folder / "config.json").write_text(json.dumps(example.config))
        tap = [sys.executable, str(ROOT / "examples" / f"{example.name}.py")]
        self.tap = [sys.executable, str(folder / "killed.py"), str(folder / "after"), *tap]
        (folder / "target.json").write_text(json.dumps(self.prepare(postgres)))

    def prepare(self, postgres: PostgresServer) -> dict[str, Any]:
        """Return the target's config."""
        raise NotImplementedError

    def rows(self, stream: str) -> list[dict[str, Any]]:
        """Return what the target has."""
        raise NotImplementedError

    def run(self, after: int = -1) -> bool:
        """Run it once, and return whether the tap came to its end."""
        (self.folder / "after").write_text(str(after))
        state = self.folder / "state.json"
        arguments = ["--config", str(self.folder / "config.json"), *(["--state", str(state)] if state.exists() else [])]
        tap = subprocess.Popen(
            [*self.tap, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert tap.stdout is not None
        with tap.stdout:
            target = subprocess.run(
                [self.program, "--config", str(self.folder / "target.json")],
                cwd=self.folder,
                stdin=tap.stdout,
                capture_output=True,
                text=True,
                timeout=300,
            )
        assert target.returncode == 0, target.stderr
        if states := target.stdout.splitlines():
            state.write_text(states[-1])
        return tap.wait(60) == 0

    program = ""


class ToJsonl(Pipe):
    def prepare(self, postgres: PostgresServer) -> dict[str, Any]:
        self.program = installed("target-jsonl", "target-jsonl")
        return {"destination_path": str(self.folder), "do_timestamp_file": False}

    def rows(self, stream: str) -> list[dict[str, Any]]:
        return list(map(json.loads, (self.folder / f"{stream}.jsonl").read_text().splitlines()))


class ToCsv(Pipe):
    def prepare(self, postgres: PostgresServer) -> dict[str, Any]:
        self.program = installed("target-csv", "target-csv")
        # It empties the files of the run before, so each run gets its own.
        naming = {"file_naming_scheme": "{stream_name}-{timestamp}.csv", "timestamp_format": "%Y%m%dT%H%M%S%f"}
        return {"output_path": str(self.folder / "out"), **naming}

    def rows(self, stream: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path in sorted((self.folder / "out").glob(f"{stream}-*.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                found += csv.DictReader(file)
        return found


class ToPostgres(Pipe):
    database: Database

    def prepare(self, postgres: PostgresServer) -> dict[str, Any]:
        self.program = installed("target-postgres", "target-postgres")
        self.database = postgres.database("target_of_examples")
        return {**self.database.config, "default_target_schema": "public", "load_method": "upsert"}

    def rows(self, stream: str) -> list[dict[str, Any]]:
        return self.database.ask(f"SELECT * FROM {stream}")


class ByMeltano(ToJsonl):
    def prepare(self, postgres: PostgresServer) -> dict[str, Any]:
        config = super().prepare(postgres)
        self.meltano = installed("meltano", "meltano")
        tap = self.folder / "tap"
        tap.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in self.tap) + ' "$@"\n')
        tap.chmod(0o755)
        plugin = {
            "name": "tap-example",
            "namespace": "tap_example",
            "executable": str(tap),
            "capabilities": ["catalog", "discover", "state"],
            "settings": [{"name": name} for name in self.example.config],
            "config": self.example.config,
        }
        loader = {
            "name": "target-jsonl",
            "namespace": "target_jsonl",
            "executable": self.program,
            "settings": [{"name": "destination_path"}, {"name": "do_timestamp_file", "kind": "boolean"}],
            "config": config,
        }
        project = {
            "default_environment": "dev",
            "environments": [{"name": "dev"}],
            "send_anonymous_usage_stats": False,
            "plugins": {"extractors": [plugin], "loaders": [loader]},
        }
        (self.folder / "meltano.yml").write_text(json.dumps(project))  # JSON is YAML
        return config

    def run(self, after: int = -1) -> bool:
        (self.folder / "after").write_text(str(after))
        clean = {key: value for key, value in self.environment.items() if not key.startswith("MELTANO_")}
        variables = {**clean, "NO_COLOR": "1", "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false"}
        command = [self.meltano, "run", "tap-example", "target-jsonl"]
        done = run_program(*command, cwd=self.folder, env=variables, code=None if after >= 0 else 0)
        return done.returncode == 0


EXAMPLES = {"orders": orders, "database": database, "files": files}
PIPES = {"csv": ToCsv, "postgres": ToPostgres, "meltano": ByMeltano}


CASES = [(name, through) for name in EXAMPLES for through in PIPES]
FEW = [("orders", "postgres"), ("database", "csv"), ("files", "meltano")]


@pytest.mark.parametrize(("name", "through"), FEW if KILLS == 1 else CASES)
def test_all_rows_are_there_after_kills(name: str, through: str, tmp_path: Path, postgres: PostgresServer) -> None:
    chance = random.Random(f"{name} {through}")
    with EXAMPLES[name](tmp_path, postgres) as example:
        pipe = PIPES[through](tmp_path, example, postgres)
        ended = []
        for _ in range(KILLS):
            ended.append(pipe.run(chance.randrange(2, example.longest)))
            example.change()
        assert not all(ended)
        assert pipe.run()

        expected = example.expected()
        for stream, keys in example.keys.items():
            columns = set(next(iter(expected[stream].values())))
            found = [{name: row[name] for name in columns} for row in pipe.rows(stream)]
            assert by_key(found, keys) == expected[stream], stream


@pytest.mark.parametrize("name", EXAMPLES)
def test_singer_check_tap_passes(name: str, tmp_path: Path, postgres: PostgresServer) -> None:
    """The checker reads a first run, and one from its state. It starts no tap: it misses the end of quick ones."""
    checker = installed("singer-tools", "singer-check-tap")
    with EXAMPLES[name](tmp_path, postgres) as example:
        (tmp_path / "config.json").write_text(json.dumps(example.config))
        tap = [sys.executable, str(ROOT / "examples" / f"{example.name}.py"), "--config", str(tmp_path / "config.json")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        for _ in range(2):
            ran = run_program(*tap, env=environment)
            assert "The output is valid." in run_program(checker, cwd=tmp_path, feed=ran.stdout).stdout
            states = [message["value"] for message in map(json.loads, ran.stdout.splitlines()) if "value" in message]
            (tmp_path / "state.json").write_text(json.dumps(states[-1]))
            tap[4:] = ["--state", str(tmp_path / "state.json")]
