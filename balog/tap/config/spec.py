"""From what a tap says of its config to one thing that checks configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from balog.errors import ConfigError

__all__ = ["ConfigSpec", "make_spec"]


class ConfigSpec:
    """What a config must hold.

    Args:
        required: names that must be there.
    """

    def __init__(self, required: Sequence[str] = ()) -> None:
        self.required = tuple(required)

    def check(self, config: Mapping[str, Any], source: str = "") -> Any:
        """Give the config as the tap's functions get it: a dict, or the Struct that the tap named.

        Raises:
            ConfigError: what is wrong, with every problem in it, one a line.
        """
        missing = [name for name in self.required if name not in config]
        if missing:
            raise ConfigError(f"the field {missing[0]!r} is missing", source, "$")
        return dict(config)

    def json_schema(self) -> dict[str, Any]:
        """Give the JSON Schema of a config, as ``--about`` shows it."""
        return {"type": "object", "properties": {name: {} for name in self.required}, "required": list(self.required)}


def make_spec(said: Any) -> ConfigSpec:
    """Make a spec of a list of names, a dict, the path of a sample or of a JSON Schema, a Struct, a function or None."""
    return ConfigSpec(said or ())
