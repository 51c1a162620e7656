"""Secrets of the config stay there."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, Violation, check
from balog.verify.trials import Skip, Trials

__all__: list[str] = []


@check(
    "secrets-stay-secret", "failing", "error", 10, BEST_PRACTICES,
    "Don't log the config, nor requests with their headers or addresses; hide secrets in errors. Change what leaked.",
)  # fmt: skip
def secrets_stay_secret(trials: Trials) -> Iterator[Violation]:
    """No secret of the config comes to stdout or stderr, whatever goes wrong."""
    if not trials.leaks.keys:
        raise Skip("the config has no key that sounds secret with a text of 6 characters or more")
    _ = trials.sync
    if trials.command.config is not None:
        _ = trials.bare_config, trials.broken_config  # errors about a config like to show it
    for (path, output), line in trials.leaks.found.items():
        yield Violation(f"the value of {path} is on {output}, first in line {line} of a run")
