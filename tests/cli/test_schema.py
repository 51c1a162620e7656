"""``balog schema …`` as people call it: data on stdout, talk on stderr, 0 1 2."""

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from balog.event import Event, encode
from tests.programs import call_balog

ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {"cls_type": {"const": "order"}, "version": {"type": "string"}, "id": {"type": "integer"}},
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("BALOG_REGISTRY", "BALOG_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: object, feed: bytes = b"") -> "subprocess.CompletedProcess[str]":
    return call_balog("schema", *arguments, feed=feed)


def write(path: str, document: Any) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(document))
    return path


@pytest.fixture
def registered() -> str:
    run("register", write("order/1.0.0.json", ORDER), "--registry", "kept")
    return "kept"


def test_a_files_place_says_type_and_version() -> None:
    done = run("register", write("order/1.0.0.json", ORDER), "--registry", "kept")

    assert (done.returncode, done.stdout) == (0, "order/1.0.0\n")
    assert json.loads(Path("kept/order/1.0.0.json").read_text()) == ORDER


def test_the_least_version_is_found(registered: str) -> None:
    more = write("x.json", {**ORDER, "properties": {**ORDER["properties"], "note": {"type": "string"}}})

    done = run("register", more, "--type", "order", "--version", "auto", "--registry", registered)
    assert done.stdout == "order/1.1.0\n"
    again = run("register", more, "--type", "order", "--version", "auto", "--registry", registered)
    assert again.stdout == "order/1.1.0\n"
    first = run("register", more, "--type", "order", "--version", "auto", "--registry", "another")
    assert first.stdout == "order/1.0.0\n"


def test_an_incompatible_version_is_refused(registered: str) -> None:
    broken = write("order/1.1.0.json", {**ORDER, "required": ["id", "price"]})

    done = run("register", broken, "--registry", registered)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "not backward compatible" in done.stderr
    assert "the least version is 2.0.0" in done.stderr
    assert "json breaks: $.price: " in done.stderr
    assert not Path("kept/order/1.1.0.json").exists()


def test_a_new_major_may_break(registered: str) -> None:
    broken = write("order/2.0.0.json", {**ORDER, "required": ["id", "price"]})

    assert run("register", broken, "--registry", registered).returncode == 0


def test_too_small_a_step_is_refused(registered: str) -> None:
    more = {**ORDER, "properties": {**ORDER["properties"], "note": {"type": "string"}}}

    done = run("register", write("order/1.0.1.json", more), "--registry", registered)
    assert done.returncode == 1
    assert "too small a step; the least version is 1.1.0" in done.stderr


def test_a_dry_run_keeps_nothing() -> None:
    done = run("register", write("order/1.0.0.json", ORDER), "--registry", "kept", "--dry-run")

    assert (done.returncode, done.stdout) == (0, "order/1.0.0\n")
    assert not Path("kept").exists()


@pytest.mark.parametrize(
    ("name", "document", "said"),
    [
        ("order/1.0.0.json", {"type": "strin"}, "order/1.0.0: $.type: not a JSON Schema"),
        ("order/latest.json", ORDER, "--version: name the version"),
        ("ord er/1.0.0.json", {}, "'ord er' is no name for a type"),
        ("refund/1.0.0.json", ORDER, "is of the type 'order'"),
    ],
)
def test_what_cannot_be_registered_is_one_line(name: str, document: Any, said: str) -> None:
    done = run("register", write(name, document), "--registry", "kept")

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_key_twice_is_refused_and_a_byte_order_mark_accepted() -> None:
    Path("x.json").write_bytes(b'\xef\xbb\xbf{"type": "object"}')
    named = ("register", "x.json", "--type", "a.b", "--version", "1.0.0", "--registry", "kept")
    assert run(*named).stdout == "a.b/1.0.0\n"
    Path("x.json").write_text('{"type": "object", "type": "string"}')
    assert "a.b/1.0.0: $.type: this key is there twice" in run(*named[:-1], "other").stderr


def test_nothing_is_registered_nowhere() -> None:
    done = run("register", write("order/1.0.0.json", ORDER))

    assert done.returncode == 2
    assert "--registry" in done.stderr


def test_types_are_listed(registered: str) -> None:
    table = run("list", "--registry", registered).stdout
    rows = [line.split() for line in table.splitlines()]
    assert ["order", "1.0.0", "json", "1.0.0"] in rows
    assert {"metric", "order"} <= {row[0] for row in rows}


