"""A tap's config: its specification, read strictly from files and the environment."""

from balog.tap.config.reader import environment_name, read_config
from balog.tap.config.spec import ConfigSpec, make_spec

__all__ = ["ConfigSpec", "environment_name", "make_spec", "read_config"]
