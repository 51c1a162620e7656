"""Compares versions in a child process with limits of time and memory: canonical forms can grow without bounds."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from balog.registry.comparing.comparison import compare, compare_history
from balog.registry.comparing.verdict import CompatibilityFinding, CompatibilityReport, Mode
from balog.registry.schema import Schema

SECONDS = 10
"""Processor time of a comparison."""

MEMORY = 4 << 30  # bytes of address space

_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from balog.registry.comparing.child import main; main()"


_Call = tuple[list[Schema], Schema, Mode, int, bool]
"""History, new schema, mode, seconds, and whether the history is one schema to compare with."""


def compare_in_child(
    history: Sequence[Schema], new: Schema, mode: Mode, seconds: int = SECONDS, *, is_pair: bool = False
) -> CompatibilityReport:
    """See ``compare_history``. A comparison that exceeds the limits is undecided, which counts as a break.

    Args:
        history: valid schemas, as ``new`` is.
        is_pair: ``history`` has one schema, which ``new`` is compared with whatever their versions are.
    """
    call = msgspec.msgpack.encode((history, new, mode, seconds, is_pair))
    command = [sys.executable, "-I", "-c", _CHILD, *filter(None, sys.path)]
    done = subprocess.run(command, check=False, input=call, capture_output=True, cwd="/")
    if done.returncode == 0:
        return msgspec.msgpack.decode(done.stdout, type=CompatibilityReport)
    reason = f"the versions cannot be compared within {seconds} s; use a new major version, or a simpler schema"
    finding = CompatibilityFinding(layer="json", path="$", reason=reason, undecided=True)
    return CompatibilityReport(compatible=False, bump="major", findings=[finding])


def main() -> None:
    """Read a call from stdin, and write its report to stdout."""
    history, new, mode, seconds, is_pair = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Call)
    limits = [(resource.RLIMIT_CPU, seconds)] + [(resource.RLIMIT_AS, MEMORY)] * (sys.platform == "linux")
    for kind, most in limits:
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    report = compare(history[0], new, mode) if is_pair else compare_history(history, new, mode)
    sys.stdout.buffer.write(msgspec.msgpack.encode(report))
