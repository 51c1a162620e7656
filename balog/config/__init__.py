"""Config files: JSON and YAML by one loader, decoded strictly, each error with its path."""

from balog.config.contents import MAX_CONFIG_BYTES
from balog.config.env_file import load_env
from balog.config.loader import Locator, add_problems, find_problems, load, locate, read

__all__ = [
    "MAX_CONFIG_BYTES",
    "Locator",
    "add_problems",
    "find_problems",
    "load",
    "load_env",
    "locate",
    "read",
]
