"""Configs with any combination of mistakes planted in them: ``balog check`` names every one, and so do the commands."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli import main
from tests.oracles.effort import seeds

SINK = {"type": "store", "path": "archive", "topic": "events"}


def put(*steps: Any, value: Any) -> Callable[[Any], None]:
    """Return what writes a value into a config."""

    def plant(config: Any) -> None:
        for step in steps[:-1]:
            config = config[step] if isinstance(config, list) else config.setdefault(step, {})
        config[steps[-1]] = value

    return plant


# Of each kind of config: a good one, and mistakes by what must be told of them. No two are in one part.
BROKER = {
    "sinks": [{**SINK, "topic": f"t{n}"} for n in range(5)],
    "records": [{"stream": f"s{n}", "filter": "id > 1"} for n in range(4)],
}
BROKER_MISTAKES = {
    "$.sinks[0]: there is no type 'stor'": put("sinks", 0, "type", value="stor"),
    "$.sinks[1]: there is no field 'pth'": put("sinks", 1, "pth", value=1),
    "$.sinks[2].where: ": put("sinks", 2, "where", value="level ="),
    "$.sinks[3].topic: ": put("sinks", 3, "topic", value="../x"),
    "$.records[0].filter: ": put("records", 0, "filter", value="id >"),
    "$.records[2].filter: ": put("records", 2, "filter", value=5),
    "$.records[3]: there is no field 'fliter'": put("records", 3, "fliter", value="id"),
    "$.drain: ": put("drain", value="long"),
    "$: there is no field 'stripp'": put("stripp", value=True),
    "$.spool.path: ": put("spool", value={"path": "/proc/none/spool"}),
    "$.quarantine.path: ": put("quarantine", value={"path": "/proc/none/q"}),
    "$.state.store: ": put("state", value={"store": "nope://x/state.json"}),
}
RUN = {"sinks": [dict(SINK), dict(SINK)]}
RUN_MISTAKES = {
    "$.sinks[0].path: ": put("sinks", 0, "path", value=""),
    "$.sinks[1].where: ": put("sinks", 1, "where", value="(("),
    "$.quarantine.path: ": put("quarantine", value={"path": "/proc/none/q"}),
    "$.count: ": put("count", value="yes"),
    "$: there is no field 'inband'": put("inband", value=True),
    "$.spool.path: ": put("spool", value={"path": "/proc/none/spool"}),
}
SERVE = {"topics": "local:topics", "listen": ":0"}
SERVE_MISTAKES = {
    "$.topics: ": put("topics", value="nowhere:x"),
    "$.listen: ": put("listen", value="x"),
    "$.limits.depth: ": put("limits", "depth", value=0),
    "$.tls_key: ": put("tls_cert", value="c.pem"),
    "$.registry_options: ": put("registry_options", value={"a": 1}),
    "$.fallback: ": put("fallback", value="local:"),
    "$: there is no field 'listn'": put("listn", value=":1"),
}
LOGGER = {"output": [{"to": "stderr"}, {"to": "stderr"}, {"to": "stderr"}]}
LOGGER_MISTAKES = {
    "$.level: ": put("level", value="LOUD"),
    "$.output[0].where: ": put("output", 0, "where", value="level ="),
    "$.output[1].level: ": put("output", 1, "level", value="LOUD"),
    "$.output[2]: there is no field 'too'": put("output", 2, "too", value=1),
    "$.strict: ": put("strict", value="yes"),
}
CASES = {
    "config": {"sinks": [dict(SINK), dict(SINK)]},
    "cases": [{"name": f"c{n}", "input": [], "output": []} for n in range(3)],
}
CASES_MISTAKES = {
    "$.config.sinks[0].where: ": put("config", "sinks", 0, "where", value="(("),
    "$.config.sinks[1]: there is no field 'topik'": put("config", "sinks", 1, "topik", value=1),
    "$.cases[0]: there is no field 'imput'": put("cases", 0, "imput", value=[]),
    "$.cases[1].events: ": put("cases", 1, "events", value="0"),
    "$.cases[2]: the case 'c' states nothing": put("cases", 2, value={"name": "c", "input": []}),
}
DOCUMENT = {"streams": [{"name": f"n{n}", "types": [f"t{n}"]} for n in range(4)]}
DOCUMENT_MISTAKES = {
    "$.streams[0].where: ": put("streams", 0, "where", value="(("),
    "$.streams[1].rate: ": put("streams", 1, "rate", value="newest"),
    "$.streams[2]: there is no field 'typs'": put("streams", 2, "typs", value=[]),
    "$.streams[3].types: ": put("streams", 3, "types", value="x"),
    "$: there is no field 'stream'": put("stream", value=[]),
}
KINDS = {
    "broker": (BROKER, BROKER_MISTAKES),
    "forward": (BROKER, BROKER_MISTAKES),
    "run": (RUN, RUN_MISTAKES),
    "serve": (SERVE, SERVE_MISTAKES),
    "logger": (LOGGER, LOGGER_MISTAKES),
    "cases": (CASES, CASES_MISTAKES),
    "document": (DOCUMENT, DOCUMENT_MISTAKES),
}
COMMANDS = {
    "broker": ["broker", "--config"],
    "forward": ["forward", "--topics", "local:topics", "--topic", "t", "--until-empty", "--config"],
    "serve": ["serve", "--config"],
}


def checked(path: Path, kind: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(main, ["check", "--for", kind, str(path)])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    place = re.compile(rf"{re.escape(str(path))}(?::\d+:\d+)?: ")
    return done.exit_code, [place.sub("", line, count=1) for line in done.output.splitlines()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(8))
def test_check_names_every_mistake_of_any_combination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int
):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(f"{kind}{seed}")
    good, mistakes = KINDS[kind]
    path = tmp_path / "c.json"
    for _ in range(4):
        planted = chance.sample(sorted(mistakes), chance.randrange(1, len(mistakes) + 1))
        config = json.loads(json.dumps(good))
        for place in planted:
            mistakes[place](config)
        config["$schema"] = f"https://example.com/{kind}.json"
        text = json.dumps(config)
        is_twice = chance.random() < 0.4
        if is_twice:
            text = text[:-1] + ', "tw\\u0069ce": 1, "twice": 2}'
        path.write_text(text)

        code, lines = checked(path, kind)

        assert code == 2
        for place in planted:
            assert any(line.startswith(place) for line in lines), (place, lines)
        assert is_twice == any(line.startswith("$.twice: this key is there twice") for line in lines), lines
        wanted = len(planted) + is_twice
        told = [line for line in lines[:-1] if "no field 'twice'" not in line]
        assert len(told) == wanted, (planted, lines)


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_config_that_names_its_schema_for_editors_is_ok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"$schema": "https://example.com/x.json", **KINDS[kind][0]}))

    code, lines = checked(path, kind)

    assert code == 0, lines
    assert [item.name for item in tmp_path.iterdir()] == ["c.json"], "checking leaves nothing behind"


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("seed", seeds(3))
def test_a_command_tells_what_check_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(f"{kind}{seed}")
    good, mistakes = KINDS[kind]
    if kind == "forward":  # it builds the sinks alone
        mistakes = {place: plant for place, plant in mistakes.items() if place.startswith(("$.sinks", "$.drain"))}
    config = json.loads(json.dumps(good))
    for place in chance.sample(sorted(mistakes), chance.randrange(1, len(mistakes) + 1)):
        mistakes[place](config)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(config))

    _, lines = checked(path, kind)
    done = CliRunner().invoke(main, [*COMMANDS[kind], str(path)])

    assert done.exit_code == 2
    found = [line.removeprefix(f"balog {kind}: ").removeprefix(f"{path}: ") for line in done.output.splitlines()]
    # check has the lines of the file, and their order
    assert sorted(one for one in found if one[0] == "$") == sorted(one for one in lines if one[0] == "$")
