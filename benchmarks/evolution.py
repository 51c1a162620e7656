"""Compare schema versions as Confluent's Schema Registry does, over the cases that its tests publish.

    python -m benchmarks.evolution [--quick] [--cases FOLDER]

The cases (JSON Schema 2020-12, backward, one pair of schemas each with the answer) are fetched at a pinned commit from
github.com/confluentinc/schema-registry, or read from FOLDER, and kept nowhere; where they can't be had, it says so and
ends well. Agreement is counted by the letter and optional-friendly; a difference is told by what shows it.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from balog.registry import Schema
from balog.registry.comparing import CompatibilityReport, compare

COMMIT = "8c2c20b57d7f1d3239fe81ba621e8364d95bde2b"
PLACE = (
    f"https://raw.githubusercontent.com/confluentinc/schema-registry/{COMMIT}/json-schema-provider/src/test/resources"
)
FILES = ["diff-schema-examples-2020-12.json", "diff-combined-schema-examples-2020-12.json"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first ten cases of each file")
    parser.add_argument("--cases", type=Path, metavar="FOLDER", help="where the files are")
    options = parser.parse_args()
    total: dict[str, int] = {}
    agreed: dict[str, dict[str, int]] = {"by the letter": {}, "optional-friendly": {}}
    told: list[str] = []
    seconds: list[float] = []
    for name in FILES:
        cases = _cases(name, options.cases)
        if cases is None:
            return
        cases = cases[:10] if options.quick else cases
        total[name] = len(cases)
        for case in cases:
            for way, open in (("by the letter", False), ("optional-friendly", True)):
                begin = time.perf_counter()
                verdict = _judge(case, open)
                seconds.append(time.perf_counter() - begin)
                same = verdict.compatible == case["compatible"]
                agreed[way][name] = agreed[way].get(name, 0) + same
                if not same:
                    told.append(_difference(case, verdict, way))
    print(f"{'':45}" + "".join(f"{way:>20}" for way in agreed))
    for name, count in total.items():
        print(f"{name:45}" + "".join(f"{f'{some[name]} of {count}':>20}" for some in agreed.values()))
    print("\n" + "\n".join(told))
    print(f"\n{statistics.median(seconds) * 1e3:.2f} ms a verdict (median), {max(seconds) * 1e3:.0f} ms the longest")


def _cases(name: str, folder: Path | None) -> list[dict[str, Any]] | None:
    """Give a file's cases; some have a comma too many, which a lenient parser lets pass."""
    try:
        if folder is not None:
            text = (folder / name).read_text()
        else:
            with urllib.request.urlopen(f"{PLACE}/{name}", timeout=30) as answer:
                text = answer.read().decode()
    except (OSError, urllib.error.URLError) as error:
        print(f"skipped: {name} can't be had: {error}; name a folder that has it with --cases")
        return None
    cases: list[dict[str, Any]] = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    return cases


def _judge(case: dict[str, Any], open: bool) -> CompatibilityReport:
    old, new = (
        Schema("case", version, "json", json.dumps(case[word]).encode())
        for version, word in (("1.0.0", "original_schema"), ("1.1.0", "update_schema"))
    )
    return compare(old, new, open=open)


def _difference(case: dict[str, Any], verdict: CompatibilityReport, way: str) -> str:
    said = "compatible" if verdict.compatible else "not compatible"
    why = [f"{one.path}: {one.reason}" for one in verdict.findings if one.breaks]
    undecided = " (undecided)" if any(one.undecided for one in verdict.findings) else ""
    return f"{way}: {said}{undecided}: {case['description']}" + (f": {'; '.join(why)}" if why else "")


if __name__ == "__main__":
    main()
