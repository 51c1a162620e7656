"""Counters and gauges of all components have one form."""

from typing import Annotated, ClassVar

from balog.common.stats import Stats, StatSample, counter, gauge
from balog.sinks.measuring.families import families_of


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
