"""The distribution that brings this package. Its name on PyPI is not ``balog``: that one is another project."""

import json
from typing import Any

__all__ = ["DISTRIBUTION", "install_command", "installed_version"]

DISTRIBUTION = "balog-events"


def installed_version() -> str:
    """Return the version of the installed distribution.

    Raises:
        importlib.metadata.PackageNotFoundError: the package runs from a folder that was never installed.
    """
    from importlib.metadata import version

    return version(DISTRIBUTION)


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the installation at hand, as it was installed.

    An installation from a folder or a URL says so in its metadata (``direct_url.json``, PEP 610). Then the command
    names that folder or URL, else the distribution.
    """
    source = _direct_url()
    url, folder = source.get("url", ""), source.get("dir_info")
    if folder is not None and url.startswith("file://"):
        from urllib.parse import unquote

        editable = "-e " if folder.get("editable") else ""
        return f"pip install {editable}'{unquote(url[len('file://') :])}[{extra}]'"
    if vcs := source.get("vcs_info"):
        revision = vcs.get("requested_revision") or vcs.get("commit_id", "")
        kind = vcs.get("vcs", "git")
        return f"pip install '{DISTRIBUTION}[{extra}] @ {kind}+{url}{'@' + revision if revision else ''}'"
    if url:
        return f"pip install '{DISTRIBUTION}[{extra}] @ {url}'"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _direct_url() -> dict[str, Any]:
    from importlib.metadata import distributions

    # A checkout that was built has metadata of its own, without a source, beside that of the installation.
    for found in distributions(name=DISTRIBUTION):
        try:
            source = json.loads(found.read_text("direct_url.json") or "{}")
        except (OSError, ValueError):
            continue
        if isinstance(source, dict) and source:
            return source
    return {}
