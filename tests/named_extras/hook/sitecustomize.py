"""Hide the modules in ``HIDDEN_MODULES`` from the Python of ``HIDDEN_IN``; Python imports this file when it starts."""

import os
import sys
from importlib.machinery import PathFinder

hidden = set(filter(None, os.environ.get("HIDDEN_MODULES", "").split(",")))


class Finder(PathFinder):
    """Finds all modules but those."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        return None if fullname.partition(".")[0] in hidden else super().find_spec(fullname, path, target)


if sys.prefix == os.environ.get("HIDDEN_IN"):
    sys.meta_path[:] = [Finder if one is PathFinder else one for one in sys.meta_path]
