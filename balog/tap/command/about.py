"""What a tap says of itself: for a person, and as JSON in the names that the Meltano SDK's taps use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from balog.tap.config import environment_name
from balog.tap.config.json_types import resolve_reference

if TYPE_CHECKING:
    from balog.tap.tap import Tap

__all__ = ["CAPABILITIES", "about", "as_text", "version_of"]

CAPABILITIES = ("about", "batch", "catalog", "discover", "properties", "state", "test")


def version_of(tap: Tap) -> str:
    """Give the version of the package that brings the tap, found by its name; "" where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(tap.name)
    except (PackageNotFoundError, ValueError):
        return ""


def about(tap: Tap) -> dict[str, Any]:
    """Give the tap's name, version, capabilities, the JSON Schema of its config (``settings``) and its streams."""
    import balog

    return {
        "name": tap.name,
        "version": version_of(tap),
        "balog_version": balog.__version__,
        "capabilities": list(CAPABILITIES),
        "settings": tap.spec.json_schema(),
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


def as_text(tap: Tap, said: dict[str, Any]) -> str:
    """Say it for a person."""
    lines = [
        f"{said['name']} {said['version']}".rstrip(),
        "",
        f"capabilities: {', '.join(said['capabilities'])}",
        "",
        "settings:",
    ]
    lines += [f"  {line}" for line in said["settings"].get("description", "").splitlines()]
    lines += [f"  {line}" for line in _settings(tap, said["settings"])]
    lines += ["", "streams:"]
    for stream in said["streams"]:
        by = f"{stream['replication_method']}{' by ' + stream['replication_key'] if stream['replication_key'] else ''}"
        keys = f", keys {', '.join(stream['key_properties'])}" if stream["key_properties"] else ""
        below = f", for each of {stream['parent']}" if stream["parent"] else ""
        lines.append(f"  {stream['name']}: {by}{keys}{below}")
    return "\n".join(lines)


def _settings(tap: Tap, schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        said = resolve_reference(inner, schema) if isinstance(inner, dict) else {}
        kind = said.get("type", "any")
        parts = [kind if isinstance(kind, str) else " or ".join(kind)]
        parts += ["required"] if name in required else []
        parts += [f"default {said['default']!r}"] if "default" in said else []
        parts += ["secret"] if said.get("secret") else []
        text = f": {said['description']}" if isinstance(said.get("description"), str) else ""
        yield f"{name} ({', '.join(parts)}){text} [{environment_name(tap.name, name)}]"
