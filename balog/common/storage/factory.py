"""Creates a storage from a URL and the options in a config, without connecting."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from balog.common.errors import ConfigError, MissingExtraError
from balog.common.local_path import check_variables, local_path
from balog.common.secrets import Secret
from balog.common.storage.base import Storage
from balog.common.storage.local import LocalStorage

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
_SECRET_NAME = re.compile(
    r"key|(secret|private|account|access|api|sas)_?(key|id)?|.*(secret|passw|token|credential|passphrase).*",
    re.IGNORECASE,
)
_INSECURE = {"verify": False, "use_ssl": False, "verify_ssl": False, "ssl": False}


def is_url(text: str) -> bool:
    """Return whether a text is a URL (``s3://…``, ``file:…``), not a path on local disk."""
    return bool(_SCHEME.match(text)) or text.startswith("file:")


def open_storage(url: str, options: Mapping[str, Any] | None = None, field: str = "url") -> Storage:
    """Return the storage at a URL or a path; secrets in the options are revealed here.

    ::

        storage = open_storage("s3://bucket/archive", {"endpoint_url": "https://minio.example.com"})
        storage.write(b"{}", "state.json")

    Args:
        url: a path, ``file://…``, or a URL of any file system that fsspec knows.
        options: arguments of that file system, see ``Options``; also nested, as in ``client_kwargs``.
        field: the URL's field in the config, for errors.

    Raises:
        ConfigError: not a URL that can be written to, credentials in it, or an option that is not for a config.
        MissingExtraError: the packages for this scheme are not installed.
    """
    if not url or not url.isprintable():
        raise ConfigError("is not a URL or a path", path=field)
    if "::" in url and "://" in url:
        raise ConfigError("is a chain of file systems; give the store's own URL", path=field)
    check_variables(url, field)
    if not is_url(url) or url.startswith("file:"):
        if options:
            raise ConfigError("are for a URL such as s3://…, a path on local disk takes none", path="options")
        return LocalStorage(_local_path(url, field))
    return _remote(url, options or {}, field)


def _local_path(url: str, field: str) -> str:
    if not url.startswith("file:"):
        return local_path(url, field)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigError("is not a file on this machine; expected file:///PATH", path=field)
    return unquote(parts.path)


def _remote(url: str, options: Mapping[str, Any], field: str) -> Storage:
    match = _SCHEME.match(url)
    protocol = match[1].lower() if match else ""
    rest = url[len(protocol) + 3 :]
    if protocol in ("http", "https"):
        raise ConfigError("can only be read; give a store's URL, such as s3://BUCKET/PATH", path=field)
    if "@" in rest.partition("/")[0]:
        raise ConfigError('has credentials in the URL; give them in options: {"password": {"env": "NAME"}}', path=field)
    if "?" in rest or (not rest.strip("/") and protocol != "memory"):
        raise ConfigError(f"is not a place to write to; expected {protocol}://HOST_OR_BUCKET/PATH", path=field)
    revealed, secrets = _reveal(options)
    _check_installed(protocol, field)
    from balog.common.storage.remote import RemoteStorage

    return RemoteStorage(f"{protocol}://{rest.rstrip('/')}", protocol, revealed, secrets)


def _check_installed(protocol: str, field: str) -> None:
    try:
        from fsspec.registry import known_implementations
    except ImportError:
        raise MissingExtraError(f"{protocol}://", _EXTRAS.get(protocol, "store")) from None
    known = known_implementations.get(protocol)
    if known is None:
        raise ConfigError(f"{protocol}:// is no kind of store that fsspec knows", path=field)
    module = known["class"].rpartition(".")[0]
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        if protocol in _EXTRAS:
            raise MissingExtraError(f"{protocol}://", _EXTRAS[protocol])
        raise ConfigError(f"needs a package that is not installed: {known.get('err', module)}", path=field)


def _reveal(options: Mapping[str, Any], path: str = "options") -> tuple[dict[str, Any], list[str]]:
    """Return options with their secrets revealed, and these secrets, which no message may show."""
    revealed: dict[str, Any] = {}
    secrets: list[str] = []
    for name, value in options.items():
        where = f"{path}.{name}"
        if isinstance(value, Mapping) and set(value) <= {"env", "file"} and value:
            try:
                revealed[name] = msgspec.convert(value, Secret).reveal()
            except ConfigError as error:
                raise ConfigError(error.reason, error.source, where) from None
            except msgspec.ValidationError as error:
                raise ConfigError(str(error), path=where) from None
            secrets.append(revealed[name])
        elif isinstance(value, Mapping):
            revealed[name], inner = _reveal(value, where)
            secrets += inner
        elif isinstance(value, str) and _SECRET_NAME.fullmatch(name):
            raise ConfigError('holds a secret; give {"env": "NAME"} or {"file": "PATH"}', path=where)
        elif name in _INSECURE and value is _INSECURE[name] and isinstance(value, bool):
            raise ConfigError("certificates are always verified; leave it out", path=where)
        elif isinstance(value, str) and name == "host_key_policy" and value != "reject":
            raise ConfigError('the host must be known; leave it out or say "reject"', path=where)
        else:
            revealed[name] = value
    return revealed, secrets