def test_the_environment_names_the_registry(registered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALOG_REGISTRY", registered)
    assert json.loads(run("show", "order").stdout) == ORDER
    assert json.loads(run("show", "order/1.0.0").stdout) == ORDER
    assert json.loads(run("show", "order", "1.0.0").stdout) == ORDER


def test_an_unknown_type_says_what_there_is(registered: str) -> None:
    done = run("show", "ordr", "--registry", registered)

    assert done.returncode == 1
    assert "no type 'ordr'; did you mean 'order'?" in done.stderr


def test_every_fault_of_every_line_is_told_without_its_value(registered: str) -> None:
    lines = [
        b'{"cls_type": "order", "version": "1.0.0", "id": 1}',
        b'{"cls_type": "order", "id": "hunter2"}',
        b"hunter2",
        encode(Event.new("a", {"cls_type": "order", "version": "1.0.0"})),
        b'{"cls_type": "nope"}',
        b'{"cls_type": "order", "version": "7.0.0", "id": 1}',
        b'{"id": 1}',
        encode(Event.new("a", Raw(b'{"a": {"id": 1, "id": 2}}'))),
    ]
    Path("lines.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))

    done = run("validate", "lines.jsonl.gz", "--registry", registered)
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert told[0] == 'lines.jsonl.gz: line 2: $.id: is not of type "integer"'
    assert told[1].startswith("lines.jsonl.gz: line 3: $: not JSON")
    assert told[2] == 'lines.jsonl.gz: line 4: $.payload: "id" is a required property'
    assert told[3].startswith("lines.jsonl.gz: line 5: $.cls_type: the registry knows no type 'nope'; there are")
    assert told[4].startswith("lines.jsonl.gz: line 6: $.version: the registry has no version '7.0.0' of order")
    assert told[5] == "lines.jsonl.gz: line 7: $: 'cls_type' is missing"
    assert told[6] == "lines.jsonl.gz: line 8: $.payload.a.id: this key is there twice; expected once"
    assert done.stderr == "balog schema: 8 read, 1 valid, 7 not\n"
    assert "hunter2" not in done.stdout + done.stderr


def test_a_type_may_be_named_for_payloads_that_do_not_say(registered: str) -> None:
    named = ("--type", "order", "--version", "1.0.0", "--registry", registered)

    assert run("validate", "-", *named, feed=b'[{"id": 1}, {"id": 2, "cls_type": "order"}]').returncode == 0
    done = run("validate", "-", *named, feed=b'[{"id": 1, "cls_type": "refund"}]')
    assert done.stdout == "<stdin>: item 1: $.cls_type: expected 'order'\n"


def test_a_draft_is_tried_before_it_is_registered() -> None:
    done = run("validate", "-", "--schema", write("draft.json", ORDER), feed=b'{"id": "x"}\n')

    assert (done.returncode, done.stdout) == (1, '<stdin>: line 1: $.id: is not of type "integer"\n')


def test_a_draft_that_is_none_is_wrong_use() -> None:
    done = run("validate", "-", "--schema", write("draft.json", {"type": 1}), feed=b"{}")

    assert done.returncode == 2
    assert "draft.json: $.type: not a JSON Schema" in done.stderr


def test_a_draft_is_inferred_and_takes_its_samples() -> None:
    Path("lines").write_text("".join(json.dumps({"cls_type": "order", "id": n}) + "\n" for n in range(3)))
    done = run("infer", "lines")

    assert done.returncode == 0
    Path("draft.json").write_text(done.stdout)
    assert run("validate", "lines", "--schema", "draft.json").returncode == 0


def test_of_samples_of_several_types_one_must_be_named() -> None:
    lines = b'{"cls_type": "order", "id": 1}\n{"cls_type": "refund", "id": 1}\n'

    done = run("infer", "-", feed=lines)
    assert done.returncode == 2
    assert "--type: name the type to draft; the samples have order, refund" in done.stderr
    assert json.loads(run("infer", "-", "--type", "refund", feed=lines).stdout)["title"] == "refund"


def test_a_sample_that_is_none_says_where() -> None:
    done = run("infer", "-", "--type", "a", feed=b'{"id": 1}\nword\n')

    assert done.returncode == 2
    assert done.stderr.startswith("balog schema: <stdin>: line 2: $: not JSON")
