"""Events that no consumer of their topic wants."""

from typing import Any

import pytest

from balog.cli.shared.engines import summary
from balog.common.errors import ConfigError
from balog.consumers import Consumer
from tests.consumers.runs import Scripted

UNWANTED = [{"cls_type": "refund"}, {"cls_type": "refund"}, {"n": 1}]


@pytest.fixture
def consumer() -> Consumer:
    return Consumer(lambda settings, event: None, "orders", cls_type="order", name="orders")


@pytest.mark.parametrize(("unwanted", "pending", "dead"), [("ack", 0, 0), ("keep", 3, 0), ("dead", 0, 3)])
def test_they_are_removed_kept_or_dead_lettered(
    bench: Any, consumer: Consumer, unwanted: Any, pending: int, dead: int
) -> None:
    """A run until empty ends although kept events are left."""
    bench.publish({"cls_type": "order"}, *UNWANTED)
    counts = bench.run(consumer, unwanted=unwanted)
    assert (counts.succeeded, counts.unwanted, counts.dead) == (1, 3, dead)
    assert (bench.pending, len(bench.dead)) == (pending, dead)


def test_kept_ones_have_no_attempt_and_another_consumer_gets_them(
    bench: Any, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("balog.consumers.queueing.delivery.KEEP_SECONDS", 0.5)
    ids = bench.publish(*UNWANTED)
    bench.run(consumer, unwanted="keep")
    everything = Scripted()
    bench.run(Consumer(everything, "orders", name="all", retries=0))
    assert (sorted(everything.ids), bench.pending) == (sorted(ids), 0)


def test_a_dead_letter_names_the_type(bench: Any, consumer: Consumer) -> None:
    bench.publish(*UNWANTED)
    bench.run(consumer, unwanted="dead")
    assert sorted(letter.reason for letter in bench.dead) == [
        "no consumer wants it: no type",
        "no consumer wants it: refund",
        "no consumer wants it: refund",
    ]


def test_the_summary_names_how_many_of_which_types(bench: Any, consumer: Consumer) -> None:
    bench.publish(*UNWANTED)
    assert "3 unwanted (1 'no type', 2 'refund'), " in summary(bench.run(consumer))


def test_many_types_are_counted_together(bench: Any, consumer: Consumer) -> None:
    bench.publish(*({"cls_type": f"type{number}"} for number in range(30)))
    types = bench.run(consumer).unwanted_types
    assert (len(types), types["other types"], sum(types.values())) == (21, 10, 30)


def test_another_word_is_an_error(bench: Any, consumer: Consumer) -> None:
    with pytest.raises(ConfigError, match="expected one of ack, keep, dead"):
        bench.engine(consumer, unwanted="drop")
