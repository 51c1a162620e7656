"""The file of monitors: how it is read."""

from __future__ import annotations

import os

from balog.common import config as configs
from balog.common.config.problems import intact
from balog.common.errors import ConfigError, ConfigProblems
from balog.watch.config.config_check import find_semantic_problems
from balog.watch.config.monitors import MonitorConfig, MonitorsFile


def find_monitor_problems(path: str | os.PathLike[str]) -> tuple[MonitorsFile | None, list[ConfigError]]:
    """Read a file of monitors, and return it with all its problems; None if a problem leaves nothing to use.

    Raises:
        ConfigError: the file cannot be read, or is not of its format.
    """
    document, problems = configs.read(path)
    source = str(path)
    problems = configs.add_problems(problems, configs.find_problems(document, MonitorsFile, source))
    file, _, original = intact(document, MonitorsFile)
    if file is not None:
        problems += [
            ConfigError(error.reason, source, original(error.path)) for error in find_semantic_problems(file.monitors)
        ]
    return file, problems


def load_monitors(path: str | os.PathLike[str]) -> list[MonitorConfig]:
    """Read a file of monitors.

    Raises:
        ConfigError: the file cannot be read; ``ConfigProblems`` has all mistakes.
    """
    file, problems = find_monitor_problems(path)
    if problems or file is None:
        raise ConfigProblems(problems or [ConfigError("is not a file of monitors", str(path))])
    return file.monitors
