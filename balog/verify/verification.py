"""A tap verified: its runs made, the rules asked, the report written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from balog.errors import ConfigError
from balog.verify.catalogs import id_of
from balog.verify.options import Options
from balog.verify.report import VerifyReport, write_report
from balog.verify.results import GROUPS, RuleResult
from balog.verify.rules import CHECKS, Check
from balog.verify.trials import Trials

__all__ = ["chosen", "verify"]


def chosen(options: Options) -> list[Check]:
    """Return the rules that these options ask for, in the order of a report.

    Raises:
        ConfigError: they name a rule that does not exist.
    """
    for option, names in (("--rules", options.rules), ("--skip", options.skip)):
        for name in names:
            if name not in CHECKS and name not in GROUPS:
                raise ConfigError(f"there is no rule {name!r}; `balog tap rules` lists them", source=option)

    def is_in(check: Check, names: Sequence[str]) -> bool:
        return check.rule.id in names or check.rule.group in names

    wanted = [
        check
        for check in CHECKS.values()
        if (not options.rules or is_in(check, options.rules)) and not is_in(check, options.skip)
    ]
    return sorted(wanted, key=lambda check: GROUPS.index(check.rule.group))


def verify(
    command: Sequence[str], options: Options | None = None, on_run: Callable[[str], None] | None = None
) -> VerifyReport:
    """Run a tap as a pipeline would, several times, and say what of Singer's practices it keeps.

    Its source is asked each time. Only runs that the rules need are made.

    Args:
        command: the tap's command line with its ``--config``, as it is run by hand; no shell is between.
        options: how far to go.
        on_run: told the name of each run before it is made.

    Raises:
        ConfigError: no such program, file or rule.
    """
    options = options or Options()
    checks = chosen(options)
    with Trials(command, options, on_run) as trials:
        for stream in options.streams:
            if stream not in trials.entries and stream not in map(id_of, trials.entries.values()):
                raise ConfigError(f"the catalog has no stream {stream!r}", source="--stream")
        findings: list[RuleResult] = []
        for check in checks:
            findings += check.findings(trials)
        return write_report(trials, findings)
