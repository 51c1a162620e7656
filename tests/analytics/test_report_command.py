"""``balog report`` as it is run, and its page as a browser shows it."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from balog.cli.report import command
from balog.common.distribution import install_command
from balog.common.errors import ConfigError

pytestmark = pytest.mark.spark

Balog = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def balog(tmp_path_factory: pytest.TempPathFactory) -> Balog:
    """Runs ``balog report`` in an empty folder, which is ``balog.folder``."""
    folder = tmp_path_factory.mktemp("here")
    program = "from balog.cli import main; main(prog_name='balog')"

    def balog(*words: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, "report", *map(str, words)]
        environment = {**os.environ, "COLUMNS": "80"}
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)

    balog.folder = folder  # type: ignore[attr-defined]
    return balog


@pytest.fixture(scope="module")
def page(balog: Any, root: Path) -> tuple[Path, Any]:
    """The page over the archive, and the numbers that ``--json`` gave in the same run."""
    done = balog(root, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "balog report: wrote balog-report.html\n"
    return balog.folder / "balog-report.html", json.loads(done.stdout)


def test_json_gives_all_numbers(page: Any, counted: Any) -> None:
    numbers = page[1]
    assert (numbers["version"], numbers["source"], numbers["files"]) == ("1.0.0", "files", 4)
    assert numbers["events"] == counted["events"]
    assert numbers["errors"] == sum(counted["errors"].values())
    assert numbers["quarantined"] == counted["bad"]
    assert {row["run_id"] for row in numbers["runs"]} == set(counted["runs"])


def test_one_run_is_printed_and_no_page_is_written(balog: Any, root: Path, page: Any, counted: Any) -> None:
    """The document of a run has its events and errors; an unknown id is one line that names a similar one."""
    name, expected = next((name, run) for name, run in counted["runs"].items() if run["errors"])
    done = balog(root, "--run", name, "--json", "--html", "unwritten.html", "--link", "https://x.example/{run_id}")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["run"]["events"], found["run"]["errors"]) == (expected["events"], expected["errors"])
    assert sum(part["errors"] for part in found["run"]["parts"]) == expected["errors"]
    assert found["links"]["x.example"].startswith("https://x.example/")
    assert not (balog.folder / "unwritten.html").exists()
    done = balog(root, "--run", f"{name}x")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no run '{name}x'; did you mean " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "soon"], "--since: 'soon' is not a time"),
        (["--since", "2026-11-20", "--until", "2026-11-19"], "--until: 2026-11-19 is not after"),
        (["--where", "levl = 'ERROR'"], "--where: "),
        (["--compare", "so"], "--compare: 'so' is not a duration"),
        (["--link", "https://x.example/{run}"], "--link: unknown field {run}; did you mean 'run_id'?"),
        (["--html", "no/page.html"], "no/page.html: its folder does not exist"),
    ],
)
def test_wrong_use_is_refused_before_spark_starts(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "a.jsonl").touch()
    done = CliRunner().invoke(command, [str(tmp_path), *words])
    assert isinstance(done.exception, ConfigError)
    assert said in str(done.exception)


def test_no_event_at_all_is_said_and_is_no_failure(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path), "--no-html"])
    assert done.exit_code == 0
    assert done.stdout == "0 events, 0 errors, 0 bad lines; files read: 0\n"
    assert done.stderr == f"balog report: no events found: no file of events below {tmp_path}\n"


@pytest.mark.parametrize(
    ("package", "engine", "extra"), [("pyspark", "spark", "spark"), ("jinja2", "auto", "embedded")]
)
def test_without_a_package_one_line_says_what_to_install(tmp_path: Path, package: str, engine: str, extra: str) -> None:
    words = f"['report', '.', '--engine', '{engine}']"
    program = f"import sys; sys.modules['{package}'] = None; from balog.cli import main; main({words})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(f"run: {install_command(extra)}\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.service
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_shows_what_plain_python_counts_and_asks_for_nothing(
    browser: Any,
    page: Any,
    counted: Any,
    width: int,
    scheme: str,
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened, requests, messages = context.new_page(), [], []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.goto(page[0].as_uri())

    def table(name: str) -> list[list[Any]]:
        cells = "cell => cell.querySelector('data')?.value ?? cell.innerText.trim()"
        rows = f"rows => rows.map(row => [...row.cells].map({cells}))"
        return opened.eval_on_selector_all(f"#{name}-table tr", rows)  # type: ignore[no-any-return]

    head, *rows = table("channels")
    shown = {(row[0], level): int(row[head.index(level)]) for row in rows for level in head[1:-3]}
    expected = {(name, level or "no level"): count for (name, level), count in counted["channels"].items()}
    assert {key: count for key, count in shown.items() if count} == expected
    assert sum(int(row[-2]) for row in rows) == sum(counted["errors"].values())
    metrics = table("metrics")[1:]
    assert {(row[0], row[1]) for row in metrics} == set(counted["values"])
    for name, kind, count, total, *shares in metrics:
        values = sorted(counted["values"][name, kind])
        assert int(count) == len(values)
        assert math.isclose(float(total), math.fsum(values), rel_tol=1e-12)
        ranks = [values[math.ceil(share * len(values)) - 1] for share in (0.5, 0.95, 0.99)]
        assert [None if share == "–" else float(share) for share in shares] == (
            [None] * 3 if kind == "counter" else ranks
        )
    runs = {row[0].partition("\n")[0]: row for row in table("runs")[1:]}
    assert set(runs) == set(counted["runs"])
    for name, run in counted["runs"].items():
        assert (int(runs[name][7]), int(runs[name][8])) == (run["events"], run["errors"])
        for report in run["reports"]:
            assert report["outcome"] in runs[name][4]
            assert int(runs[name][5]) == report["records"]
    assert sum(int(row[1]) for row in table("quarantine")[1:]) == counted["bad"]
    failures = sum(int(row[1]) for row in table("failures")[1:])
    assert failures == sum(counted["errors"].values())

    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    charts = "all => all.filter(svg => svg.getBoundingClientRect().width > 0).length"
    assert opened.eval_on_selector_all("figure svg", charts) == opened.locator("figure").count() == 4
    assert opened.eval_on_selector_all(".scroll", "all => all.every(region => region.tabIndex === 0)")
    paper = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(21, 22, 24)") == (scheme == "dark")
    assert requests == [page[0].as_uri()]
    assert messages == []
    context.close()


@pytest.mark.service
def test_the_page_is_used_by_keyboard_alone(browser: Any, page: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.goto(page[0].as_uri())
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.innerText") == "Skip to the report"
    assert opened.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    opened.keyboard.press("Enter")
    assert opened.evaluate("location.hash") == "#report"
    opened.focus("#failures summary")
    opened.keyboard.press("Enter")
    assert opened.locator("#failures details").first.get_attribute("open") is not None
    opened.focus("#failures-table")  # a table is no stop of its own, the region around it is
    opened.focus("#failures .scroll")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    opened.keyboard.press("Tab")
    assert opened.evaluate(outline) == "solid"
    context.close()
