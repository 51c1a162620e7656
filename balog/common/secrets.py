"""References to secrets in a config, which never has the secrets themselves."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from balog.common.errors import ConfigError

_MAX_BYTES = 64 * 1024


_Name = Annotated[str, Meta(min_length=1)]


class Secret(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """``{"env": "NAME"}`` or ``{"file": "PATH"}``: an environment variable, or a file without its last newline."""

    REFUSES_TEXT: ClassVar[str] = 'a secret does not stand in a config; expected {"env": NAME} or {"file": PATH}'
    """What a text in place of the reference is answered; see ``balog.common.config.problems``."""

    env: Annotated[_Name | None, Meta(description="The environment variable that holds it.", examples=["API_KEY"])] = (
        None
    )
    file: Annotated[
        _Name | None, Meta(description="The file that holds it, and nothing else.", examples=["/run/secrets/key"])
    ] = None

    def __post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise ValueError('a secret is {"env": "NAME"} or {"file": "PATH"}, one of the two')

    def reveal(self, path: str = "") -> str:
        """Return the secret.

        Raises:
            ConfigError: the secret is missing, empty or unreadable; the message has no part of it. ``path`` is the
                field of the config that names the secret.
        """
        if self.env is not None:
            text = os.environ.get(self.env, "")
            if not text:
                raise ConfigError(
                    f"the environment variable {self.env} is not set; it should hold the secret", path=path
                )
            return text
        name = self.file or ""
        try:
            with open(name, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
            text = data.decode().rstrip("\r\n")
        except OSError as error:
            raise ConfigError(
                f"the secret's file {name} cannot be read: {error.strerror or error}", path=path
            ) from None
        except ValueError:
            raise ConfigError(f"the secret's file {name!r} is not UTF-8 text", path=path) from None
        if not text or len(data) > _MAX_BYTES:
            raise ConfigError(f"the secret's file {name} is {'too large' if text else 'empty'}", path=path)
        return text
