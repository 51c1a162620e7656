"""Tables of pages that repeat what the code declares: the site has them in the place of a comment.

A page has ``<!-- table: metrics -->``. This prints a table for a reader of the checkout::

    python .ci/docs/generated_tables.py metrics
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import sink_guarantees
import tables

import balog
from balog.common.redaction.tokens import TOKENS
from balog.common.stats import Stats, declared_metrics
from balog.tap.verify.results import GROUPS
from balog.tap.verify.rules import CHECKS

MARK = re.compile(r"^<!-- table: (\w+) -->$", re.MULTILINE)
PACKAGE = Path(balog.__file__).parent
ONE_SHOT = {"dump", "replay"}  # commands print these at their end


def fill(markdown: str) -> str:
    """Return a page with its tables in the place of the comments."""
    return MARK.sub(lambda match: TABLES[match[1]](), markdown)


def stats_classes() -> Iterator[type[Stats]]:
    """Yield the classes of counters and gauges."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"^class \w+\(\s*Stats\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            module = importlib.import_module(".".join(("balog", *path.relative_to(PACKAGE).with_suffix("").parts)))
            for kind in vars(module).values():
                if isinstance(kind, type) and kind.__module__ == module.__name__ and Stats in kind.__bases__:
                    yield kind


def metrics() -> str:
    rows = [
        (f"`{name}`", declared.kind, tables.text(declared.help))
        for kind in stats_classes()
        if kind.component not in ONE_SHOT
        for _, name, declared in declared_metrics(kind)
    ]
    return tables.table(("name", "kind", "meaning"), sorted(rows))


def rules() -> str:
    rows = [
        (rule.group, f"`{rule.id}`", rule.severity, str(rule.weight), rule.title.replace("``", "`"), rule.source)
        for group in GROUPS
        for rule in (check.rule for check in CHECKS.values())
        if rule.group == group
    ]
    return tables.table(("group", "rule", "severity", "weight", "a tap should …", "source"), rows)


def rooms() -> str:
    parts = [
        (part, (part / "__init__.py") if part.is_dir() else part)
        for room in ("analytics", "common", "log", "service", "tap")
        for part in sorted((PACKAGE / room).iterdir())
        if part.suffix == ".py" or (part / "__init__.py").exists()
    ]
    rows = [
        (f"`{part.relative_to(PACKAGE.parent)}`", tables.text((ast.get_docstring(tree) or "").partition("\n\n")[0]))
        for part, path in parts
        if part.name != "__init__.py" and (tree := ast.parse(path.read_text(encoding="utf-8")))
    ]
    return tables.table(("room", "what it is for"), rows)


def tokens() -> str:
    return ", ".join(sorted({token.name for token in TOKENS}, key=str.lower)) + "."


TABLES: dict[str, Callable[[], str]] = {
    "metrics": metrics,
    "rooms": rooms,
    "rules": rules,
    "tokens": tokens,
    "sinks": sink_guarantees.of_all,
}

if __name__ == "__main__":
    print(TABLES[sys.argv[1]]())
