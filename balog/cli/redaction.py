"""``balog check --redaction``: find the secrets in a file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from balog import config as configs
from balog.cli.output import counted
from balog.errors import ConfigError
from balog.redaction import Redactor, SecretFinding, from_config

_LONGEST_LINE = 8 * 1024 * 1024


def explain_file(path: Path, rules: Path | None) -> int:
    """Print each secret in a file of JSON lines or text: its line, its path and its rule, never its value.

    A gzip file is decompressed.

    Args:
        rules: a config file of the logger whose ``redact`` is used; without one the built-in rules.

    Returns:
        The number of secrets.

    Raises:
        ConfigError: the file cannot be read, is compressed in another way, or the rules are wrong.
    """
    redactor = _redactor(rules)
    found = lines = 0
    try:
        with path.open("rb") as raw, _decompressed(raw, path) as file:
            while line := file.readline(_LONGEST_LINE):
                lines += 1
                for finding in _explain(redactor, line):
                    found += 1
                    click.echo(f"{path}:{lines}: {redactor.redact_text(finding.path)}: {finding.rule}")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ConfigError(f"is damaged or cut off after line {lines}", str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(path)) from None
    click.echo(f"{path}: {counted(found, 'secret')} in {counted(lines, 'line')} would be replaced")
    return found


def _decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    beginning = raw.read(4)
    raw.seek(0)
    if beginning in _COMPRESSED or beginning[:3] == b"BZh":
        raise ConfigError("is compressed; decompress it first", str(path))
    return gzip.GzipFile(fileobj=raw) if beginning[:2] == b"\x1f\x8b" else raw  # type: ignore[return-value]


_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"PAR1", b"\xfd7zX", b"PK\x03\x04")
"""The first bytes of zstd, Parquet, xz and zip."""


def _explain(redactor: Redactor, line: bytes) -> list[SecretFinding]:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        value = line.decode("utf-8", "replace").rstrip("\r\n")
    return redactor.explain(value)


def _redactor(rules: Path | None) -> Redactor:
    declared = True if rules is None else configs.load(rules, dict[str, Any]).get("redact", True)
    try:
        return from_config(declared) or Redactor()
    except ConfigError as error:
        raise ConfigError(error.reason, str(rules), f"$.redact{(error.path or '$')[1:]}") from None
