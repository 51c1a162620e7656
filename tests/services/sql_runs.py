"""A tap of a database that is run over and over, and what a target has of its streams."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from balog.tap import Tap
from balog.tap.sql import Database, TableStream


def tap_of(database: Database) -> Tap:
    tap = Tap("tap-rows")
    tap.client(lambda config: database)

    @tap.discover(reader=TableStream)
    def tables(client: Database, context: Any) -> Any:
        return TableStream.find(client, context)

    return tap


class Target:
    """What a target has of one stream: rows by key, versions, deletions."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.rows: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}
        self.extra: list[dict[str, Any]] = []

    def put(self, message: dict[str, Any]) -> None:
        record = message["record"]
        if not self.keys:
            self.extra.append(record)
            return
        key = tuple(record[name] for name in self.keys)
        if record.get("_sdc_deleted_at"):
            self.rows.pop(key, None)
        else:
            self.rows[key] = (message.get("version"), record)

    def activate(self, version: int) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[0] == version}

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for _, record in self.rows.values()] + self.extra


class Runner:
    """Runs the tap over and over, as a pipeline does: with the last state that it wrote."""

    def __init__(self, capture: Any, folder: Path, url: str, **options: Any) -> None:
        self.capture, self.folder, self.url = capture, folder, url
        self.options = {"page_rows": 50, **options}
        self.state: dict[str, Any] | None = None
        self.targets: dict[str, Target] = {}
        self.lines = 0
        self.out = self.err = ""

    def start(self, *arguments: str) -> int:
        database = Database(self.url, **self.options)
        with pytest.raises(SystemExit) as exit, closing(database):
            tap_of(database).run(arguments)
        self.out, self.err = self.capture.readouterr()
        return int(exit.value.code or 0)

    def discover(self) -> dict[str, Any]:
        assert self.start("--discover") == 0, self.err
        return {entry["tap_stream_id"]: entry for entry in json.loads(self.out)["streams"]}

    def select(self, *entries: dict[str, Any], **metadata: str) -> None:
        for entry in entries:
            top = next(each["metadata"] for each in entry["metadata"] if not each["breadcrumb"])
            top |= {"selected": True, **{key.replace("_", "-"): value for key, value in metadata.items()}}
        (self.folder / "catalog.json").write_text(json.dumps({"streams": list(entries)}))

    def run(self, seen: int | None = None) -> int:
        """Run the tap. If only so many lines are seen, it was killed after them: nothing that came later counts."""
        arguments = ["--catalog", str(self.folder / "catalog.json")]
        if self.state is not None:
            (self.folder / "state.json").write_text(json.dumps(self.state))
            arguments += ["--state", str(self.folder / "state.json")]
        code = self.start(*arguments)
        for line in self.out.splitlines()[:seen]:
            self._take(json.loads(line))
        return code

    def _take(self, message: dict[str, Any]) -> None:
        self.lines += 1
        kind = message["type"]
        if kind == "SCHEMA":
            self.targets.setdefault(message["stream"], Target(message["key_properties"]))
        elif kind == "RECORD":
            self.targets[message["stream"]].put(message)
        elif kind == "ACTIVATE_VERSION":
            self.targets[message["stream"]].activate(message["version"])
        elif kind == "STATE":
            self.state = message["value"]

    def records(self, stream: str) -> list[dict[str, Any]]:
        return self.targets[stream].records
