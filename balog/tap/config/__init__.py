"""What a tap's config must hold, said in any of six forms; read from files and the environment, strictly."""

from balog.tap.config.reader import Given, environment_name, read_config
from balog.tap.config.samples import optional
from balog.tap.config.spec import ConfigSpec, make_spec, sample

__all__ = ["ConfigSpec", "Given", "environment_name", "make_spec", "optional", "read_config", "sample"]
