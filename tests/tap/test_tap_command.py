"""A tap as a program: its options, exit codes, and what is on which stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from balog.singer.assertions import TapAssertions
from balog.tap import Tap
from tests.tap.programs import Ran

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "at": {"type": "string"}, "name": {"type": "string"}},
}
PROGRAM = """
import os, sys, time
from balog.tap import Tap

tap = Tap("tap-cool", config_spec=["base_url", "access_token"])

@tap.client
def client(config):
    print("the client is made")
    return config

@tap.stream("contacts", key_properties=["id"], replication_key="at")
def contacts(client, context):
    print("said by the tap")
    os.system("echo said by a child")
    for number in range(int(client["base_url"])):
        yield {"id": number, "at": f"{number:09}", "name": "x"}

tap.schema("contacts", %r)
if __name__ == "__main__":
    tap.run()
""" % (SCHEMA,)  # noqa: UP031


def make(**settings: Any) -> Tap:
    tap = Tap("tap-cool", config_spec=["base_url", "access_token"])

    @tap.client
    def client(config: dict[str, Any]) -> dict[str, Any]:
        return config

    @tap.stream("contacts", key_properties=["id"], replication_key="at", **settings)
    def contacts(client: Any, context: Any) -> Any:
        print("said by the tap")
        yield {"id": 1, "at": "2026-01-01", "name": context.config["base_url"]}

    @tap.stream("broken")
    def broken(client: Any) -> Any:
        yield {"id": 1, "at": "", "name": ""}
        raise RuntimeError("no such page")

    tap.schema("contacts", SCHEMA)
    tap.schema("broken", SCHEMA)
    return tap


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text('{"base_url": "u", "access_token": "hunter2"}')
    return str(path)


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    path = tmp_path / "tap_cool.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path)]


def chosen(folder: Path, *names: str) -> str:
    streams = [{"stream": name, "schema": SCHEMA, "selected": True} for name in names]
    (folder / "catalog.json").write_text(json.dumps({"streams": streams}))
    return str(folder / "catalog.json")


class TestRefused:
    def test_a_missing_config_names_the_variables(self, capfd: Any) -> None:
        ran = Ran(capfd, make())
        assert (ran.code, ran.out) == (2, "")
        assert ran.lines == [
            "tap-cool: config: $: the field 'base_url' is missing; set it in --config or TAP_COOL_BASE_URL",
            "tap-cool: config: $: the field 'access_token' is missing; set it in --config or TAP_COOL_ACCESS_TOKEN",
        ]

    def test_a_catalog_a_state_a_file_that_is_not_there(self, capfd: Any, config: str, tmp_path: Path) -> None:
        ran = Ran(capfd, make(), "-c", config, "--catalog", chosen(tmp_path, "contact"))
        assert (ran.code, ran.out) == (2, "")
        assert "did you mean 'contacts'?" in ran.lines[-1]
        assert Ran(capfd, make(), "-c", config, "--catalog", str(tmp_path / "none")).code == 2
        (tmp_path / "state.json").write_text("[]")
        assert Ran(capfd, make(), "-c", config, "--state", str(tmp_path / "state.json")).code == 2

    def test_an_unknown_option(self, capfd: Any) -> None:
        ran = Ran(capfd, make(), "--catlog", "x")
        assert (ran.code, ran.out) == (2, "")
        assert "--catalog" in ran.err

    def test_what_the_taps_code_declares_wrongly_is_no_misuse(self, capfd: Any, config: str) -> None:
        tap = make()
        tap.schema("contact", SCHEMA)
        ran = Ran(capfd, tap, "-c", config)
        assert (ran.code, ran.out) == (1, "")
        assert "there is no stream 'contact'" in ran.lines[-1]


class TestSync:
    def test_messages_are_on_stdout_and_all_else_is_not(self, capfd: Any, config: str, tmp_path: Path) -> None:
        ran = Ran(capfd, make(), "-c", config, "--catalog", chosen(tmp_path, "contacts"))
        assert ran.code == 0
        assert ran.records == [{"id": 1, "at": "2026-01-01", "name": "u"}]
        assert ran.messages[-1]["value"] == {"bookmarks": {"contacts": {"at": "2026-01-01"}}}
        assert "said by the tap" in ran.lines
        assert "hunter2" not in ran.err

    def test_a_stream_that_fails_leaves_the_others(self, capfd: Any, config: str) -> None:
        ran = Ran(capfd, make(), "-c", config)
        assert ran.code == 1
        assert "CRITICAL broken: no such page" in ran.lines
        assert {message["stream"] for message in ran.of("RECORD")} == {"contacts", "broken"}

    def test_a_schema_that_cannot_be_had_is_a_stream_that_fails(self, capfd: Any, config: str) -> None:
        tap = make()

        def gone(client: Any, stream: str) -> Any:
            raise ConnectionError("refused")

        tap.schema("broken", gone)

        ran = Ran(capfd, tap, "-c", config)
        assert ran.code == 1
        assert "CRITICAL broken: its schema could not be read: ConnectionError: refused" in ran.lines
        assert {message["stream"] for message in ran.messages if "stream" in message} == {"contacts"}

    def test_files_may_be_named_in_the_environment_several_configs_as_in_path(
        self, capfd: Any, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        over = tmp_path / "with space.json"
        over.write_text('{"base_url": "v"}')
        monkeypatch.setenv("TAP_COOL_CONFIG", f"{config}{os.pathsep}{over}")
        monkeypatch.setenv("TAP_COOL_CATALOG", chosen(tmp_path, "contacts"))
        ran = Ran(capfd, make())
        assert [record["name"] for record in ran.records] == ["v"]

    def test_the_client_that_was_made_for_schemas_is_the_streams_too(self, capfd: Any, config: str) -> None:
        tap, made = make(), []
        tap.client(lambda config: made.append(1) or {"base_url": "2"})
        tap.schema("contacts", lambda client, stream: client and SCHEMA)

        ran = Ran(capfd, tap, "--config", config)

        assert (len(ran.records), made) == (2, [1])


class TestDiscover:
    def test_files_need_no_config(self, capfd: Any) -> None:
        ran = Ran(capfd, make(), "--discover")
        assert ran.code == 0
        assert [each["tap_stream_id"] for each in json.loads(ran.out)["streams"]] == ["contacts", "broken"]

    def test_a_schema_that_wants_the_client_does(self, capfd: Any, config: str) -> None:
        tap = make()

        def described(client: Any, stream: str) -> Any:
            print("asked")
            return {**SCHEMA, "title": client()["base_url"]}

        tap.schema("contacts", described)

        ran = Ran(capfd, tap, "--discover")
        assert (ran.code, ran.out) == (2, "")
        assert "TAP_COOL_BASE_URL" in ran.err
        ran = Ran(capfd, tap, "--discover", "-c", config)
        assert json.loads(ran.out)["streams"][0]["schema"]["title"] == "u"
        assert "asked" in ran.lines

    def test_a_wrong_config_that_is_given_is_refused(self, capfd: Any, tmp_path: Path) -> None:
        (tmp_path / "c.json").write_text("{}")
        assert Ran(capfd, make(), "--discover", "-c", str(tmp_path / "c.json")).code == 2


class TestOthers:
    def test_about_describes_the_tap_as_json(self, capfd: Any) -> None:
        said = json.loads(Ran(capfd, make(), "--about", "--format", "json").out)
        assert said["name"] == "tap-cool"
        assert {"catalog", "discover", "state"} <= set(said["capabilities"])
        assert said["settings"]["properties"]["access_token"] == {"secret": True, "writeOnly": True}
        assert said["streams"][0]["replication_key"] == "at"
        assert json.loads(Ran(capfd, make(), "--about").out) == said

    def test_the_version_is_that_of_the_package_of_its_name(self, capfd: Any) -> None:
        from importlib.metadata import version

        assert Ran(capfd, Tap("balog-events"), "--version").out == f"balog-events {version('balog-events')}\n"
        assert Ran(capfd, make(), "--version").code == 0

    def test_help_names_every_option(self, capfd: Any) -> None:
        ran = Ran(capfd, make(), "--help")
        assert ran.code == 0
        for option in ("config", "state", "catalog", "discover", "about", "out-file", "version"):
            assert f"--{option}" in ran.out


class TestProcess:
    def environment(self, size: int) -> dict[str, str]:
        return {**os.environ, "TAP_COOL_BASE_URL": str(size), "TAP_COOL_ACCESS_TOKEN": "x"}

    def test_a_childs_and_the_clients_words_go_to_stderr(self, program: list[str]) -> None:
        ran = subprocess.run(program, capture_output=True, text=True, env=self.environment(2), check=False)
        assert ran.returncode == 0
        assert all(json.loads(line)["type"] in ("SCHEMA", "RECORD", "STATE") for line in ran.stdout.splitlines())
        assert {"the client is made", "said by the tap", "said by a child"} <= set(ran.stderr.splitlines())

    def test_log_messages_have_no_place_beside_a_catalog(self, program: list[str], tmp_path: Path) -> None:
        """Given the output singer and a warning, then stdout is the catalog alone, and the warning a line on stderr."""
        (tmp_path / "config.json").write_text('{"unheard": 1}')
        environment = {**self.environment(2), "BALOG_OUTPUT": "singer"}
        command = [*program, "--config", str(tmp_path / "config.json"), "--discover"]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)

        assert list(json.loads(ran.stdout)) == ["streams"]
        events = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith('{"schema"')]
        said = [event["payload"].get("message", "") for event in events]
        assert any("$.unheard: the tap does not know this setting" in message for message in said)

    def test_log_messages_of_the_singer_output_are_among_the_others(self, program: list[str]) -> None:
        environment = {**self.environment(2), "BALOG_OUTPUT": "singer"}
        ran = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
        types = [json.loads(line)["type"] for line in ran.stdout.splitlines()]
        assert "LOG" in types
        assert types.count("RECORD") == 2

    def test_neither_sql_nor_http_is_imported_at_the_start(self, program: list[str]) -> None:
        ran = subprocess.run(
            [program[0], "-X", "importtime", *program[1:]],
            capture_output=True,
            text=True,
            env=self.environment(1),
            check=False,
        )
        imported = {
            line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time")
        }
        assert "balog.tap.syncing.sync" in imported
        assert not imported & {"sqlglot", "urllib.request", "http.client", "pyarrow", "fsspec"}

    @pytest.mark.parametrize("how", ["> /dev/full", ">&-"])
    @pytest.mark.parametrize("option", ["", "--version"])
    def test_a_stdout_that_takes_nothing_is_said_in_one_line(self, program: list[str], how: str, option: str) -> None:
        command = f"exec {' '.join(program)} {option} {how}"
        ran = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False, env=self.environment(2)
        )
        assert ran.returncode == 1
        assert ran.stderr.splitlines()[-1].startswith("tap-cool: stdout")
        assert "Traceback" not in ran.stderr


class TestToolkitSettings:
    """What every tap understands is there too for one that makes something else of its config."""

    @pytest.fixture
    def run(self, capfd: Any, tmp_path: Path) -> Any:
        spec = {"properties": {"url": {"type": "string"}}, "additionalProperties": False}
        tap = Tap("tap-cool", config_spec=spec)
        schema = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}

        @tap.stream("contacts", key_properties=["id"], replication_key="at", schema=schema)
        def contacts(context: Any) -> Any:
            yield {"id": 1, "at": context.bookmark}
            yield {"id": "none", "at": context.bookmark}

        def run(config: Any) -> Ran:
            path = tmp_path / "config.json"
            path.write_text(json.dumps({"url": "u", "quarantine_file": str(tmp_path / "aside.jsonl"), **config}))
            return Ran(capfd, tap, "--config", str(path))

        return run

    def test_a_first_run_begins_at_the_start_date(self, run: Any) -> None:
        assert run({"start_date": "2026-01-01"}).of("RECORD")[0]["record"]["at"] == "2026-01-01"

    def test_they_are_checked(self, run: Any) -> None:
        ran = run({"start_date": "yesterday", "quarantine_file": 1})
        assert ran.code == 2
        assert "$.start_date: expected a date" in ran.err
        assert "$.quarantine_file: expected a string" in ran.err

    def test_the_user_says_where_records_are_set_aside(self, run: Any, tmp_path: Path) -> None:
        assert run({"start_date": "2026-01-01"}).code == 0
        (line,) = (tmp_path / "aside.jsonl").read_text().splitlines()
        assert json.loads(json.loads(line)["raw"])["record"] == {"id": "none", "at": "2026-01-01"}


def _rows(*values: str, fails_at: str = "", **settings: Any) -> Tap:
    """A tap of rows; its source fails once, after a value."""
    tap = Tap("tap-cool")
    failures = [fails_at] if fails_at else []

    @tap.stream("rows", key_properties=["id"], replication_key="at", **settings)
    def rows() -> Any:
        for number, value in enumerate(values):
            yield {"id": number, "at": value, "new": 1}
            if value in failures:
                failures.clear()
                raise ConnectionError("gone away")

    tap.schema("rows", {**SCHEMA, "properties": {**SCHEMA["properties"], "new": {"type": "integer"}}})
    return tap


class TestAssertions:
    def test_a_right_sync_is_as_one_without(self, capfd: Any) -> None:
        ran = Ran(capfd, _rows("a", "b", "b", bookmark_strategy=Tap.every_n(1)), "--assert")
        assert ran.code == 0
        assert [message["record"]["at"] for message in ran.of("RECORD")] == ["a", "b", "b"]

    def test_a_wrong_order_fails_the_stream(self, capfd: Any) -> None:
        tap = _rows("a", "c", "b", bookmark_strategy=Tap.every_n(1))
        assert Ran(capfd, tap).code == 0
        ran = Ran(capfd, tap, "--assert")
        assert ran.code == 1
        assert [line for line in ran.lines if line.startswith("CRITICAL")] == [
            "CRITICAL rows: at: 'b' comes after 'c'",
            "CRITICAL rows: a record of 'b' comes after a STATE with the bookmark 'c'",
            "CRITICAL rows: the bookmark goes back from 'c' to None",
        ]
        assert len(ran.records) == 3

    def test_no_order_is_asserted_where_none_is_declared(self, capfd: Any) -> None:
        assert Ran(capfd, _rows("c", "a", is_sorted=False), "--assert").code == 0

    def test_paths_that_the_schema_lacks_fail_the_stream(self, capfd: Any) -> None:
        tap = _rows("a")
        tap.schema("rows", SCHEMA)
        ran = Ran(capfd, tap, "--assert")
        assert ran.code == 1
        assert "CRITICAL rows: the path $.new is removed from records, because the schema does not have it" in ran.lines

    def test_the_fixture_asserts_syncs_of_a_test(self, capfd: Any, tap_assertions: TapAssertions) -> None:
        assert Ran(capfd, _rows("c", "a", bookmark_strategy=Tap.every_n(1))).code == 1
        assert tap_assertions.problems[0] == ("rows", "at: 'a' comes after 'c'")
        tap_assertions.problems.clear()


class TestSecrets:
    def test_those_of_the_config_are_in_nothing_that_is_said(self, capfd: Any, tmp_path: Path) -> None:
        secret = "hunter2/and more"
        (tmp_path / "c.json").write_text(json.dumps({"base_url": "u", "access_token": secret}))
        tap = make()

        @tap.stream("leaky")
        def leaky(client: dict[str, Any]) -> Any:
            raise RuntimeError(f"GET /page?key=hunter2%2Fand%20more was refused to {client['access_token']}")

        tap.schema("leaky", SCHEMA)
        ran = Ran(capfd, tap, "-c", str(tmp_path / "c.json"))
        assert ran.code == 1
        (said,) = [line for line in ran.lines if line.startswith("CRITICAL leaky")]
        assert said == "CRITICAL leaky: GET /page?key=[redacted] was refused to [redacted]"
        assert "Traceback" in ran.err
        assert "hunter2" not in ran.err

    def test_what_breaks_outside_of_streams_is_said_in_one_line(self, capfd: Any, config: str) -> None:
        tap = make()

        class Streams(dict[str, Any]):
            def values(self) -> Any:
                raise KeyError("hunter2")

        tap.link = lambda: Streams()  # type: ignore[method-assign]

        ran = Ran(capfd, tap, "-c", config)
        assert (ran.code, ran.out) == (1, "")
        assert ran.lines[-1] == "CRITICAL tap-cool: KeyError: '[redacted]'"
