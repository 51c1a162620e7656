"""Programs that find only the packages of the extras that a page names, as its reader's programs do."""

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

OWN = "balog-events"
MADE = {"config", "embedded", "serve"}
"""What ``make install`` installs."""

INTERNAL = {"bench", "demo", "docs", "lint", "test"}
NAMED = re.compile(r"extras? ((?:(?:, | and |, and )?`[a-z0-9]+`)+)")


def extras_of(page: str) -> set[str]:
    """Return the extras that a page names: ``the extra `kafka```, ``the extras `schema` and `spark```."""
    found = {extra for match in NAMED.finditer(page) for extra in re.findall(r"`(\w+)`", match[1])}
    found |= {extra for match in re.finditer(r"\.\[([\w,]+)\]", page) for extra in match[1].split(",")}
    return found | MADE if "make install" in page else found


def environment(page: str) -> dict[str, str]:
    """Return variables for a reader's programs: modules of other extras are not there."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent / "hook"), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, "HIDDEN_MODULES": ",".join(sorted(hidden(page))), "HIDDEN_IN": sys.prefix}


@cache
def hidden(page: str) -> frozenset[str]:
    """Return the modules of packages that come only with extras that a page does not name, nor the package itself."""
    if not page:
        return frozenset()
    known = set(metadata.metadata(OWN).get_all("Provides-Extra") or ()) - INTERNAL
    named = closure(Requirement(f"{OWN}[{','.join(sorted(extras_of(page) & known))}]"))
    if "pytest" in page:  # loads all plug-ins that are installed
        named = named.union(*map(closure, pytest_plugins()))
    others = {name for extra in known for name in direct(OWN, extra)}
    absent = {name for name in others - named if not re.search(rf"\b{re.escape(name)}\b", page, re.IGNORECASE)}
    return frozenset(module for module, names in distributions().items() if absent & set(names))


def closure(requirement: Requirement) -> set[str]:
    """Return the names of a package with extras, and of all that it needs."""
    found, todo, seen = set(), [requirement], set()
    while todo:
        one = todo.pop()
        name = normal(one.name)
        found.add(name)
        for extra in ("", *one.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                todo += requirements(name, extra)
    return found


def direct(name: str, extra: str) -> Iterator[str]:
    """Yield the packages of an extra, without those of the extras in it."""
    yield from (normal(one.name) for one in requirements(name, extra) if normal(one.name) != OWN)


@cache
def requirements(name: str, extra: str) -> list[Requirement]:
    """Return what a package needs for an extra; "" is the package alone."""
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    found = [Requirement(text) for text in texts]
    alone = [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]
    return alone if not extra else [one for one in found if one not in alone and one.marker.evaluate({"extra": extra})]  # type: ignore[union-attr]


def pytest_plugins() -> Iterator[Requirement]:
    """Yield the installed packages that pytest loads by itself, but balog."""
    for point in metadata.entry_points(group="pytest11"):
        if point.dist is not None and normal(point.dist.name) != OWN:
            yield Requirement(point.dist.name)


@cache
def distributions() -> dict[str, list[str]]:
    """Return the packages of each module that can be imported."""
    return {module: [normal(name) for name in names] for module, names in metadata.packages_distributions().items()}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
