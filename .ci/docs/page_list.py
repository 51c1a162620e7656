"""The list of all pages at the end of ``docs/index.md``, by kind and by what a reader works on.

After a page is added, moved or renamed::

    python .ci/docs/page_list.py    # writes the list anew

``make lint`` checks it. The site shows each page's purpose as well, from its first lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- The rest is written by .ci/docs/page_list.py -->\n"
KINDS = {
    "Tutorials": ("tutorials", "learn step by step"),
    "How-to guides": ("how-to", "do one task"),
    "Reference": ("reference", "look up a fact"),
    "Explanation": ("explanation", "understand why"),
    "Internals": ("internals", "change balog itself"),
    "Decisions": ("decisions", "know why the project is as it is"),
}
GROUPS = {
    "Begin": "install extras coming-from-* handlers-from-* balog-1.2-names",
    "Log": "log-from-* log-in-* log-with-* stdlib* structlog web-middleware where-it-runs "
    "declare-a-payload-type redact* testing* test-what-* logger* processes values metrics event-forms",
    "Carry": "batch clickhouse forward keep-state log-patterns meltano store test-a-broker find-quarantined-records "
    "find-the-slow-side broker sidecar spool stored-state batch-messages meltano-projects records sinks archives "
    "forwarding",
    "Act": "copy-a-handler handle-* keep-order kafka* sqs* retry-failed-* run-handlers-* sink-in-a-handler "
    "report-handler-errors test-handlers trace-handlers consumer* ledger topics* hooks",
    "Ask": "*report* compare-* find-a-failed-sync query* load-* move-to-spark scaling reading table* rollups",
    "Deliver": "add-a-filter durable test-with-the-event-service service* control* registry evolution protobuf filters "
    "callbacks receive-* upgrade-* durability event-tables",
    "Tap": "tap-* taps verify* bookmarks write-a-*tap sync-child-* find-streams-* read-* page-* keep-a-bookmark-* "
    "retry-requests send-requests-* sign-in-* run-streams-* correct-*",
    "Watch": "alerts choose-* run-two-* silence-* watch* monitors backtests alert-sinks",
    "Extend": "add-a-command plugins write-* test-a-sink contract-suites sink-plugins topic-backends",
}
GROUPED = ("how-to", "reference")
LEARNING = ("first-events", "singer-pipeline", "handlers", "late-sync", "first-tap", "http-events")
OTHERS = "All parts"
ITEM = re.compile(r"^- \[.+\]\((.+\.md)\)$", re.MULTILINE)
PURPOSES = [
    re.compile(r"(?:After (?:this page|it)|At the end),? (.+?[.!?])(?=\s|$)"),
    re.compile(r"((?:This page|Here you find) .+?[.!?])(?=\s|$)"),
    re.compile(r"^For [^.]+?: (.+?[.!?])(?=\s|$)"),
]
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def main() -> None:
    """Write the list into ``docs/index.md``."""
    (ROOT / "docs" / "index.md").write_text(with_list(ROOT / "docs"), encoding="utf-8")


def with_list(docs: Path) -> str:
    """Return the text of ``index.md`` with the list of the pages that there are."""
    before, mark, _ = (docs / "index.md").read_text(encoding="utf-8").partition(MARK)
    return before + mark + "\n".join(_lines(docs))


def _lines(docs: Path) -> Iterator[str]:
    for kind, (folder, purpose) in KINDS.items():
        yield f"\n## {kind}\n\nTo {purpose}.\n"
        pages = sorted((docs / folder).glob("*.md" if folder != "decisions" else "0000-*.md"), key=_place)
        if folder not in GROUPED:
            yield from map(_item, pages)
            continue
        groups: dict[str, list[str]] = {}
        for page in pages:
            groups.setdefault(_group(page.stem), []).append(_item(page))
        for name in (*GROUPS, OTHERS):
            if name in groups:
                yield "\n".join((f"**{name}**\n", *groups[name], ""))
    yield "\n[Glossary](glossary.md): what the words mean.\n"


def _group(name: str) -> str:
    found = (group for group, patterns in GROUPS.items() if any(fnmatch(name, each) for each in patterns.split()))
    return next(found, OTHERS)


def _place(page: Path) -> tuple[object, ...]:
    """Return what pages are sorted by: the order to learn or to decide in, else the title."""
    if page.stem in LEARNING:
        return LEARNING.index(page.stem), ""
    return len(LEARNING), page.name if page.parent.name == "decisions" else _title(page).lower().strip("`")


def _item(page: Path) -> str:
    return f"- [{_title(page)}]({page.parent.name}/{page.name})"


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").strip()


def with_purposes(markdown: str, docs: Path) -> str:
    """Return the list with the purpose of each page behind its link."""

    def described(match: re.Match[str]) -> str:
        found = purpose_of((docs / match[1]).read_text(encoding="utf-8"))
        return f"{match[0]}: {found}" if found else match[0]

    before, mark, rest = markdown.partition(MARK)
    return before + mark + ITEM.sub(described, rest)


def purpose_of(page: str) -> str:
    """Return what a page is for, from the paragraph below its title; "" if that does not say it."""
    opening = LINK.sub(r"\1", " ".join(page.split("\n\n", 2)[1].split()))
    found = next((match[1] for match in (each.search(opening) for each in PURPOSES) if match), "")
    return found[:1].upper() + found[1:]


if __name__ == "__main__":
    main()
