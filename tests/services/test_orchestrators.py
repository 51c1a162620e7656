"""The tasks of the pages on Airflow and Dagster in the real Airflow and Dagster, each in an environment of its own."""

import json
from pathlib import Path

import pytest

from tests.services.hosts import ROOT, contexts, environment, file_events, logged, run_in, write_page_files

pytestmark = pytest.mark.service


def program_of(part: str, name: str) -> str:
    """Return a program of a part's environment. Skips where the part is not installed."""
    if not (ROOT / ".demo" / part / "installed").exists():
        pytest.skip(f".demo/{part} is not installed: run make test-parts")
    return str(ROOT / ".demo" / part / "bin" / name)


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which two tasks ran, one of which fails."""
    python, folder = program_of("airflow", "python"), tmp_path_factory.mktemp("airflow")
    write_page_files("log-in-airflow.md", folder, "orders.py")
    environment(folder)
    config = json.loads((folder / "logger.json").read_text())
    (folder / "with-logging.json").write_text(json.dumps({"output": [*config["output"], "logging", "stderr"]}))
    run_in(
        folder,
        python,
        str(Path(__file__).with_name("airflow_task.py")),
        "load_good",
        "load_bad",
        BALOG_CONFIG=str(folder / "with-logging.json"),
        AIRFLOW_HOME=str(folder / "home"),
        AIRFLOW__CORE__DAGS_FOLDER=str(folder),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(folder / "logs"),
    )
    return folder


class TestAirflow:
    def test_a_task_delivers_its_events_also_if_it_fails(self, airflow: Path) -> None:
        assert [event.payload["number"] for event in logged(airflow)] == [1, -1]

    def test_events_have_the_keys_of_the_task_instance(self, airflow: Path) -> None:
        events = file_events(airflow)
        assert contexts(events, "task_id") == ["load_good", "load_bad"]
        for key, value in {"dag_id": "orders", "run_id": "manual-1", "try_number": 2, "map_index": -1}.items():
            assert contexts(events, key) == [value, value]
        assert len(set(contexts(events, "process"))) == 2

    def test_the_tasks_log_has_the_lines_of_stderr(self, airflow: Path) -> None:
        for event in file_events(airflow):
            path = airflow / "logs" / f"{event.header.context['task_id']}.log"
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            (line,) = [json.loads(line["event"]) for line in lines if line["logger"] == "task.stderr"]
            assert line["header"]["id"] == event.header.id

    def test_the_tasks_log_has_the_records_of_logging_at_their_level(self, airflow: Path) -> None:
        for event in file_events(airflow):
            path = airflow / "logs" / f"{event.header.context['task_id']}.log"
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            (line,) = [line for line in lines if line["logger"] == "orders.loaded"]
            assert line["level"] == "info"


class TestDagster:
    def test_each_op_delivers_its_events_from_its_own_process(self, tmp_path: Path) -> None:
        dagster = program_of("dagster", "dagster")
        write_page_files("log-in-dagster.md", tmp_path, "jobs.py")
        (tmp_path / "home").mkdir()
        own = {"DAGSTER_HOME": str(tmp_path / "home"), "DAGSTER_DISABLE_TELEMETRY": "yes"}
        run_in(tmp_path, dagster, "job", "execute", "--python-file", "jobs.py", "--job", "orders", **own)
        events = logged(tmp_path)
        assert [event.header.channel for event in events] == ["orders.extracted", "orders.loaded"]
        assert [event.payload["number"] for event in events] == [1, 2]
        assert contexts(events, "op") == ["extract", "load"]
        assert len(set(contexts(events, "run_id"))) == 1
        assert len(set(contexts(events, "process"))) == 2
