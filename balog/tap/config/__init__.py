"""What a tap's config must hold, said in any of six forms; read from files and the environment, strictly."""

from balog.tap.config.spec import ConfigSpec, make_spec

__all__ = ["ConfigSpec", "make_spec"]
