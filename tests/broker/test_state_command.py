import json
import os
from datetime import datetime, timezone
from uuid import uuid4

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from balog.cli import main
from balog.common.storage import open_storage
from balog.singer.bookmarks import bookmarks, changes

VALUE = {
    "bookmarks": {
        "users": {"replication_key": "id", "replication_key_value": 41},
        "orders": {"partitions": [{"context": {"shop": 1}, "replication_key_value": "2026-11-20"}]},
    },
    "currently_syncing": None,
}


@pytest.fixture
def balog():
    def run(*arguments):
        return CliRunner().invoke(main, ["state", *map(str, arguments)])

    return run


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "state.json"
    path.write_text(json.dumps(VALUE) + "\n")
    return path


class TestLoad:
    def test_it_prints_exactly_what_is_stored(self, balog, tmp_path):
        text = b'{"b":  1.0, "a": "\xc3\xbc", "a": 1e400}\n'
        (tmp_path / "state.json").write_bytes(text)
        done = balog("load", tmp_path / "state.json")
        assert (done.exit_code, done.stdout_bytes, done.stderr) == (0, text, "")

    def test_nothing_stored_is_an_error_without_output(self, balog, tmp_path):
        done = balog("load", tmp_path / "none.json")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
        assert "nothing is stored there" in done.stderr

    def test_nothing_stored_can_be_taken_for_a_first_run(self, balog, tmp_path):
        done = balog("load", "--or-empty", tmp_path / "none.json")
        assert (done.exit_code, done.stdout) == (0, "{}\n")

    @pytest.mark.parametrize("data", [b'{"bookmarks": {"us', b"", b"\xff\xfe", b"[" * 100_000])
    def test_a_torn_file_is_never_given_to_a_tap(self, balog, stored, data):
        stored.write_bytes(data)
        for flags in ([], ["--or-empty"]):
            done = balog("load", *flags, stored)
            assert (done.exit_code, done.stdout) == (1, "")
            assert "not JSON" in done.stderr
            assert done.stderr.count("\n") == 1

    def test_a_place_that_cannot_be_read_is_never_taken_for_an_empty_one(self, balog, tmp_path):
        (tmp_path / "file").write_text("")
        done = balog("load", "--or-empty", tmp_path / "file" / "state.json")
        assert (done.exit_code, done.stdout) == (1, "")
        assert "Not a directory" in done.stderr

    def test_the_broker_s_config_says_where(self, balog, stored, tmp_path):
        (tmp_path / "broker.json").write_text(json.dumps({"sinks": [], "state": {"store": str(stored)}}))
        done = balog("load", "--config", tmp_path / "broker.json")
        assert json.loads(done.stdout) == VALUE

    def test_a_url_and_its_options_by_a_file(self, balog, tmp_path, monkeypatch):
        monkeypatch.setenv("A_KEY", "hunter2")
        url = f"memory://{uuid4().hex}/state.json"
        open_storage(url).write(b'{"a": 1}\n')
        (tmp_path / "options.json").write_text('{"key": {"env": "A_KEY"}}')
        done = balog("load", url, "--options", tmp_path / "options.json")
        assert (done.exit_code, done.stdout, done.stderr) == (0, '{"a": 1}\n', "")

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ([], "either the URL or --config"),
            (["x", "--config", "broker.json"], "either the URL or --config"),
            (["--config", "none.json"], "No such file"),
            (["--config", "broker.json"], "has no store"),
            (["--config", "broker.json", "--options", "o"], "set state.options there"),
            (["https://x/state.json"], "https://x/state.json: can only be read"),
            (["s3://b/x", "--options", "options.json"], "options.json: $.key: holds a secret"),
            (["s3://user:hunter2@b/x"], "credentials"),
        ],
    )
    def test_wrong_use_is_one_clear_line(self, balog, tmp_path, monkeypatch, arguments, reason):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "broker.json").write_text('{"sinks": []}')
        (tmp_path / "options.json").write_text('{"key": "hunter2"}')
        done = balog("load", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert reason in done.stderr
        assert reason == "credentials" or "hunter2" not in done.stderr


class TestShow:
    def test_it_tells_when_and_the_bookmarks_of_each_stream(self, balog, stored):
        os.utime(stored, (0, datetime(2026, 11, 20, 7, 46, 12, tzinfo=timezone.utc).timestamp()))
        done = balog("show", stored)
        head, *rows = done.stdout.splitlines()
        assert head.startswith(f"{stored}, written 2026-11-20 07:46:12 UTC, ")
        assert head.endswith(" ago")
        assert [row.split() for row in rows] == [
            ["stream", "bookmark", "value"],
            ["users", "replication_key", '"id"'],
            ["users", "replication_key_value", "41"],
            ["orders", "partitions[0].context.shop", "1"],
            ["orders", "partitions[0].replication_key_value", '"2026-11-20"'],
            ["currently_syncing", "null"],
        ]

    def test_nothing_stored_is_an_error(self, balog, tmp_path):
        assert balog("show", tmp_path / "none").exit_code == 1

    def test_no_control_character_reaches_the_terminal(self, balog, stored):
        stored.write_text(json.dumps({"bookmarks": {"a\u001b[31m": {"b\u0007": 1}}}))
        assert "\x1b" not in balog("show", stored).stdout


class TestDiff:
    def test_it_shows_what_changed(self, balog, stored, tmp_path):
        later = json.loads(json.dumps(VALUE))
        later["bookmarks"]["users"]["replication_key_value"] = 42
        later["bookmarks"]["new"] = {"version": 1}
        del later["currently_syncing"]
        (tmp_path / "later.json").write_text(json.dumps(later))
        done = balog("diff", stored, tmp_path / "later.json")
        assert done.exit_code == 0
        assert [row.split() for row in done.stdout.splitlines()] == [
            ["stream", "bookmark", "before", "after"],
            ["users", "replication_key_value", "41", "42"],
            ["new", "version", "–", "1"],
            ["currently_syncing", "null", "–"],
        ]

    def test_the_same_is_no_output(self, balog, stored):
        done = balog("diff", stored, stored)
        assert (done.exit_code, done.output) == (0, "")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(before=anything, after=anything)
def test_any_two_values_can_be_compared(before, after):
    assert changes(before, before) == []
    keys = {(one.stream, one.name) for one in [*bookmarks(before), *bookmarks(after)]}
    for one in changes(before, after):
        assert one.before != one.after
        assert (one.stream, one.name) in keys


def test_meltano_s_wrapping_is_looked_through():
    assert bookmarks({"completed": {"singer_state": VALUE}}) == bookmarks(VALUE)
    assert bookmarks({"singer_state": VALUE}) == bookmarks(VALUE)
