"""Checks a control document on this machine: what it may name, and whether its jobs can read their topics.

The operator's setting ``document_access`` lists what it may name.
The author of a document chooses URLs, and secrets by reference. Without this setting, a token that may ``configure``
could send any file or variable of the host to any server.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from balog.common.errors import ConfigError
from balog.common.http.addresses import Networks
from balog.common.secrets import Secret
from balog.service.document import Callback, ClickHouseTable, ControlDocument, YTsaurusTable
from balog.service.jobs import service_jobs
from balog.service.settings import DocumentAccess
from balog.topics import Topics

_SETTING = "document_access"


def access_problems(access: DocumentAccess) -> Iterator[ConfigError]:
    """Yield the problems of the setting itself."""
    for number, block in enumerate(access.networks):
        try:
            Networks([block])
        except ValueError:
            yield ConfigError(
                f"{block[:60]!r} is not a network; expected 10.1.0.0/16, fd00::/8 or an address",
                path=f"$.{_SETTING}.networks[{number}]",
            )


def document_problems(document: ControlDocument, access: DocumentAccess) -> Iterator[ConfigError]:
    """Yield what a document names and the operator did not list: variables, files, private addresses, clusters.

    A host name is checked when it is connected to.
    """
    networks = Networks(access.networks)
    for _, job_path, part in service_jobs(document):  # `balog load` opens other tables, with the rights of its user
        yield from _secret_problems(part, access, job_path)
        if isinstance(part, ClickHouseTable):
            yield from _address_problems(part.url, networks, job_path)
        elif isinstance(part, YTsaurusTable) and part.proxy not in access.clusters:
            yield ConfigError(
                f"the service's settings do not list this cluster; the operator may add it: {_SETTING}.clusters",
                path=f"{job_path}.proxy",
            )
        elif isinstance(part, Callback) and part.private and not networks:
            yield ConfigError(
                f"the service's settings list no private network; the operator may add one: {_SETTING}.networks",
                path=f"{job_path}.private",
            )
        elif isinstance(part, Callback) and part.private and isinstance(part.url, str):
            yield from _address_problems(part.url, networks, job_path)


def access_for(document: ControlDocument) -> DocumentAccess:
    """Return a setting that allows what a document names, and all networks. For the operator's own document."""
    secrets = [secret for part in (*document.tables, *document.callbacks) for _, secret in _secrets(part)]
    files = [secret.file for secret in secrets if secret.file is not None]
    return DocumentAccess(
        variables=tuple(glob.escape(secret.env) for secret in secrets if secret.env is not None),
        folders=tuple(os.path.dirname(os.path.realpath(file)) for file in files),
        networks=("0.0.0.0/0", "::/0"),
        clusters=tuple(table.proxy for table in document.tables if isinstance(table, YTsaurusTable)),
    )


def _secret_problems(part: Any, access: DocumentAccess, job_path: str) -> Iterator[ConfigError]:
    for path, secret in _secrets(part):
        if secret.env is not None and not any(fnmatchcase(secret.env, pattern) for pattern in access.variables):
            yield ConfigError(
                f"the service's settings do not list the variable {secret.env[:100]}; the operator may add it: "
                f"{_SETTING}.variables",
                path=f"{job_path}.{path}",
            )
        if secret.file is not None and not _is_within(secret.file, access.folders):
            yield ConfigError(
                f"the service's settings list no folder with this file; the operator may add one: {_SETTING}.folders",
                path=f"{job_path}.{path}",
            )


def _secrets(part: Any) -> Iterator[tuple[str, Secret]]:
    """Return each reference to a secret in a part of the document, and each file that it names, with its path."""
    if isinstance(part, Callback):
        if isinstance(part.url, Secret):
            yield "url", part.url
        for number, secret in enumerate(part.secrets):
            yield f"secrets[{number}]", secret
        yield from ((f"headers.{name}", value) for name, value in part.headers.items() if isinstance(value, Secret))
    for name in ("password", "token"):
        value = getattr(part, name, None)
        if isinstance(value, Secret):
            yield name, value
    if (ca_file := getattr(part, "ca_file", None)) is not None:
        yield "ca_file", Secret(file=ca_file)


def _is_within(file: str, folders: Sequence[str]) -> bool:
    """Return whether a file is in one of the folders, after every symbolic link was followed."""
    try:
        real_path = os.path.realpath(file)
    except ValueError:  # a NUL byte, which no path has
        return False
    return any(real_path.startswith(os.path.join(os.path.realpath(folder), "")) for folder in folders)


def _address_problems(url: str, networks: Networks, job_path: str) -> Iterator[ConfigError]:
    try:
        kind = networks.why_refused(urlsplit(url).hostname or "")
    except ValueError:
        return  # a host name: its addresses are checked when it is connected to
    if kind:
        yield ConfigError(
            f"is an address of {kind}; the service's settings list no such network: {_SETTING}.networks",
            path=f"{job_path}.url",
        )


def source_problems(document: ControlDocument, topics: Topics) -> Iterator[ConfigError]:
    """Yield the jobs that cannot read their sources. Connects to no server.

    If a topic is a queue (``Topic.keeps_groups`` is False), two readers would each get a part of its events. A filter
    can write a queue for each of them.
    """
    readers: dict[str, str] = {}
    for _, job_path, part in service_jobs(document):
        for source in dict.fromkeys((part.source,) if isinstance(part, Callback) else part.sources):
            first = readers.setdefault(source, job_path)
            try:
                is_shared = topics.topic(source).keeps_groups
            except ConfigError as error:
                yield ConfigError(error.reason, path=job_path)
                continue
            if first != job_path and not is_shared:
                yield ConfigError(
                    f"{first} reads the queue {source}, too, so each would get some of its events; give each a queue "
                    "of its own",
                    path=job_path,
                )
