"""The rule of secrets: none appears in an output."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, Violation, check
from balog.verify.trials import Skip, Trials

__all__: list[str] = []


@check(
    "secrets-stay-secret", "failing", "error", 10, BEST_PRACTICES,
    "Do not log the config, or requests with headers or URLs; redact errors. Rotate secrets that leaked.",
)  # fmt: skip
def secrets_stay_secret(trials: Trials) -> Iterator[Violation]:
    """No secret of the config appears on stdout or stderr, even on errors."""
    if not trials.leaks.keys:
        raise Skip("the config has no secret of 6 or more characters")
    _ = trials.sync
    if trials.command.config is not None:
        _ = trials.bare_config, trials.broken_config  # errors about a config often show it
    for (path, output), line in trials.leaks.found.items():
        yield Violation(f"the value of {path} is on {output}, first in line {line} of a run")
