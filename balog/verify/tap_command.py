"""The command line of the tap that is verified, taken apart, so that each run can have files of its own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from balog.errors import ConfigError

__all__ = ["TapCommand", "parse_command", "read_json"]

_OPTIONS = {"--config": "config", "--catalog": "catalog", "--properties": "properties", "--state": "state"}
_SHORT = {"-c": "config", "-p": "properties", "-s": "state"}


class TapCommand(Struct, frozen=True, kw_only=True):
    """A tap's command.

    Attributes:
        base: program and arguments but for the files below.
        place: where in ``base`` the ``--config`` stood: where there are several, the later ones may be the stronger.
        config: the file of ``--config``; None without one.
        catalog: as ``config``, by which is synced instead of what is discovered; ``properties`` in the older form.
        state: as ``config``, from which the first sync starts.
    """

    base: tuple[str, ...]
    place: int = 0
    config: Path | None = None
    catalog: Path | None = None
    properties: Path | None = None
    state: Path | None = None

    def line(self, *arguments: str, config: Path | None = None) -> list[str]:
        """Return the command with other arguments, and another config if one is given."""
        config = config or self.config
        words = ["--config", str(config)] if config else []
        return [*self.base[: self.place], *words, *self.base[self.place :], *arguments]


def parse_command(command: Sequence[str]) -> TapCommand:
    """Take Singer's options out of a tap's command line.

    A ``--config`` that comes more than once, or names no file (the Meltano SDK's ``ENV``), stays where it is, and short
    options do that name no file: they may be of the program that runs the tap.

    Raises:
        ConfigError: there is no such program, or a file that is named is not there.
    """
    if not command:
        raise ConfigError("no command of a tap is given; want one after --")
    if shutil.which(command[0]) is None:
        raise ConfigError("there is no such program", source=command[0])
    base, files, place = [command[0]], {}, 1
    arguments = iter(range(1, len(command)))
    for index in arguments:
        word = command[index]
        option, equals, value = word.partition("=")
        name = _OPTIONS.get(option)
        if name is None and word in _SHORT and index + 1 < len(command) and Path(command[index + 1]).is_file():
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
        if not Path(value).is_file():
            raise ConfigError("there is no such file", source=f"{option} {value}")
        files[name] = Path(value).absolute()
        if name == "config":
            place = len(base)
    return TapCommand(base=tuple(base), place=place, **files)


def read_json(path: Path, option: str) -> Any:
    """Read a file that the tap is given.

    Raises:
        ConfigError: it cannot be read, or is no JSON.
    """
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", source=f"{option} {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigError("is no JSON", source=f"{option} {path}") from None
