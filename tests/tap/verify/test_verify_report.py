"""The report: its score, its JSON, its lines; and verifying from pytest."""

import json
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from balog.common.errors import ConfigError
from balog.tap.verify import Options, VerifyReport, verify
from balog.tap.verify.report import as_text
from balog.tap.verify.testing import TapPractices, TapWarning
from tests.ci_scripts import ci_script
from tests.tap.verify.defects import command

write_schema = ci_script("config_schemas").write_schema


def test_the_score_is_the_weight_of_what_is_kept(report: VerifyReport) -> None:
    weights = {finding.rule.id: finding.rule.weight for finding in report.findings}
    broken = {finding.rule.id for finding in report.failed}

    assert broken == {"keys-are-unique", "clean-run-has-no-errors", "about-is-printed"}
    assert report.score == 100 * sum(weights[rule] for rule in weights.keys() - broken) // sum(weights.values())
    assert (report.counts.errors, report.counts.warnings, report.counts.advice) == (1, 1, 1)
    assert report.groups["discovery"] is None
    assert report.groups["state"] == 100


def test_only_runs_that_the_rules_need_are_made(report: VerifyReport) -> None:
    assert {run.name for run in report.runs} == {"discover", "sync", "--about"}


def test_a_stream_s_advance_is_held_against_the_time_it_took(report: VerifyReport) -> None:
    orders, shops = report.streams

    assert (orders.records, orders.bookmark) == (200, "2026-11-20T03:19:00Z")
    assert orders.advance == 199 * 60
    [seconds] = [run.seconds for run in report.runs if run.name == "sync"]  # to the millisecond
    assert orders.advance / (seconds + 0.001) <= orders.ratio <= orders.advance / (seconds - 0.001)
    assert shops.ratio is None


def test_the_json_is_by_its_schema(report: VerifyReport) -> None:
    text = resources.files("balog.schemas").joinpath("verify", "1.0.0.json").read_bytes()

    assert text == write_schema(
        VerifyReport, "urn:balog:verify:1.0.0", "The report as balog tap verify --json writes it"
    )
    Draft202012Validator(json.loads(text)).validate(json.loads(report.encode()))


def test_the_lines_say_what_is_wrong_what_to_do_and_by_whom(report: VerifyReport) -> None:
    lines = [line for line, _ in as_text(report)]

    assert lines[:4] == [
        "ERROR keys-are-unique: In a full table, no key occurs twice.",
        "  - shops: 10 of 20 records repeat a key, the first is record 11",
        "  do: Declare the complete key of a record, and look for a page that is read twice.",
        "  source: Meltano SDK, standard tap tests",
    ]
    assert lines[-1].startswith(f"sinful_tap.py: {report.score} of 100; 1 error, 1 warning, 1 advice; ")


def test_one_reason_is_told_once_for_all_rules_that_it_keeps_from_being_judged(config: Path) -> None:
    report = verify(["false", "--config", str(config)], Options(rules=("discovery", "records")))

    lines = [line for line, _ in as_text(report)]
    assert lines.count("  - no catalog was discovered:") == 1
    assert max(len(line) for line in lines if line.startswith("    ")) < 80
    assert {word.strip(", ") for line in lines if line.startswith("    ") for word in line.split()} == {
        finding.rule.id for finding in report.findings if finding.outcome == "skipped"
    }


def test_what_a_tap_calls_its_streams_does_not_move_the_terminal_s_cursor(report: VerifyReport) -> None:
    finding = msgspec.structs.replace(report.failed[0], stream="\x1b[2J\r\n" + "x" * 5000)

    lines = [line for line, _ in as_text(msgspec.structs.replace(report, findings=[finding]))]

    assert all(line.isprintable() and len(line) <= 1000 for line in lines)
    assert any(line.startswith("  - \ufffd[2J\ufffd\ufffdxxx") for line in lines)


@pytest.mark.parametrize(("ratio", "shown"), [(71_568.6, "19 h 52 min"), (0.4, "0.4 s")])
def test_a_stream_that_never_catches_up_can_be_told_by_its_figure(
    report: VerifyReport, ratio: float, shown: str
) -> None:
    streams = [msgspec.structs.replace(report.streams[0], ratio=ratio)]

    assert any(
        line.endswith(f", 1 s of sync covers {shown}")
        for line, _ in as_text(msgspec.structs.replace(report, streams=streams))
    )


def test_a_rule_or_group_that_does_not_exist_is_wrong_use(tap_command: list[str]) -> None:
    with pytest.raises(ConfigError, match="--skip: there is no rule 'x'"):
        verify(tap_command, Options(skip=("x",)))


@pytest.fixture(scope="module")
def tap_command(config: Path) -> list[str]:
    """As a user has it."""
    return command(config, "doubled keys", "logs error", "no about")


class TestPracticesOfATap(TapPractices):
    """Here each rule of some, of a tap that keeps them."""

    options = Options(rules=("state-is-written", "keys-are-there"))

    @pytest.mark.parametrize("rule", options.rules)
    def test_practice(self, tap_report: VerifyReport, rule: str) -> None:
        """Without those that the options leave out."""
        super().test_practice(tap_report, rule)


def test_a_broken_rule_fails_or_warns_or_is_skipped_by_its_severity(report: VerifyReport) -> None:
    practices = TapPractices()

    with pytest.raises(pytest.fail.Exception, match="shops: 10 of 20 records"):
        practices.test_practice(report, "keys-are-unique")
    with pytest.warns(TapWarning, match="1 such lines; the last: something is not quite right"):
        practices.test_practice(report, "clean-run-has-no-errors")
    with pytest.raises(pytest.skip.Exception, match="deselected by the options"):
        practices.test_practice(report, "discovery-succeeds")
