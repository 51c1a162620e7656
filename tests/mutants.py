"""Change one place of balog at random and run the tests of its room, several times over.

Prints each mutant and whether a test failed. Exits with 1 if one lived. The checkout itself is not changed::

    python -m tests.mutants --seed 3 --number 40
    python -m tests.mutants --number 5 balog/broker/cases.py
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

OPPOSITES: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip


class Mutant(NamedTuple):
    """One changed place of a file: the changed source, and the place for people."""

    source: str
    line: int
    before: str
    after: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module. Each is valid Python and differs in one expression or statement."""
    for node in ast.walk(ast.parse(source)):
        for changed in changes(node):
            before, after = ast.get_source_segment(source, node) or "", ast.unparse(changed)
            if isinstance(changed, ast.expr):
                after = f"({after})"
            lines = source.encode().splitlines(keepends=True)  # the offsets of nodes are in bytes
            start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
            end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
            data = source.encode()
            yield Mutant((data[:start] + after.encode() + data[end:]).decode(), node.lineno, before, after)


def changes(node: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """Yield what a node becomes."""
    match node:
        case ast.Compare(left, [op], comparators) if type(op) in OPPOSITES:
            yield ast.Compare(left, [OPPOSITES[type(op)]()], comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OPPOSITES[type(op)](), values)
        case ast.BinOp(left, op, right) if type(op) in OPPOSITES:
            yield ast.BinOp(left, OPPOSITES[type(op)](), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()):
            yield ast.Pass()


def tests_of(path: Path) -> Path:
    """Return the tests that mirror a file of balog: the nearest folder's, or a top-level module's own."""
    folder = (ROOT / "tests" / path.relative_to("balog")).parent
    while not folder.exists():
        folder = folder.parent
    return folder / f"test_{path.stem}.py" if folder == ROOT / "tests" else folder


def is_killed(copy: Path, path: Path, mutant: Mutant, seconds: float) -> bool:
    """Return whether a test fails on the mutant, or hangs."""
    original = (copy / path).read_text(encoding="utf-8")
    (copy / path).write_text(mutant.source, encoding="utf-8")
    tests = tests_of(path).relative_to(ROOT)
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", str(tests)]
    environment = {**os.environ, "PYTHONPATH": str(copy), "BALOG_SERVICES": "off"}
    try:
        return bool(subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=seconds).returncode)
    except subprocess.TimeoutExpired:
        return True
    finally:
        (copy / path).write_text(original, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files of balog; by default any")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=40, help="how many mutants")
    parser.add_argument("--seconds", type=float, default=600, help="the longest run of a room's tests")
    options = parser.parse_args()
    files = [Path(name) for name in options.files] or [
        path.relative_to(ROOT) for path in sorted((ROOT / "balog").rglob("*.py"))
    ]
    draw, lived = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="balog-mutants-") as folder:
        copy = Path(folder) / "balog"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".demo", "build", ".*_cache"))
        for _ in range(options.number):
            path = draw.choice(files)
            found = list(mutants((ROOT / path).read_text(encoding="utf-8")))
            if not found or not tests_of(path).exists():
                continue
            mutant = draw.choice(found)
            killed = is_killed(copy, path, mutant, options.seconds)
            lived += not killed
            verdict = "killed" if killed else "LIVES "
            print(f"{verdict} {path}:{mutant.line}: {mutant.before!r:.90} -> {mutant.after!r:.90}", flush=True)
    print(f"{lived} mutants live")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main())
