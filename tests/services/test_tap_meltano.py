"""A tap made with balog.tap in the real Meltano: installed by its entry point, on balog's base install."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.programs import run_program
from tests.services.environments import meltano_environment
from tests.services.real_taps import installed
from tests.services.test_tap_peers import CITIES, LATER, NEW, PEOPLE, TAP, as_sent, lines_of
from tests.services.test_taps_on_balog import add_balog, environment_with

pytestmark = pytest.mark.service

PACKAGE = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tap-people"
version = "1.2.3"

[project.scripts]
tap-people = "tap_people:tap.run"

[tool.setuptools]
py-modules = ["tap_people"]
"""

PROJECT = """
default_environment: dev
environments:
  - name: dev
send_anonymous_usage_stats: false
plugins:
  extractors:
    - name: tap-people
      namespace: tap_people
      executable: tap-people
      capabilities: [catalog, discover, state, about]
      settings:
        - name: source
      config:
        source: source.json
      select:
        - people.*
        - "!people.born"
        - "!people.place"
  loaders:
    - name: target-jsonl
      namespace: target_jsonl
      executable: target-jsonl
      settings:
        - name: destination_path
        - name: do_timestamp_file
          kind: boolean
      config:
        destination_path: .
        do_timestamp_file: false
"""


def wanted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as the project selects them."""
    return [{key: value for key, value in row.items() if key not in ("born", "place")} for row in as_sent(rows)]


class Project:
    def __init__(self, folder: Path, programs: list[Path]) -> None:
        self.folder = folder
        self._programs = programs
        (folder / "meltano.yml").write_text(PROJECT)

    def source(self, people: list[Any]) -> None:
        (self.folder / "source.json").write_text(json.dumps({"people": people, "cities": CITIES}))

    def meltano(self, *arguments: str) -> str:
        """Run a command; give its stdout."""
        return run_program("meltano", *arguments, cwd=self.folder, env=meltano_environment(self._programs)).stdout


@pytest.fixture(scope="module")
def tap(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the tap's package and balog's base install."""
    folder = tmp_path_factory.mktemp("tap-people")
    (folder / "pyproject.toml").write_text(PACKAGE)
    (folder / "tap_people.py").write_text(TAP, encoding="utf-8")
    return add_balog(environment_with(tmp_path_factory.mktemp("tap"), str(folder)), checkout)


@pytest.fixture(scope="module")
def project(tap: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    others = [Path(installed("meltano", "meltano")).parent, Path(installed("target-jsonl", "target-jsonl")).parent]
    made = Project(tmp_path_factory.mktemp("project"), [tap, *others])
    made.source(PEOPLE)
    return made


def test_its_catalog_and_what_it_says_of_itself_are_asked_for(project: Project) -> None:
    catalog = json.loads(project.meltano("invoke", "tap-people", "--discover"))
    assert [stream["tap_stream_id"] for stream in catalog["streams"]] == ["people", "cities"]
    about = json.loads(project.meltano("invoke", "tap-people", "--about", "--format=json"))
    assert about["name"] == "tap-people"
    assert {"catalog", "discover", "state", "about"} <= set(about["capabilities"])
    assert set(about["settings"]["properties"]) == {"source", "start_date", "quarantine_file"}


def test_the_rules_of_selection_are_those_of_its_catalog(project: Project) -> None:
    listed = project.meltano("select", "tap-people", "--list", "--all")
    rules = dict(reversed(found) for found in re.findall(r"\[(\w+) *\] (\S+)", listed))
    assert rules["people.id"] == rules["people.updated_at"] == "automatic"
    assert rules["people.name"] == "selected"
    assert rules["people.born"] == rules["cities.area"] == "excluded"


def test_what_is_selected_arrives_and_the_state_is_gone_on_from(project: Project) -> None:
    """Given a first run, when the source changed, then the next one sends from the bookmark on, and only that."""
    project.source(PEOPLE)
    project.meltano("run", "tap-people", "target-jsonl")
    assert as_sent(lines_of(project.folder / "people.jsonl")) == wanted(PEOPLE)
    assert not (project.folder / "cities.jsonl").exists()

    project.source([LATER, *PEOPLE[1:], NEW])
    project.meltano("run", "tap-people", "target-jsonl")
    assert as_sent(lines_of(project.folder / "people.jsonl")) == wanted([*PEOPLE, PEOPLE[-1], LATER, NEW])
    kept = json.loads(project.meltano("state", "get", "dev:tap-people-to-target-jsonl"))
    assert kept["singer_state"]["bookmarks"]["people"]["updated_at"].startswith("2026-11-21T00:00:01")


def test_it_passes_the_test_of_a_connection(project: Project) -> None:
    """Meltano waits for a first record, and ends the tap then."""
    project.source(PEOPLE)
    project.meltano("config", "test", "tap-people")
