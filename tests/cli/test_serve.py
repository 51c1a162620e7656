import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
from click.testing import CliRunner

from balog.cli import main
from balog.service.api.errors import ApiError
from balog.service.api.tokens import Tokens, read_tokens


def started(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "balog", "serve", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1124)),
    )


def test_it_says_where_it_is_serves_and_stops_when_told(tmp_path: Path):
    (tmp_path / "c.json").write_text('{"topics": "local:topics", "listen": ":0"}')
    with started("--config", "c.json", cwd=tmp_path) as process:
        line = process.stdout.readline()
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (1124, 1124)  # each topic takes three
        url = line.removeprefix("balog serve: ready at ").strip()
        with urllib3.PoolManager(retries=False) as http:
            secret = http.request("POST", url + "/v1/events", body=b'{"cls_type": "log", "message": "s3cret", "x": 1}')
            bad = http.request("POST", url + "/v1/events", body=b'{"cls_type": "log", "message": ["s3cret"]}')
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)

    assert (secret.status, bad.status, process.returncode) == (202, 422, 0)
    assert (out, err) == ("", "")
    assert b"s3cret" not in bad.data
    assert sorted(path.name for path in (tmp_path / "topics").glob("*.sqlite")) == [
        "failed_events.sqlite",
        "log.sqlite",
    ]


def test_a_bad_config_is_refused_with_all_that_is_wrong(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text('{"topics": "nowhere:x", "listen": "0.0.0.0:0", "tls_cert": "c.pem", "fallback": "local:"}')

    served = CliRunner().invoke(main, ["serve", "--config", str(path)])
    checked = CliRunner().invoke(main, ["check", "--for", "serve", str(path)])

    for result in (served, checked):
        assert result.exit_code == 2
        for key in ("topics", "fallback", "listen", "tls_key"):
            column = path.read_text().find(f'"{key}"') + 1
            where = f"{path}:1:{column}" if result is checked and column else str(path)
            assert f"{where}: $.{key}: " in result.output


@pytest.mark.parametrize("text", ["{", '{"topics": "local:x", "listn": ":0"}', '{"listen": ":0"}'])
def test_what_is_no_config_is_one_line(tmp_path: Path, text):
    path = tmp_path / "c.json"
    path.write_text(text)

    result = CliRunner().invoke(main, ["serve", "--config", str(path)])

    assert result.exit_code == 2
    assert len(result.output.splitlines()) == 1


def test_an_address_that_is_taken_is_told(tmp_path: Path):
    (tmp_path / "c.json").write_text(f'{{"topics": "local:{tmp_path}/topics"}}')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "--config", str(tmp_path / "c.json"), "--listen", f":{port}"])

    assert result.exit_code == 1
    assert result.stderr.startswith(f"balog serve: cannot listen at :{port}: ")


def test_a_token_is_shown_once_with_its_entry_beside(tmp_path: Path):
    alone = CliRunner().invoke(main, ["token", "add", "ci", "--may", "read", "--types", "order*"])
    entry = json.loads(alone.stderr)
    assert {name: entry[name] for name in ("name", "may", "types")} == {
        "name": "ci",
        "may": ["read"],
        "types": ["order*"],
    }

    filed = CliRunner().invoke(main, ["token", "add", "ci", "--file", str(tmp_path / "tokens.json")])
    assert filed.stderr == ""
    assert Tokens(tmp_path / "tokens.json").principal(f"Bearer {filed.stdout.strip()}").may == ("send",)


def test_a_name_that_a_token_can_t_have_is_refused():
    assert CliRunner().invoke(main, ["token", "add", "a b"]).exit_code == 2


def test_tokens_are_listed_without_the_tokens_and_revoked_by_name_or_hash(tmp_path: Path):
    path = str(tmp_path / "tokens.json")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["token", *arguments, "--file", path])
        return result.exit_code, result.stdout

    first = run("add", "shop", "--types", "order*", "--days", "90")[1].strip()
    second = run("add", "shop")[1].strip()
    run("add", "ops", "--may", "read")
    code, listed = run("list")
    rows = [line.split()[:2] for line in listed.splitlines()[1:]]
    assert (code, rows) == (0, [["shop", "send"], ["shop", "send"], ["ops", "read"]])
    assert first not in listed

    assert run("revoke", "shop", "--hash", listed.splitlines()[1].split()[-1])[0] == 0
    with pytest.raises(ApiError):
        Tokens(path).principal(f"Bearer {first}")
    assert Tokens(path).principal(f"Bearer {second}").name == "shop"
    assert run("revoke", "shop")[0] == 0
    assert run("revoke", "shop")[0] == 1
    assert [entry.name for entry in read_tokens(path)] == ["ops"]
