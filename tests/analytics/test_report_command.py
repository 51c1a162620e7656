"""``balog report`` as it is run, and its page as a browser shows it."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    assert numbers["events"] == counted["events"]
    assert numbers["errors"] == sum(counted["errors"].values())
    assert numbers["quarantined"] == counted["bad"]
    assert {(row["channel"], row["level"]): row["events"] for row in numbers["channels"]} == dict(counted["channels"])
    assert {row["run_id"] for row in numbers["runs"]} == set(counted["runs"])


def test_tables_go_to_stdout_and_nothing_else_does(balog: Any, root: Path, counted: Any) -> None:
    done = balog(root, "--no-html")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{counted['events']:,} events, ")
    for name, title in (("Channels", "errors"), ("Metrics", "p99"), ("Runs", "outcome"), ("Bad lines", "first at")):
        assert f"\n{name}" in done.stdout
        assert title in done.stdout
    assert "\x1b" not in done.stdout


def test_a_path_that_is_not_there_is_wrong_use_in_one_line(balog: Any) -> None:
    done = balog("missing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "missing: no such file or folder" in done.stderr


def test_no_event_at_all_is_said_and_is_no_failure(balog: Any, tmp_path: Path) -> None:
    done = balog(tmp_path, "--no-html")
    assert done.returncode == 0
    assert done.stderr == f"balog report: there is no event: no .jsonl or .jsonl.gz file below {tmp_path}\n"


def test_a_page_that_cannot_be_written_is_told_before_the_work(balog: Any, tmp_path: Path) -> None:
    done = balog(tmp_path, "--html", tmp_path / "no" / "page.html")
    assert done.returncode == 2
    assert "its folder does not exist" in done.stderr


def test_without_sparks_packages_one_line_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; from balog.cli import main; main(['report', '.'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("run: pip install 'balog[spark]'\n")
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def browser() -> Any:
    """Headless Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", *quiet])
        yield browser
        browser.close()


@pytest.mark.service
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (390, "light")])
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
    shown = {(row[0], level): int(row[head.index(level)]) for row in rows for level in head[1:-2]}
    expected = {(name, level or "no level"): count for (name, level), count in counted["channels"].items()}
    assert {key: count for key, count in shown.items() if count} == expected
    assert sum(int(row[-1]) for row in rows) == sum(counted["errors"].values())
    for name, kind, count, total, *shares in table("metrics")[1:]:
        measured = counted["metrics"][name, kind]
        assert int(count) == measured[0]
        assert math.isclose(float(total), measured[1], rel_tol=1e-12)
        assert [None if share == "–" else float(share) for share in shares] == measured[2]
    assert len(table("metrics")) == len(counted["metrics"]) + 1
    runs = {row[0]: row for row in table("runs")[1:]}
    assert set(runs) == set(counted["runs"])
    for name, run in counted["runs"].items():
        assert (int(runs[name][6]), int(runs[name][7])) == (run["events"], run["errors"])
        for report in run["reports"]:
            assert report["outcome"] in runs[name][4]
            assert int(runs[name][5]) == report["records"]
    assert sum(int(row[1]) for row in table("quarantine")[1:]) == counted["bad"]

    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert (
        opened.eval_on_selector_all(
            "figure svg", "all => all.filter(svg => svg.getBoundingClientRect().width > 0).length"
        )
        == 3
    )
    assert opened.eval_on_selector_all(".scroll", "all => all.every(region => region.tabIndex === 0)")
    assert requests == [page[0].as_uri()]
    assert messages == []
    context.close()
