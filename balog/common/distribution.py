"""The distribution of this package. Its name on PyPI is not ``balog``, which is another project."""

import json
from typing import Any

DISTRIBUTION = "balog-events"


def installed_version() -> str:
    """Return the version of the installed distribution.

    Raises:
        importlib.metadata.PackageNotFoundError: the package is not installed.
    """
    from importlib.metadata import version

    return version(DISTRIBUTION)


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the current installation.

    It names the folder or URL of the installation from its metadata (``direct_url.json``, PEP 610), else the
    distribution.
    """
    source = _direct_url()
    url, folder = source.get("url", ""), source.get("dir_info")
    if folder is not None and url.startswith("file://"):
        from urllib.parse import unquote

        editable = "-e " if folder.get("editable") else ""
        return f"pip install {editable}'{unquote(url[len('file://') :])}[{extra}]'"
    if vcs := source.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    if url:
        return f"pip install '{DISTRIBUTION}[{extra}] @ {url}'"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _direct_url() -> dict[str, Any]:
    from importlib.metadata import distributions

    # A built checkout has its own metadata without a source, in addition to that of the installation.
    for distribution in distributions(name=DISTRIBUTION):
        try:
            source = json.loads(distribution.read_text("direct_url.json") or "{}")
        except (OSError, ValueError):
            continue
        if isinstance(source, dict) and source:
            return source
    return {}
