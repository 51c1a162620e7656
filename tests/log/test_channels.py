"""Names of loggers: given, of the calling module, of the application in a script."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import balog
from balog.testing import Events
from tests.stand_ins.programs import run_program


def module(name: str, code: str) -> dict[str, Any]:
    """Run code as the module of a name; ``__name__`` is absent for None."""
    names: dict[str, Any] = {"balog": balog, "__name__": name}
    exec(code, names)
    return names


class TestGetLogger:
    def test_without_a_name_the_channel_is_the_calling_module(self, events: Events) -> None:
        """As the first balog and structlog over the standard library do."""
        balog.get_logger().info("foobar", payload={"cls_type": "metrics"})
        balog.get_logger().info("hi")

        assert events.channels == [f"{__name__}.foobar", __name__]

    def test_each_module_has_its_own(self, events: Events) -> None:
        """Two modules that call through the same package get two channels."""
        for name in ("shop.orders", "shop.bills"):
            module(name, "balog.get_logger().info('paid', payload={})")

        assert events.channels == ["shop.orders.paid", "shop.bills.paid"]

    def test_a_given_name_wins(self, events: Events) -> None:
        """A name is used as it is, also that of a script, and an empty one."""
        balog.get_logger("__main__").info("hi")
        balog.get_logger(name="a").info("hi")
        balog.get_logger("").info("done", payload={})

        assert events.channels == ["__main__", "a", "done"]

    def test_in_a_script_the_channel_is_the_application_as_configured_later(self, events: Events) -> None:
        """A logger made before ``configure`` follows the application's name."""
        log = module("__main__", "log = balog.get_logger()")["log"]
        for name in ("billing", "orders"):
            balog.configure(application=name)
            log.info("paid", payload={})
            log.info("hi")

        assert events.channels == ["billing.paid", "billing", "orders.paid", "orders"]

    @pytest.mark.parametrize("name", [None, 5])
    def test_code_without_a_module_uses_the_application(self, events: Events, name: Any) -> None:
        """``exec`` with globals that hold no usable ``__name__``."""
        balog.configure(application="billing")
        module(name, "balog.get_logger().info('hi')")

        assert events.channels == ["billing"]

    def test_values_are_bound(self, events: Events) -> None:
        """As with structlog's ``get_logger``, further arguments are initial values."""
        balog.get_logger("a", shard=3).info("hi")
        balog.get_logger(shard=4).info("hi")

        assert [event.header.context["shard"] for event in events] == [3, 4]

    def test_pickled_it_is_the_application_of_the_process_that_reads_it(self, events: Events) -> None:
        """A script's logger may be sent to a worker."""
        log = module("__main__", "log = balog.get_logger(shard=3)")["log"]
        twin = pickle.loads(pickle.dumps(log))
        balog.configure(application="worker")
        twin.bind(one=1).info("done", payload={})

        assert events.one(channel="worker.done").header.context["shard"] == 3

    def test_a_program_s_own_file_names_it(self, tmp_path: Path) -> None:
        """A script that is run as one."""
        script = tmp_path / "nightly.py"
        script.write_text("import balog\nbalog.get_logger().info('done', payload={})\n")
        assert '"channel":"nightly.py.done"' in run_program(sys.executable, str(script)).stderr
