"""The contract suites are inherited by other packages: abilities pick their tests, and a missing extra is named."""

import importlib.util
import subprocess
import sys
from importlib import reload

import pytest

from balog.common.errors import MissingExtraError
from balog.testing import contracts
from balog.testing.contracts import TopicContract
from balog.testing.contracts.topic_messages import MessageContract


class Queue(TopicContract):
    keeps_groups = False
    can_seek = False


class Log(Queue):
    keeps_groups = True

    def test_a_group_can_seek_to_a_time(self) -> None:
        """Replaced by the subclass."""


class OwnLog(Log):
    can_seek = True


def test_tests_of_abilities_that_a_backend_lacks_are_left_out() -> None:
    assert Queue.test_each_group_gets_every_message is None
    assert Queue.test_a_queue_has_one_group is MessageContract.test_a_queue_has_one_group
    assert Log.test_a_queue_has_one_group is None
    assert Log.test_each_group_gets_every_message is MessageContract.test_each_group_gets_every_message


def test_a_replaced_test_stays_replaced() -> None:
    assert OwnLog.test_a_group_can_seek_to_a_time is Log.test_a_group_can_seek_to_a_time
    assert OwnLog.test_a_queue_cannot_seek is None
    assert OwnLog.test_an_unknown_group_can_seek is TopicContract.test_an_unknown_group_can_seek


@pytest.mark.parametrize("missing", ["pytest", "hypothesis"])
def test_without_its_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    with pytest.raises(MissingExtraError, match=r"\[testing\]"):
        reload(contracts)


def test_balog_testing_does_not_import_pytest() -> None:
    code = "import sys, balog.testing; assert not {'pytest', 'hypothesis'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
