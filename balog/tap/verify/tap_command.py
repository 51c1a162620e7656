"""The tap's command line, parsed so that each run can have its own files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from balog.common.errors import ConfigError

_OPTIONS = {"--config": "config", "--catalog": "catalog", "--properties": "properties", "--state": "state"}
_SHORT = {"-c": "config", "-p": "properties", "-s": "state"}


class TapCommand(Struct, frozen=True, kw_only=True):
    """A tap's command.

    Attributes:
        base: program and arguments without the files below.
        place: the position of ``--config`` in ``base``; the order of several configs can matter.
        config: the file of ``--config``; None without one.
        catalog: the file of ``--catalog``, used instead of the discovered catalog; ``properties`` is the older form.
        state: the file of ``--state``, for the first sync.
    """

    base: tuple[str, ...]
    place: int = 0
    config: Path | None = None
    catalog: Path | None = None
    properties: Path | None = None
    state: Path | None = None

    def line(self, *arguments: str, config: Path | None = None) -> list[str]:
        """Return the command with further arguments and, optionally, another config."""
        config = config or self.config
        words = ["--config", str(config)] if config else []
        return [*self.base[: self.place], *words, *self.base[self.place :], *arguments]


def parse_command(command: Sequence[str]) -> TapCommand:
    """Extract Singer's options from a tap's command line.

    A second ``--config``, and the Meltano SDK's ``--config ENV``, stay in place. So do short options that name no
    file, because they can belong to the program that runs the tap.

    Raises:
        ConfigError: the program or a file does not exist.
    """
    if not command:
        raise ConfigError("the command of the tap is missing; write it after --")
    if shutil.which(command[0]) is None:
        raise ConfigError("there is no such program", source=command[0])
    base, files, position = [command[0]], {}, 1
    arguments = iter(range(1, len(command)))
    for index in arguments:
        word = command[index]
        option, equals, value = word.partition("=")
        name = _OPTIONS.get(option)
        if name is None and word in _SHORT and index + 1 < len(command) and _is_file(command[index + 1]):
            name = _SHORT[word]
        if name is None or (not equals and index + 1 >= len(command)):
            if word not in ("--discover", "-d"):
                base.append(word)
            continue
        if not equals:
            value = command[next(arguments)]
        if name in files or (name == "config" and value == "ENV"):
            base += [option, value]
            continue
        if not _is_file(value):
            raise ConfigError("there is no such file", source=f"{option} {value}")
        files[name] = Path(value).absolute()
        if name == "config":
            position = len(base)
    return TapCommand(base=tuple(base), place=position, **files)


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # too long for a path, such as a program after -c
        return False


def read_json(path: Path, option: str) -> Any:
    """Read a JSON file of the tap's command line.

    Raises:
        ConfigError: the file cannot be read or is not JSON.
    """
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", source=f"{option} {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigError("is not JSON", source=f"{option} {path}") from None
