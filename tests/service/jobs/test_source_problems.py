"""What a home of topics says of a document."""

import pytest

from balog.service.document import Callback, ControlDocument, Filter
from balog.service.jobs.access import source_problems
from balog.topics import open_topics


def callback(name, source):
    return Callback(name=name, source=source, url="https://example.com/")


TWO = ControlDocument(callbacks=(callback("a", "orders"), callback("b", "orders")))
MIXED = ControlDocument(
    filters=(Filter(name="f", sources=("orders",), to="big"),), callbacks=(callback("a", "orders"),)
)
APART = ControlDocument(filters=(Filter(name="f", sources=("orders",), to="big"),), callbacks=(callback("a", "big"),))
IN_SPARK = ControlDocument(
    filters=(Filter(name="f", sources=("orders",), to="big", engine="spark"),), callbacks=(callback("a", "orders"),)
)


def problems(document, url):
    with open_topics(url) as home:
        return [str(error) for error in source_problems(document, home)]


@pytest.mark.parametrize("document", [TWO, MIXED, APART])
def test_where_groups_are_kept_many_may_read_a_topic(document, tmp_path):
    assert problems(document, f"local:{tmp_path}") == []


@pytest.mark.parametrize(("document", "first", "second"), [(TWO, "callbacks[0]", "callbacks[1]"),
                                                           (MIXED, "filters[0]", "callbacks[0]")])  # fmt: skip
def test_two_that_read_one_queue_are_refused(document, first, second):
    pytest.importorskip("boto3", reason="boto3 is not installed")
    [said] = problems(document, "sqs:eu-west-1")
    assert said.startswith(f"$.{second}: $.{first} reads the queue orders, too")


@pytest.mark.parametrize("document", [APART, IN_SPARK])
def test_each_with_a_queue_of_its_own_is_fine(document):
    pytest.importorskip("boto3", reason="boto3 is not installed")
    assert problems(document, "sqs:eu-west-1") == []


def test_a_name_that_no_queue_can_have_is_refused():
    pytest.importorskip("boto3", reason="boto3 is not installed")
    [said] = problems(ControlDocument(callbacks=(callback("a", "shop.orders"),)), "sqs:eu-west-1")
    assert said.startswith("$.callbacks[0]: topic name 'shop.orders' can't be used by SQS")
