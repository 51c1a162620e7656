"""A baseline lets known findings pass; the forms for other programs hold what the report holds."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from balog.cli import main
from balog.tap.verify import VerifyReport
from balog.tap.verify.baseline import baseline_of, compare, fingerprint
from balog.tap.verify.report import as_text
from balog.tap.verify.report_formats import as_github, as_sarif
from tests.tap.verify.defects import RULES, command, verified

SARIF = Draft4Validator(
    json.loads((Path(__file__).parent / "sarif" / "sarif-2.1.0-rtm.5.json").read_text()),
    format_checker=Draft4Validator.FORMAT_CHECKER,
)


def test_findings_of_the_baseline_are_known_and_others_new_or_gone(config: Path, report: VerifyReport) -> None:
    later = verified(config, "doubled keys", "logs error", "wrong type", rules=RULES)

    found = compare(later.findings, later.failed, baseline_of(report.tap, report.failed))

    assert [result.rule.id for result in found.new] == ["records-match-schema"]
    assert {result.rule.id for result in found.known} == {"keys-are-unique", "clean-run-has-no-errors"}
    assert [finding.rule for finding in found.gone] == ["about-is-printed"]
    lines = [line for line, _ in as_text(later, found)]
    assert "baseline: 1 new finding, 2 known (keys-are-unique, clean-run-has-no-errors)" in lines
    assert any(line.startswith("  - gone: about-is-printed: ") for line in lines)
    assert not any(line.startswith("ERROR keys-are-unique") for line in lines)


def test_a_rule_that_was_not_judged_is_not_gone(report: VerifyReport) -> None:
    skipped = [msgspec.structs.replace(result, outcome="skipped") for result in report.findings]

    assert compare(skipped, [], baseline_of(report.tap, report.failed)).gone == []


@pytest.mark.parametrize(
    ("detail", "is_same"),
    [
        ("9 of 21 records repeat a key, the first is record 12", True),
        ("10 of 20 records repeat a name, the first is record 11", False),
    ],
)
def test_a_fingerprint_depends_on_what_a_finding_is_not_on_its_numbers(
    report: VerifyReport, detail: str, is_same: bool
) -> None:
    [result] = [result for result in report.failed if result.rule.id == "keys-are-unique"]

    assert (fingerprint(msgspec.structs.replace(result, detail=detail)) == fingerprint(result)) == is_same
    assert fingerprint(msgspec.structs.replace(result, stream="x")) != fingerprint(result)


def run(config: Path, *words: str, defects: tuple[str, ...] = ("doubled keys",)) -> tuple[int, str]:
    rules = [word for rule in RULES for word in ("--rules", rule)]
    line = ["tap", "verify", *rules, *words, "--", *command(config, *defects)]
    result = CliRunner().invoke(main, line)
    return result.exit_code, result.stdout if result.exit_code in (0, 1) else result.output


def test_only_new_findings_fail_the_command(config: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "baseline.json")

    assert run(config)[0] == 1
    assert run(config, "--write-baseline", file)[0] == 0
    assert run(config, "--baseline", file)[0] == 0
    assert run(config, "--baseline", file, "--fail-under", "100")[0] == 1
    code, out = run(config, "--baseline", file, defects=("doubled keys", "logs error"))  # a warning, but a new one
    assert code == 1
    assert "WARNING clean-run-has-no-errors" in out
    assert "ERROR keys-are-unique" not in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--baseline", "{folder}/none"], "cannot be read: No such file"),
        (["--baseline", "{folder}/odd"], "is no baseline: "),
        (["--write-baseline", "{folder}/none/file"], "there is no such folder"),
        (["--json", "-", "--format", "github"], "both are for stdout"),
    ],
)
def test_wrong_use_is_one_line(config: Path, tmp_path: Path, words: list[str], reason: str) -> None:
    (tmp_path / "odd").write_text('{"findings": [5]}')
    line = ["tap", "verify", *(word.format(folder=tmp_path) for word in words), "--", *command(config)]

    done = CliRunner().invoke(main, line)

    assert done.exit_code == 2
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_annotations_of_github_are_one_line_each(report: VerifyReport) -> None:
    known = {fingerprint(result) for result in report.failed if result.rule.id == "about-is-printed"}

    lines = list(as_github(report, known))

    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning", "::notice"]
    assert lines[0].startswith("::error title=sinful_tap.py%3A keys-are-unique::shops: 10 of 20 records repeat a key")


def test_a_place_in_the_tap_is_a_place_of_the_annotation(config: Path) -> None:
    report = verified(config, "crashes", rules=RULES)

    [line] = [line for line in as_github(report) if "sync-succeeds" in line]
    [result] = [
        each for each in json.loads(as_sarif(report))["runs"][0]["results"] if each["ruleId"] == "sync-succeeds"
    ]

    assert re.match(
        r"::error title=sinful_tap.py%3A sync-succeeds,file=\S*sinful_tap.py,line=\d+::exit code 1; said", line
    )
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("sinful_tap.py")
    assert place["region"]["startLine"] == int(re.findall(r"line=(\d+)", line)[0])


@settings(max_examples=100, deadline=None)
@given(detail=st.text(), stream=st.text())
def test_no_text_of_a_tap_breaks_a_form(report: VerifyReport, detail: str, stream: str) -> None:
    odd = msgspec.structs.replace(report.failed[0], detail=detail, stream=stream)
    changed = msgspec.structs.replace(report, findings=[odd], tap=stream)

    [line] = as_github(changed)
    assert line.startswith("::")
    assert not {"\n", "\r"} & set(line)
    document = json.loads(as_sarif(changed))
    SARIF.validate(document)
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*", uri)  # RFC 3986, without a scheme


def test_sarif_names_each_rule_once_and_each_finding_by_it(report: VerifyReport) -> None:
    known = {fingerprint(report.failed[0])}
    document = json.loads(as_sarif(report, known))

    SARIF.validate(document)
    [made] = document["runs"]
    rules = made["tool"]["driver"]["rules"]
    assert document["version"] == "2.1.0"
    assert [rule["id"] for rule in rules] == list(dict.fromkeys(result.rule.id for result in report.findings))
    assert len(made["results"]) == len(report.failed)
    for result, failed in zip(made["results"], report.failed, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == failed.rule.id
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert result["partialFingerprints"] == {"balogVerify/v1": fingerprint(failed)}
        assert result["baselineState"] == ("unchanged" if fingerprint(failed) in known else "new")
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
