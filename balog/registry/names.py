"""Names of types, versions and their order, and the file names of versions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from semantic_version import Version

from balog.common.errors import ConfigError
from balog.registry.schema import Form, Schema

_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_VERSION = re.compile(
    r"(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})(?:-[0-9A-Za-z-]{1,20}(?:\.[0-9A-Za-z-]{1,20}){0,4})?",
    re.ASCII,
)
_MESSAGE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_FORMS: dict[str, Form] = {".json": "json", ".proto": "protobuf"}
_SUFFIXES = {form: suffix for suffix, form in _FORMS.items()}


class FileName(NamedTuple):
    """``VERSION.json``, ``VERSION.proto``, or ``VERSION@MESSAGE.proto`` if the file holds several messages."""

    version: str
    form: Form
    message: str = ""

    def __str__(self) -> str:
        at = f"@{self.message}" if self.message else ""
        return f"{self.version}{at}{_SUFFIXES[self.form]}"


def parse_file_name(name: str) -> FileName | None:
    """Parse a file name without its folder. Return None if it does not name a version."""
    for suffix, form in _FORMS.items():
        if name.endswith(suffix):
            version, at, message = name.removesuffix(suffix).partition("@")
            if not is_version(version) or (at and (form == "json" or not _MESSAGE.fullmatch(message))):
                return None
            return FileName(version, form, message)
    return None


def is_type(name: str) -> bool:
    """Return whether a store can hold a type of this name. The ``cls_type`` of a payload may be any text."""
    return _TYPE.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def is_version(text: str) -> bool:
    """Return whether a text is a version: SemVer 2.0.0 (semver.org) without build metadata, of bounded length."""
    if not _VERSION.fullmatch(text):
        return False
    try:
        Version(text)
    except ValueError:  # such as 1.0.0-01
        return False
    return True


def check_names(schema: Schema) -> None:
    """Check the type, the version and the message of a schema, which become a path.

    Raises:
        ConfigError: one is not valid, or the schema's form has no messages.
    """
    type, version, message = schema.type, schema.version, schema.message
    if not is_type(type):
        wanted = "1 to 100 letters, digits, '.', '_' or '-', the first one a letter or digit"
        raise ConfigError(f"{type[:100]!r} is no name for a type; expected {wanted}")
    if not is_version(version):
        raise ConfigError(f"{version[:100]!r} is no version; expected SemVer without build metadata, such as 1.0.0")
    if message and (schema.form != "protobuf" or len(message) > 100 or not _MESSAGE.fullmatch(message)):
        wanted = "the name of one of a .proto file, such as shop.v1.Order"
        raise ConfigError(f"{message[:100]!r} is no message; expected {wanted}")


@lru_cache(maxsize=4096)
def order(version: str) -> Version:
    """Return the sort key of a version (semver.org, 11)."""
    return Version(version)


def major(version: str) -> str:
    """Return the part that compatible versions share: ``1`` for 1.2.0, ``0.2`` for 0.2.7."""
    first, second, _ = version.split(".", 2)
    return first if first != "0" else f"0.{second}"


def latest(versions: list[str]) -> str:
    """Return the latest of sorted versions: the last release, or the last prerelease if there is no release."""
    return next((version for version in reversed(versions) if "-" not in version), versions[-1])
