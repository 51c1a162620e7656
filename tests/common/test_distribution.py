"""The name under which the package is installed, and the commands that add an extra to an installation."""

import configparser
import json
import re
import sys
import sysconfig
from pathlib import Path

import pytest

from balog.common.distribution import DISTRIBUTION, install_command
from balog.common.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
STDLIB = sysconfig.get_path("stdlib")
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]


@pytest.fixture
def installed_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put metadata of an installation first on the path; ``direct_url.json`` is that of PEP 610, None for an index."""

    def install(direct_url: dict | None) -> None:
        folder = tmp_path / f"{DISTRIBUTION.replace('-', '_')}-9.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 9\n")
        if direct_url is not None:
            (folder / "direct_url.json").write_text(json.dumps(direct_url))
        stdlib = [path for path in sys.path if path.startswith(STDLIB) and "site-packages" not in path]
        monkeypatch.setattr(sys, "path", [str(tmp_path), *stdlib])

    return install


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (None, "pip install 'balog-events[sinks]'"),
        ({"url": "file:///srv/a%20b", "dir_info": {}}, "pip install '/srv/a b[sinks]'"),
        ({"url": "file:///srv/c", "dir_info": {"editable": True}}, "pip install -e '/srv/c[sinks]'"),
        (
            {"url": "https://git.example/c.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'balog-events[sinks] @ git+https://git.example/c.git@abc'",
        ),
        (
            {"url": "https://files.example/b.whl", "archive_info": {}},
            "pip install 'balog-events[sinks] @ https://files.example/b.whl'",
        ),
        (["not an object"], "pip install 'balog-events[sinks]'"),
    ],
)
def test_the_install_command_names_where_the_installation_came_from(installed_from, direct_url, command) -> None:
    installed_from(direct_url)
    assert install_command("sinks") == command
    assert str(MissingExtraError("the sink x", "sinks")).endswith(f"; run: {command}")


def test_the_distribution_has_the_name_of_the_metadata_and_only_extras_of_its_own() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["metadata"]["name"] == DISTRIBUTION
    required = " ".join(setup["options.extras_require"].values())
    assert not re.search(r"\bbalog(?!-events)\b", required)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_leads_to_the_other_project(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"(?:pip install|pip_url:|uv add|pipx install) +(?:-\S+ +)*['\"]?balog(?![-\w/])", text)
    assert not re.search(r"\bbalog\[[a-z]+\]", text)


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/**/pyproject.toml")), ids=lambda path: path.parent.name)
def test_no_example_requires_the_other_project(path: Path) -> None:
    assert not re.search(r"""["']balog["'\[<>=~]""", path.read_text())
