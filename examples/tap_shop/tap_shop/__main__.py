"""``python -m tap_shop``."""

from tap_shop import tap

tap.run()
