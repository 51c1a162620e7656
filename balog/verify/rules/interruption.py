"""SIGTERM in the middle: the tap ends soon, and its last STATE is right."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import CONFIG_AND_STATE, PRACTICE, Violation, check
from balog.verify.rules.resumption import bookmarks_in, gaps
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_ON_ITS_WAY = 192 * 1024  # bytes that a pipe and the buffers before it may have held


@check(
    "ends-on-sigterm", "stopping", "error", 4, PRACTICE,
    "Don't ignore SIGTERM, and don't wait for the source when it came: who runs the tap kills it soon after.",
)  # fmt: skip
def ends_on_sigterm(trials: Trials) -> Iterator[Violation]:
    """The tap ends within seconds when it is sent SIGTERM."""
    run = trials.signalled
    if run.result.was_killed:
        yield Violation(f"it was still there after {trials.options.grace:g} s")
    elif run.result.code == 0 and run.result.went_on > _ON_ITS_WAY:
        yield Violation(f"it went on to its end, and wrote {run.result.went_on / 1e6:.1f} MB more")
    else:
        _ = trials.interrupted  # says so when there was nothing to interrupt


@check(
    "interrupted-is-not-done", "stopping", "warning", 3, PRACTICE,
    "End with 143 (128 + SIGTERM) or by the signal: 0 says that all was synced.",
)  # fmt: skip
def interrupted_is_not_done(trials: Trials) -> Iterator[Violation]:
    """A tap that was interrupted does not end with exit code 0."""
    run = trials.interrupted
    if run.result.code == 0:
        yield Violation("exit code 0")


@check(
    "interrupted-output-is-whole", "stopping", "error", 4, PRACTICE,
    "Write each message in one piece, and finish the one in hand on SIGTERM.",
)  # fmt: skip
def interrupted_output_is_whole(trials: Trials) -> Iterator[Violation]:
    """An interrupted tap leaves no torn line."""
    run = trials.interrupted
    if run.result.was_killed:
        raise Skip("it had to be killed")
    if run.output.unended:
        yield Violation("the last line " + ("is torn" if run.output.unended == "torn" else "has no newline"))
    elif run.output.invalid_count > trials.sync.output.invalid_count:
        yield Violation("there are lines that are no messages, which do not come when it is not interrupted")


@check(
    "interrupted-resumes-without-a-gap", "stopping", "error", 8, CONFIG_AND_STATE,
    "Write a STATE only after all records that it speaks of, on SIGTERM too.",
)  # fmt: skip
def interrupted_resumes_without_a_gap(trials: Trials) -> Iterator[Violation]:
    """From the last STATE of an interrupted run, what had not come until then comes."""
    first, second = trials.interrupted, trials.after_interruption
    if second.result.stopped not in ("", "records") or (second.result.code and not second.result.stopped):
        yield Violation(second.outcome)
        return
    found = gaps(trials, first, first.output.last_state, second)
    if found and second.result.stopped:
        raise Skip("the run was ended before its end: give more --records")
    for gap in found:
        yield Violation(bookmarks_in(gap), gap.stream)
