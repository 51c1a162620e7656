"""Files of BATCH messages in the place of the files that they name."""

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from balog.analytics.reading.discovery import find_files
from balog.analytics.reading.tasks import plan
from balog.errors import ConfigError

PROPOSAL = {"type": "BATCH", "stream": "s", "format": {"name": "jsonl"}}
SDK = {"type": "BATCH", "stream": "s", "encoding": {"format": "jsonl", "compression": "gzip"}}
PIPELINEWISE = {"type": "BATCH", "stream": "s", "format": "jsonl"}


@pytest.fixture
def manifest(tmp_path: Path) -> Any:
    """Writes messages to a file; gives what it stands for, below the test's folder."""
    for name in ("a.jsonl", "b/c.jsonl.gz", "d e.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")

    def manifest(*messages: Any) -> list[tuple[str, int]]:
        path = tmp_path / "out.singer"
        path.write_text("".join(json.dumps(message) + "\n" for message in messages))
        return [(str(Path(file.path).relative_to(tmp_path)), file.size) for file in find_files(str(path))]

    return manifest


def test_all_three_dialects_name_files(manifest: Any, tmp_path: Path) -> None:
    found = manifest(
        {"type": "SCHEMA", "stream": "s", "schema": {}, "key_properties": []},
        {**PROPOSAL, "manifest": [f"file://{tmp_path}/a.jsonl"]},
        {**SDK, "manifest": [f"file://{tmp_path}/d%20e.jsonl"]},
        {**PIPELINEWISE, "filepath": "b/c.jsonl.gz"},
        {"type": "STATE", "value": {}},
    )
    assert found == [("a.jsonl", 5), ("b/c.jsonl.gz", 5), ("d e.jsonl", 5)]


def test_a_file_that_is_gone_is_left_to_who_reads_it(manifest: Any) -> None:
    assert manifest({**PROPOSAL, "manifest": ["gone.jsonl"]}) == [("gone.jsonl", 0)]


def test_one_message_may_name_thousands_of_files(manifest: Any) -> None:
    assert len(manifest({**PROPOSAL, "manifest": [f"{number:05d}.jsonl" for number in range(20_000)]})) == 20_000


@pytest.mark.parametrize("other", [{"type": "RECORD", "stream": "s", "record": {}}, {"type": "LOG"}, {"header": {}}])
def test_a_file_that_holds_anything_else_is_read_itself(manifest: Any, other: Any) -> None:
    assert [name for name, _ in manifest({**PROPOSAL, "manifest": ["a.jsonl"]}, other)] == ["out.singer"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({**PROPOSAL, "format": {"name": "csv"}, "manifest": ["a.csv"]}, "out.singer:1: names files of format 'csv'"),
        ({**PROPOSAL, "manifest": ["https://x/a?X-Amz-Signature=hunter2"]}, "names https://x/a; fetch it first"),
        ({"type": "BATCH", "stream": "s"}, "neither manifest nor filepath"),
    ],
)
def test_what_can_not_be_read_is_refused_before_anything_runs(manifest: Any, message: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", ".")) as caught:
        manifest(message)
    assert "hunter2" not in str(caught.value)


def test_in_a_folder_it_is_a_file_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps({**PROPOSAL, "manifest": ["a.jsonl"]}))
    assert [slices[0].path for slices in plan(find_files(str(tmp_path)), 1)] == [str(tmp_path / "m.jsonl")]


@pytest.mark.parametrize(
    "file",
    [
        "s3://other/x",
        "ftp://10.0.0.1/x",
        "memory://other/x",
        "sftp://u:hunter2@h/x",
        "file:///etc/passwd",
        "/etc/passwd",
    ],
)
def test_a_manifest_on_a_store_leads_to_that_store_only(file: str) -> None:
    manifest = {**PROPOSAL, "manifest": ["a.jsonl", "memory://balog-manifest/c.jsonl", file]}
    fsspec.filesystem("memory").pipe_file("/balog-manifest/t/m.singer", json.dumps(manifest).encode())
    with pytest.raises(ConfigError, match=r"m\.singer:1: names .* files must be where the manifest is") as caught:
        find_files("memory://balog-manifest/t/m.singer")
    assert "hunter2" not in str(caught.value)
    manifest["manifest"].pop()
    fsspec.filesystem("memory").pipe_file("/balog-manifest/t/m.singer", json.dumps(manifest).encode())
    found = [
        file.path.removeprefix("memory://balog-manifest/") for file in find_files("memory://balog-manifest/t/m.singer")
    ]
    assert found == ["c.jsonl", "t/a.jsonl"]


@pytest.mark.parametrize("file", ["s3://lake/x", "webhdfs://127.0.0.1:1/x", "a\0b"])
def test_a_manifest_on_this_machine_leads_to_no_store(manifest: Any, file: str) -> None:
    with pytest.raises(ConfigError, match=r"out\.singer:1: names "):
        manifest({**PROPOSAL, "manifest": ["a.jsonl", file]})
