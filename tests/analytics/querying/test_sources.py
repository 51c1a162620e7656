import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sqlglot")

from balog.analytics.querying.sources import find_source, open_source
from balog.analytics.querying.spark_allowed_statements import check
from balog.common.errors import ConfigError


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of dumps in the current folder, beside a secret."""
    folder = tmp_path / "dumps" / "date=2026-11-20"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("{}\n")
    (tmp_path / "dumps" / "b.jsonl").write_text("{}\n")
    (tmp_path / "dumps2").mkdir()
    (tmp_path / "dumps2" / "secret.jsonl").write_text("password\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "dumps"


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("dumps", ["b.jsonl", "date=2026-11-20/a.jsonl"]),
        ("dumps/", ["b.jsonl", "date=2026-11-20/a.jsonl"]),
        ("./dumps/b.jsonl", ["b.jsonl"]),
        ("dumps/date=*", ["date=2026-11-20/a.jsonl"]),
        ("file:dumps/b.jsonl", ["b.jsonl"]),
    ],
)
def test_a_statement_can_name_a_source_and_what_lies_in_it(dumps: Path, path: str, files: list[str]) -> None:
    found = open_source(path, ["dumps"])
    assert [os.path.relpath(file.path, dumps) for file in found.files] == files
    assert found.name == f"balog.{path}"
    assert check(f"SELECT 1 FROM balog.`{path}`", [], ["dumps"]).paths == (path,)


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "dumps2", "dumps2/secret.jsonl", "dumps/../dumps2", "..", ".", "/", "", "~/x", "dumps*"),
        *("dumps/b.jsonl,dumps2/secret.jsonl", "dumps/%2e%2e/dumps2", "file:dumps/%2E%2E/dumps2", "file:///etc/passwd"),
        *("s3://bucket/a", "http://127.0.0.1/a", "local:topics#sync", "kafka://h/t", "dumps/\x00", "dumps/..", "d?mps"),
    ],
)
def test_a_statement_can_name_no_other_path(dumps: Path, path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_source(path, ["dumps"])
    assert "--source PATH" in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(ConfigError):
        check(f"SELECT 1 FROM balog.`{path}`", [], ["dumps"])
    with pytest.raises(ConfigError):
        check(f"DESCRIBE balog.`{path}`", [], ["dumps"])


_PARTS = st.lists(st.sampled_from(["dumps", "dumps2", "..", ".", "a", "", "%2e%2e", "*", ",", "/", "x y"]), max_size=6)


@given(_PARTS, st.sampled_from(["", "/", "file:", "file://", "s3://"]))
def test_whatever_its_parts_a_path_that_passes_stays_in_the_source(parts: list[str], before: str) -> None:
    path = before + "/".join(parts)
    try:
        find_source(path, ["dumps"])
    except ConfigError:
        return
    place = os.path.realpath(path.removeprefix("file:").replace("%2e", "."))
    assert place == os.path.realpath("dumps") or place.startswith(os.path.realpath("dumps") + os.sep)


def test_a_url_and_its_folder_pass_without_showing_its_password() -> None:
    sources = ["s3://lake/events", "ftp://me:hunter2@host/a"]
    assert find_source("s3://lake/events/date=2026-11-20", sources) == "s3://lake/events"
    for path in (
        "s3://lake/events2",
        "s3://lake",
        "s3://lake/events/../x",
        "s3://lake/events/%2e%2e/x",
        "s3:/lake/events/x",
    ):
        with pytest.raises(ConfigError) as refused:
            find_source(path, sources)
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("path", ["dumps/link/secret.jsonl", "dumps/link", "dumps/alone.jsonl"])
def test_a_statement_follows_no_link_out_of_its_source(dumps: Path, path: str) -> None:
    (dumps / "link").symlink_to(dumps.parent / "dumps2")
    (dumps / "alone.jsonl").symlink_to(dumps.parent / "dumps2" / "secret.jsonl")
    with pytest.raises(ConfigError, match="which is not in 'dumps'"):
        open_source(path, ["dumps"])
    (dumps / "inside.jsonl").symlink_to(dumps / "b.jsonl")
    assert len(open_source("dumps/inside.jsonl", ["dumps"]).files) == 1


def test_the_engine_sees_one_name_at_the_same_position() -> None:
    sql = "SELECT 'balog.`x`' AS t\nFROM balog.`x/a b` AS a JOIN Balog . `x` USING (id), log balog WHERE balog.`id` = 1"
    checked = check(sql, ["log"], ["x"])
    assert checked.text == (
        "SELECT 'balog.`x`' AS t\nFROM `balog.x/a b` AS a JOIN `balog.x`   USING (id), log balog WHERE balog.`id` = 1"
    )
    assert sorted(checked.paths) == ["x", "x/a b"]
    assert checked.words is not None
    assert {"id", "a"} <= checked.words


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 1 FROM balog.x", "SELECT 1 FROM `balog.x`"),
        ("DESCRIBE balog.`x`", "DESCRIBE `balog.x`"),
        ("SELECT 1 FROM balog.`x``y`", None),
        ("SELECT 1 FROM balog.x JOIN balog.`X`", None),
        ('SELECT 1 FROM balog."x"', None),
        ("SELECT 1 FROM spark_catalog.balog.`x`", None),
        ("SELECT 1 FROM `balog.x`", None),
        ("SELECT 1 FROM csv.`x`", None),
    ],
)
def test_other_spellings(sql: str, text: str | None) -> None:
    if text is not None:
        assert check(sql, [], ["x"]).text == text
        return
    with pytest.raises(ConfigError) as refused:
        check(sql, [], ["x", "X"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT count(*) FROM balog.x WHERE Level = 'ERROR'", {"level", "x", "balog"}),
        ("SELECT * FROM balog.x", None),
        ("SELECT a.* FROM balog.x a", None),
        ("FROM balog.x |> WHERE level = 'x'", None),
        ("SELECT id FROM balog.x a NATURAL JOIN log", None),
        ("DESCRIBE balog.`x`", None),
    ],
)
def test_the_columns_that_a_statement_may_use(sql: str, words: set[str] | None) -> None:
    found = check(sql, ["log"], ["x"]).words
    assert found == words if words is None else found is not None and found >= words
