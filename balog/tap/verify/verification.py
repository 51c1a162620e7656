"""The verification of a tap, from its runs to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from balog.common.errors import ConfigError
from balog.tap.verify.report import VerifyReport, write_report
from balog.tap.verify.results import GROUPS, RuleResult
from balog.tap.verify.rules import CHECKS, Check
from balog.tap.verify.runs import Options
from balog.tap.verify.trials import Trials


def select_rules(options: Options) -> list[Check]:
    """Return the rules that the options select, in the order of a report.

    Raises:
        ConfigError: the options name an unknown rule.
    """
    chosen, skipped = _rule_ids(options.rules, "--rules"), _rule_ids(options.skip, "--skip")
    wanted = [check for id, check in CHECKS.items() if (not chosen or id in chosen) and id not in skipped]
    return sorted(wanted, key=lambda check: GROUPS.index(check.rule.group))


def _rule_ids(names: Sequence[str], option: str) -> set[str]:
    """Return the ids of the rules that an option names by id or group."""
    for name in names:
        if name not in (*CHECKS, *GROUPS):
            raise ConfigError(f"there is no rule {name!r}; `balog tap rules` lists them", source=option)
    return {id for id, check in CHECKS.items() if id in names or check.rule.group in names}


def verify(
    command: Sequence[str], options: Options | None = None, on_run: Callable[[str], None] | None = None
) -> VerifyReport:
    """Run a tap several times as a pipeline would, and judge it against Singer's practices.

    Each run queries the tap's source. Only runs that the rules need are made, those that are independent side by side.

    Args:
        command: the tap's command line with its ``--config``; no shell is used.
        options: limits and selection of rules.
        on_run: called with the name of each run before it starts.

    Returns:
        The report, with a score from 0 to 100.

    Raises:
        ConfigError: the program, a file, a stream or a rule does not exist.
    """
    options = options or Options()
    checks = select_rules(options)
    with Trials(command, options, on_run) as trials:
        return write_report(trials, _judge(trials, checks))


def _judge(trials: Trials, checks: list[Check]) -> list[RuleResult]:
    """Return the results of the rules in their order.

    Each rule has a thread, which waits for the runs that the rule needs. Rules about all runs follow at the end.
    """
    results: dict[str, list[RuleResult]] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(checks)), thread_name_prefix="verify") as pool:
        try:
            waiting = {
                check.rule.id: pool.submit(lambda each: list(each.findings(trials)), check)
                for check in checks
                if not check.is_last
            }
            results |= {id: future.result() for id, future in waiting.items()}
        except BaseException:
            trials.runner.cancel()
            pool.shutdown(cancel_futures=True)
            raise
    for check in checks:
        if check.is_last:
            results[check.rule.id] = list(check.findings(trials))
    return [result for check in checks for result in results[check.rule.id]]
