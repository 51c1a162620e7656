"""Config files: JSON and YAML by one loader, decoded strictly, each error with its path."""

from balog.common.config.contents import MAX_CONFIG_BYTES
from balog.common.config.env_file import load_env
from balog.common.config.loader import add_problems, find_problems, load, locate, read

__all__ = [
    "MAX_CONFIG_BYTES",
    "add_problems",
    "find_problems",
    "load",
    "load_env",
    "locate",
    "read",
]
