import os
from importlib.util import find_spec as real_find_spec
from typing import Any

import pytest

from balog.analytics import sessions
from balog.common.errors import BalogError, ConfigError, MissingExtraError


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test's session is not to be found here."""
    monkeypatch.setattr(sessions.SparkSession, "getActiveSession", classmethod(lambda cls: None))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a session would be made with; none is."""
    made: dict[str, Any] = {}

    class Builder:
        def config(self, name: str, value: str) -> "Builder":
            made[name] = value
            return self

        def remote(self, url: str) -> "Builder":
            return self.config("remote", url)

        def appName(self, name: str) -> "Builder":
            return self.config("spark.app.name", name)

        def getOrCreate(self) -> str:
            return "a session"

    monkeypatch.setattr(sessions.SparkSession, "builder", Builder())
    monkeypatch.setattr(sessions, "_load_sketches", lambda spark: None)
    return made


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local-cluster[2,1,1024]"])
def test_on_this_machine_everything_is_set(built: dict[str, Any], master: str) -> None:
    sessions.start("mine", {}, master)
    assert built["spark.master"] == master
    assert built["spark.driver.host"] == "127.0.0.1"
    assert built["spark.driver.memory"] == "2g"


@pytest.mark.parametrize("master", ["spark://head:7077", "k8s://https://api:6443", "yarn"])
def test_a_cluster_keeps_its_own_addresses_and_memory(built: dict[str, Any], master: str) -> None:
    sessions.start("mine", {}, master)
    assert built["spark.master"] == master
    assert built["spark.sql.session.timeZone"] == "UTC"
    assert not [name for name in built if name.startswith(("spark.driver.host", "spark.driver.memory", "spark.local"))]


def test_settings_come_before_the_defaults(built: dict[str, Any]) -> None:
    sessions.start("mine", {"spark.driver.memory": "7g", "spark.master": "local[3]"})
    assert (built["spark.driver.memory"], built["spark.master"]) == ("7g", "local[3]")


def test_a_connect_server_is_told_what_results_depend_on(
    built: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr(sessions, "_reach", lambda remote: None)
    sessions.start("mine", {}, remote="sc://server:15002")
    assert built["remote"] == "sc://server:15002"
    assert built["spark.sql.session.timeZone"] == "UTC"
    assert "spark.master" not in built


def test_a_server_that_the_environment_names_is_used_unless_a_master_is_given(
    built: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr(sessions, "_reach", lambda remote: None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://server:15002")
    seen = []
    build = sessions._build
    monkeypatch.setattr(
        sessions, "_build", lambda *given: (seen.append(os.environ.get("SPARK_REMOTE")), build(*given))[1]
    )
    sessions.start("mine", {})
    assert built.pop("remote") == "sc://server:15002"
    sessions.start("mine", {}, "local[2]")  # pyspark rejects a master if the variable is there
    assert (built["spark.master"], built.get("remote")) == ("local[2]", None)
    assert seen == ["sc://server:15002", None]
    assert os.environ["SPARK_REMOTE"] == "sc://server:15002"


def test_connect_without_its_packages_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda name: None if name == "grpc" else real_find_spec(name))
    with pytest.raises(MissingExtraError, match=r"\[connect\]'"):
        sessions.start("mine", {}, remote="sc://server:15002")


@pytest.mark.parametrize(
    ("master", "remote", "said"),
    [
        ("here", "", "'here' is not a master"),
        ("", "http://server", "'http://server' is not a Spark Connect server"),
        ("local", "sc://server", "give one of both"),
    ],
)
def test_a_wrong_place_is_refused_before_anything_starts(master: str, remote: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sessions.start("mine", {}, master, remote)


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ("http://server/;token=SECRET", "'http://server/' is not a Spark Connect server"),
        ("sc://me:SECRET@server:port", "'sc://server:port' is not a URL"),
        ("sc://server/path;token=SECRET", "'sc://server/path' is not a URL"),
        ("sc://127.0.0.1:1/;user_id=SECRET", "no Spark Connect server at sc://127.0.0.1:1/ answers; start it"),
    ],
)
def test_a_remote_that_is_none_is_told_soon_and_without_its_secrets(
    remote: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr(sessions, "_TIMEOUT", 0.3)
    with pytest.raises(BalogError, match=said) as raised:
        sessions.start("mine", {}, remote=remote)
    assert "SECRET" not in str(raised.value)


class Session:
    """What ``parallelism`` asks of a session."""

    def __init__(self, master: str, registered: int, **settings: str) -> None:
        self.sparkContext = self
        self.master, self.defaultParallelism = master, registered
        self._settings = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}

    def getConf(self) -> "Session":
        return self

    def getAll(self) -> list[tuple[str, str]]:
        return list(self._settings.items())


@pytest.mark.parametrize(
    ("session", "cores"),
    [
        (Session("local", 1, executor_instances="50"), 1),
        (Session("local[3]", 3, executor_instances="50", cores_max="9"), 3),
        (Session("local-cluster[2,1,1024]", 2), 2),
        (Session("spark://head:7077", 12), 12),
        (Session("spark://head:7077", 2, cores_max="40"), 40),
        (Session("yarn", 2, executor_instances="50", executor_cores="16"), 800),
        (Session("yarn", 900, executor_instances="50", executor_cores="16"), 900),
        (
            Session(
                "yarn", 2, dynamicAllocation_enabled="true", dynamicAllocation_maxExecutors="5", executor_cores="4"
            ),
            20,
        ),
        (Session("yarn", 2, dynamicAllocation_maxExecutors="5", executor_cores="4"), 2),
        (Session("yarn", 2, dynamicAllocation_enabled="true", dynamicAllocation_maxExecutors=str(2**31 - 1)), 10_000),
    ],
)
def test_tasks_are_planned_for_the_cores_of_the_cluster(session: Any, cores: int) -> None:
    assert sessions.parallelism(session) == cores


def test_a_server_s_cores_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remote:
        __module__ = "pyspark.sql.connect.session"

    monkeypatch.setattr(sessions.os, "cpu_count", lambda: 7)
    assert sessions.parallelism(Remote()) == 7  # type: ignore[arg-type]
