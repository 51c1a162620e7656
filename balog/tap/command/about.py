"""``--about``: a description of the tap, as JSON with the names that Meltano SDK taps use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from balog.tap.definition import TapDefinition

CAPABILITIES = ("about", "catalog", "discover", "state")


def version_of(tap: TapDefinition) -> str:
    """Return the version of the distribution that has the tap's name; "" if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(tap.name)
    except (PackageNotFoundError, ValueError):
        return ""


def about(tap: TapDefinition) -> dict[str, Any]:
    """Return the tap's name, version, capabilities, config as JSON Schema (``settings``) and declared streams.

    ``finds_streams`` says whether it also finds streams in its source.
    """
    import balog

    return {
        "name": tap.name,
        "version": version_of(tap),
        "balog_version": balog.__version__,
        "capabilities": list(CAPABILITIES),
        "settings": tap.spec.json_schema(),
        "finds_streams": tap.finder is not None,
        "streams": [
            {
                "name": stream.name,
                "key_properties": list(stream.key_properties),
                "replication_method": stream.method,
                "replication_key": stream.replication_key,
                "parent": getattr(stream.parent, "name", None),
            }
            for stream in tap.streams.values()
        ],
    }
