"""Counters and gauges of all components have one form, and the page lists each of them."""

import importlib
import re
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

import balog
from balog.sinks.families import families_of
from balog.stats import Stats, StatSample, counter, declared_metrics, gauge
from tests.documentation import docs_page


class DoorStats(Stats):
    component: ClassVar[str] = "door"
    opened: Annotated[int, counter("Times that it was opened.")] = 0
    visitors: Annotated[int | None, gauge("People inside.")] = 0
    is_locked: Annotated[bool, gauge("Whether it is locked.")] = False
    reason: str = ""


def test_declared_fields_are_samples_with_their_labels():
    """Given fields with and without a declaration, then samples are those with one, and the ones that are not None."""
    labels = {"house": "a"}
    assert list(DoorStats(3, None, True, "storm").samples(labels)) == [
        StatSample("door_opened", "counter", "Times that it was opened.", 3.0, labels),
        StatSample("door_is_locked", "gauge", "Whether it is locked.", 1.0, labels),
    ]


def test_stats_of_two_components_add_up():
    total = DoorStats(3, 1, False)
    total.add(DoorStats(4, 2, True))
    assert total == DoorStats(7, 3, True)


def test_samples_of_several_components_are_one_family():
    found = list(families_of([*DoorStats(3).samples({"house": "a"}), *DoorStats(4).samples({"house": "b"})]))
    assert [(one.name, one.type) for one in found] == [
        ("balog_door_opened", "counter"),
        ("balog_door_visitors", "gauge"),
        ("balog_door_is_locked", "gauge"),
    ]
    assert [(sample.name, sample.labels, sample.value) for sample in found[0].samples] == [
        ("balog_door_opened_total", {"house": "a"}, 3.0),
        ("balog_door_opened_total", {"house": "b"}, 4.0),
    ]


ONE_SHOT = {"dump", "ingest", "replay"}  # commands print these at their end
FOLDER = Path(balog.__file__).parent
MODULES = sorted(
    ".".join(("balog", *path.relative_to(FOLDER).with_suffix("").parts))
    for path in FOLDER.rglob("*.py")
    if re.search(r"^class \w+\(\s*Stats\b", path.read_text(), re.MULTILINE)
)


@pytest.mark.parametrize("name", MODULES)
def test_the_page_lists_every_metric(name):
    page = docs_page("metrics.md").read_text()
    kinds = [
        kind
        for kind in vars(importlib.import_module(name)).values()
        if isinstance(kind, type) and issubclass(kind, Stats) and kind is not Stats
    ]
    assert kinds
    for kind in kinds:
        for _, metric, declared in declared_metrics(kind):
            row = f"| `{metric}` | {declared.kind} | {declared.help} |"
            assert kind.component in ONE_SHOT or row in page, row
