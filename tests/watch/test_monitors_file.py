"""The file of monitors: read with its defaults, and all mistakes at once with their places."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.common.errors import ConfigError, ConfigProblems
from balog.watch.config.config_check import load_monitors
from balog.watch.config.durations import format_duration, parse_duration, parse_factor, parse_share

GOOD = """
monitors:
  - name: orders-arrive
    pipeline: tap-shop
    freshness: {every: 1h, grace: 15m, calendar: "Mon-Fri 06:00-22:00 Europe/Berlin"}
  - name: anything
    metric: "retr*"
    threshold: {over: 3, within: 1h}
"""

WRONG = """\
monitors:
  - name: a
    freshness: {every: 1 hour, calendar: "Mon-Fri 06:00-22:00 Europe/Berln"}
  - name: v
    volume: {sensitivty: 3}
  - name: b
    duration: {}
  - name: b
    where: "level >"
  - name: c
    volume: {}
    failures: {rate_over: 120%}
  - name: d
    metric: rows
  - name: e
    lag: {over: 3, topic: x, group: y}
    threshold: {}
  - name: f
    lag: {over: 3, topic: x}
"""


def check(path: Path) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["check", str(path)])
    return done.exit_code, done.output


def test_a_file_of_monitors_is_recognised_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "monitors.yaml"
    path.write_text(GOOD)
    assert check(path) == (0, f"{path}: ok, 2 monitors\n")
    monitors = load_monitors(path)
    assert [monitor.kind for monitor in monitors] == ["freshness", "metric"]
    assert (monitors[0].severity, monitors[0].pending) == ("error", "0s")


def test_all_mistakes_come_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "monitors.yaml"
    path.write_text(WRONG)
    code, output = check(path)
    assert code == 2
    for place in (
        "yaml:3:17: $.monitors[0].freshness.every: '1 hour' is not a duration",
        "yaml:3:32: $.monitors[0].freshness.calendar: there is no time zone",
        "yaml:5:14: $.monitors[1].volume: there is no field 'sensitivty'; did you mean 'sensitivity'?",
        "yaml:7:5: $.monitors[2].duration: needs one of",
        "yaml:8:5: $.monitors[3].name: the name 'b' is there twice",
        "yaml:9:5: $.monitors[3].where: ",
        "yaml:8:5: $.monitors[3]: a monitor needs a kind",
        "yaml:12:16: $.monitors[4].failures.rate_over: '120%' is not a share",
        "yaml:12:5: $.monitors[4].failures: volume and failures are two kinds",
        "yaml:14:5: $.monitors[5].metric: needs a threshold",
        "yaml:17:5: $.monitors[6].threshold: ",
        "yaml:19:5: $.monitors[7].lag: the field 'group' is missing",
    ):
        assert place in output
    with pytest.raises(ConfigProblems):
        load_monitors(path)


@pytest.mark.parametrize(("text", "seconds"), [("15m", 900), ("1h", 3600), ("28d", 28 * 86400), ("1.5s", 1.5)])
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "h", "-1h", "1 h", "1y", "999999999w", "1h30m", "٣h"])
def test_what_is_no_duration_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_duration(text)


def test_shares_and_factors() -> None:
    assert (parse_share("5%"), parse_factor("2x")) == (0.05, 2.0)
    for text in ("5", "101%", "x"):
        with pytest.raises(ConfigError):
            parse_share(text)
    for text in ("2", "0x", "-1x"):
        with pytest.raises(ConfigError):
            parse_factor(text)


def test_a_duration_for_people_has_two_units() -> None:
    assert [format_duration(one) for one in (0, 59.6, 4500, 90061)] == ["0 s", "1 min", "1 h 15 min", "1 d 1 h"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("freshness: {every: 0s}", "freshness.every: '0s' is no time"),
        ("freshness: {every: 99999999999999w}", "is longer than 10 years"),
        ("freshness: {every: 1h, calendar: Mo-Fr 06:00-22:00}", "is not a calendar; expected days"),
        ("freshness: {every: 1h, calendar: Mon-Fri 06:00-12:00 13:00-22:00}", "is not a calendar; expected days"),
        ("volume: {seasonality: hourly}", "there is no 'hourly' here"),
        ("schema: {breaking: ignore, additive: ignore}", "schema: ignores every change"),
        ("duration: {over: 1m, under: 1h}", "duration: under is larger than over"),
        ("duration: {under: 0s}", "duration.under: no run is shorter"),
        ("{metric: x, threshold: {over: 1, under: 5}}", "threshold: under is larger than over"),
        ("{volume: {}, quiet_hours: Europe/Berlin}", "quiet_hours: 'Europe/Berlin' is always"),
        ("{failures: {rate_over: 1%}, stream: orders}", "failures has no streams"),
        ("freshness: {every: 3600}", "freshness.every: expected `str`, got `int`"),
        ("{volume: {}, pipeline: []}", "pipeline: an empty glob"),
        ("{volume: {}, stream: ['a', '']}", "stream: an empty glob"),
        ("{volume: {}, link: 'http://x/{nope}'}", "link: there is no {nope}; there are {pipeline}"),
        ("{volume: {}, link: 'javascript:alert(1)'}", "link: is not a URL"),
        ("failures: {rate_over: 100%}", "failures.rate_over: no share is larger"),
        ("quarantine: {share_over: 100%}", "quarantine.share_over: no share is larger"),
    ],
)
def test_senseless_monitors_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "monitors.yaml"
    inside = text[1:-1] if text.startswith("{") else text
    path.write_text(f"monitors: [{{name: m, {inside}}}]")
    code, output = check(path)
    assert (code, reason in output) == (2, True), output


@pytest.mark.parametrize(
    ("rhythm", "text", "note"),
    [
        ("{every: 1d}", "failures: {rate_over: 5%}", "within of 1d holds 1 run, and min_runs is 5"),
        ("{every: 1d}", "failures: {rate_over: 5%, within: 4d}, pipeline: tap-*", "within of 4d holds 4 runs"),
        ("{every: 1d}", "failures: {rate_over: 5%, within: 5d}", ""),
        ("{every: 1h}", "failures: {rate_over: 5%}", ""),
        ("{every: 1d}", "failures: {rate_over: 5%}, pipeline: target-*", ""),
        ("{every: 1d}", "failures: {in_a_row: 1, new_fingerprint: true}", ""),
        ("{every: 1w}", "duration: {p95_over: 2x}", "against of 7d holds 1 run"),
        ("{every: 1w}", "duration: {over: 1h}", ""),
    ],
)
def test_a_window_that_is_too_narrow_for_the_rhythm_of_a_pipeline_is_noted(
    tmp_path: Path, rhythm: str, text: str, note: str
) -> None:
    path = tmp_path / "monitors.yaml"
    path.write_text(f"monitors: [{{name: late, pipeline: tap-a, freshness: {rhythm}}}, {{name: m, {text}}}]")
    code, output = check(path)
    assert code == 0
    assert ("note: m judges nothing" in output, note in output) == (bool(note), True), output


def test_problems_come_in_the_order_of_lines_and_a_slip_in_the_name_is_not_a_broker_s_config(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("monitors:\n  - name: a\n    freshness: {every: 5x}\n  - nam: b\n    freshness: {every: 1h}\n")
    done = CliRunner().invoke(main, ["check", str(path)])
    lines = [int(line.split(":")[1]) for line in done.stderr.splitlines()[:-1]]
    assert (len(lines) > 2, lines) == (True, sorted(lines))
    path.write_text("monitor: []\n")
    assert "did you mean 'monitors'?" in CliRunner().invoke(main, ["check", str(path)]).stderr
