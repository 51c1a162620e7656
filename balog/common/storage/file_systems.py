"""Open the file systems of fsspec, with timeouts and without caches that outlive a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def open_file_system(protocol: str, url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the file system of a URL, and the URL's path in it.

    Args:
        protocol: the URL's scheme.
        options: arguments of the file system, with secrets revealed.
    """
    from fsspec.registry import get_filesystem_class

    if protocol == "ftp":
        from balog.common.storage.ftp import StrictFTPFileSystem

        kind = StrictFTPFileSystem
    else:
        kind = get_filesystem_class(protocol)
    arguments = {**kind._get_kwargs_from_urls(url), **_with_defaults(protocol, options)}
    if protocol != "memory":  # there is one memory
        arguments |= {"skip_instance_cache": True, "use_listings_cache": False}
    return kind(**arguments), str(kind._strip_protocol(url))


def _with_defaults(protocol: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a file system with timeouts in seconds; s3fs itself makes five attempts."""
    if protocol in ("s3", "s3a"):
        config = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 0}}
        if "endpoint_url" in options:
            config |= _plain_checksums()
        return {**options, "config_kwargs": {**config, **options.get("config_kwargs", {})}}
    if protocol in ("sftp", "ssh"):
        return {"timeout": 30, "host_key_policy": "reject", **options}
    return {"timeout": 30, **options} if protocol == "ftp" else options


def _plain_checksums() -> dict[str, Any]:
    """Return options without the checksums of botocore >= 1.36, which many S3-compatible stores reject."""
    try:
        from botocore.config import Config
    except ImportError:
        return {}
    names = ("request_checksum_calculation", "response_checksum_validation")
    return {name: "when_required" for name in names if name in Config.OPTION_DEFAULTS}
