"""The hub finds the consumers of a package, or says why it can't."""

import importlib
import re
from typing import Any

import pytest

from balog.common.errors import BalogError, ConfigError
from balog.consumers import Consumer, ConsumerHub

ONE = """
from balog.consumers import consumer_config

@consumer_config(topic="t")
def {name}(settings, event): ...
"""


def scan(*packages: Any, **options: Any) -> ConsumerHub:
    hub = ConsumerHub()
    for package in packages:
        hub.scan(package, **options)
    return hub


def names(hub: ConsumerHub) -> list[str]:
    return [consumer.name for consumer in hub.consumers]


class TestScan:
    def test_it_finds_consumers_in_all_modules_in_a_stable_order(self, make_package) -> None:
        make_package("team", init=ONE.format(name="z"), b=ONE.format(name="y"), sub__a=ONE.format(name="x"))
        assert names(scan("team")) == ["team.b.y", "team.sub.a.x", "team.z"]

    def test_it_takes_a_module_or_a_dotted_name(self, make_package) -> None:
        make_package("team", b=ONE.format(name="y"), c=ONE.format(name="z"))
        assert names(scan(importlib.import_module("team"))) == ["team.b.y", "team.c.z"]
        assert names(scan("team.c")) == ["team.c.z"]

    def test_scanning_twice_changes_nothing(self, make_package) -> None:
        make_package("team", b=ONE.format(name="y"))
        assert names(scan("team", "team.b", "team")) == ["team.b.y"]

    def test_two_hubs_find_the_same(self, make_package) -> None:
        make_package("team", b=ONE.format(name="y"))
        assert names(scan("team")) == names(scan("team")) == ["team.b.y"]

    def test_an_imported_or_aliased_handler_is_one_consumer(self, make_package) -> None:
        make_package(
            "team", a="from team.b import y\nalias = y", b=ONE.format(name="y") + "\nalias = y\n_other = alias"
        )
        assert names(scan("team")) == ["team.b.y"]

    def test_stacked_declarations_are_several_consumers(self, make_package) -> None:
        make_package(
            "team",
            b="""
            from balog.consumers import consumer_config

            @consumer_config("top", "log")
            @consumer_config("middle", name="named")
            @consumer_config("bottom", version="<1.0")
            def y(settings, event): ...
            """,
        )
        hub = scan("team")
        assert {consumer.name: consumer.topic for consumer in hub.consumers} == {
            "team.b.y": "bottom",
            "named": "middle",
            "team.b.y-3": "top",
        }
        assert len({consumer.func for consumer in hub.consumers}) == 1
        assert names(scan("team")) == names(hub)

    @pytest.mark.parametrize("ignore", ["team.bad", ".bad", [".bad"], re.compile("bad$").search, (".x", ".bad")])
    def test_what_is_ignored_is_not_imported(self, make_package, ignore: object) -> None:
        make_package("team", bad="raise RuntimeError", b=ONE.format(name="y"))
        assert names(scan("team", ignore=ignore)) == ["team.b.y"]

    def test_a_program_in_the_package_is_not_started(self, make_package) -> None:
        make_package("team", __main__="raise SystemExit('started')", b=ONE.format(name="y"))
        assert names(scan("team")) == ["team.b.y"]


class TestErrors:
    def test_an_unknown_package_is_wrong_use(self) -> None:
        for name in ("no_such_package", "no_such_package.sub", "balog.no_such_module"):
            with pytest.raises(ConfigError, match=f"no package {name}"):
                scan(name)

    @pytest.mark.parametrize(
        ("source", "cause"),
        [
            ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("def broken(:", "SyntaxError: "),
            ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        ],
    )
    @pytest.mark.parametrize("where", ["init", "b", "sub__c"])
    def test_a_failing_import_names_module_and_cause(self, make_package, source: str, cause: str, where: str) -> None:
        make_package("team", **{where: source})
        module = {"init": "team", "b": "team.b", "sub__c": "team.sub.c"}[where]
        with pytest.raises(BalogError, match=re.escape(f"can't import {module}: {cause}")) as caught:
            scan("team")
        assert not isinstance(caught.value, ConfigError)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("where", ["init", "b"])
    def test_a_module_that_ends_the_program_is_an_error(self, make_package, where: str) -> None:
        make_package("team", **{where: "raise SystemExit('bye')"})
        with pytest.raises(BalogError, match="bye"):
            scan("team")

    def test_a_bad_condition_is_named_with_its_module(self, make_package) -> None:
        make_package("team", b=ONE.format(name="y").replace('topic="t"', 'topic="t", version="<<1"'))
        with pytest.raises(BalogError, match=r"can't import team\.b: .*team\.b\.y: version '<<1'"):
            scan("team")

    def test_two_consumers_of_one_name_are_refused(self, make_package) -> None:
        named = ONE.replace('topic="t"', 'topic="t", name="same"')
        make_package("team", a=named.format(name="x"), b=named.format(name="y"))
        with pytest.raises(ConfigError, match="two consumers are called same"):
            scan("team")

    def test_two_functions_of_one_name_are_refused(self) -> None:
        hub = ConsumerHub()
        hub.add(Consumer(lambda: None, "t", name="same"))
        with pytest.raises(ConfigError, match="two consumers are called same"):
            hub.add(Consumer(lambda: None, "u", name="same"))
