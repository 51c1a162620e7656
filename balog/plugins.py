"""Load what other packages add to balog by entry points.

A package declares an entry point in a group of ``GROUPS``; after ``pip install`` balog knows it::

    [options.entry_points]
    balog.commands =
        hello = my_package.commands:hello

A plug-in is imported only when it is used. The built-in name wins over a plug-in of the same name.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from balog.errors import BalogError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUPS", "Group", "load", "names", "package_of"]

Group = Literal["balog.commands", "balog.sinks"]

GROUPS: dict[Group, str] = {
    "balog.commands": "click commands of `balog`",
    "balog.sinks": "configs of sinks",
}
"""Name of each entry-point group -> what its entry points load."""


def names(group: Group) -> list[str]:
    """Return the sorted names of the plug-ins of a group, without importing them."""
    return sorted(_found(group))


def load(group: Group, name: str) -> Any:
    """Import a plug-in and return the object that its entry point names.

    Raises:
        KeyError: no installed package has this plug-in.
        BalogError: several packages have it, or it cannot be imported.
    """
    found = _found(group)[name]
    if len(found) > 1:
        packages = ", ".join(sorted(map(_package, found)))
        raise BalogError(f"plug-in {name!r} of {group} is in several packages: {packages}; uninstall all but one")
    try:
        return found[0].load()
    except Exception as error:  # a plug-in may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise BalogError(
            f"plug-in {name!r} of {group}, package {_package(found[0])}, cannot be imported: {reason}"
        ) from error


def package_of(group: Group, name: str) -> str:
    """Return name and version of the package of a plug-in."""
    return _package(_found(group)[name][0])


@cache
def _found(group: Group) -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # takes milliseconds, and most processes need no plug-in

    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        others = found.setdefault(point.name, [])
        if point not in others:  # an editable install can be listed twice
            others.append(point)
    return found


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "unknown"
