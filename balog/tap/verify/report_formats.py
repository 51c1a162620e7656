"""The report for other programs: annotations of GitHub Actions, and SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from balog.common.distribution import installed_version
from balog.tap.verify.baseline import fingerprint
from balog.tap.verify.report import VerifyReport
from balog.tap.verify.results import RuleResult, VerifyRule

_GITHUB = {"error": "error", "warning": "warning", "advice": "notice"}
_SARIF = {"error": "error", "warning": "warning", "advice": "note"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_github(report: VerifyReport, known: Collection[str] = ()) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each finding; one of a baseline is a notice.

    Args:
        report: the report.
        known: the fingerprints of the baseline's findings.
    """
    for result in report.failed:
        kind = "notice" if fingerprint(result) in known else _GITHUB[result.rule.severity]
        file, line = _place(result)
        properties = {"title": f"{report.tap}: {result.rule.id}", "file": file, "line": str(line or "")}
        words = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items() if value)
        yield f"::{kind} {words}::{_escaped(_sentence(result))}"


def _escaped(text: str, also: str = "") -> str:
    for char in "%\r\n" + also:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def as_sarif(report: VerifyReport, known: Collection[str] = ()) -> bytes:
    """Return the report as SARIF 2.1.0: all judged rules, and a result for each finding.

    Args:
        report: the report.
        known: the fingerprints of the baseline's findings; with some, each result has a ``baselineState``.
    """
    rules = list({result.rule.id: result.rule for result in report.findings}.values())
    places = {rule.id: number for number, rule in enumerate(rules)}
    results = [_sarif_result(report, result, places[result.rule.id], known) for result in report.failed]
    driver = {
        "name": "balog tap verify",
        "version": installed_version(),
        "rules": [_sarif_rule(rule) for rule in rules],
    }
    document = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _sarif_rule(rule: VerifyRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title.replace("`", "")},
        "help": {"text": f"{rule.remedy.replace('`', '')} Source: {rule.source}."},
        "defaultConfiguration": {"level": _SARIF[rule.severity]},
        "properties": {"tags": [rule.group], "weight": rule.weight},
    }


def _sarif_result(report: VerifyReport, result: RuleResult, number: int, known: Collection[str]) -> dict[str, Any]:
    file, line = _place(result)
    location: dict[str, Any] = {"logicalLocations": [{"name": result.stream or report.tap, "kind": "module"}]}
    # Code scanning shows no result without a file.
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": quote((file or report.tap).replace("\\", "/"), errors="replace")}
    }
    if line:
        physical["region"] = {"startLine": line}
    digest = fingerprint(result)
    sarif_result = {
        "ruleId": result.rule.id,
        "ruleIndex": number,
        "level": _SARIF[result.rule.severity],
        "message": {"text": _sentence(result)},
        "locations": [{**location, "physicalLocation": physical}],
        "partialFingerprints": {"balogVerify/v1": digest},
    }
    if known:
        sarif_result["baselineState"] = "unchanged" if digest in known else "new"
    return sarif_result


def _place(result: RuleResult) -> tuple[str, int]:
    file, _, line = result.place.rpartition(":")
    return file, int(line) if line.isdigit() else 0


def _sentence(result: RuleResult) -> str:
    where = f"{result.stream}: " if result.stream else ""
    return f"{where}{result.detail}. {result.rule.remedy.replace('`', '')}"
