"""Rules of interruption: after SIGTERM the tap ends soon, with a correct last STATE."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import CONFIG_AND_STATE, PRACTICE, Violation, check
from balog.verify.rules.resumption import describe_gap, gaps
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_ON_ITS_WAY = 192 * 1024  # bytes that the pipe and buffers can hold


@check(
    "ends-on-sigterm", "stopping", "error", 4, PRACTICE,
    "Do not ignore SIGTERM, and do not wait for the source after it: runners kill the tap soon after.",
)  # fmt: skip
def ends_on_sigterm(trials: Trials) -> Iterator[Violation]:
    """The tap ends within seconds after SIGTERM."""
    run = trials.signalled
    if run.result.was_killed:
        yield Violation(f"it still ran after {trials.options.grace:g} s")
    elif run.result.code == 0 and run.result.went_on > _ON_ITS_WAY:
        yield Violation(f"it continued to its end and wrote {run.result.went_on / 1e6:.1f} MB more")
    else:
        _ = trials.interrupted  # skips the rule if there was nothing to interrupt


@check(
    "interrupted-is-not-done", "stopping", "warning", 3, PRACTICE,
    "End with exit code 143 (128 + SIGTERM) or by the signal: 0 means that the sync is complete.",
)  # fmt: skip
def interrupted_is_not_done(trials: Trials) -> Iterator[Violation]:
    """An interrupted tap does not end with exit code 0."""
    run = trials.interrupted
    if run.result.code == 0:
        yield Violation("exit code 0")


@check(
    "interrupted-output-is-whole", "stopping", "error", 4, PRACTICE,
    "Write each message in one call, and finish the current message on SIGTERM.",
)  # fmt: skip
def interrupted_output_is_whole(trials: Trials) -> Iterator[Violation]:
    """An interrupted tap leaves no incomplete line."""
    run = trials.interrupted
    if run.result.was_killed:
        raise Skip("it had to be killed")
    if run.output.unended:
        yield Violation("the last line " + ("is torn" if run.output.unended == "torn" else "has no newline"))
    elif run.output.invalid_count > trials.sync.output.invalid_count:
        yield Violation("it has invalid lines, unlike the uninterrupted run")


@check(
    "interrupted-resumes-without-a-gap", "stopping", "error", 8, CONFIG_AND_STATE,
    "Write a STATE only after all records that it covers, also on SIGTERM.",
)  # fmt: skip
def interrupted_resumes_without_a_gap(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE of an interrupted run writes all records that were not yet written."""
    first, second = trials.interrupted, trials.after_interruption
    if second.result.stopped not in ("", "records") or (second.result.code and not second.result.stopped):
        yield Violation(second.outcome)
        return
    found = gaps(trials, first, first.output.last_state, second)
    if found and second.result.stopped:
        raise Skip("the run was cut short: use a larger --records")
    for gap in found:
        yield Violation(describe_gap(gap), gap.stream)
