"""Outputs of the logger: the process's own streams, a file, or any topic or sink through a queue."""

from balog.log.outputs.base import LogOutput
from balog.log.outputs.console import console_line
from balog.log.outputs.stdio import default_output, singer_line
from balog.log.outputs.url import open_output

__all__ = ["LogOutput", "console_line", "default_output", "open_output", "singer_line"]
