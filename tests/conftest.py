"""What the tests of several rooms share.

Tests marked ``service`` need more than pip brings. ``BALOG_SERVICES=off`` leaves them out; otherwise they run where
what they need is there. ``BALOG_SERVICES=required`` (as CI sets it) makes each skip of a test or a module a failure,
except those of a condition: ``skipif``, and the reasons in ``CONDITIONS``. The end of a run lists all skips.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from balog.common import plugins
from tests.spark_classes import spark_options
from tests.stand_ins.packages import install_sinks
from tests.waiting import Clock

ROOT = Path(__file__).parents[1]
SERVICES = os.environ.get("BALOG_SERVICES", "")

os.environ.setdefault("SPARK_SUBMIT_OPTS", spark_options())

# Run in the background, or by nohup: what the tests start must not inherit that.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


# A busy machine is no failure of an example.
hypothesis.settings.register_profile("balog", deadline=None)
hypothesis.settings.load_profile("balog")

FIRST = ("tests/analytics/", "tests/benchmarks/", "tests/readme/", "tests/services/")
"""What takes long, so that no worker begins with it when the others are almost done."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one of several workers; see pytest_xdist_make_scheduler
        for item in items:
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("spark"))
        items.sort(key=lambda item: not (item.nodeid.startswith(FIRST) or item.get_closest_marker("xdist_group")))
    left_out = [item for item in items if SERVICES == "off" and item.get_closest_marker("service")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal out whole modules, so that each one's servers start once; all that shares the Spark session is one deal."""
    from xdist.scheduler import LoadGroupScheduling

    class Modules(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = str(super()._split_scope(nodeid))
            return nodeid.split("::")[0] if group == nodeid else group

    return Modules(config, log) if config.getoption("dist") == "loadgroup" else None


FREE = 300 << 20
"""Bytes of disk below which a run stops, before each test that follows fails for want of them."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    place = tempfile.gettempdir()
    if shutil.disk_usage(place).free < FREE:
        item.session.shouldstop = (
            f"{place}: less than {FREE >> 20} MB of disk are free; make room, and run the tests again"
        )


@pytest.fixture(scope="session", autouse=True)
def state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """Ledgers and spools are kept in the user's state folder; those of tests are nobody's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def run_of_its_own() -> Generator[None, None, None]:
    """The logger puts its run's id into the environment for child processes; no test may inherit another's."""
    yield
    os.environ.pop("BALOG_RUN_ID", None)


CONDITIONS = (
    "nothing can be mounted here",
    "this structlog writes fatal as error",
    "pyright could not get its own program",
    "it imports another",
    # TapPractices: rules that the options leave out, and rules that do not apply to a tap.
    "deselected by the options",
    "not judged: ",
)
"""The first words of skips that no installation on this machine would change."""


def _must_run(item: pytest.Item | pytest.Collector, skip: BaseException) -> bool:
    conditions = [mark.kwargs.get("reason") for mark in item.iter_markers("skipif")]
    return SERVICES == "required" and str(skip) not in conditions and not str(skip).startswith(CONDITIONS)


def _fail(report: Any, skip: BaseException) -> None:
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: required by BALOG_SERVICES, but {skip}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _must_run(item, call.excinfo.value):
        _fail(report, call.excinfo.value)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    call = getattr(report, "call", None)
    if report.skipped and call is not None and _must_run(collector, call.excinfo.value):
        _fail(report, call.excinfo.value)
    return report


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, without what was built or cached in it: a place to run in and write to."""
    skipped = shutil.ignore_patterns(".git", ".venv", ".demo", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("checkout") / "balog", ignore=skipped))


@pytest.fixture
def sink_packages(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sinks of packages under ``plugins/``, installed for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("packages")
    monkeypatch.setenv("PYTHONPATH", install_sinks(folder))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(plugins, "_found", plugins._found.__wrapped__)


@pytest.fixture(scope="module")
def browser() -> Generator[Any, None, None]:
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


@pytest.fixture(scope="session")
def spark() -> Generator[Any, None, None]:
    """The one Spark session of a test run, with the data source ``balog``."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from balog.analytics import session

    # Many questions of few rows: compiling each to Java costs more than its answer. Commands and `make soak` compile.
    interpreted = {"spark_sql_codegen_wholeStage": "false", "spark_sql_codegen_factoryMode": "NO_CODEGEN"}
    if os.environ.get("BALOG_SOAK"):
        interpreted = {}
    started = session("balog-tests", spark_sql_shuffle_partitions="2", spark_driver_memory="1g", **interpreted)
    yield started
    started.stop()


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until a test moves it."""
    return Clock()
