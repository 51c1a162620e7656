"""``analytics.report`` in a Jupyter kernel, and what it shows there in headless Chromium."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from balog import analytics
from balog.common.errors import ConfigError

CELL = """
from balog import analytics
made = analytics.report({source!r}, where="channel LIKE 'tap_%'", links=["logs=https://logs.example/{{run_id}}"])
made
"""


@pytest.fixture(scope="module")
def output(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a kernel sends for a cell that ends with a report."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    cells = [nbformat.v4.new_code_cell(CELL.format(source=str(root))), nbformat.v4.new_code_cell("made.document")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    client.execute(cwd=str(tmp_path_factory.mktemp("notebook")))
    return [cell.outputs[-1]["data"] for cell in notebook.cells]


def test_a_cell_shows_the_page_and_has_the_numbers(output: Any, counted: dict[str, Any]) -> None:
    shown, document = output[0], eval(output[1]["text/plain"], {"__builtins__": {}})
    events = sum(count for (channel, _), count in counted["channels"].items() if channel.startswith("tap_"))
    assert document["events"] == events
    assert shown["text/plain"].startswith("<Report of ")
    assert f": {events:,} events, " in shown["text/plain"]
    assert shown["text/html"].count("<iframe ") == 1


@pytest.mark.service
def test_the_page_works_inside_of_the_notebook_and_can_not_reach_it(output: Any, browser: Any, tmp_path: Path) -> None:
    (tmp_path / "notebook.html").write_text(
        f"<!doctype html><title>notebook</title><main>{output[0]['text/html']}</main>", "utf-8"
    )
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    try:
        page, errors, requests = context.new_page(), [], []
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((tmp_path / "notebook.html").as_uri())
        frame = page.frames[1]
        assert frame.inner_text("h1") == "Pipeline events"
        assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")
        rows = frame.locator("#runs-table tbody tr:visible")
        every = rows.count()
        links = frame.locator("#runs-table a[href^='#run-']")
        first, last = (str(links.nth(n).get_attribute("href")).removeprefix("#") for n in (0, every - 1))
        frame.fill("[name=q]", first.removeprefix("run-"))
        assert 0 < rows.count() < every
        links.nth(every - 1).evaluate("link => link.click()")  # a link to a run that the search hides
        assert frame.locator(f"[id='{last}']").is_visible()
        frame.click("#filter button")
        assert rows.count() == every
        links.nth(0).click()
        section = frame.locator(f"[id='{first}']")
        assert section.is_visible()
        assert section.evaluate("one => one.getBoundingClientRect().top < innerHeight")
        with page.expect_popup() as popup:
            section.locator(".links a").click()
        assert popup.value.url.startswith(("https://logs.example/", "chrome-error:", "about:blank"))
        popup.value.close()
        assert len(page.frames) == 2  # the frame still has the report
        assert frame.inner_text("h1") == "Pipeline events"
        assert frame.evaluate("(() => { try { return parent.document.title } catch (e) { return e.name } })()") == (
            "SecurityError"
        )
        assert errors == []
        assert [url for url in requests if not url.startswith(("file:", "about:", "data:"))] == []
    finally:
        context.close()


def test_it_saves_the_page_and_the_document(root: Path, tmp_path: Path) -> None:
    made = analytics.report(root)
    assert made.save(tmp_path / "a.html").read_text() == made.page
    assert json.loads(made.save(str(tmp_path / "a.json")).read_text()) == made.document
    assert made.document["events"] == made.report.events
    with pytest.raises(ConfigError, match=r"no/where\.html: cannot be written"):
        made.save(tmp_path / "no" / "where.html")
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a.json"]


@pytest.mark.spark
def test_spark_makes_the_same_report(spark: Any, root: Path) -> None:
    def numbers(made: Any) -> Any:
        kept = ("events", "errors", "totals", "duplicates", "channels", "period", "quarantined")
        return {name: made.document[name] for name in kept}

    assert numbers(analytics.report(spark, root)) == numbers(analytics.report(root))


@pytest.mark.parametrize(
    ("sources", "options", "said"),
    [
        ([], {}, "nothing to report"),
        (["local:topics#sync"], {}, ""),
        (["nowhere"], {}, "no such file or folder"),
        ([""], {}, "a path is empty"),
        (["."], {"since": "yesterday"}, "--since: 'yesterday' is not a time"),
        (["."], {"links": ["https://x.example/{runid}"]}, "runid"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, sources: list[str], options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        analytics.report(*sources, **options) if sources else analytics.report(SimpleNamespace(sql=None))  # type: ignore[call-arg]
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
