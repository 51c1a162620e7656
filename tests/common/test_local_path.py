"""A path that a config names is the path that it says, or it is refused: no ``./s3:`` or ``./${HOME}`` is made."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.tables import check_location
from balog.broker.batches.config import BatchConfig
from balog.broker.batches.output_file import Location
from balog.common.config.tagged_config import convert
from balog.common.errors import ConfigError
from balog.common.local_path import local_path
from balog.common.storage import open_storage
from balog.consumers.ledgers.factory import open_ledger
from balog.delivery.spool import Spool, SpoolConfig
from balog.log.outputs import open_output
from balog.log.outputs.queued import QueuedOutput
from balog.service.micro import Micro
from balog.singer.quarantine_file import QuarantineFile
from balog.sinks import AnySinkConfig
from balog.topics import open_topics

URLS = ["s3://bucket/a", "gs://bucket/a", "S3://bucket/a", "s3:/bucket/a", "sftp://u@h/a", "custom+x://a"]
UNEXPANDED = ["${HOME}/archive", "$HOME/archive", "$HOME", "a/${DAY}/b", "~no-such-user/archive"]
PATHS = ["a", "./s3:/a", "a/b", "/a/b", "a$b", "a/$b", "cost in $", "a:b", "1:/x", "a~", "{a}", "日志/a"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """The working folder, in which nothing with an odd name may be afterwards."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert [name for name in os.listdir(tmp_path) if set(name) & set(":$~")] == []


def sink(**fields):
    return convert(fields, AnySinkConfig).build()


PATHS_ONLY = {
    "a store's path": lambda path: sink(type="store", topic="t", path=path),
    "a staging folder": lambda path: sink(type="store", topic="t", url="memory://a", staging=path),
    "a textfile": lambda path: sink(type="prometheus", textfile={"path": f"{path}.prom"}),
    "an agent's socket": lambda path: sink(type="datadog", agent={"socket": path}),
    "a spool": lambda path: Spool(SpoolConfig(path=path)),
    "a quarantine": lambda path: QuarantineFile(path, 10_000),
    "topics": lambda path: open_topics(f"local:{path}"),
    "the topic sink": lambda path: sink(type="topic", url=f"local:{path}", topic="t"),
    "a logger's file": lambda path: open_output(f"file:{path}"),
    "a ledger": lambda path: open_ledger(f"sqlite:{path}"),
    "a micro service": lambda path: Micro(data=path),
}
PATHS_OR_URLS = {
    "a storage": open_storage,
    "a folder of batches": lambda path: Location(BatchConfig(location=path)),
    "a folder of tables": check_location,
}
TAP = """
from balog.tap import Tap

tap = Tap("tap-x")


@tap.stream("rows", key_properties=["id"])
def rows(context):
    yield {"id": 1}


tap.run()
"""


@pytest.mark.parametrize("path", [*URLS, *UNEXPANDED])
@pytest.mark.parametrize("use", PATHS_ONLY)
def test_a_url_or_a_variable_is_refused_where_a_path_is_wanted(use, path):
    if use == "a textfile" and path == "$HOME":
        path = "$HOME/x"
    with pytest.raises(ConfigError, match=r"is a URL|not expanded|no home folder"):
        PATHS_ONLY[use](path)


@pytest.mark.parametrize("path", ["s3:/bucket/a", "a/${DAY}/b", "$HOME/a", "s3://bucket/${DAY}"])
@pytest.mark.parametrize("place", PATHS_OR_URLS)
def test_what_is_neither_a_url_nor_a_path_is_refused_where_both_are_wanted(place, path):
    with pytest.raises(ConfigError, match=r"is a URL|not expanded|is no folder|is not a folder"):
        PATHS_OR_URLS[place](path)


def test_an_archive_of_the_logger_may_be_at_a_url(empty_folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(empty_folder / "state"))
    output = open_output("store:memory://bucket/a?topic=t")
    assert isinstance(output, QueuedOutput)
    assert output._config.url == "memory://bucket/a"


def test_a_tap_s_file_of_states_is_a_path(empty_folder):
    command = [sys.executable, "-c", TAP, "--out-file", "s3://bucket/state.json"]
    done = subprocess.run(command, capture_output=True, cwd=empty_folder, text=True)
    assert "--out-file: is a URL; give a path on local disk" in done.stderr
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


@given(st.text(min_size=1).filter(lambda text: not text.startswith("~") and "$" not in text and ":/" not in text))
def test_any_other_text_is_the_path_that_it_says(text):
    assert local_path(text) == text


@pytest.mark.parametrize("path", PATHS)
def test_paths_with_odd_characters_are_paths(path):
    assert local_path(path) == path


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/archive") == f"{tmp_path}/archive"
    Spool(SpoolConfig(path="~/spool"))
    assert (tmp_path / "spool").is_dir()
