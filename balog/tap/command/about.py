"""``--about``: a description of the tap, as text and as JSON with the names that Meltano SDK taps use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from balog.tap.config import environment_name
from balog.tap.json_schema.references import resolve_reference

if TYPE_CHECKING:
    from balog.tap.definition import TapDefinition

CAPABILITIES = ("about", "batch", "catalog", "discover", "properties", "state", "test")


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


def as_text(tap: TapDefinition, document: dict[str, Any]) -> str:
    """Return the description as text.

    Args:
        tap: the tap.
        document: the result of ``about``.
    """
    lines = [
        f"{document['name']} {document['version']}".rstrip(),
        "",
        f"capabilities: {', '.join(document['capabilities'])}",
        "",
        "settings:",
    ]
    lines += [f"  {line}" for line in document["settings"].get("description", "").splitlines()]
    lines += [f"  {line}" for line in _settings(tap, document["settings"])]
    lines += ["", "streams:"]
    for stream in document["streams"]:
        by = f"{stream['replication_method']}{' by ' + stream['replication_key'] if stream['replication_key'] else ''}"
        keys = f", keys {', '.join(stream['key_properties'])}" if stream["key_properties"] else ""
        below = f", for each of {stream['parent']}" if stream["parent"] else ""
        lines.append(f"  {stream['name']}: {by}{keys}{below}")
    if document["finds_streams"]:
        lines.append("  those that it finds in its source; --discover lists them")
    return "\n".join(lines)


def _settings(tap: TapDefinition, schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        setting = resolve_reference(inner, schema) if isinstance(inner, dict) else {}
        kind = setting.get("type", "any")
        parts = [kind if isinstance(kind, str) else " or ".join(kind)]
        parts += ["required"] if name in required else []
        parts += [f"default {setting['default']!r}"] if "default" in setting else []
        parts += ["secret"] if setting.get("secret") else []
        text = f": {setting['description']}" if isinstance(setting.get("description"), str) else ""
        yield f"{name} ({', '.join(parts)}){text} [{environment_name(tap.name, name)}]"
