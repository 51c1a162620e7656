"""The hub: the consumers of the packages that it scanned."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import venusian

from balog.common.errors import BalogError, ConfigError
from balog.consumers.consumer import CATEGORY, Consumer
from balog.event import Event

Ignore = str | Callable[[str], Any] | Sequence[str | Callable[[str], Any]]


class ConsumerHub:
    """Consumers by name. Scanning a package twice changes nothing."""

    def __init__(self) -> None:
        self._consumers: dict[str, Consumer] = {}

    @property
    def consumers(self) -> list[Consumer]:
        """All consumers, sorted by name."""
        return [self._consumers[name] for name in sorted(self._consumers)]

    def __iter__(self) -> Iterator[Consumer]:
        return iter(self.consumers)

    def route(self, event: Event | dict[str, Any]) -> Iterator[Consumer]:
        """Return the consumers that want an event, of whichever topic, sorted by name."""
        return (consumer for consumer in self.consumers if consumer.match_event(event))

    def add_consumer(self, consumer: Consumer) -> None:
        """Do what :meth:`add` does, by the name that subclasses and programs of the first balog use."""
        self.add(consumer)

    def add(self, consumer: Consumer) -> None:
        """Add a consumer that no scan finds; adding it again changes nothing.

        Raises:
            ConfigError: another consumer has its name.
        """
        known = self._consumers.setdefault(consumer.name, consumer)
        if known is not consumer:
            raise ConfigError(
                f"two consumers are called {consumer.name} (of topic {known.topic} and of topic {consumer.topic}); "
                "give one of them another name"
            )

    def scan(self, package: ModuleType | str, ignore: Ignore | None = None) -> None:
        """Import a package with all its modules and add the consumers that they declare.

        Args:
            package: a module or package, or its dotted name. ``__main__`` modules are skipped.
            ignore: modules to skip: dotted names (``.tests`` is relative to the package) or predicates of a dotted
                name, as in venusian.

        Raises:
            ConfigError: no such package, or two consumers with the same name.
            BalogError: a module can't be imported; the error names it and the cause.
        """
        module = _import(package) if isinstance(package, str) else package
        ignored = [ignore] if isinstance(ignore, str) or callable(ignore) else list(ignore or ())
        ignored.append(lambda name: name.endswith(".__main__"))
        try:
            venusian.Scanner(hub=self).scan(module, categories=(CATEGORY,), onerror=_raise_import, ignore=ignored)
        except SystemExit as exit:
            raise BalogError(f"a module of {module.__name__} ended the program while it was imported: {exit}") from exit


def _import(name: str) -> ModuleType:
    if name.endswith(".py") or "/" in name:
        dotted = name.removesuffix(".py").strip("./").replace("/", ".")
        raise ConfigError(f"{name} is a file; give the dotted name of the module, such as {dotted}")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(f"no package {name}, neither in {sys.path[0] or os.getcwd()} nor installed") from None
        raise _import_error(name, error) from error
    except (Exception, SystemExit) as error:
        raise _import_error(name, error) from error


def _raise_import(name: str) -> None:
    error = sys.exc_info()[1]
    assert error is not None  # venusian calls this while it handles it  # noqa: S101
    raise _import_error(name, error) from error


def _import_error(name: str, error: BaseException) -> BalogError:
    cause = " ".join(f"{type(error).__name__}: {error}".split())
    return BalogError(f"can't import {name}: {cause}")
