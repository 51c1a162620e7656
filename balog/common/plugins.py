"""Load what other packages add to balog by entry points.

A package declares an entry point in a group of ``GROUPS``; after ``pip install`` balog knows it::

    [options.entry_points]
    balog.commands =
        hello = my_package.commands:hello

A plug-in is imported only when it is used. The built-in name wins over a plug-in of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from balog.common.errors import BalogError, ConfigError
from balog.common.text import suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "balog.commands": "command",
    "balog.sinks": "sink",
    "balog.topics": "topic backend",
    "balog.ledgers": "ledger",
    "balog.hooks": "consumer hook",
    "balog.redaction": "redaction rule",
    "balog.dialects": "stderr dialect",
}
"""Name of each entry-point group -> what one of its entry points adds."""


@dataclass(frozen=True)
class PluginRegistry:
    """The implementations of one kind, by name: balog's own and those of other packages, each imported when loaded.

    Args:
        group: the entry-point group of other packages.
        builtin: balog's own implementations: name -> ``module:attribute``.
    """

    group: str
    builtin: Mapping[str, str]

    def added(self) -> list[str]:
        """Return the sorted names of other packages; a name that balog has itself is left out."""
        return [name for name in names(self.group) if name not in self.builtin]

    def load(self, name: str) -> Any:
        """Import an implementation.

        Raises:
            ConfigError: the name is not known.
            MissingExtraError: a built-in implementation needs packages that are not installed.
            BalogError: the plug-in cannot be loaded; the message names its package.
        """
        if name in self.builtin:
            from pkgutil import resolve_name

            return resolve_name(self.builtin[name])
        return load_named(self.group, name)

    def open(self, name: str, url: str, methods: Sequence[str]) -> Any:
        """Call the implementation with a URL, and return what it opens.

        Args:
            methods: what the opened object must have.

        Raises:
            BalogError: as ``load``, and as ``make``.
        """
        opener = self.load(name)
        return opener(url) if name in self.builtin else make(self.group, name, opener, url, methods=methods)

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in _found(self.group)


def names(group: str) -> list[str]:
    """Return the sorted names of the plug-ins of a group, without importing them."""
    return sorted(_found(group))


def load(group: str, name: str) -> Any:
    """Import a plug-in and return the object that its entry point names.

    Raises:
        KeyError: no installed package has this plug-in.
        BalogError: several packages have it, or it cannot be imported.
    """
    points = _found(group)[name]
    if len(points) > 1:
        packages = package_of(group, name)
        raise BalogError(f"plug-in {name!r} of {group} is in several packages: {packages}; uninstall all but one")
    try:
        return points[0].load()
    except (Exception, SystemExit) as error:  # a plug-in may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise BalogError(
            f"plug-in {name!r} of {group}, package {_package(points[0])}, cannot be imported: {reason}"
        ) from error


def load_named(group: str, name: str, path: str = "") -> Any:
    """Import the plug-in that a config or an option names.

    Args:
        path: the path of the name in the config.

    Raises:
        ConfigError: no installed package has it, or it is not callable.
        BalogError: as ``load``.
    """
    kind = GROUPS[group]
    if name not in _found(group):
        raise ConfigError(f"no {kind} {name!r:.60} is installed{suggest(name, names(group))}", path=path)
    plugin = load(group, name)
    if not callable(plugin):
        raise ConfigError(f"the {kind} {name!r} of {package_of(group, name)} is not a function or a class", path=path)
    return plugin


def make(group: str, name: str, function: Callable[..., Any], *arguments: object, methods: Sequence[str] = ()) -> Any:
    """Call a function of a plug-in, and return what it makes.

    Args:
        methods: what the made object must have.

    Raises:
        BalogError: the function raised it or another error, or returned another kind of object.
    """
    where = f"the {GROUPS[group]} {name!r} of {package_of(group, name)}"
    try:
        instance = function(*arguments)
    except BalogError:
        raise
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        raise BalogError(f"{where} cannot be made: {type(error).__name__}: {error}") from error
    for method in methods:
        if not callable(getattr(instance, method, None)):
            raise BalogError(f"{where} cannot be used: its {type(instance).__name__} has no {method.strip('_')}()")
    return instance


def package_of(group: str, name: str) -> str:
    """Return name and version of the package of a plug-in; of all packages if several have it."""
    return ", ".join(sorted(map(_package, _found(group)[name])))


@cache
def _found(group: str) -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # takes milliseconds, and most processes need no plug-in

    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        others = points.setdefault(point.name, [])
        if point not in others:  # an editable install can be listed twice
            others.append(point)
    return points


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "unknown"
