"""The demo prints one line a step, the reason of a failure on one line, and checks its alerts."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from demo import __main__ as main
from demo import check
from demo.console import Console
from demo.pipeline import Pipeline
from demo.steps import Step


def step(code: str, **more: Any) -> Step:
    return Step("noisy", "It ran", lambda: Pipeline([[sys.executable, "-c", code]]), **more)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(main, "LOGS", tmp_path)
    return tmp_path


class TestSteps:
    def test_a_step_is_one_line_and_its_output_is_in_a_file(self, logs: Path) -> None:
        out = io.StringIO()
        ran = step("print('x' * 500)", checks=[("records", lambda: "all are there"), ("", lambda: "not shown")])
        assert main.run(ran, 3, Console(out, 9), False) == [("records", "all are there")]
        (line,) = out.getvalue().splitlines()
        assert line.startswith(" 3  It ran ")
        assert line.endswith(" s")
        command, _, output = (logs / "03-noisy.log").read_text().partition("\n")
        assert command.endswith("""-c 'print('"'"'x'"'"' * 500)'""")
        assert output == "x" * 500 + "\n"

    def test_a_failed_step_names_its_exit_codes_and_its_output(self, logs: Path) -> None:
        out = io.StringIO()
        with pytest.raises(check.Wrong) as failed:
            main.run(step("raise SystemExit(3)"), 7, Console(out, 9), False)
        assert "step 7, noisy: exit codes [3] instead of [0]" in str(failed.value)
        assert str(failed.value).endswith(f"; its output: {logs / '07-noisy.log'}")
        assert out.getvalue() == ""
        Console(out, 9).failed(f"a\n {failed.value}")
        assert len(out.getvalue().splitlines()) == 1

    def test_with_all_output_the_command_is_shown_and_no_file_is_written(
        self, logs: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        main.run(step("print('seen')"), 1, Console(sys.stdout, 1), True)
        printed = capfd.readouterr().out
        assert "seen" in printed
        assert printed.index("$ ") < printed.index("It ran")
        assert not list(logs.iterdir())


def alert(path: Path, *states: tuple[str, str | None], at: str = "2026-11-20T07:00:00.000000Z") -> Path:
    lines = [
        json.dumps({"payload": {"monitor": "m", "key": "m{}", "since": at, "reason": "1 of 2", "state": now} | before})
        for now, before in ((state, {"previous": previous}) for state, previous in states)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


class TestAlerts:
    def test_an_alert_that_fires_and_resolves_passes(self, tmp_path: Path) -> None:
        fired = alert(tmp_path / "a", ("firing", None))
        resolved = alert(tmp_path / "b", ("resolved", "firing"), at="2026-11-20T07:00:09.500000Z")
        assert check.alert_has_fired(fired, "m") == "m fires: 1 of 2"
        assert check.alert_has_resolved(fired, resolved, "m") == "m fired at 07:00:00 and resolved at 07:00:09 UTC"

    def test_no_alert_or_another_one_is_wrong(self, tmp_path: Path) -> None:
        fired = alert(tmp_path / "a", ("firing", None))
        for states in ([], [("ok", "firing")], [("firing", None), ("resolved", "firing")]):
            other = alert(tmp_path / "b", *states)
            with pytest.raises(check.Wrong):
                check.alert_has_fired(other, "m")
            with pytest.raises(check.Wrong):
                check.alert_has_resolved(fired, other, "m")

    @pytest.mark.parametrize("ended", ["2026-11-20T07:00:09.500000Z", None])
    def test_a_backtest_has_the_alert_of_the_stream(self, tmp_path: Path, ended: str | None) -> None:
        fired = alert(tmp_path / "a", ("firing", None))
        resolved = alert(tmp_path / "b", ("resolved", "firing"), at="2026-11-20T07:00:09.500000Z")
        firing = {"key": "m{}", "started": "2026-11-20T07:00:00.000000Z", "ended": ended, "seconds": 9.5}
        (tmp_path / "c").write_text(json.dumps({"events": 5, "firings": [firing]}))
        if ended:
            assert "the same alert, for 9.5 s" in check.backtest_agrees(tmp_path / "c", fired, resolved)
        else:
            with pytest.raises(check.Wrong, match="the watcher had m"):
                check.backtest_agrees(tmp_path / "c", fired, resolved)
